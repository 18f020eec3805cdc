"""Memories that are corrected: replaced, marked, and taken as they were again."""

from commonplace.interfaces.actions import tasks as wire
from commonplace.interfaces.rest.routes import Desk, ItemId, api_router
from commonplace.interfaces.rest.tasks import Changed, changed

router = api_router("entities", "/api/entities/{item_id}")


@router.post("/supersede", summary="Replace a memory")
async def supersede(desk: Desk, item_id: ItemId, body: wire.Superseding) -> Changed:
    """Pass `by` (the id of the replacement), or `content` and `title` to create one. Search ranks the
    old memory below it."""
    return await changed(
        desk,
        await desk.services.memory.supersede(
            desk.caller,
            item_id,
            by=body.by,
            title=body.title,
            content=body.content,
            reason=body.reason or "",
            expected_revision=body.expected_revision,
        ),
    )


@router.post("/mark-wrong", summary="Mark a memory as wrong")
async def mark_wrong(desk: Desk, item_id: ItemId, body: wire.Marking | None = None) -> Changed:
    """Search and context leave it out from then on."""
    given = body or wire.Marking()
    return await changed(
        desk,
        await desk.services.memory.mark_wrong(
            desk.caller, item_id, given.reason or "", given.expected_revision
        ),
    )


@router.post("/mark-stale", summary="Mark a memory as stale")
async def mark_stale(desk: Desk, item_id: ItemId, body: wire.Marking | None = None) -> Changed:
    """Search still finds it and shows its status."""
    given = body or wire.Marking()
    return await changed(
        desk,
        await desk.services.memory.mark_stale(
            desk.caller, item_id, given.reason or "", given.expected_revision
        ),
    )


@router.post("/restore", summary="Restore a corrected memory")
async def restore(desk: Desk, item_id: ItemId, body: wire.Nothing | None = None) -> Changed:
    given = body or wire.Nothing()
    return await changed(
        desk, await desk.services.memory.restore(desk.caller, item_id, given.expected_revision)
    )
