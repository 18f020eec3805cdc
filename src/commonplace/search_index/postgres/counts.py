"""Sizes of libraries and folders, and how many of their sections have each term.

A transaction notes what it changes (`tx.defer`) and settles it last. It then takes the library's
row of `scope_sizes`, so that writers of one library settle one after the other, and sees all that
others have committed. With F for the folders of an item, S for its sections, and a dash for what
was before: a folder changes by F·S - F'·S'.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter, itemgetter
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from commonplace.database import Tx
from commonplace.search_index.postgres import encoding

COUNTED_FROM, COUNTED_UNTIL = 2_000, 1_000  # sections of a scope whose terms are counted
LARGE, NO_LONGER_LARGE = 5_000, 2_500  # sections of a library that has keys and an HNSW index

WHOLE = "00000000-0000-0000-0000-000000000000"  # in place of a folder: the whole library

# The terms of `section_words AS w`, one a row.
TERMS_OF = """unnest(string_to_array(substr(split_part(w.weights::text, '}', 1), 2), ','))
              AS element
              CROSS JOIN LATERAL (SELECT split_part(element, ':', 1)::int - 1 AS term) AS t"""
_IN_FOLDER = """w.item_id IN (SELECT fi.item_id::uuid FROM folder_items AS fi
                WHERE fi.library_id = :library_id::text AND fi.folder_id = :folder_id::text)"""

Terms = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Change:
    """What a transaction did to one item."""

    library_id: str
    item_id: str = ""
    added: tuple[Terms, ...] = ()  # of each new section
    removed: int = 0  # sections
    removed_terms: Terms | None = None  # of them; None: unknown
    keyed: bool = False  # whether the new sections have keys
    had: tuple[str, ...] = ()  # folders of an item that was deleted
    filed: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    dropped: str = ""  # a folder that was deleted
    stamp: str = ""  # of vectors that were written


@dataclass(slots=True)
class _Delta:
    """How a scope changes."""

    sections: int = 0
    terms: Counter[int] = field(default_factory=Counter)
    known: bool = True  # whether the terms are

    def add(self, other: "_Delta") -> None:
        self.sections += other.sections
        self.known = self.known and other.known
        self.terms.update(other.terms)

    def subtract(self, other: "_Delta") -> None:
        self.sections -= other.sections
        self.known = self.known and other.known
        self.terms.subtract(other.terms)


@dataclass(frozen=True, slots=True)
class Library:
    """The row of a whole library."""

    sections: int
    counted: bool
    keyed: int
    nearest: str | None

    def wants_work(self, stamps: Iterable[str]) -> bool:
        """Whether a job should make or drop its keys and its HNSW index."""
        if self.sections >= LARGE:
            return self.keyed < 2 or any(stamp != self.nearest for stamp in stamps)
        return self.sections < NO_LONGER_LARGE and (self.keyed > 0 or self.nearest is not None)


def settle(tx: Tx, changes: Sequence[Change], enqueue: Callable[[Tx, str], None]) -> None:
    by_library = attrgetter("library_id")
    for library_id, group in groupby(sorted(changes, key=by_library), by_library):
        own = list(group)
        library = _settle(tx, library_id, own)
        stamps = {change.stamp for change in own if change.stamp}
        if library.wants_work(stamps):
            enqueue(tx, library_id)


def _settle(tx: Tx, library_id: str, changes: Sequence[Change]) -> Library:
    items, whole = dict[str, _Delta](), _Delta()
    for item_id, own in _by_item(changes):
        items[item_id] = _sections_delta(own)
        whole.add(items[item_id])
    row = tx.all(
        """INSERT INTO scope_sizes AS s (library_id, folder_id, sections, changes)
           VALUES (:library_id, :whole, :sections, 1) ON CONFLICT (library_id, folder_id)
           DO UPDATE SET sections = s.sections + excluded.sections, changes = s.changes + 1
           RETURNING sections, counted, keyed, nearest""",
        library_id=library_id,
        whole=WHOLE,
        sections=whole.sections,
    )[0]
    library = Library(**row)
    if library.keyed:
        _give_keys(tx, library_id, [one for one in changes if one.added and not one.keyed])
    folders = _folder_deltas(tx, library_id, changes, items, library.counted)
    scopes = [(WHOLE, library.sections, library.counted, whole)]
    if folders:
        sizes = tx.tuples(
            """INSERT INTO scope_sizes AS s (library_id, folder_id, sections)
               SELECT :library_id::text, * FROM unnest(:folders::uuid[], :sections::bigint[])
               ORDER BY 2 ON CONFLICT (library_id, folder_id)
               DO UPDATE SET sections = s.sections + excluded.sections
               RETURNING folder_id::text, sections, counted""",
            library_id=library_id,
            folders=list(folders),
            sections=[delta.sections for delta in folders.values()],
        )
        scopes += [(*size, folders[size[0]]) for size in sorted(sizes)]
    for folder_id, sections, counted, delta in scopes:
        _settle_terms(tx, library_id, folder_id, sections, counted, delta)
    dropped = {change.dropped for change in changes if change.dropped}
    dropped |= {folder_id for folder_id, sections, *_ in scopes[1:] if sections <= 0}
    for folder_id in sorted(dropped):
        for table in ("scope_sizes", "term_counts"):
            tx.run(
                f"DELETE FROM {table} WHERE library_id = :library_id AND folder_id = :folder_id",
                library_id=library_id,
                folder_id=folder_id,
            )
    return library


def _by_item(changes: Sequence[Change]) -> Iterator[tuple[str, list[Change]]]:
    by_item: defaultdict[str, list[Change]] = defaultdict(list)
    for change in changes:
        if change.item_id:
            by_item[change.item_id].append(change)
    yield from by_item.items()


def _sections_delta(changes: Sequence[Change]) -> _Delta:
    delta = _Delta()
    for change in changes:
        delta.sections += len(change.added) - change.removed
        delta.terms.update(chain.from_iterable(terms.tolist() for terms in change.added))
        if change.removed and change.removed_terms is None:
            delta.known = False
        elif change.removed_terms is not None:
            delta.terms.subtract(change.removed_terms.tolist())
    return delta


def _folder_deltas(
    tx: Tx, library_id: str, changes: Sequence[Change], items: dict[str, _Delta], counted: bool
) -> dict[str, _Delta]:
    """Return how each folder changes: F·S - F'·S'."""
    if not items:
        return {}
    dropped = {change.dropped for change in changes}
    now: defaultdict[str, set[str]] = defaultdict(set)
    for item_id, folder_id in tx.tuples(
        """SELECT item_id, folder_id FROM folder_items
           WHERE library_id = :library_id AND item_id IN :ids""",
        library_id=library_id,
        ids=list(items),
    ):
        now[item_id].add(folder_id)
    before: dict[str, set[str]] = {}
    moved = list[str]()
    for item_id, own in _by_item(changes):
        folders = set(now[item_id])
        for change in reversed(own):
            folders = (folders | change.left | set(change.had)) - change.filed
        before[item_id] = folders
        if folders != now[item_id]:
            moved.append(item_id)
    present = _present(tx, library_id, moved, counted)
    deltas: defaultdict[str, _Delta] = defaultdict(_Delta)
    for item_id, change_of in items.items():
        there, was = now[item_id], before[item_id]
        for folder_id in there & was:
            deltas[folder_id].add(change_of)
        if there == was:
            continue
        sections = present.get(item_id, _Delta())
        for folder_id in there - was:
            deltas[folder_id].add(sections)
        for folder_id in was - there:
            deltas[folder_id].subtract(sections)
            deltas[folder_id].add(change_of)
    return {
        folder_id: deltas[folder_id]
        for folder_id in sorted(deltas)
        if folder_id not in dropped and (deltas[folder_id].sections or any(deltas[folder_id].terms))
    }


def _present(tx: Tx, library_id: str, item_ids: list[str], counted: bool) -> dict[str, _Delta]:
    """Return the sections that items have now."""
    if not item_ids:
        return {}
    found = tx.tuples(
        f"""SELECT w.item_id::text, {"sparsevec_send(w.weights)" if counted else "NULL"}
            FROM section_words AS w
            WHERE w.library_id = :library_id AND w.item_id = ANY(:ids::uuid[]) ORDER BY 1""",
        library_id=library_id,
        ids=item_ids,
    )
    present = dict[str, _Delta]()
    for item_id, group in groupby(found, itemgetter(0)):
        each = [weights for _, weights in group]
        delta = present[item_id] = _Delta(len(each), known=counted)
        for weights in each if counted else ():
            delta.terms.update(encoding.terms(weights).tolist())
    return present


def _settle_terms(
    tx: Tx, library_id: str, folder_id: str, sections: int, counted: bool, delta: _Delta
) -> None:
    scope = {"library_id": library_id, "folder_id": folder_id}
    if counted and sections < COUNTED_UNTIL:
        tx.run(
            "DELETE FROM term_counts WHERE library_id = :library_id AND folder_id = :folder_id",
            **scope,
        )
        _mark_counted(tx, False, scope)
    elif sections >= COUNTED_FROM and not (counted and delta.known):
        count_terms(tx, library_id, folder_id)
        _mark_counted(tx, True, scope)
    elif counted:
        _count(tx, delta, scope)


def count_terms(tx: Tx, library_id: str, folder_id: str) -> None:
    """Count the terms of a scope from its sections. The caller holds the library's row."""
    scope = {"library_id": library_id, "folder_id": folder_id}
    tx.run(
        "DELETE FROM term_counts WHERE library_id = :library_id AND folder_id = :folder_id",
        **scope,
    )
    tx.run(
        f"""INSERT INTO term_counts (library_id, folder_id, term, sections)
            SELECT :library_id::text, :folder_id::uuid, t.term, count(*)
            FROM section_words AS w CROSS JOIN LATERAL {TERMS_OF}
            WHERE w.library_id = :library_id
            AND {"TRUE" if folder_id == WHOLE else _IN_FOLDER} GROUP BY t.term""",
        **scope,
    )


def _count(tx: Tx, delta: _Delta, scope: dict[str, str]) -> None:
    changed = sorted((term, count) for term, count in delta.terms.items() if count)
    if not delta.known:
        count_terms(tx, **scope)
        return
    if not changed:
        return
    terms = [term for term, _ in changed]
    tx.run(
        """INSERT INTO term_counts AS c (library_id, folder_id, term, sections)
           SELECT :library_id::text, :folder_id::uuid, *
           FROM unnest(:terms::int[], :counts::int[])
           ON CONFLICT (library_id, folder_id, term)
           DO UPDATE SET sections = c.sections + excluded.sections""",
        terms=encoding.integers(np.array(terms, np.int64)),
        counts=encoding.integers(np.array([count for _, count in changed], np.int64)),
        **scope,
    )
    if any(count < 0 for _, count in changed):
        tx.run(
            """DELETE FROM term_counts WHERE library_id = :library_id AND folder_id = :folder_id
               AND term = ANY(:terms::int[]) AND sections = 0""",
            terms=encoding.integers(np.array(terms, np.int64)),
            **scope,
        )


def _mark_counted(tx: Tx, counted: bool, scope: dict[str, str]) -> None:
    tx.run(
        """UPDATE scope_sizes SET counted = :counted
           WHERE library_id = :library_id AND folder_id = :folder_id""",
        counted=counted,
        **scope,
    )


def _give_keys(tx: Tx, library_id: str, changes: Sequence[Change]) -> None:
    """Give keys to sections that were written before the library had any."""
    for item_id in sorted({change.item_id for change in changes}):
        add_keys(
            tx,
            library_id,
            "w.item_id = :item_id AND w.keys IS NULL",
            item_id=str(UUID(item_id)),
        )


def add_keys(tx: Tx, library_id: str, which: str, **values: object) -> int:
    """Give keys to sections; return to how many."""
    return tx.run(
        f"""UPDATE section_words AS w SET keys = ARRAY(SELECT t.term # :salt::int FROM {TERMS_OF})
            WHERE w.library_id = :library_id AND {which}""",
        library_id=library_id,
        salt=encoding.salt(library_id),
        **values,
    )
