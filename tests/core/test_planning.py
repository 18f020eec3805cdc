"""What to do next and how long it may take: the order holds, and every answer says why."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given, strategies as st

from commonplace.core.entities.validation import NewEntity
from commonplace.core.work.planning import PRIORITY, Needs, Ranked, estimated, precedent, rank
from commonplace.errors import Invalid
from commonplace.model import Item, Kind, Relation, Ticket, now
from commonplace.store.relations import insert_relation
from tests.core.workshop import Workshop, open_workshop

pytestmark = pytest.mark.anyio
TODAY = date(2026, 3, 10)


@pytest.fixture
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Workshop]:
    async with open_workshop(tmp_path_factory.mktemp("plan") / "data") as opened:
        yield opened


def task(name: str, **fields: object) -> Item:
    item = Item(
        id=name,
        library_id="l",
        public_id=name,
        content_id="c",
        entity_type="task",
        kind="text",
        title=name,
        status="todo",
    )
    return replace(item, **fields)  # type: ignore[arg-type]


def ranked(tasks: list[Item], needs: Needs) -> list[Ranked]:
    tickets = [Ticket(t.id, t.entity_type, t.status, t.priority, t.due_date, 0) for t in tasks]
    places, items = rank(tickets, needs, TODAY), {t.id: t for t in tasks}
    order = places.first(tickets, len(tickets))
    assert places.named(order) <= items.keys()
    return [places.explained(one, items, TODAY) for one in order]


Task = st.builds(
    dict,
    priority=st.sampled_from(["", *PRIORITY]),
    status=st.sampled_from(["backlog", "todo", "doing", "blocked", "review"]),
    due_date=st.one_of(
        st.none(), st.integers(-40, 400).map(lambda n: (TODAY + timedelta(days=n)).isoformat())
    ),
)


@given(st.lists(Task, min_size=1, max_size=9), st.data())
def test_nothing_comes_before_what_it_waits_for(
    drawn: list[dict[str, object]], data: st.DataObject
) -> None:
    tasks = [task(str(n), **fields) for n, fields in enumerate(drawn)]
    needs = {
        str(n): data.draw(st.lists(st.sampled_from([str(m) for m in range(n)]), unique=True))
        if n
        else []
        for n in range(len(tasks))
    }
    order = ranked(tasks, needs)
    assert sorted(r.item.id for r in order) == sorted(t.id for t in tasks)
    place = {r.item.id: n for n, r in enumerate(order)}
    assert all(place[need] < place[item] for item, needed in needs.items() for need in needed)
    assert all(r.reasons for r in order)
    assert all(r.ready == (not needs[r.item.id] and r.item.status != "blocked") for r in order)


@given(st.dictionaries(st.sampled_from("abcdef"), st.lists(st.sampled_from("abcdef"))))
def test_tasks_that_wait_for_each_other_are_ranked_all_the_same(
    needs: dict[str, list[str]],
) -> None:
    assert len(ranked([task(name) for name in "abcdef"], needs)) == 6


def test_a_long_chain_is_ordered_whole_and_told_in_short() -> None:
    tasks = [task(f"{n:04}", priority="critical" if n == 1_999 else "low") for n in range(2_000)]
    order = ranked(tasks, {f"{n:04}": [f"{n - 1:04}"] for n in range(1, 2_000)})
    assert [r.item.id for r in order] == [t.id for t in tasks]
    assert "at least 1000 tasks wait for it: 0001, 0002, 0003 and 997 more" in order[0].reasons


def test_reasons_tell_what_counted() -> None:
    late = task("late", priority="low", due_date="2026-03-01")
    basis = task("basis", priority="someday")
    urgent = task("urgent", priority="critical", due_date="2026-03-12T10:00:00+00:00")
    stuck = task("stuck", priority="high", status="blocked", metadata={"blocked_reason": "no key"})
    told = {r.item.id: r for r in ranked([late, basis, urgent, stuck], {"urgent": ["basis"]})}
    assert [*told] == ["basis", "urgent", "late", "stuck"]
    assert "1 task waits for it: urgent" in told["basis"].reasons
    assert (
        "'urgent', which waits for it, has priority critical and is due in 2 days"
        in told["basis"].reasons
    )
    assert "overdue by 9 days" in told["late"].reasons
    assert "waits for basis" in told["urgent"].reasons
    assert "blocked: no key" in told["stuck"].reasons


async def test_suggestions_are_what_can_be_done_now(shop: Workshop) -> None:
    nothing, why = await shop.app.planning.suggest(shop.owner)
    assert (nothing, why) == ([], "There are no open tasks.")
    project = await shop.make("project", "House")
    here = {Kind.BELONGS_TO: [project]}
    first = await shop.make("task", "Foundations", joined=here, priority="low")
    second = await shop.make(
        "task", "Walls", joined={**here, Kind.DEPENDS_ON: [first]}, priority="critical"
    )
    await shop.make("task", "Elsewhere", priority="critical")
    begun = await shop.make(
        "task", "Paint", joined=here, status="doing", assignees=("ann",), priority="someday"
    )
    await shop.make("task", "Old", joined=here, status="done", priority="critical")
    found, why = await shop.app.planning.suggest(shop.owner, project.entity_id)
    assert [(s.ranked.item.id, s.action) for s in found] == [
        (begun.id, "complete_task"),
        (first.id, "start_task"),
    ]
    assert why == "2 of 3 open tasks can be worked on now."
    bobs, _ = await shop.app.planning.suggest(shop.owner, project.id, assignee="bob")
    assert [s.ranked.item.id for s in bobs] == [first.id]
    order, total = await shop.app.planning.prioritize(shop.owner, project.id)
    assert ([r.item.title for r in order], total) == (["Foundations", "Walls", "Paint"], 3)
    order, total = await shop.app.planning.prioritize(shop.owner, limit=2)
    assert (len(order), total) == (2, 4)
    for task_id in (first.id, begun.id):
        await shop.app.store.items.update(
            shop.owner.scope,
            task_id,
            {"status": "blocked"},
            expected_revision=None,
            sections=None,
            stamp="",
            jobs=(),
        )
    nothing, why = await shop.app.planning.suggest(shop.owner, project.id)
    assert not nothing and "None of 3" in why
    with pytest.raises(Invalid, match="is a task, not a project"):
        await shop.app.planning.suggest(shop.owner, second.id)


async def test_cycles_are_named(shop: Workshop) -> None:
    project = await shop.make("project", "Knot")
    a, b = [
        await shop.make("task", name, joined={Kind.BELONGS_TO: [project]})
        for name in ("Hen", "Egg")
    ]
    assert not await shop.app.planning.cycles(shop.owner)
    # Nobody can make one by our verbs; a file from elsewhere could.
    ring = [
        Relation(shop.owner.library_id, *ends)
        for ends in ((a.id, Kind.DEPENDS_ON, b.id), (b.id, Kind.DEPENDS_ON, a.id))
    ]
    await shop.app.store._db.write(lambda tx: [insert_relation(tx, r) for r in ring])  # type: ignore[attr-defined]
    [cycle] = await shop.app.planning.cycles(shop.owner, project.id)
    assert [item.title for item in cycle] in (["Hen", "Egg", "Hen"], ["Egg", "Hen", "Egg"])


async def test_an_estimate_rests_on_tasks_like_it_or_says_that_there_are_none(
    shop: Workshop,
) -> None:
    async def add(title: str, content: str) -> str:
        project = await shop.make("project", f"Project of {title}")
        added = await shop.app.entities.add(
            shop.owner, NewEntity(title, content, "task", project=project.id), sync=True
        )
        return added.item.id

    new = await add(
        "Add a login page for Google",
        "Build the OAuth login page with the Google button and its callback.",
    )
    _, nothing = await shop.app.planning.estimate(shop.owner, new)
    assert (nothing.hours, nothing.confidence, nothing.precedents) == (None, "none", ())
    for n, name in enumerate(["GitHub", "GitLab", "Microsoft"]):
        like = await add(
            f"Add a login page for {name}",
            f"Build the OAuth login page with the {name} button and its callback.",
        )
        await shop.app.tasks.step(shop.owner, like, "start_task")
        await shop.app.tasks.step(
            shop.owner, like, "complete_task", about={"actual_hours": 4.0 + n}
        )
    unlike = await add("Water the tomatoes", "They are in the greenhouse behind the shed.")
    await shop.app.tasks.step(shop.owner, unlike, "start_task")
    await shop.app.tasks.step(shop.owner, unlike, "complete_task", about={"actual_hours": 400.0})
    task, estimate = await shop.app.planning.estimate(shop.owner, new)
    assert (task.id, estimate.hours, estimate.low, estimate.high) == (new, 5.0, 4.0, 6.0)
    assert estimate.confidence == "medium" and "4 to 6 hours" in estimate.explanation
    assert {p.item.title for p in estimate.precedents} == {
        f"Add a login page for {name}" for name in ("GitHub", "GitLab", "Microsoft")
    }


def test_metadata_of_others_does_not_upset_an_estimate() -> None:
    for metadata in (
        {"actual_hours": "many"},
        {"started_at": 5, "completed_at": "soon"},
        {"started_at": "2026-01-01"},
        {"started_at": now().isoformat(), "completed_at": "2020-01-01T00:00:00+00:00"},
    ):
        found = precedent(task("t", metadata=metadata), 0.9)
        assert (found.hours, found.days) == (None, None)
    assert estimated([]).confidence == "none"
