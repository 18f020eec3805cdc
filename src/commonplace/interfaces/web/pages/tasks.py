"""Projects, epics and tasks as a list and a board; a task with notes and dependencies."""

import asyncio
from collections.abc import Sequence
from typing import Any

from starlette.responses import JSONResponse, Response

from commonplace.core.entities import validation as rules
from commonplace.core.entities.entities import Entity
from commonplace.core.work.graph import GraphQuery
from commonplace.errors import Invalid
from commonplace.interfaces.web.graph_svg import Node, picture
from commonplace.interfaces.web.markdown_html import rendered
from commonplace.interfaces.web.pages.graph import edges_of
from commonplace.interfaces.web.request import WebRequest
from commonplace.interfaces.web.route import get, post
from commonplace.model import EntityType, ItemFilter, Kind, now
from commonplace.model.task_notes import notes
from commonplace.model.workflow import ENDED, EPIC, MACHINES, TASK

PRIORITIES = [(value, value) for value in rules.PRIORITIES]
COLUMNS = {
    "backlog": "Backlog",
    "todo": "To do",
    "doing": "Doing",
    "blocked": "Blocked",
    "review": "Review",
    "done": "Done",
}
MOST = 300
KINDS = (EntityType.TASK, EntityType.EPIC, EntityType.PROJECT)


async def show(request: WebRequest) -> Response:
    entities, project = request.services.entities, request.query("project") or None
    projects, epics = await projects_of(request), await _epics(request, project)
    tasks, total = await entities.page(
        request.caller,
        ItemFilter(entity_types=(EntityType.TASK,), not_statuses=("archived",)),
        project=project,
        limit=MOST,
    )
    return request.page(
        "work.html",
        projects=projects,
        epics=epics,
        tasks=tasks,
        total=total,
        board={
            state: [task for task in tasks if TASK.state(task.item) == state] for state in COLUMNS
        },
        columns=COLUMNS,
        next_of={task.item.id: TASK.next[TASK.state(task.item)] for task in tasks},
        state_of={epic.item.id: EPIC.state(epic.item) for epic in epics}
        | {task.item.id: TASK.state(task.item) for task in tasks},
        project=project,
        as_list=request.query("view") == "list",
        named=_named,
        priorities=PRIORITIES,
        today=f"{now():%Y-%m-%d}",
    )


async def projects_of(request: WebRequest) -> list[Entity]:
    return (
        await request.services.entities.page(
            request.caller, ItemFilter(entity_types=(EntityType.PROJECT,)), limit=100
        )
    )[0]


async def _epics(request: WebRequest, project: str | None) -> list[Entity]:
    where = ItemFilter(entity_types=(EntityType.EPIC,), not_statuses=("archived",))
    return (
        await request.services.entities.page(request.caller, where, project=project, limit=100)
    )[0]


def _named(entities: Sequence[Entity]) -> list[tuple[str, str]]:
    return [(each.item.entity_id, each.item.title) for each in entities]


async def create(request: WebRequest) -> Response:
    kind, title = request.form.get("kind", "task"), request.form.get("title", "").strip()
    if kind not in {*KINDS}:
        raise Invalid("Choose a task, an epic or a project.")
    new = rules.NewEntity(
        title,
        request.form.get("content", "").strip() or title,
        kind,
        project=request.form.get("project") or None,
        epic=request.form.get("epic") or None,
        priority=request.form.get("priority") or None,
    )
    added = await request.services.entities.add(request.caller, new, sync=True)
    return request.redirect(
        request.back if kind != EntityType.PROJECT else f"/work?project={added.item.entity_id}",
        added.message,
    )


async def one(request: WebRequest) -> Response:
    entity = await request.services.entities.get(request.caller, request.path("entity_id"))
    item = entity.item
    machine = MACHINES.get(item.entity_type)
    chain = (
        await request.services.graph.dependencies(request.caller, item.id, GraphQuery())
        if machine
        else None
    )
    drawn = None
    if chain and len(chain.items) > 1:
        nodes = [Node(each, f"/work/{each.public_id}", each.id == item.id) for each in chain.items]
        drawn = await asyncio.to_thread(
            picture,
            nodes,
            edges_of(chain.items, chain.relations),
            f"What {item.title} waits for",
            layered=True,
        )
    tasks = (
        (
            await request.services.tasks.page(
                request.caller,
                ItemFilter(entity_types=(EntityType.TASK,), not_statuses=("archived",)),
                epic=item.id,
                limit=MOST,
                offset=0,
            )
        )[0]
        if machine is EPIC
        else []
    )
    return request.page(
        "task.html",
        entity=entity,
        item=item,
        tasks=tasks,
        columns=COLUMNS,
        named=_named,
        priorities=PRIORITIES,
        projects=await projects_of(request),
        epics=await _epics(request, None),
        today=f"{now():%Y-%m-%d}",
        text=rendered(entity.text or ""),
        notes=notes(item),
        state=machine.state(item) if machine else "",
        next=machine.next[machine.state(item)] if machine else (),
        drawing=drawn,
        cycles=chain.cycles if chain else (),
        open=await _open_beside(request, entity),
    )


async def _open_beside(request: WebRequest, entity: Entity) -> list[Entity]:
    """Return the open work of its project that it could depend on."""
    if entity.item.entity_type not in MACHINES or not request.user.has_full_write:
        return []
    where = ItemFilter(entity_types=tuple(MACHINES), not_statuses=ENDED)
    found, _ = await request.services.entities.page(
        request.caller, where, limit=MOST, project=entity.project.id if entity.project else None
    )
    held = {entity.item.id, *(each.id for each in entity.depends_on)}
    return [each for each in found if each.item.id not in held]


async def change(request: WebRequest) -> Response:
    """Write only fields that differ, and nothing over a newer change of somebody else."""
    form, entity = (
        request.form,
        await request.services.entities.get(request.caller, request.path("entity_id")),
    )
    item, revision = entity.item, form.get("revision", "")
    if item.entity_type not in {*KINDS}:
        raise Invalid("Only tasks, epics and projects are changed here.")
    was: dict[str, Any] = {
        "title": item.title,
        "content": entity.text,
        "priority": item.priority,
        "due_date": item.due_date or "",
        "assignees": item.assignees,
    }
    wanted: dict[str, Any] = {
        name: form[name].replace("\r\n", "\n") for name in was if name in form
    }
    if "assignees" in wanted:
        wanted["assignees"] = tuple(
            name.strip() for name in wanted["assignees"].split(",") if name.strip()
        )
    changes = {name: value for name, value in wanted.items() if value != was[name]}
    if changes:
        await request.services.entities.update(
            request.caller, item.id, changes, int(revision) if revision.isdecimal() else None
        )
    held = {
        name: its.entity_id if its else ""
        for name, its in (("project", entity.project), ("epic", entity.epic))
    }
    joins = {name: form[name] or None for name, at in held.items() if form.get(name, at) != at}
    if joins and item.entity_type in MACHINES:
        await request.services.tasks.update(
            request.caller, item.id, MACHINES[item.entity_type], joins
        )
    return request.redirect(
        f"/work/{item.public_id}", "Saved." if changes or joins else "Nothing was changed."
    )


async def move(request: WebRequest) -> Response:
    """Move a task or epic to an allowed next state."""
    item = (await request.services.entities.get(request.caller, request.path("entity_id"))).item
    if item.entity_type not in MACHINES:
        raise Invalid("Only tasks and epics have states to go through.")
    done = await request.services.tasks.update(
        request.caller,
        item.id,
        MACHINES[item.entity_type],
        {"status": request.form.get("status", "")},
    )
    return (
        request.redirect(request.back, done.message)
        if request.wants_page
        else JSONResponse(
            {"ok": True, "status": done.item.status, "next": TASK.next.get(done.item.status, ())}
        )
    )


async def wait(request: WebRequest) -> Response:
    """Add or remove a dependency."""
    form, entity_id = request.form, request.path("entity_id")
    if form.get("action") == "drop":
        await request.services.graph.unlink(
            request.caller, entity_id, Kind.DEPENDS_ON, form.get("on", "")
        )
        return request.redirect(request.back, "It waits for that no more.")
    _, other, _, _ = await request.services.graph.link(
        request.caller, entity_id, Kind.DEPENDS_ON, form.get("on", "")
    )
    return request.redirect(request.back, f"It waits for {other.title}.")


async def note(request: WebRequest) -> Response:
    done = await request.services.tasks.note(
        request.caller, request.path("entity_id"), request.form.get("text", "").strip()
    )
    return request.redirect(f"/work/{done.item.public_id}", "Noted.")


ROUTES = (
    get("/work", show),
    post("/work", create),
    get("/work/{entity_id}", one),
    post("/work/{entity_id}", change),
    post("/work/{entity_id}/move", move),
    post("/work/{entity_id}/wait", wait),
    post("/work/{entity_id}/note", note),
)
