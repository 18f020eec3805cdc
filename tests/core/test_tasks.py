"""Tasks and epics: whatever is asked of them in whatever order, they stay within the drawing."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from commonplace.errors import Conflict, Invalid
from commonplace.model import Kind, Mode
from commonplace.model.workflow import CLOSED, EPIC, STEPS, TASK, next_epic_status
from tests.core.workshop import Workshop, open_workshop

pytestmark = pytest.mark.anyio

# The contract's words, written down a second time: what may follow what.
DRAWN = {
    ("backlog", "todo"),
    ("todo", "doing"),
    ("doing", "blocked"),
    ("doing", "review"),
    ("doing", "done"),
    ("doing", "todo"),
    ("blocked", "doing"),
    ("blocked", "archived"),
    ("review", "doing"),
    ("review", "done"),
    ("review", "archived"),
    ("todo", "archived"),
    ("done", "archived"),
}


@pytest.fixture(scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Workshop]:
    async with open_workshop(tmp_path_factory.mktemp("work") / "data") as opened:
        yield opened


def test_the_machine_is_the_one_that_is_drawn() -> None:
    assert {(at, to) for at, allowed in TASK.next.items() for to in allowed} == DRAWN
    assert {to for _, to in DRAWN} | {at for at, _ in DRAWN} == set(TASK.next)


Action = st.one_of(
    st.sampled_from([name for name, step in STEPS.items() if step.machine is TASK]),
    st.sampled_from([f"to {state}" for state in TASK.next]),
    st.just("note"),
)


@given(start=st.sampled_from(sorted(TASK.next)), actions=st.lists(Action, max_size=12))
async def test_no_sequence_of_actions_leaves_the_drawing(
    shop: Workshop, start: str, actions: list[str]
) -> None:
    task = await shop.make("task", "Anything", status=start)
    for action in actions:
        before = await shop.again(task)
        try:
            if action.startswith("to "):
                await shop.app.tasks.update(shop.owner, task.id, TASK, {"status": action[3:]})
            elif action == "note":
                await shop.app.tasks.note(shop.owner, task.id, "Seen.")
            else:
                await shop.app.tasks.step(shop.owner, task.id, action, reason="why")
        except Invalid as refused:
            assert await shop.again(task) == before, "a refusal changes nothing"
            assert set(refused.data["allowed"]) == {to for at, to in DRAWN if at == before.status}
            assert all(state in refused.message for state in refused.data["allowed"])
        else:
            after = await shop.again(task)
            assert after.revision == before.revision + 1
            assert before.status == after.status or (before.status, after.status) in DRAWN
            wanted = (
                STEPS[action].to
                if action in STEPS
                else action[3:]
                if action.startswith("to ")
                else before.status
            )
            assert after.status == wanted


Tally = st.dictionaries(st.sampled_from(sorted(TASK.next)), st.integers(0, 3))


@given(epic=st.sampled_from(sorted(EPIC.next)), tasks=Tally)
def test_an_epic_follows_along_the_drawing_and_comes_to_rest(
    epic: str, tasks: dict[str, int]
) -> None:
    to = next_epic_status(epic, tasks)
    assert to == epic or to in EPIC.next[epic]
    still_open = any(count for state, count in tasks.items() if state not in CLOSED)
    assert not (to == "completed" and still_open)
    settled = next_epic_status(to, tasks)
    assert next_epic_status(settled, tasks) == settled


async def test_of_many_who_start_a_task_at_once_one_does(shop: Workshop) -> None:
    task = await shop.make("task", "Wanted by all")
    answers = await asyncio.gather(
        *(shop.app.tasks.step(shop.owner, task.id, "start_task") for _ in range(8)),
        return_exceptions=True,
    )
    refused = [answer for answer in answers if isinstance(answer, Invalid)]
    assert len(refused) == 7 and all("is doing" in error.message for error in refused)
    assert (await shop.again(task)).revision == 2


async def test_no_note_is_lost_and_all_are_found(shop: Workshop) -> None:
    task = await shop.make("task", "Much discussed")
    said = ["quokka", "axolotl", "pangolin", "okapi", "numbat", "tarsier"]
    await asyncio.gather(
        *(shop.app.tasks.note(shop.owner, task.id, f"Ask the {word}.") for word in said)
    )
    noted = await shop.again(task)
    assert sorted(note["text"] for note in noted.metadata["notes"]) == sorted(
        f"Ask the {word}." for word in said
    )
    assert all(note["author"] == shop.owner.name and note["at"] for note in noted.metadata["notes"])
    assert [note["at"] for note in noted.metadata["notes"]] == sorted(
        note["at"] for note in noted.metadata["notes"]
    )
    for word in said:
        found = await shop.app.search.search(shop.owner, word, mode=Mode.KEYWORD)
        assert [hit.passage.item_id for hit in found.hits] == [task.id]
    await shop.app.tasks.update(shop.owner, task.id, TASK, {"title": "Renamed"})
    assert (await shop.app.search.search(shop.owner, "okapi", mode=Mode.KEYWORD)).hits[
        0
    ].passage.title == "Renamed"


async def test_a_revision_that_is_past_is_refused_with_the_present_one(shop: Workshop) -> None:
    task = await shop.make("task", "Guarded")
    await shop.app.tasks.step(shop.owner, task.id, "start_task", expected_revision=1)
    for call in (
        shop.app.tasks.step(shop.owner, task.id, "complete_task", expected_revision=1),
        shop.app.tasks.update(shop.owner, task.id, TASK, {"priority": "low"}, expected_revision=1),
        shop.app.tasks.note(shop.owner, task.id, "late", expected_revision=3),
    ):
        with pytest.raises(Conflict) as refused:
            await call
        assert refused.value.data == {"revision": 2}
    assert (await shop.again(task)).revision == 2


async def test_work_leaves_its_times_and_reasons(shop: Workshop) -> None:
    task = await shop.make("task", "Timed", metadata={"theirs": 1})
    await shop.app.tasks.step(shop.owner, task.id, "start_task")
    blocked = await shop.app.tasks.step(shop.owner, task.id, "block_task", reason="no key")
    assert (blocked.item.metadata["blocked_reason"], blocked.message) == (
        "no key",
        "Blocked: Timed (no key)",
    )
    begun = blocked.item.metadata["started_at"]
    again = (await shop.app.tasks.step(shop.owner, task.id, "unblock_task")).item
    assert "blocked_reason" not in again.metadata and again.metadata["started_at"] == begun
    done = (
        await shop.app.tasks.step(shop.owner, task.id, "complete_task", about={"actual_hours": 1.5})
    ).item
    assert done.metadata["completed_at"] >= begun
    assert (done.metadata["actual_hours"], done.metadata["theirs"]) == (1.5, 1)


async def test_epics_follow_their_tasks(shop: Workshop) -> None:
    epic = await shop.make("epic", "Big thing")
    first, second = [
        await shop.make("task", name, joined={Kind.PART_OF: [epic]}) for name in ("First", "Second")
    ]
    started = await shop.app.tasks.step(shop.owner, first.id, "start_task")
    assert "Big thing is now in_progress" in started.message
    with pytest.raises(Invalid, match=r"2 open tasks: Second .*First"):
        await shop.app.tasks.step(shop.owner, epic.id, "complete_epic")
    await shop.app.tasks.step(shop.owner, second.id, "archive_task")
    assert (await shop.again(epic)).status == "in_progress"
    await shop.app.tasks.step(shop.owner, first.id, "complete_task")
    assert (await shop.again(epic)).status == "completed"
    third = await shop.make("task", "Third")
    await shop.app.tasks.update(shop.owner, third.id, TASK, {"epic": epic.entity_id})
    assert (await shop.again(epic)).status == "in_progress", "there is something to do again"
    await shop.app.tasks.update(shop.owner, third.id, TASK, {"epic": None})
    assert (await shop.again(epic)).status == "completed"


async def test_an_epic_is_completed_by_whoever_closes_its_last_task(shop: Workshop) -> None:
    epic = await shop.make("epic", "Raced")
    tasks = [
        await shop.make("task", f"Racer {n}", status="doing", joined={Kind.PART_OF: [epic]})
        for n in range(6)
    ]
    await shop.app.tasks.step(shop.owner, epic.id, "start_epic")
    await asyncio.gather(
        *(shop.app.tasks.step(shop.owner, task.id, "complete_task") for task in tasks)
    )
    assert (await shop.again(epic)).status == "completed"


async def test_a_task_is_told_what_it_waits_for(shop: Workshop) -> None:
    first = await shop.make("task", "Foundations")
    second = await shop.make("task", "Walls", joined={Kind.DEPENDS_ON: [first]})
    early = await shop.app.tasks.step(shop.owner, second.id, "start_task")
    assert "Foundations" in early.message and early.more["waits_for"] == [first.entity_id]
    await shop.app.tasks.update(shop.owner, second.id, TASK, {"depends_on": [], "status": "todo"})
    later = await shop.app.tasks.step(shop.owner, second.id, "start_task")
    assert "waits_for" not in later.more


async def test_what_is_no_task_is_not_moved(shop: Workshop) -> None:
    decision = await shop.make("decision", "Use SQLite")
    epic = await shop.make("epic", "An epic")
    task = await shop.make("task", "A task")
    for item, action, message in [
        (decision, "start_task", "is a decision, not a task"),
        (epic, "start_task", "is an epic, not a task"),
        (task, "start_epic", "is a task, not an epic"),
    ]:
        with pytest.raises(Invalid, match=message):
            await shop.app.tasks.step(shop.owner, item.id, action)
        assert await shop.again(item) == item
    with pytest.raises(Invalid, match="is a decision, not an epic"):
        await shop.app.tasks.update(shop.owner, task.id, TASK, {"epic": decision.id})
    with pytest.raises(Invalid, match="no epic"):
        await shop.app.tasks.update(shop.owner, task.id, TASK, {"epic": "epic_nowhere"})
    with pytest.raises(Invalid, match=r"is a decision, .*Only these have notes"):
        await shop.app.tasks.note(shop.owner, decision.id, "Not here")
    assert (await shop.again(task)).revision == 1


async def test_dependencies_that_would_wait_for_themselves_are_refused_by_name(
    shop: Workshop,
) -> None:
    a, b, c = [await shop.make("task", name) for name in ("Alpha", "Beta", "Gamma")]
    await shop.app.tasks.update(shop.owner, b.id, TASK, {"depends_on": [a.entity_id]})
    await shop.app.tasks.update(shop.owner, c.id, TASK, {"depends_on": [b.public_id, b.id]})
    before = await shop.again(a)
    with pytest.raises(Invalid, match="Alpha -> Gamma -> Beta -> Alpha"):
        await shop.app.tasks.update(
            shop.owner, a.id, TASK, {"depends_on": [c.id], "priority": "low"}
        )
    assert await shop.again(a) == before
    assert not await shop.app.planning.cycles(shop.owner)


async def test_what_was_learnt_becomes_an_episode_of_the_project(shop: Workshop) -> None:
    project = await shop.make("project", "Garden")
    task = await shop.make(
        "task",
        "Plant trees",
        status="doing",
        joined={Kind.BELONGS_TO: [project]},
        tags=("outdoors",),
    )
    done = await shop.app.tasks.step(
        shop.owner, task.id, "complete_task", learnings="Quinces want sun, not shade."
    )
    episode = await shop.app.entities.get(shop.owner, done.more["learnings_id"])
    assert (episode.item.entity_type, episode.text) == ("episode", "Quinces want sun, not shade.")
    assert episode.project is not None and episode.project.id == project.id
    joined = await shop.app.store.relations.of_items(
        shop.owner.scope, [episode.item.id], [Kind.DERIVED_FROM]
    )
    assert [(r.from_id, r.to_id) for r in joined] == [(episode.item.id, task.id)]
    found = await shop.app.search.search(shop.owner, "quinces", mode=Mode.KEYWORD)
    assert found.hits[0].passage.item_id == episode.item.id


@pytest.mark.parametrize(
    "kept",
    [
        5,
        "mine",
        {"a": 1},
        [1],
        [{"at": 1, "author": "a", "text": "t"}],
        [{"at": "", "author": "a", "text": None}],
    ],
)
async def test_what_somebody_keeps_under_notes_is_neither_lost_nor_a_failure(
    shop: Workshop, kept: object
) -> None:
    task = await shop.make("task", "Plant trees", metadata={"notes": kept})
    with pytest.raises(Invalid, match="rename that first"):
        await shop.app.tasks.note(shop.owner, task.id, "Dug the holes.")


async def test_an_epic_counts_tasks_that_their_mover_does_not_see(shop: Workshop) -> None:
    """A token of a folder closes the last task that it sees; the epic has another."""
    folder = await shop.app.folders.create(shop.owner, "Garden")
    epic = await shop.make("epic", "Orchard", status="in_progress")
    seen, unseen = [
        await shop.make("task", name, status="doing", joined={Kind.PART_OF: [epic]})
        for name in ("Dig", "Prune")
    ]
    for item in (epic, seen):
        await shop.app.folders.file(shop.owner, item.id, [folder.id])
    scoped = replace(shop.owner, folders=frozenset({folder.id}))
    await shop.app.tasks.step(scoped, seen.id, "complete_task")
    assert (await shop.again(epic)).status == "in_progress"
    await shop.app.tasks.step(shop.owner, unseen.id, "complete_task")
    assert (await shop.again(epic)).status == "completed"


@pytest.mark.parametrize(
    ("at", "action", "use"),
    [
        ("todo", "complete_task", " Use start_task or archive_task."),
        ("blocked", "block_task", " Use start_task or unblock_task or archive_task."),
        ("review", "submit_review", " Use start_task or complete_task or archive_task."),
        ("done", "start_task", " Use archive_task."),
        ("backlog", "start_task", ""),  # no action leads to todo
        ("archived", "start_task", ""),
    ],
)
async def test_a_refused_transition_names_the_actions_that_are_possible(
    shop: Workshop, at: str, action: str, use: str
) -> None:
    task = await shop.make("task", "Refused", status=at)
    with pytest.raises(Invalid) as refused:
        await shop.app.tasks.step(shop.owner, task.id, action)
    assert refused.value.message.partition(". Use")[0].rstrip(".") + f".{use}" == (
        refused.value.message
    )
    assert refused.value.data["actions"] == [
        word for word in use.rstrip(".").split() if "_" in word
    ]
    for possible in refused.value.data["actions"]:
        other = await shop.make("task", "Allowed", status=at)
        await shop.app.tasks.step(shop.owner, other.id, possible)
