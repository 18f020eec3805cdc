"""Ten times as many tasks cost at most four times as much, whatever is asked about them."""

import random
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from commonplace.database.transaction import Tx
from commonplace.model import Content, Item, Scope, new_id, new_public_id
from commonplace.store import Store, rows
from tests.interfaces.house import House, call_tool, open_house

pytestmark = pytest.mark.anyio
FEW, MANY = 2_000, 20_000
MOST_TIMES = 7  # ten would be linear; measured 2.6 to 4.8, by what else the machine does
STATUSES = ("todo", "todo", "todo", "backlog", "doing", "blocked", "review")
PRIORITIES = ("critical", "high", "medium", "medium", "low", "someday")
Ask = Callable[[str, dict[str, Any]], Awaitable[float]]


async def fill(house: House, count: int) -> dict[str, str]:
    """One project and one epic with all tasks: every second one waits for another, a tenth stand in one chain, and half of the
    rest wait for the same one. Ids by name."""
    dice, library_id, store = random.Random(3), house.owner.library_id, house.app.store
    assert isinstance(store, Store)
    text = Content(new_id(), f"{library_id}:one", "The text does not matter here.")

    def item(entity_type: str, title: str, **fields: Any) -> Item:
        return Item(
            new_id(), library_id, new_public_id(), text.id, entity_type, "text", title, **fields
        )

    project, epic = item("project", "The project"), item("epic", "The epic", status="in_progress")
    await store.items.add(
        project, text, [], scope=Scope(library_id), folder_id=None, stamp="none", jobs=[]
    )
    tasks = [
        item(
            "task",
            f"Task {n}",
            status=dice.choice(STATUSES) if n > 20 else "todo",
            priority=dice.choice(PRIORITIES),
            due_date=f"2026-{dice.randrange(1, 13):02}-15" if n % 3 else None,
            assignees=("ann",) if n % 4 else (),
        )
        for n in range(count)
    ]
    waits = {(tasks[n].id, tasks[dice.randrange(20, n)].id) for n in range(22, count, 2)}
    waits |= {(tasks[n].id, tasks[n - 1].id) for n in range(21, count // 10)} | {
        (tasks[n].id, tasks[20].id) for n in range(21, count, 4)
    }
    joined = [
        (task.id, kind, end.id)
        for task in tasks
        for kind, end in (("BELONGS_TO", project), ("PART_OF", epic))
    ]
    joined += [(epic.id, "BELONGS_TO", project.id), *((a, "DEPENDS_ON", b) for a, b in waits)]

    def write(tx: Tx) -> None:
        tx.insert(
            "items", ", ".join(rows.WRITTEN_COLUMNS), list(map(rows.item_values, [epic, *tasks]))
        )
        tx.insert(
            "relations",
            "library_id, from_id, kind, to_id, weight, explicit, created_at",
            [(library_id, *relation, 1.0, 1, at) for at, relation in enumerate(joined)],
        )

    await store._db.write(write)
    return {
        "project": project.id,
        "epic": epic.id,
        "hub": tasks[20].id,
        "last": tasks[count // 10 - 1].id,
        **{f"task {n}": task.id for n, task in enumerate(tasks[:20])},
    }


def calls(ids: dict[str, str], turn: int) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """By what is bounded: tool and arguments of each call."""
    project, task = ids["project"], ids[f"task {turn}"]
    explored = [ids["epic"], project, ids["hub"], ids["last"]]
    return {
        "manage": [
            *(
                ("manage", {"action": action, "data": data})
                for action in ("prioritize", "suggest", "detect_cycles")
                for data in ({}, {"project": project})
            ),
            *(
                ("manage", {"action": action, "entity_id": task, "data": data})
                for action, data in (
                    ("update_task", {"title": f"Anew {turn}"}),
                    ("update_task", {"epic": ids["epic"]}),
                    ("update_task", {"depends_on": [ids["last"]]}),
                    ("add_note", {"content": "A word on how it went."}),
                    ("start_task", {}),
                    ("submit_review", {}),
                    ("complete_task", {}),
                    ("estimate", {}),
                )
            ),
        ],
        "suggest": [("manage", {"action": "suggest"})],
        "explore": [
            ("explore", {"mode": "list", "project": project}),
            ("explore", {"mode": "list", "types": ["task"], "status": "todo"}),
            *(
                (
                    "explore",
                    {"mode": mode, "entity_id": one} | ({"depth": 3} if mode == "traverse" else {}),
                )
                for mode in ("related", "traverse", "dependencies")
                for one in explored
            ),
        ],
        "context": [
            ("context", {"goal": "Task 17 does not matter"}),
            ("context", {"goal": "Task 17", "project": project}),
        ],
        "add": [
            (
                "add",
                {
                    "title": f"New {turn}",
                    "content": "The text does not matter here.",
                    "entity_type": "task",
                    "project": project,
                    "depends_on": [ids["last"]],
                },
            )
        ],
    }


async def cpu_seconds(house: House, ids: dict[str, str]) -> dict[str, float]:
    """The least of several turns, for each kind of calls."""
    least: dict[str, float] = {}
    async with house.client("owner") as client:
        for turn in range(4):
            for name, made in calls(ids, turn).items():
                began = time.process_time()
                for tool, arguments in made:
                    answer = await call_tool(client, tool, arguments)
                    assert "result" in answer, (tool, arguments, answer)
                spent = time.process_time() - began
                least[name] = min(spent, least.get(name, spent)) if turn else float("inf")
    return least


async def test_ten_times_as_many_tasks_cost_clearly_less_than_ten_times_as_much(
    tmp_path: Path,
) -> None:
    async with AsyncExitStack() as stack:
        spent = []
        for count in (FEW, MANY):
            house = await stack.enter_async_context(open_house(tmp_path / str(count)))
            spent.append(await cpu_seconds(house, await fill(house, count)))
    times = {
        name: many / few
        for (name, few), many in zip(spent[0].items(), spent[1].values(), strict=True)
    }
    assert all(ratio <= MOST_TIMES for ratio in times.values()), (times, spent)
