"""Projects, epics and tasks as a list and a board; a task with notes and dependencies."""

from collections.abc import Sequence

from starlette.responses import JSONResponse, Response

from commonplace.core.entities.entities import AddedEntity, Entity
from commonplace.core.work.graph import GraphQuery
from commonplace.errors import Conflict, Invalid
from commonplace.interfaces.actions.entities import WORK_FIELDS
from commonplace.interfaces.web.markdown_html import rendered
from commonplace.interfaces.web.pages.graph import draw
from commonplace.interfaces.web.request import WebRequest, get, post, post_then
from commonplace.model import EntityType, ItemFilter, Kind, now
from commonplace.model.workflow import ENDED, EPIC, MACHINES, TASK, notes

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
TASKS = ItemFilter(entity_types=(EntityType.TASK,), not_statuses=("archived",))
JOINS: dict[str, tuple[str, ...]] = {
    EntityType.TASK: ("project", "epic"),
    EntityType.EPIC: ("project",),
}
REPLACES = (
    "This has changed since you opened it. Save again to replace it with your version, or open it "
    "in another tab to compare first."
)
FIELDS = f"title content {' '.join(WORK_FIELDS)}"


async def show(request: WebRequest) -> Response:
    entities, project = request.services.entities, request.query("project") or None
    projects, epics = await projects_of(request), await _epics(request, project)
    tasks, total = await entities.page(request.caller, TASKS, project=project, limit=MOST)
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
        kinds=KINDS,
        today=f"{now():%Y-%m-%d}",
    )


async def projects_of(request: WebRequest) -> list[Entity]:
    where = ItemFilter(entity_types=(EntityType.PROJECT,))
    return (await request.services.entities.page(request.caller, where, limit=100))[0]


async def _epics(request: WebRequest, project: str | None) -> list[Entity]:
    where = ItemFilter(entity_types=(EntityType.EPIC,), not_statuses=("archived",))
    found = await request.services.entities.page(request.caller, where, project=project, limit=100)
    return found[0]


def _named(entities: Sequence[Entity]) -> list[tuple[str, str]]:
    return [(each.item.entity_id, each.item.title) for each in entities]


async def create(request: WebRequest) -> Response:
    kind = request.text("kind") or EntityType.TASK.value
    if kind not in {*KINDS}:
        raise Invalid("Choose a task, an epic or a project.")
    added = await request.act(
        "add_entity",
        "title project epic priority",
        entity_type=kind,
        content=request.text("content").strip() or request.text("title"),
        sync=True,
    )
    return request.redirect(
        request.back if kind != EntityType.PROJECT else f"/work?project={added.item.entity_id}",
        f"{added.message}{_known(added)}",
    )


def _known(added: AddedEntity) -> str:
    """Name what an added entity repeats or contradicts."""
    told = [
        f"{each.kind.replace('_', ' ')} of “{each.name}”"
        + (f", {each.difference}" if each.difference else "")
        for each in added.conflicts
    ]
    return f". Possible {'; '.join(told)}." if told else ""


async def one(request: WebRequest) -> Response:
    services, caller = request.services, request.caller
    entity = await services.entities.get(caller, request.path("entity_id"))
    item, tasks, chain, drawn = entity.item, list[Entity](), None, None
    machine = MACHINES.get(item.entity_type)
    if machine:
        chain = await services.graph.dependencies(caller, item.id, GraphQuery())
    if chain and len(chain.items) > 1:
        said = f"Dependencies of {item.title}"
        drawn = await draw(item, chain.items, chain.relations, "/work", said, layered=True)
    if machine is EPIC:
        tasks, _ = await services.tasks.page(caller, TASKS, epic=item.id, limit=MOST, offset=0)
    return request.page(
        "task.html",
        entity=entity,
        item=item,
        tasks=tasks,
        columns=COLUMNS,
        named=_named,
        projects=await projects_of(request),
        epics=await _epics(request, None),
        today=f"{now():%Y-%m-%d}",
        text=rendered(entity.text or ""),
        notes=notes(item),
        fields=WORK_FIELDS,
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
    revision = request.text("revision") or None
    wanted = request.input("update_entity", FIELDS, expected_revision=revision)
    entity = await request.services.entities.get(request.caller, wanted.entity_id)
    item = entity.item
    if item.entity_type not in {*KINDS}:
        raise Invalid("Only tasks, epics and projects can be edited here.")
    was = {name: getattr(item, name) for name in FIELDS.split() if name != "content"}
    was["content"] = entity.text
    changes = {
        name: value
        for name, value in wanted.changes.items()
        if (value or None) != (was[name] or None)
    }
    if changes:
        try:
            await request.services.entities.update(
                request.caller, item.id, changes, wanted.expected_revision
            )
        except Conflict as error:  # the form takes the revision over: its next save replaces
            raise Conflict(REPLACES, **error.data) from error
    held = {name: getattr(entity, name) for name in JOINS.get(item.entity_type, ())}
    joins = [
        name
        for name, at in held.items()
        if request.form.get(name) not in (None, at.entity_id if at else "")
    ]
    if joins:
        await request.act(f"update_{item.entity_type}", " ".join(joins))
    return request.redirect(
        f"/work/{item.public_id}", "Saved." if changes or joins else "No changes."
    )


async def move(request: WebRequest) -> Response:
    """Move a task or epic to an allowed next state."""
    item = (await request.services.entities.get(request.caller, request.path("entity_id"))).item
    if item.entity_type not in MACHINES:
        raise Invalid("Only tasks and epics have a status.")
    done = await request.act(f"update_{item.entity_type}", "status")
    if request.wants_page:
        return request.redirect(request.back, done.message)
    following = TASK.next.get(done.item.status, ())
    undo = await request.end_step(done.message)
    told = {"status": done.item.status, "message": done.message, "undo": undo}
    return JSONResponse({"ok": True, "next": following} | told)


async def wait(request: WebRequest) -> Response:
    """Add or remove a dependency."""
    link = request.caller, request.path("entity_id"), Kind.DEPENDS_ON, request.text("on")
    if request.text("action") == "drop":
        await request.services.graph.unlink(*link)
        return request.redirect(request.back, "Dependency removed.")
    _, other, _, _ = await request.services.graph.link(*link)
    return request.redirect(request.back, f"Dependency on {other.title} added.")


ROUTES = (
    get("/work", show),
    post("/work", create),
    get("/work/{entity_id}", one),
    post("/work/{entity_id}", change),
    post("/work/{entity_id}/move", move),
    post("/work/{entity_id}/wait", wait),
    post_then(
        "/work/{entity_id}/note",
        lambda request: request.act("add_note", content=request.text("text").strip()),
        "/work/{done.item.public_id}",
        "Note saved.",
    ),
)
