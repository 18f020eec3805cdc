"""Scope twins: two servers that hold the same within a token's scope and differ in everything outside of it.

Every random call is made on both. The answers must be equal once ids, times and secrets are replaced by placeholders: status,
every field, order, totals and scores. `compare` runs a number of calls from a seed; a failure names both, so that it can be
run again. `make torture` calls it with more of them.
"""

import json
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from difflib import unified_diff
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from commonplace.core.items.drafts import Draft
from commonplace.core.search import search
from commonplace.errors import NotFound
from commonplace.model import Kind, Relation, Scope, ids as basics
from commonplace.search_index import library_index, postings, snapshot
from tests.interfaces.house import LONG_TEXT, House, call_tool, open_house

# Who calls, and how what they may not see is put away.
SCOPES = {"one_folder": "folders", "two_folder": "folders", "kb_only": "kb"}
NAME = re.compile(
    r"(?P<id>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|(?<![A-Za-z0-9])[2-9a-hjkmnp-zA-HJ-NP-Z]{12}(?![A-Za-z0-9]))"
    r"|(?P<time>\b1[6-9]\d{8}\b|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)?)|(?P<secret>\b[A-Za-z0-9_-]{40,}\b)"
)

VISIBLE = 30  # entities in scope at first
SUBJECTS = (
    "heron",
    "connection pool",
    "retry limit",
    "signing key",
    "sourdough",
    "backup job",
    "feature flag",
    "cursor",
    "cache",
    "tax payment",
    "image digest",
    "login page",
    "zebra",
    "worker",
    "migration",
    "schema",
)
STATEMENTS = (
    "The {} must be checked {} times before the release.",
    "The {} is never retried more than {} times.",
    "We decided to keep the {} for {} days.",
    "The {} failed after {} minutes under load; the fix was a larger buffer.",
    "To rotate the {}, wait {} hours and then restart the server.",
    "Fix the {} bug in the React component, part {}.",
    "The {} and the database API endpoint share {} test cases.",
    "Quokkas like the {} on day {}.",
)
TAGS = ("birds", "release", "ops", "kitchen", "secret", "database")
STATUSES = ("backlog", "todo", "doing", "blocked", "review", "done", "archived")
ENTITY_TYPES = (
    "episode",
    "pattern",
    "procedure",
    "decision",
    "plan",
    "idea",
    "claim",
    "artifact",
    "session",
    "domain",
    "task",
    "epic",
    "project",
)
KINDS = (
    "RELATED_TO",
    "DEPENDS_ON",
    "BELONGS_TO",
    "PART_OF",
    "SUPERSEDES",
    "CONTRADICTS",
    "REQUIRES",
    "SUPPORTS",
)
INTENTS = ("build", "plan", "debug", "decide", "research", "review", "learn", "ideate", "general")
ACTIONS = (
    "start_task",
    "block_task",
    "unblock_task",
    "submit_review",
    "complete_task",
    "archive_task",
    "update_task",
    "add_note",
    "start_epic",
    "complete_epic",
    "archive_epic",
    "update_epic",
    "estimate",
    "prioritize",
    "detect_cycles",
    "suggest",
    "supersede",
    "mark_wrong",
    "mark_stale",
    "restore",
    "delete",
)


@dataclass(frozen=True)
class Call:
    """A request with placeholders for ids, which each twin fills with its own."""

    method: str  # of HTTP; "tool" for MCP
    path: str  # or the tool's name
    body: Any = None
    query: Mapping[str, Any] = field(default_factory=dict)
    content: bytes | None = (
        None  # what is sent to the address that this answers with, before `then`
    )
    then: str = ""


class Names:
    """Ids of both twins by placeholder. An id that was never seen gets the next number, which is the same in both as long as
    their answers are."""

    def __init__(self) -> None:
        self._names: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._ids: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._count = [0, 0]
        self._kinds: dict[
            str, str
        ] = {}  # by placeholder: the entity's type, or the call and the field that first had it

    def give(self, name: str, ids: Sequence[str]) -> None:
        for which, each in enumerate(ids):
            self.name(which, name, each)

    def name(self, which: int, name: str, one_id: str) -> None:
        """As `give`, for one of the twins."""
        self._names[which][one_id], self._ids[which][name] = name, one_id
        self._kinds[name] = one_id.partition("_")[0]

    def hide(self, which: int, text: str, origin: str = "") -> str:
        """The text with placeholders for all that may differ between twins. `origin`: the call that it answers."""

        def placeholder(found: re.Match[str]) -> str:
            if found["id"] is None:
                return "«time»" if found["time"] else "«secret»"
            if found["id"] not in self._names[which]:
                self._count[which] += 1
                name = f"«id {self._count[which]}»"
                self._names[which][found["id"]], self._ids[which][name] = name, found["id"]
                before = text[max(0, found.start() - 30) : found.start()]
                entity_type, field_name = (
                    re.search(r"([a-z]+)_$", before),
                    re.search(r'([a-z_]+)\\*": \\*"$', before),
                )
                self._kinds.setdefault(
                    name,
                    entity_type[1]
                    if entity_type
                    else f"{origin} {field_name[1] if field_name else ''}",
                )
            return self._names[which][found["id"]]

        return NAME.sub(placeholder, text)

    def fill(self, which: int, value: Any) -> Any:
        return json.loads(
            re.sub(
                "«[^»]+»",
                lambda found: self._ids[which].get(found[0], "missing"),
                json.dumps(value, ensure_ascii=False),
            )
        )

    def some(self, dice: Random, kind: str) -> str:
        """One of that kind, mostly. Also of what the scope does not see, and of what there is not."""
        known, roll = [name for name in self._ids[0] if name in self._ids[1]], dice.random()
        if roll < 0.1:
            return dice.choice(
                [*(name for name in known if name.startswith("«unseen")), "document_222222222222"]
            )
        fitting = (
            [name for name in known if kind in self._kinds[name] and not name.startswith("«unseen")]
            if roll < 0.8
            else []
        )
        return dice.choice(fitting[-60:] or known[-300:] or ["document_222222222222"])


@dataclass
class Twins:
    houses: tuple[House, House]
    hidden_by: str  # "folders" or "kb"
    names: Names = field(default_factory=Names)
    unseen: int = 0  # how many items were ever added out of scope
    reached: set[tuple[str, str]] = field(
        default_factory=set
    )  # method and path, without ids, of calls that were not refused

    async def both(self, character: str, call: Call) -> tuple[str, str]:
        """The answers of both, with placeholders."""
        answers = []
        for which, house in enumerate(self.houses):
            async with house.client(character) as client:
                answer = await self._ask(which, client, call)
            await house.app.access.flush()  # at once, not by the clock: a token's last use
            answers.append(self.names.hide(which, answer, call.path))
        if self._is_good(call, answers[0]):
            self.reached.add((call.method, re.sub("«[^»]+»", "«»", call.path)))
        return answers[0], answers[1]

    @staticmethod
    def _is_good(call: Call, answer: str) -> bool:
        found = json.loads(answer)
        return (
            "result" in found
            if call.method == "tool"
            else all(status < 400 for status, *_ in found)
        )

    async def work(self) -> None:
        """Run the jobs that calls have left."""
        for house in self.houses:
            while await house.app.worker.run_once():
                pass

    async def _ask(self, which: int, client: httpx.AsyncClient, call: Call) -> str:
        body, path = self.names.fill(which, call.body), self.names.fill(which, call.path)
        if call.method == "tool":
            return _dumped(await call_tool(client, path, body))
        answer = await client.request(
            call.method, path, json=body, params=self.names.fill(which, dict(call.query))
        )
        shown = [_shown(answer)]
        if call.content is not None and answer.is_success:
            promised = answer.json()
            sent = await client.put(promised["url"], content=call.content)
            done = await client.post(call.then, json={"upload_id": promised["upload_id"]})
            shown += [_shown(sent), _shown(done)]
        return _dumped(shown)


def _shown(answer: httpx.Response) -> Any:
    """What a client can tell apart."""
    headers = {
        name: value
        for name, value in answer.headers.items()
        if name not in ("date", "content-length", "x-request-id")
    }
    is_json = answer.headers.get("content-type", "").startswith("application/json")
    return [answer.status_code, headers, answer.json() if is_json else answer.text]


def _dumped(value: Any) -> str:
    return json.dumps(value, indent=1, ensure_ascii=False)


# -- the twins


@contextmanager
def small_bounds() -> Iterator[None]:
    """Set bounds so low that a few hundred sections are searched as a hundred thousand are.

    Ids must not differ by chance in ways that show: each is greater than the one before, also within a millisecond, and all
    take as many tokens of a context pack.
    """
    clock = SimpleNamespace(last=0)

    def time_ns() -> int:
        clock.last = max(time.time_ns(), clock.last + 1_000_000)
        return clock.last

    with pytest.MonkeyPatch.context() as patch:
        for module, name, value in (
            (postings, "LARGE_RUN", 16),
            (library_index, "DEAD_ROWS", 10),
            (snapshot, "EXACT_UP_TO", 20),
            (snapshot, "ONE_SCAN_UP_TO", 60),
            (snapshot, "RESCORED", 12),
            (snapshot, "MOST_RESCORED", 12),
            (snapshot, "PHRASED", 6),
            (search, "CANDIDATES", 12),
            (search, "RECHECK_SECONDS", 0.0),
            (basics, "_PUBLIC_ALPHABET", "23456789"),
        ):
            patch.setattr(module, name, value)
        patch.setattr(basics, "time", SimpleNamespace(time_ns=time_ns))
        yield


@asynccontextmanager
async def open_twins(
    folder: Path, hidden_by: str, seed: int, settings: Sequence[Mapping[str, Any]] = ({}, {})
) -> AsyncIterator[Twins]:
    """`hidden_by`: what the scope is of, folders or the KB. `settings`: of each of the two, such as its database."""
    with small_bounds():
        async with (
            open_house(folder / "a", **settings[0]) as one,
            open_house(folder / "b", **settings[1]) as other,
        ):
            twins = Twins((one, other), hidden_by)
            for name in ("Red", "Blue", "Green"):
                twins.names.give(
                    f"«folder {name}»", [house.folders[name] for house in twins.houses]
                )
            for which, house in enumerate(twins.houses):
                for character in SCOPES:
                    caller = await house.app.access.identify(house.tokens[character])
                    twins.names.hide(
                        which,
                        " ".join([caller.library_id, caller.person_id, caller.token_id or ""]),
                    )
            await _furnish(twins, Random(seed))
            yield twins


async def _furnish(twins: Twins, dice: Random) -> None:
    """The same for both, put where the scope sees it; then what it does not see: much in the one, little in the other."""
    for n in range(VISIBLE):
        entity = new_entity(dice, project="«project»" if n > 2 else None) | (
            {"entity_type": "project"} if n <= 2 else {}
        )
        folders = dice.choice((["Red"], ["Blue"], ["Red", "Blue"])) if n > 2 else ["Red", "Blue"]
        ids = [
            await _add(house, twins.names.fill(which, entity), folders)
            for which, house in enumerate(twins.houses)
        ]
        twins.names.give(f"«entity {n}»" if n else "«project»", [entity_id for entity_id, _ in ids])
        for which, (entity_id, item_id) in enumerate(ids):
            twins.names.hide(which, f"{entity_id} {item_id}")
    for which, house in enumerate(twins.houses):
        await _handle(twins, which, house)
    await twins.work()
    for n in range(12):
        await change_unseen(twins, dice, which=0)
        if n < 2:
            await change_unseen(twins, dice, which=1)


async def _handle(twins: Twins, which: int, house: House) -> None:
    """What only a person can do, with what the scope sees: an item that could not be read, a note in a margin, a disk for others."""
    unread = await house.app.queued_items.submit(
        house.owner, Draft("url", url="http://127.0.0.1:9/visible"), house.folders["Red"]
    )
    noted, _ = await _add(
        house,
        {"title": "Noted", "content": "A heron stands in the shallows.", "entity_type": "idea"},
        ["Red", "Blue"],
    )
    await house.app.annotations.add(
        house.owner, noted, "This is where the heron stood.", quote="in the shallows"
    )
    shown, _ = await _add(
        house, {"title": "Published", "content": LONG_TEXT, "entity_type": "idea"}, ["Red", "Blue"]
    )
    await house.app.disks.publish(house.owner, shown)
    long, _ = await house.add(
        "Long", text=LONG_TEXT, folder="Red"
    )  # embedded by a job: both have a worker that was seen at work
    for name, item_id in (
        ("long", long),
        ("failed", unread.item.id),
        ("noted", noted),
        ("published", shown),
    ):
        twins.names.name(which, f"«{name}»", item_id)


async def _add(
    house: House, entity: Any, folders: Sequence[str] = (), in_kb: bool = True
) -> tuple[str, str]:
    """(entity id, item id) of an entity that the owner adds and files."""
    async with house.client("owner") as owner:
        # What is taken out of the KB at once is linked afterwards: until then everybody sees it.
        answer = await owner.post("/api/entities", params={"sync": in_kb}, json=entity)
        assert answer.is_success, answer.text
        entity_id = answer.json()["id"]
        item = await owner.get(f"/api/v1/items/{entity_id}")
        if folders:
            await owner.post(
                f"/api/v1/items/{entity_id}/folders",
                json={"folder_ids": [house.folders[name] for name in folders]},
            )
        if not in_kb:
            assert (
                await owner.patch(f"/api/v1/items/{entity_id}", json={"in_kb": False})
            ).is_success
    return entity_id, item.json()["id"]


async def change_unseen(twins: Twins, dice: Random, which: int) -> None:
    """Something happens in one twin that the scope does not see."""
    house, by_kb = twins.houses[which], twins.hidden_by == "kb"
    place = dict(folders=() if by_kb else dice.choice(((), ("Green",))), in_kb=not by_kb)
    made: list[str] = []
    project, _ = await _add(
        house, {"title": "Unseen project", "content": text(dice), "entity_type": "project"}, **place
    )
    for _ in range(dice.randrange(1, 6)):
        entity = new_entity(dice, project=project) | {"tags": dice.sample(TAGS, 2)}
        entity_id, item_id = await _add(house, entity, **place)
        made.append(item_id)
        twins.unseen += 1
        twins.names.give(
            f"«unseen {twins.unseen}»", [entity_id] * 2
        )  # an id of nothing in the other twin
    for item_id in made:  # joined to what the scope sees, in ways that change nothing of that
        kind, turned = (
            dice.choice((Kind.RELATED_TO, Kind.REQUIRES, Kind.DEPENDS_ON, Kind.SUPPORTS)),
            dice.random() < 0.5,
        )
        try:
            other = (
                await house.app.library.read(
                    house.owner, twins.names.fill(which, f"«entity {dice.randrange(1, VISIBLE)}»")
                )
            ).item.id
        except NotFound:  # a call has deleted it
            continue
        ends = (other, item_id) if turned else (item_id, other)
        await house.app.store.relations.put(
            Scope(house.owner.library_id),
            [Relation(house.owner.library_id, ends[0], kind, ends[1])],
        )
    async with house.client("owner") as owner:
        if dice.random() < 0.3:
            await owner.delete(f"/api/v1/items/{dice.choice(made)}")
        if dice.random() < 0.3:
            await owner.post(f"/api/entities/{made[0]}/mark-wrong", json={"reason": "no longer so"})
        if dice.random() < 0.3:
            await owner.post(f"/api/v1/disks/{made[0]}/publish")
            await owner.get(f"/api/v1/disks/{made[-1]}/preview")
        if dice.random() < 0.3:  # one that is read later and fails, and one that becomes an item
            place_id = house.folders["Green"] if place["folders"] else None
            for draft in (
                Draft("url", url=f"http://127.0.0.1:9/{twins.unseen}", in_kb=place["in_kb"]),
                Draft("text", f"Unread {twins.unseen}", text(dice), in_kb=place["in_kb"]),
            ):
                if not by_kb or not place["in_kb"]:
                    await house.app.queued_items.submit(house.owner, draft, place_id)
        if not by_kb:  # a long text waits for its vectors
            await owner.post(
                "/api/v1/ingest",
                json={"kind": "text", "title": "Unseen", "text": LONG_TEXT + text(dice)},
            )
            await owner.post(
                "/api/v1/memory/reflect",
                json={"content": text(dice), "persist": True, "review": True},
            )


# -- the calls


def text(dice: Random) -> str:
    return " ".join(
        dice.choice(STATEMENTS).format(dice.choice(SUBJECTS), dice.randrange(2, 6))
        for _ in range(dice.randrange(1, 4))
    )


def question(dice: Random) -> str:
    return dice.choice(
        (
            text(dice)[:200],
            dice.choice(SUBJECTS),
            f"{dice.choice(SUBJECTS)} {dice.choice(SUBJECTS)}",
            "quokkas",
            "the",
            "checked three times",
        )
    )


def new_entity(dice: Random, project: str | None = None) -> dict[str, Any]:
    kind = dice.choice(
        (*ENTITY_TYPES[:-1], "task", "task", "task", "epic") if project else ENTITY_TYPES[:-3]
    )
    said = text(dice)
    entity: dict[str, Any] = {
        "title": said[: dice.choice((30, 60))].strip(),
        "content": said,
        "entity_type": kind,
    }
    if kind in ("task", "epic"):
        entity |= {
            "project": project,
            "priority": dice.choice(("critical", "high", "medium", "low")),
        }
    if dice.random() < 0.5:
        entity["tags"] = dice.sample(TAGS, 2)
    if kind == "task" and dice.random() < 0.5:
        entity["due_date"] = f"2030-0{dice.randrange(1, 10)}-15"
    return entity


def calls(dice: Random, names: Names) -> Iterator[Call]:
    """Random ones without end, over every tool and route."""
    while True:
        yield dice.choice(MAKERS)(
            dice, lambda kind="": names.some(dice, kind or dice.choice((*ENTITY_TYPES, "document")))
        )


Id = Callable[..., str]  # of anything, or mostly of the kind that is named
Maker = Callable[[Random, Id], Call]


def _some(dice: Random, **choices: Any) -> dict[str, Any]:
    """Some of these arguments."""
    return {name: value for name, value in choices.items() if dice.random() < 0.4}


def _search(dice: Random, some_id: Id) -> Call:
    return dice.choice(
        (
            Call(
                "tool",
                "search_knowledge_base",
                {"query": question(dice)}
                | _some(
                    dice,
                    limit=dice.randrange(1, 20),
                    mode=dice.choice(("semantic", "keyword", "hybrid")),
                ),
            ),
            Call(
                "POST",
                "/api/v1/search",
                {"query": question(dice)}
                | _some(
                    dice,
                    limit=dice.randrange(1, 20),
                    mode=dice.choice(("semantic", "keyword", "hybrid")),
                ),
            ),
            Call(
                "POST",
                "/api/search",
                {"query": question(dice)} | _some(dice, types=dice.sample(ENTITY_TYPES, 4)),
            ),
            Call(
                "tool",
                "search",
                {"query": question(dice)}
                | _some(
                    dice,
                    limit=dice.randrange(1, 50),
                    types=dice.sample(ENTITY_TYPES, 4),
                    status="todo",
                    project=some_id("project"),
                    since="2w",
                    include_content=False,
                    category="x",
                ),
            ),
            Call("tool", "ask", {"query": question(dice)}),
            Call("POST", "/api/v1/ask", {"query": question(dice)}),
            Call("GET", "/api/v1/crawls"),
            Call(
                "tool",
                "search_knowledge",
                {"query": question(dice), "limit": dice.randrange(1, 10)},
            ),
            Call(
                "GET",
                "/api/v1/disks",
                query=_some(
                    dice,
                    search=question(dice),
                    scope="all",
                    tag=dice.choice(TAGS),
                    limit=5,
                    offset=1,
                ),
            ),
            Call(
                "GET",
                "/api/v1/items",
                query=_some(
                    dice, q=dice.choice(SUBJECTS), per_page=7, page=2, in_kb=True, archived=False
                ),
            ),
            Call(
                "GET",
                "/api/v1/items",
                query={"folder_id": dice.choice(("«folder Red»", "«folder Green»", some_id()))},
            ),
        )
    )


def _read(dice: Random, some_id: Id) -> Call:
    one, task, epic, candidate, project = (
        some_id(),
        some_id("task"),
        some_id("epic"),
        some_id("reflect"),
        some_id("project"),
    )
    return dice.choice(
        (
            Call("tool", "get_item", {"item_id": one}),
            Call("tool", "get_item", {"item_id": dice.choice(("«noted»", "«published»"))}),
            Call("tool", "fetch", {"id": one}),
            Call("tool", "fetch", {"id": dice.choice(("«noted»", "«published»"))}),
            Call("tool", "fetch", {"id": one} | _some(dice, from_section=1, max_chars=300)),
            Call("tool", "get_disk", {"disk_id": one}),
            Call("tool", "list_recent", {"limit": dice.randrange(1, 30)}),
            Call("tool", "list_disks", _some(dice, scope="owned", limit=9)),
            Call("GET", f"/api/v1/items/{one}"),
            Call("GET", f"/api/v1/items/{one}/versions"),
            Call("GET", f"/api/v1/items/{one}/versions/{dice.randrange(1, 3)}"),
            Call("GET", f"/api/v1/items/{one}/versions/{dice.randrange(1, 3)}/diff"),
            Call(
                "GET",
                f"/api/v1/items/«entity {dice.randrange(3, 8)}»/versions/1{dice.choice(('', '/diff'))}",
            ),
            Call("GET", f"/api/v1/items/{dice.choice(('«failed»', '«noted»', '«published»'))}"),
            Call("GET", "/api/v1/disks/«published»"),
            Call("tool", "get_disk", {"disk_id": "«published»"}),
            *(Call("GET", f"/api/v1/jobs/{some_id('job_id')}") for _ in range(2)),
            Call("GET", f"/api/v1/disks/{one}"),
            Call("GET", f"/api/v1/disks/{one}/preview"),
            Call("POST", "/api/v1/disks/batch", {"ids": [one, some_id(), some_id()]}),
            Call("GET", "/api/v1/trash", query=_some(dice, per_page=3, page=2)),
            Call("GET", "/api/v1/folders"),
            Call("GET", f"/api/v1/folders/{dice.choice((one, '«folder Green»'))}"),
            Call("GET", "/api/v1/me"),
            Call("GET", f"/api/v1/memory/captures/{some_id('capture')}"),
            Call("GET", f"/api/v1/memory/candidates/{candidate}"),
            Call(
                "GET",
                "/api/v1/memory/candidates",
                query=_some(dice, state="all", limit=5, offset=1),
            ),
            Call("GET", f"/api/entities/{one}"),
            Call("GET", f"/api/entities/{one}/relations", query=_some(dice, limit=3, offset=1)),
            Call(
                "GET",
                "/api/entities",
                query=_some(
                    dice,
                    entity_type=dice.choice(ENTITY_TYPES),
                    project=project,
                    status="todo",
                    tag=dice.choice(TAGS),
                    since="1d",
                    q=dice.choice(SUBJECTS),
                    per_page=5,
                    page=2,
                ),
            ),
            Call("GET", f"/api/tasks/{task}"),
            Call("GET", f"/api/epics/{epic}"),
            Call("GET", f"/api/tasks/{task}/estimate"),
            Call(
                "GET",
                "/api/tasks",
                query=_some(
                    dice,
                    status="todo",
                    priority="high",
                    project=project,
                    epic=some_id("epic"),
                    per_page=5,
                ),
            ),
            Call("GET", "/api/epics", query=_some(dice, status="planning", project=project)),
            Call(
                "GET",
                "/api/tasks/next",
                query=_some(dice, limit=3, project=project, assignee="ann"),
            ),
            Call("GET", "/api/v1/events", query={"limit": dice.choice((5, 100))}),
            Call("GET", "/api/v1/webhooks"),
            Call("GET", f"/api/v1/webhooks/{some_id('webhooks')}"),
            Call("GET", "/api/v1/feeds"),
            Call("GET", f"/api/v1/feeds/{one}"),
            Call("GET", "/api/v1/tokens"),
            Call("GET", f"/api/v1/tokens/{one}"),
            Call("GET", "/api/v1/members"),
            Call("GET", "/api/v1/invitations"),
            Call("GET", f"/api/v1/tokens/{one}/activity"),
            Call("GET", "/healthz"),
        )
    )


def _explore(dice: Random, some_id: Id) -> Call:
    mode = dice.choice(("list", "related", "traverse", "dependencies"))
    asked = (
        {"mode": mode}
        | ({} if mode == "list" else {"entity_id": some_id(dice.choice(ENTITY_TYPES))})
        | _some(
            dice,
            types=dice.sample(ENTITY_TYPES, 5),
            depth=dice.randrange(1, 4),
            limit=dice.randrange(1, 30),
            project=some_id("project"),
            relationship_types=dice.sample(KINDS, 3),
            offset=2,
            status="todo",
        )
    )
    return dice.choice((Call("tool", "explore", asked), Call("GET", "/api/explore", query=asked)))


def _context(dice: Random, some_id: Id) -> Call:
    asked = {"goal": question(dice)} | _some(
        dice,
        intent=dice.choice(INTENTS),
        project=dice.choice(("«project»", some_id("project"))),
        limit=8,
        token_budget=600,
    )
    return dice.choice(
        (Call("tool", "context", asked), Call("POST", "/api/v1/memory/context", asked))
    )


def _keep(dice: Random, some_id: Id) -> Call:
    entity = new_entity(dice, dice.choice(("«project»", some_id("project"))))
    entity |= _some(dice, related_to=[some_id()], technologies=["React", "Postgres"])
    if entity["entity_type"] == "task":
        entity |= _some(dice, depends_on=[some_id("task")], epic=some_id("epic"))
    tool = {name: value for name, value in entity.items() if name != "epic"}
    work = {"title": entity["title"], "content": entity["content"], "project": "«project»"} | _some(
        dice, tags=dice.sample(TAGS, 1)
    )
    memo = {
        "title": entity["title"],
        "content": entity["content"],
        "kind": dice.choice(ENTITY_TYPES[:9]),
    } | _some(
        dice,
        tags=dice.sample(TAGS, 1),
        idempotency_key=f"key {dice.randrange(20)}",
        related_to=[some_id()],
        project="«project»",
    )
    notes = {
        "content": f"We decided: {text(dice)}\n\n- TODO: {text(dice)}",
        "source_title": "Notes",
    } | _some(dice, persist=True, review=dice.random() < 0.5, limit=4, project="«project»")
    # A long one is embedded by a job, whose id is asked for later.
    plain = {
        "kind": "text",
        "title": entity["title"],
        "text": dice.choice(("", "", LONG_TEXT)) + entity["content"],
    }
    plain |= _some(dice, in_kb=False)
    file = {
        "filename": f"{dice.choice(SUBJECTS)}.md",
        "content_type": "text/markdown",
        "size": len(entity["content"].encode()),
    }
    return dice.choice(
        (
            Call("tool", "add", tool),
            Call("POST", "/api/entities", entity, {"sync": dice.random() < 0.5}),
            Call("POST", dice.choice(("/api/tasks", "/api/epics")), work),
            Call("tool", "remember", memo),
            Call("POST", "/api/v1/memory/remember", memo),
            Call("tool", "reflect", notes),
            Call("POST", "/api/v1/memory/reflect", notes),
            Call("tool", "add_to_knowledge", plain),
            Call("POST", "/api/v1/ingest", plain),
            Call("POST", "/api/v1/ingest", {"kind": "url", "url": "http://127.0.0.1:9/"}),
            Call(
                "POST",
                "/api/v1/uploads/signed-url",
                file,
                content=entity["content"].encode(),
                then=dice.choice(("/api/v1/uploads/finalize", "/api/v1/uploads/finalize-document")),
            ),
        )
    )


def _manage(dice: Random, some_id: Id) -> Call:
    action = dice.choice(ACTIONS)
    asked: dict[str, Any] = {"action": action}
    if action in ("prioritize", "detect_cycles", "suggest"):
        asked |= {"data": _some(dice, project=dice.choice(("«project»", some_id("project"))))}
    else:
        data = {
            "update_task": {
                "title": text(dice)[:40],
                **_some(
                    dice,
                    depends_on=[some_id("task")],
                    status=dice.choice(STATUSES),
                    epic=some_id("epic"),
                    priority="high",
                ),
            },
            "update_epic": {"title": text(dice)[:40]},
            "add_note": {"content": text(dice)},
            "block_task": {"reason": "waits"},
            "supersede": dice.choice(({"by": some_id()}, {"content": text(dice), "title": "Anew"})),
            "complete_task": _some(dice, learnings=text(dice), actual_hours=3),
        }.get(action, {})
        kind = (
            "epic"
            if action.endswith("epic")
            else "task"
            if action in ACTIONS[:13]
            else dice.choice(ENTITY_TYPES)
        )
        asked |= {"entity_id": some_id(kind), "data": data}
    return Call("tool", "manage", asked)


def _change(dice: Random, some_id: Id) -> Call:
    one, task, epic, candidate = (
        some_id(dice.choice(ENTITY_TYPES)),
        some_id("task"),
        some_id("epic"),
        some_id("reflect"),
    )
    near = dice.randrange(
        3, 8
    )  # a few of which relations come and go, and whose texts have versions
    joined = {"to": f"«entity {near + 1}»", "type": dice.choice(KINDS[:2])}
    return dice.choice(
        (
            Call("POST", f"/api/entities/«entity {near}»/relations", joined),
            Call("DELETE", f"/api/entities/«entity {near}»/relations", query=joined),
            Call("PATCH", f"/api/entities/«entity {near}»", {"content": text(dice)}),
            Call("PATCH", f"/api/v1/items/«entity {near}»", {"text": text(dice)}),
            Call("POST", f"/api/v1/items/«entity {dice.randrange(3, 8)}»/versions/1/restore"),
            Call("POST", "/api/v1/items/«failed»/retry"),
            Call("PATCH", "/api/v1/items/«failed»", {"tags": dice.sample(TAGS, 1)}),
            Call(
                "PATCH",
                f"/api/v1/items/{one}",
                _some(
                    dice,
                    title=text(dice)[:30],
                    tags=dice.sample(TAGS, 1),
                    in_kb=dice.random() < 0.7,
                    archived=dice.random() < 0.3,
                ),
            ),
            Call(
                "PATCH",
                f"/api/entities/{one}",
                _some(dice, title=text(dice)[:30], content=text(dice), tags=dice.sample(TAGS, 1)),
            ),
            Call(
                "PATCH",
                f"/api/tasks/{task}",
                _some(
                    dice, status=dice.choice(STATUSES), priority="low", depends_on=[some_id("task")]
                ),
            ),
            Call("PATCH", f"/api/epics/{epic}", _some(dice, title=text(dice)[:30], priority="low")),
            Call("PATCH", f"/api/v1/memory/candidates/{candidate}", {"title": text(dice)[:30]}),
            Call("POST", f"/api/v1/memory/candidates/{candidate}/accept"),
            Call("POST", f"/api/v1/memory/candidates/{candidate}/reject"),
            Call(
                "POST", f"/api/entities/{one}/supersede", {"content": text(dice), "title": "Anew"}
            ),
            Call("POST", f"/api/entities/{one}/mark-wrong"),
            Call("POST", f"/api/entities/{one}/mark-stale"),
            Call("POST", f"/api/entities/{one}/restore"),
            Call(
                "POST",
                f"/api/entities/{one}/relations",
                {"to": some_id(), "type": dice.choice(KINDS)},
            ),
            Call(
                "DELETE",
                f"/api/entities/{one}/relations",
                query={"to": some_id(), "type": dice.choice(KINDS)},
            ),
            Call(
                "POST",
                f"/api/v1/items/{one}/folders",
                {"folder_ids": [dice.choice(("«folder Red»", "«folder Blue»", "«folder Green»"))]},
            ),
            Call(
                "DELETE",
                f"/api/v1/items/{one}/folders/«folder {dice.choice(('Red', 'Blue', 'Green'))}»",
            ),
            Call("DELETE", f"/api/v1/items/{one}"),
            Call("DELETE", f"/api/entities/{one}"),
            Call("POST", f"/api/v1/trash/{one}/restore"),
            Call("POST", f"/api/v1/trash/{some_id('trash')}/restore"),
            Call("POST", f"/api/v1/items/{one}/refresh"),
            Call("POST", f"/api/v1/items/{one}/retry"),
            Call("POST", f"/api/v1/jobs/{some_id('job_id')}/retry"),
            *(
                Call("POST", f"/api/tasks/{task}/{step}", body)
                for step, body in (
                    ("start", None),
                    ("block", {"reason": "waits"}),
                    ("unblock", None),
                    ("review", None),
                    ("complete", None),
                    ("archive", None),
                    ("notes", {"content": text(dice)}),
                )
            ),
            *(
                Call("POST", f"/api/epics/{epic}/{step}")
                for step in ("start", "complete", "archive")
            ),
        )
    )


def _refused(dice: Random, some_id: Id) -> Call:
    """What needs more than a scope; that it is refused must tell nothing either."""
    one = some_id()
    return dice.choice(
        (
            Call("POST", f"/api/v1/disks/{one}/publish"),
            Call("DELETE", f"/api/v1/disks/{one}/publish"),
            Call("POST", f"/api/v1/disks/{one}/save"),
            Call("DELETE", f"/api/v1/disks/{one}/save"),
            Call("POST", "/api/v1/feeds", {"url": "http://127.0.0.1:9/feed"}),
            Call("POST", "/api/v1/webhooks", {"url": "http://127.0.0.1:9/feed"}),
            Call("POST", f"/api/v1/webhooks/{one}/test"),
            Call("DELETE", f"/api/v1/webhooks/{one}"),
            Call("DELETE", f"/api/v1/feeds/{one}"),
            Call("DELETE", f"/api/v1/items/{one}", query={"permanent": True}),
            Call("DELETE", f"/api/v1/trash/{one}"),
            Call("DELETE", "/api/v1/trash"),
            Call("POST", "/api/v1/folders", {"name": dice.choice(("Green", "Violet"))}),
            Call("PATCH", "/api/v1/folders/«folder Green»", {"name": "Grey"}),
            Call("DELETE", "/api/v1/folders/«folder Green»"),
            Call("POST", "/api/v1/tokens", {"name": "mine"}),
            Call("DELETE", f"/api/v1/tokens/{one}"),
            Call("PATCH", f"/api/v1/members/{one}", {"role": "viewer"}),
            Call("DELETE", f"/api/v1/members/{one}"),
            Call("POST", "/api/v1/invitations", {"role": "member"}),
            Call("DELETE", f"/api/v1/invitations/{one}"),
            Call(
                "POST",
                "/api/v1/invitations/accept",
                {"token": "ci_" + "x" * 43, "name": "Eve", "email": "eve@example.org"},
            ),
        )
    )


MAKERS: tuple[Maker, ...] = (
    _search,
    _search,
    _search,
    _read,
    _read,
    _read,
    _explore,
    _explore,
    _context,
    _keep,
    _keep,
    _keep,
    _manage,
    _manage,
    _manage,
    _change,
    _change,
    _refused,
)


async def compare(twins: Twins, count: int, seed: int, unseen_every: int = 40) -> str:
    """Make that many random calls on both, and change what is out of scope in between. The first difference, or nothing: an
    exception would come out of the servers' task groups as a page of tracebacks."""
    dice, characters = (
        Random(seed),
        [who for who, hidden_by in SCOPES.items() if hidden_by == twins.hidden_by],
    )
    made = calls(dice, twins.names)
    for number in range(count):
        if number % unseen_every == unseen_every - 1:
            await change_unseen(twins, dice, which=dice.choice((0, 0, 0, 1)))
        call, who = next(made), dice.choice(characters)
        one, other = await twins.both(who, call)
        if call.method != "GET":
            await twins.work()
        if one != other:
            difference = "\n".join(
                list(unified_diff(one.splitlines(), other.splitlines(), lineterm="", n=2))[:60]
            )
            return f"seed {seed}, call {number} by {who}: {call}\n{difference}"
    return ""
