"""Correct memories: replace, mark, restore."""

from commonplace.interfaces.actions import tasks as task_shapes
from commonplace.interfaces.rest.routes import ApiRequest, ItemId, api_router
from commonplace.interfaces.rest.tasks import ChangedEntity, changed_entity

router = api_router("entities", "/api/entities/{item_id}")


@router.post("/supersede", summary="Replace a memory")
async def supersede(
    api: ApiRequest, item_id: ItemId, body: task_shapes.SupersedeInput
) -> ChangedEntity:
    """Pass `by` (the id of the replacement), or `content` and `title` to create one. Search ranks
    the old memory below it."""
    return await changed_entity(
        api,
        await api.services.memory.supersede(
            api.caller,
            item_id,
            by=body.by,
            title=body.title,
            content=body.content,
            reason=body.reason or "",
            expected_revision=body.expected_revision,
        ),
    )


@router.post("/mark-wrong", summary="Mark a memory as wrong")
async def mark_wrong(
    api: ApiRequest, item_id: ItemId, body: task_shapes.MarkInput | None = None
) -> ChangedEntity:
    """Search and context leave it out from then on."""
    given = body or task_shapes.MarkInput()
    return await changed_entity(
        api,
        await api.services.memory.mark_wrong(
            api.caller, item_id, given.reason or "", given.expected_revision
        ),
    )


@router.post("/mark-stale", summary="Mark a memory as stale")
async def mark_stale(
    api: ApiRequest, item_id: ItemId, body: task_shapes.MarkInput | None = None
) -> ChangedEntity:
    """Search still finds it and shows its status."""
    given = body or task_shapes.MarkInput()
    return await changed_entity(
        api,
        await api.services.memory.mark_stale(
            api.caller, item_id, given.reason or "", given.expected_revision
        ),
    )


@router.post("/restore", summary="Restore a corrected memory")
async def restore(
    api: ApiRequest, item_id: ItemId, body: task_shapes.StepInput | None = None
) -> ChangedEntity:
    given = body or task_shapes.StepInput()
    return await changed_entity(
        api, await api.services.memory.restore(api.caller, item_id, given.expected_revision)
    )
