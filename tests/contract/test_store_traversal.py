"""Walking along relations, on every engine, against a plain search in memory."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import Phase, given, settings, strategies as st

from commonplace.errors import Invalid, NotFound
from commonplace.model import (
    Item,
    ItemFilter,
    ItemRef,
    Neighbourhood,
    Relation,
    Scope,
    TaskWeights,
    new_id,
)
from commonplace.store import graph_queries
from tests.contract.library import Library

pytestmark = pytest.mark.anyio
START = datetime(2026, 1, 1, tzinfo=UTC)
KINDS = ("RELATED_TO", "SUPPORTS", "REQUIRES")


@dataclass(frozen=True)
class Plan:
    """A graph to be built: for each item its type and whether it is in the folder, and who is joined to whom."""

    items: tuple[tuple[str, bool], ...]
    edges: tuple[tuple[int, str, int, bool, float, int], ...]


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    count = draw(st.integers(1, 9))
    number = st.integers(0, count - 1)
    edges = draw(
        st.lists(
            st.tuples(
                number,
                st.sampled_from(KINDS),
                number,
                st.booleans(),
                st.sampled_from([0.75, 0.9, 1.0]),
                st.integers(0, 3),
            ),
            max_size=22,
            unique_by=lambda edge: edge[:3],
        )
    )
    items = draw(
        st.lists(
            st.tuples(st.sampled_from(["task", "episode"]), st.booleans()),
            min_size=count,
            max_size=count,
        )
    )
    return Plan(tuple(items), tuple(edge for edge in edges if edge[0] != edge[2]))


async def build(library: Library, plan: Plan, folder: str) -> list[Item]:
    items = [
        await library.add(
            new_id(), title=str(n), entity_type=entity_type, folder=folder if inside else None
        )
        for n, (entity_type, inside) in enumerate(plan.items)
    ]
    await library.store.relations.put(
        library.scope(),
        [
            Relation(
                library.id,
                items[a].id,
                kind,
                items[b].id,
                weight,
                explicit,
                START + timedelta(days=day),
            )
            for a, kind, b, explicit, weight, day in plan.edges
        ],
    )
    return items


def reference(
    plan: Plan, items: list[Item], start: int, depth: int, kinds: tuple[str, ...], scoped: bool
) -> dict[int, int]:
    """How far everything is that can be reached."""
    seen = [inside or not scoped for _, inside in plan.items]
    distances = {start: 0}
    for step in range(1, depth + 1):
        ends = [(a, b) for a, kind, b, *_ in plan.edges if not kinds or kind in kinds]
        for here, there in ends + [(b, a) for a, b in ends]:
            if distances.get(here) == step - 1 and seen[there] and there not in distances:
                distances[there] = step
    return distances


@pytest.fixture
async def folder(ann: Library) -> str:
    return await ann.folder("some")


@given(
    plan=plans(),
    depth=st.integers(1, 3),
    kinds=st.lists(st.sampled_from(KINDS), max_size=2, unique=True),
    scoped=st.booleans(),
)
@settings(phases=(Phase.explicit, Phase.reuse, Phase.generate))
async def test_a_walk_comes_to_what_a_plain_search_comes_to(
    ann: Library, folder: str, plan: Plan, depth: int, kinds: list[str], scoped: bool
) -> None:
    plan = replace(plan, items=((plan.items[0][0], True), *plan.items[1:]))
    items = await build(ann, plan, folder)
    number = {item.id: n for n, item in enumerate(items)}
    scope = ann.scope(folder) if scoped else ann.scope()
    found = await ann.store.relations.neighbourhood(
        scope, ItemRef(id=items[0].id), depth=depth, limit=50, kinds=kinds
    )
    expected = reference(plan, items, 0, depth, tuple(kinds), scoped)
    assert {number[r.item.id]: r.distance for r in found.reached} == {
        n: d for n, d in expected.items() if n
    }
    assert (found.total, found.cut) == (len(found.reached), False)
    assert [r.distance for r in found.reached] == sorted(r.distance for r in found.reached)
    check_relations(plan, items, found, expected, depth, kinds)
    await check_pages(ann, scope, items[0], depth, kinds, found)
    only = await ann.store.relations.neighbourhood(
        scope,
        ItemRef(id=items[0].id),
        depth=depth,
        limit=50,
        kinds=kinds,
        where=ItemFilter(entity_types=("task",)),
    )
    assert [r.item.id for r in only.reached] == [
        r.item.id for r in found.reached if r.item.entity_type == "task"
    ]
    for item in items:
        await ann.store.items.delete(ann.scope(), item.id)


def check_relations(
    plan: Plan,
    items: list[Item],
    found: Neighbourhood,
    expected: dict[int, int],
    depth: int,
    kinds: list[str],
) -> None:
    """All that touch what was gone on from; and each item names one of them that leads to it from one step nearer."""
    number, by_name = (
        {item.id: n for n, item in enumerate(items)},
        {item.entity_id: n for n, item in enumerate(items)},
    )
    walked = {
        (a, kind, b)
        for a, kind, b, *_ in plan.edges
        if (not kinds or kind in kinds)
        and a in expected
        and b in expected
        and min(expected[a], expected[b]) < depth
    }
    assert {(number[r.from_id], r.kind, number[r.to_id]) for r in found.relations} == walked
    for reached in found.reached:
        here, via = number[reached.item.id], by_name[reached.via]
        assert expected[via] == reached.distance - 1
        assert (
            (via, reached.kind, here)
            if reached.direction == "outgoing"
            else (here, reached.kind, via)
        ) in walked


async def check_pages(
    ann: Library, scope: Scope, start: Item, depth: int, kinds: list[str], whole: Neighbourhood
) -> None:
    pages = [
        await ann.store.relations.neighbourhood(
            scope, ItemRef(id=start.id), depth=depth, limit=2, offset=offset, kinds=kinds
        )
        for offset in range(0, len(whole.reached) + 1, 2)
    ]
    assert [r for page in pages for r in page.reached] == list(whole.reached)
    assert {page.total for page in pages} == {whole.total}


async def test_the_best_joined_come_first(ann: Library) -> None:
    center, *others = [await ann.add(str(n), title=str(n)) for n in range(5)]
    ways = [(0.8, False, 0), (0.9, False, 0), (1.0, True, 0), (1.0, True, 1)]
    await ann.store.relations.put(
        ann.scope(),
        [
            Relation(
                ann.id,
                center.id,
                "RELATED_TO",
                other.id,
                weight,
                explicit,
                START + timedelta(days=day),
            )
            for other, (weight, explicit, day) in zip(others, ways, strict=True)
        ],
    )
    found = await ann.store.relations.neighbourhood(
        ann.scope(), ItemRef(id=center.id), depth=1, limit=10
    )
    assert [r.item.title for r in found.reached] == ["4", "3", "2", "1"]


async def test_a_hub_is_paged_through_to_the_last_and_walked_through_in_bounds(
    ann: Library,
) -> None:
    hub, beside = await ann.add("hub"), await ann.add("beside")
    leaves = [
        await ann.add(str(n), title=str(n), entity_type="task" if n % 10 else "pattern")
        for n in range(230)
    ]
    await ann.store.relations.put(
        ann.scope(), [Relation(ann.id, hub.id, "RELATED_TO", leaf.id) for leaf in leaves]
    )
    await ann.store.relations.put(ann.scope(), [Relation(ann.id, beside.id, "RELATED_TO", hub.id)])
    seen: list[str] = []
    for offset in range(0, 231, 60):
        page = await ann.store.relations.neighbourhood(
            ann.scope(), ItemRef(id=hub.id), depth=1, limit=60, offset=offset
        )
        assert (page.total, page.cut) == (231, False)
        seen += [r.item.id for r in page.reached]
    assert len(seen) == len(set(seen)) == 231
    rare = await ann.store.relations.neighbourhood(
        ann.scope(),
        ItemRef(id=hub.id),
        depth=1,
        limit=50,
        where=ItemFilter(entity_types=("pattern",)),
    )
    assert (rare.total, len(rare.reached)) == (23, 23)
    far = await ann.store.relations.neighbourhood(
        ann.scope(), ItemRef(id=beside.id), depth=2, limit=200
    )
    assert (len(far.reached), far.total, far.cut) == (
        1 + graph_queries.FAN,
        1 + graph_queries.FAN,
        True,
    )


async def test_by_every_name_and_out_of_scope_like_not_there(
    ann: Library, bob: Library, folder: str
) -> None:
    inside, outside = await ann.add("one", folder=folder), await ann.add("two")
    for spelled in (inside.id, inside.public_id, inside.entity_id):
        found = await ann.store.relations.neighbourhood(
            ann.scope(folder), ItemRef.parse(spelled), depth=2, limit=5
        )
        assert found.center.id == inside.id
    for scope, item in ((ann.scope(folder), outside), (bob.scope(), inside)):
        for ask in (
            ann.store.relations.neighbourhood(scope, ItemRef(id=item.id), depth=1, limit=5),
            ann.store.relations.dependencies(scope, ItemRef(id=item.id)),
        ):
            with pytest.raises(NotFound):
                await ask
    with pytest.raises(NotFound):
        await ann.store.relations.neighbourhood(
            ann.scope(), ItemRef.parse(f"task_{inside.public_id}"), depth=1, limit=5
        )


async def test_what_something_depends_on_is_followed_in_scope_to_the_end(
    ann: Library, folder: str
) -> None:
    a, b, c, d = [
        await ann.add(name, title=name, entity_type="task", folder=None if name == "c" else folder)
        for name in "abcd"
    ]
    await depend(ann, (a, b), (b, c), (c, d))
    whole = await ann.store.relations.dependencies(
        ann.scope(), ItemRef(id=a.id), ItemFilter(entity_types=("task",))
    )
    assert [item.title for item in whole.items] == ["a", "b", "c", "d"] and len(
        whole.relations
    ) == 3
    part = await ann.store.relations.dependencies(ann.scope(folder), ItemRef(id=a.id))
    assert [item.title for item in part.items] == ["a", "b"] and len(part.relations) == 1


async def test_tickets_hold_what_is_in_scope_and_say_whose_they_are(
    ann: Library, bob: Library, folder: str
) -> None:
    project = await ann.add("p", entity_type="project", folder=folder)
    a, b, c, d = [
        await ann.add(
            name,
            entity_type="task",
            status="todo",
            folder=None if name == "c" else folder,
            priority="low",
            assignees={"a": ("ann",), "b": ("bob", "an")}.get(name, ()),
            in_kb=name != "d",
        )
        for name in "abcd"
    ]
    await ann.add("e", entity_type="task", status="done", folder=folder)
    await ann.add("f", folder=folder)
    await bob.add("g", entity_type="task")
    await depend(ann, (a, b), (b, c), (c, d), (a, d))
    await ann.store.relations.put(ann.scope(), [Relation(ann.id, a.id, "BELONGS_TO", project.id)])
    open_work = ItemFilter(not_statuses=("done",))
    whole, waits, _ = await ann.store.relations.tickets(ann.scope(), open_work)
    assert {ticket.id for ticket in whole} == {a.id, b.id, c.id, d.id} and len(waits) == 4
    assert all(ticket.inside and ticket.theirs for ticket in whole)
    some, waits, _ = await ann.store.relations.tickets(
        ann.scope(folder), open_work, project_id=project.id, assignee="ann"
    )
    assert {(ticket.id, ticket.inside, ticket.theirs) for ticket in some} == {
        (a.id, True, True),
        (b.id, False, False),
        (d.id, False, True),
    }
    assert set(waits) == {(a.id, b.id), (a.id, d.id)}
    _, in_kb, _ = await ann.store.relations.tickets(ann.scope(folder, kb_only=True), open_work)
    assert in_kb == [(a.id, b.id)]


async def test_of_very_many_tickets_the_most_important_are_read_with_what_they_depend_on(
    ann: Library, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graph_queries, "SHORTLIST", 3)
    monkeypatch.setattr(graph_queries, "LEVELS", 3)
    project = await ann.add("p", entity_type="project")
    tasks = {
        f"{priority} {n}": await ann.add(
            f"{priority} {n}",
            title=f"{priority} {n}",
            entity_type="task",
            status="todo",
            priority=priority,
            folder=folder,
        )
        for priority in ("low", "critical")
        for n in range(6)
    }
    begun = [
        await ann.add(
            f"begun {n}", title=f"begun {n}", entity_type="task", status="doing", folder=folder
        )
        for n in range(2)
    ]
    hidden = await ann.add(
        "hidden", title="hidden", entity_type="task", status="todo", priority="critical"
    )
    await depend(
        ann,
        (tasks["critical 0"], tasks["low 5"]),
        *((tasks[f"low {n}"], tasks[f"low {n - 1}"]) for n in range(1, 6)),
    )
    worth = TaskWeights((("critical", 9), ("low", 1)), 5, (("2026-01-01", 3),), ("doing",))
    found, waits, total = await ann.store.relations.tickets(
        ann.scope(folder), ItemFilter(not_statuses=("done",)), worth=worth
    )
    titles = {item.id: title for title, item in tasks.items()} | {
        item.id: item.title for item in (*begun, hidden)
    }
    seen = {titles[ticket.id]: ticket.inside for ticket in found}
    assert total == 14  # without what is hidden
    assert seen == {
        "begun 0": True,
        "begun 1": True,
        "critical 0": True,
        "critical 1": True,
        "critical 2": True,
        "low 5": True,
        "low 4": True,
        "low 3": False,
    }  # too far to say what it waits for
    assert len(waits) == 3
    await ann.store.relations.put(
        ann.scope(), [Relation(ann.id, tasks["low 2"].id, "BELONGS_TO", project.id)]
    )
    found, _, total = await ann.store.relations.tickets(
        ann.scope(folder), ItemFilter(), project_id=project.id, worth=worth
    )
    assert total == 1 and {titles[ticket.id] for ticket in found if ticket.inside} == {"low 2"}


async def test_a_long_cycle_is_refused_and_named_in_part(ann: Library) -> None:
    tasks = [await ann.add(f"{n}", title=f"{n}", entity_type="task") for n in range(60)]
    await depend(ann, *pairwise(tasks))
    with pytest.raises(Invalid, match=r"0 -> .*more.* -> 59") as refused:
        await depend(ann, (tasks[-1], tasks[0]))
    assert len(refused.value.data["cycle"]) <= 21


async def depend(library: Library, *pairs: tuple[Item, Item]) -> None:
    await library.store.relations.put(
        library.scope(), [Relation(library.id, a.id, "DEPENDS_ON", b.id) for a, b in pairs]
    )


async def test_what_would_close_a_circle_is_refused_by_name(ann: Library) -> None:
    a, b, c = [await ann.add(name, title=name, entity_type="task") for name in "abc"]
    await depend(ann, (a, b), (b, c))
    with pytest.raises(Invalid, match="c -> a -> b -> c") as refusal:
        await depend(ann, (c, a))
    assert refusal.value.data["cycle"] == ["c", "a", "b", "c"]
    with pytest.raises(Invalid, match="a -> a"):
        await depend(ann, (a, a))
    assert len(await ann.store.relations.of_items(ann.scope(), [a.id, b.id, c.id])) == 2
