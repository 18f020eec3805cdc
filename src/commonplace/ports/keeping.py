"""The rows, noun by noun."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from commonplace.model import (
    EVERYTHING,
    Annotation,
    Candidate,
    CandidateState,
    Capture,
    Content,
    Dependencies,
    Entry,
    Folder,
    Item,
    ItemFilter,
    ItemRef,
    Job,
    Json,
    Order,
    Outcome,
    Passage,
    Proposal,
    Reading,
    Relation,
    Revised,
    Scope,
    Scored,
    Section,
    Stakes,
    Subscription,
    Surroundings,
    Ticket,
    Upload,
    Version,
    Words,
    Worth,
)
from commonplace.ports.outside import Vector


class Folders(Protocol):
    async def create(self, folder: Folder) -> None:
        """NameTaken when the library has the name, whatever its case."""
        ...

    async def within(self, scope: Scope) -> list[Folder]: ...

    async def rename(self, scope: Scope, folder_id: str, name: str) -> Folder: ...

    async def stakes(self, scope: Scope, folder_id: str) -> Stakes: ...

    async def delete(self, scope: Scope, folder_id: str, *, cascade_items: bool) -> None:
        """With `cascade_items`, items that lie in no other folder go too. A token whose last folder goes is revoked."""
        ...


class Items(Protocol):
    async def add(
        self,
        item: Item,
        content: Content,
        sections: Sequence[Section],
        *,
        scope: Scope,
        folder_id: str | None,
        stamp: str,
        jobs: Sequence[Job],
        relations: Sequence[Relation] = (),
        capture: Capture | None = None,
        once: bool = True,
        beside: Revised | None = None,
        accepts: Candidate | None = None,
        upload: Upload | None = None,
    ) -> tuple[Item, bool]:
        """All of it in one transaction, also what becomes of another item `beside` it. What the scope already holds with this
        content and type (and, for texts, title): that, and False, unless it need not be there `once` only. Conflict: by now the
        key stands for a content that says something else, or the other item is at another revision. NotFound: a relation leads
        out of the scope. Without a `folder_id` the item is filed in `item.folders`. `accepts`: the pending candidate that
        becomes this item; Conflict if it was decided already. `upload`: the file that it is made of, with the answer
        to give for it from now on; Conflict if it was finished already."""
        ...

    async def known(
        self, scope: Scope, key: str, entity_type: str, *, token_id: str | None = None
    ) -> tuple[Content | None, Item | None]:
        """What the key stands for, and the item that has it: in scope, or added by the token and not filed yet."""
        ...

    async def renew(
        self,
        scope: Scope,
        item_id: str,
        content: Content,
        changes: dict[str, Any],
        *,
        sections: Sequence[Section],
        stamp: str,
        jobs: Sequence[Job],
        expected_revision: int | None = None,
    ) -> Item:
        """From now on the content's key stands for this content, and the item has it. Others keep what they have."""
        ...

    async def annotate(self, made: Sequence[Annotation]) -> None:
        """Change what was made of texts. Not a revision of anybody's; and what people choose themselves (tags, category,
        metadata) stays where somebody has changed the item since it was read."""
        ...

    async def put(self, entries: Sequence[Entry], *, scope: Scope, stamp: str) -> list[Outcome]:
        """Many, in one transaction: new, or brought up to date (see Entry)."""
        ...

    async def get(self, scope: Scope, ref: ItemRef, *, token_id: str | None = None) -> Item:
        """`token_id`: also what this token added and nobody has filed yet."""
        ...

    async def whole(self, scope: Scope, ref: ItemRef) -> Reading: ...

    async def several(self, scope: Scope, item_ids: Collection[str]) -> dict[str, Item]:
        """By id, in one query; what is out of scope or gone by now is left out."""
        ...

    async def text(self, item: Item) -> str: ...

    async def texts(self, items: Sequence[Item]) -> dict[str, str]:
        """By the items' ids, in one query; those that are gone by now are left out."""
        ...

    async def page(
        self,
        scope: Scope,
        where: ItemFilter,
        *,
        limit: int,
        offset: int,
        order: Order = Order.NEWEST,
        count: bool = True,
    ) -> tuple[list[Item], int]:
        """In this order, and how many there are in all; 0 when they need not be counted."""
        ...

    async def update(
        self,
        scope: Scope,
        item_id: str,
        changes: dict[str, Any],
        *,
        expected_revision: int | None,
        sections: Sequence[Section] | None,
        stamp: str,
        jobs: Sequence[Job],
        relations: Sequence[Relation] = (),
        dropped: Sequence[Relation] = (),
    ) -> Item:
        """Change fields; `sections` (when not None) replace those that are there. A new title needs new ones. Relations
        come and go in the same transaction; those to be `dropped` begin or end at the item, and may lead out of the scope; one
        that is not there is as good as dropped."""
        ...

    async def delete(
        self, scope: Scope, item_id: str, *, expected_revision: int | None = None
    ) -> None:
        """What also lies in a folder out of the scope is taken out of the scope's own, and stays there."""
        ...

    async def file(
        self, scope: Scope, ref: ItemRef, folder_ids: Sequence[str], *, token_id: str | None
    ) -> list[str]:
        """Folders it was not in before. A token may also file what it added and nobody has filed yet."""
        ...

    async def unfile(self, scope: Scope, ref: ItemRef, folder_id: str) -> None: ...


class Contents(Protocol):
    """What sources said. While one worker writes down a recording, the others' jobs for it wait."""

    async def get(self, content_id: str) -> Content: ...

    async def known(self, keys: Sequence[str]) -> set[str]:
        """Those that there is a content for."""
        ...

    async def redirect(self, key: str, content_id: str) -> None:
        """From now on the key leads to this content."""
        ...

    async def claim(self, content_id: str, job_id: str, until: datetime) -> bool:
        """Whether this job is the one that writes it down, until then; again to hold it longer."""
        ...

    async def progress(self, content_id: str, share: float) -> None:
        """Told to all jobs that wait for it."""
        ...

    async def fulfil(
        self, content_id: str, text: str, segments: Sequence[Json], about: Json
    ) -> None:
        """It has its text; those who waited go on."""
        ...

    async def release(self, content_id: str, job_id: str) -> None:
        """Another may try."""
        ...

    async def give_up(self, content_id: str, error: str) -> None:
        """It cannot be written down: all jobs that wait for it fail, and their items say so."""
        ...


class Versions(Protocol):
    """What items said before. Written by whatever replaces an item's text; gone with the item."""

    async def of_item(self, scope: Scope, item_id: str) -> list[Version]:
        """Newest first, without their texts."""
        ...

    async def get(self, scope: Scope, item_id: str, revision: int) -> Version: ...


class Quotas(Protocol):
    """Seconds of speech that people had written down, by month."""

    async def used(self, library_id: str, person_id: str, month: str) -> float: ...

    async def reserve(
        self, job: Job, person_id: str, month: str, seconds: float, cap: float
    ) -> bool:
        """Whether there is room for so many seconds more; 0: no cap. Asking again for one job replaces what it had."""
        ...

    async def settle(self, job: Job, seconds: float) -> None:
        """What it really was; 0 when nothing came of it."""
        ...


@dataclass(frozen=True, slots=True)
class Question:
    words: Words | None  # None: not asked for
    vector: Vector | None
    stamp: str  # whose vectors it may be compared with
    limit: int  # of each kind


class Matches(NamedTuple):
    """What both kinds of search say of each section."""

    ids: NDArray[np.int64]
    keyword: NDArray[np.float32]  # 0: not found by words
    cosines: NDArray[np.float32]  # not a number: not known


class Sections(Protocol):
    async def of_item(self, item: Item) -> list[Section]: ...

    async def of_items(self, items: Sequence[Item]) -> dict[str, list[Section]]:
        """By the ids of the items, which are of one library; those that have none are left out."""
        ...

    async def of_content(self, content_id: str, title: str, stamp: str) -> list[Section]:
        """With vectors of this stamp, of some item that has the content under this title, and no notes; none if there is none."""
        ...

    async def keyword(
        self, scope: Scope, words: Words, limit: int, where: ItemFilter | None = None
    ) -> list[Scored]:
        """Best first; scores are above 0 and comparable within one answer only. `where`: only of these items."""
        ...

    async def nearest(
        self, scope: Scope, vector: Vector, stamp: str, limit: int, where: ItemFilter | None = None
    ) -> list[Scored]:
        """Cosines, best first."""
        ...

    async def nearest_to_each(
        self,
        scope: Scope,
        vectors: Sequence[Vector],
        stamp: str,
        limit: int,
        where: ItemFilter | None = None,
    ) -> list[list[Scored]]:
        """The same for several vectors at once, as of one moment."""
        ...

    async def matches(
        self, scope: Scope, question: Question, where: ItemFilter | None = None
    ) -> Matches:
        """What both kinds of search find, and what each says of the other's. In no order."""
        ...

    async def search(
        self,
        scope: Scope,
        question: Question,
        choose: Callable[[Matches], list[Scored]],
        limit: int,
        where: ItemFilter | None = None,
    ) -> list[tuple[float, Passage]]:
        """The first `limit` passages of those that `choose` puts in order, as of one moment; what is gone by now is left out."""
        ...

    async def passages(self, scope: Scope, section_ids: Sequence[int]) -> list[Passage]:
        """In any order; what is out of scope or gone by now is left out."""
        ...

    async def openings(
        self, scope: Scope, item_ids: Sequence[str], where: ItemFilter | None = None
    ) -> list[Passage]:
        """The first passage of each of the items, in any order."""
        ...

    async def opening_vectors(
        self, scope: Scope, item_ids: Sequence[str], stamp: str
    ) -> tuple[list[str], NDArray[np.float32]]:
        """Of the first passage of each of the items that has a vector of this stamp: the item's id, and a row."""
        ...

    async def unembedded(
        self, item_ids: Sequence[str], stamp: str, limit: int = 100_000
    ) -> list[tuple[str, str, int, Section]]:
        """(item_id, title, section_id, section) without a vector of this stamp, in order of item and position."""
        ...

    async def set_vectors(self, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None:
        """float16 bytes by section id; a section that is gone by now is passed over."""
        ...

    async def coverage(self, scope: Scope, stamp: str) -> tuple[int, int]:
        """(sections with a vector of this stamp, sections in all)."""
        ...

    async def has_other_stamp(self, stamp: str, scope: Scope | None = None) -> bool:
        """Whether any vector, or any of what the scope sees, was made by another embedder."""
        ...


class Relations(Protocol):
    """Both ends lie within the scope, or the relation is not there. A task is part of one epic at most, and a task or an epic
    belongs to one project: what is put takes the place of what was there. An item is `superseded` for as long as something that
    is neither wrong nor stale replaces it, directly or not."""

    async def put(self, scope: Scope, relations: Sequence[Relation]) -> int:
        """How many are new. What somebody said outlasts what was found by likeness. Invalid: tasks would wait for each
        other in a circle, which it names."""
        ...

    async def drop(self, scope: Scope, from_id: str, kind: str, to_id: str) -> None: ...

    async def of(
        self,
        scope: Scope,
        item_ids: Sequence[str],
        kinds: Sequence[str] = (),
        *,
        outgoing: bool = False,
    ) -> list[Relation]:
        """Those that begin or end at one of the items, or with `outgoing` only those that begin there, oldest first."""
        ...

    async def has_task(
        self, scope: Scope, epic_id: str, statuses: Sequence[str], *, but: bool = False
    ) -> bool:
        """Whether a task of the epic has one of these statuses, or with `but` another one."""
        ...

    async def around(
        self,
        scope: Scope,
        ref: ItemRef,
        *,
        depth: int,
        limit: int,
        offset: int = 0,
        kinds: Sequence[str] = (),
        where: ItemFilter = EVERYTHING,
    ) -> Surroundings:
        """What can be reached in so many steps, near before far, then the best joined first. Nothing out of scope is
        walked through; what `where` leaves out is, but not shown."""
        ...

    async def dependencies(
        self, scope: Scope, ref: ItemRef, where: ItemFilter = EVERYTHING
    ) -> Dependencies: ...

    async def waits(
        self, scope: Scope
    ) -> list[tuple[str, str]]: ...  # what depends on what, by ids

    async def tickets(
        self,
        scope: Scope,
        where: ItemFilter = EVERYTHING,
        *,
        project_id: str | None = None,
        assignee: str | None = None,
        worth: Worth | None = None,
    ) -> tuple[list[Ticket], list[tuple[str, str]], int | None]:
        """Tasks and epics that are asked for, in any order, and all that depends on something. They say whether they are inside
        the project, and this person's or nobody's. With `worth`, of more than 1,000 only those that count most by themselves
        and what they depend on; then the number of all tasks inside that are theirs is told as well."""
        ...


class Captures(Protocol):
    """Written by `Items.add` with the item that points to them; there is no way to change one."""

    async def by_key(self, library_id: str, owner: str, idempotency_key: str) -> Capture | None: ...

    async def by_prefix(self, library_id: str, owner: str, prefix: str) -> list[Capture]:
        """Those whose key begins so, oldest first."""
        ...

    async def of_item(self, scope: Scope, item_id: str) -> Capture: ...

    async def page(self, scope: Scope, *, limit: int, offset: int) -> tuple[list[Capture], int]:
        """Of items in scope, newest first, and how many there are in all."""
        ...


class Candidates(Protocol):
    """`owner`: only what this one queued; None: the library's. What is decided stays as it is: Conflict."""

    async def put(self, candidates: Sequence[Candidate]) -> None:
        """Those that are there already stay as they are."""
        ...

    async def drawn_from(self, library_id: str, source_id: str) -> bool:
        """Whether there is one, decided or not, that this item brought."""
        ...

    async def page(
        self, library_id: str, owner: str | None, state: str | None, *, limit: int, offset: int
    ) -> tuple[list[Candidate], int]:
        """Newest and surest first, and how many there are in all."""
        ...

    async def get(self, library_id: str, owner: str | None, candidate_id: str) -> Candidate: ...

    async def change(
        self,
        library_id: str,
        owner: str | None,
        candidate_id: str,
        proposal: Proposal,
        project_id: str | None,
    ) -> Candidate: ...

    async def decide(
        self,
        library_id: str,
        owner: str | None,
        candidate_id: str,
        state: CandidateState,
        item_id: str | None = None,
    ) -> Candidate: ...


class Feeds(Protocol):
    async def create(self, feed: Subscription) -> Subscription:
        """The one that the subscriber has for this address and folder already, if there is one."""
        ...

    async def within(self, library_id: str, token_id: str | None) -> list[Subscription]:
        """The library's, or only those of one token."""
        ...

    async def delete(self, feed: Subscription) -> None: ...

    async def lease(self, seconds: int) -> Subscription | None:
        """One whose time has come, and which nobody else is given for `seconds`."""
        ...

    async def taken(self, feed: Subscription, tries: int) -> set[str]:
        """Entries that were taken in, or tried so often."""
        ...

    async def note(self, feed: Subscription, entries: Sequence[str], *, ok: bool) -> None: ...

    async def polled(
        self,
        feed: Subscription,
        *,
        title: str,
        error: str | None,
        poll_at: datetime,
        validators: Json,
    ) -> None: ...
