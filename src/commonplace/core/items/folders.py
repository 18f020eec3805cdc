"""Folders of a library, how they are nested, and which items are filed in them."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from commonplace.core.items.epic_status import Epics
from commonplace.core.people.authorization import DELETE, FULL_WRITE, READ, WRITE, Service, verb
from commonplace.errors import ForbiddenScope, Invalid
from commonplace.model import (
    ACTIVE,
    DEEPEST,
    Caller,
    Folder,
    ItemFilter,
    ItemRef,
    Json,
    find_by_id,
    folder_list,
    folder_name,
    new_id,
    now,
    path_key,
    split_path,
)


@dataclass(eq=False)
class Folders(Service):
    _epics: Epics

    @verb(READ)
    async def list_folders(self, caller: Caller, counted: ItemFilter = ACTIVE) -> list[Folder]:
        """Return the folders in scope. `counted`: the items that `item_count` counts."""
        return await self._store.folders.list_folders(caller.scope, counted)

    @verb(READ, "folder", target="folder_id")
    async def get(self, caller: Caller, folder_id: str) -> Folder:
        return find_by_id(await self.list_folders(caller), folder_id, "Folder")

    @verb(WRITE, "create_folder", target="name", needs=FULL_WRITE)
    async def create(self, caller: Caller, name: str, parent_id: str | None = None) -> Folder:
        folder = Folder(new_id(), caller.library_id, folder_name(name), now(), parent_id)
        await self._store.folders.create(caller.scope, folder)
        return folder

    @verb(WRITE, "update_folder", target="folder_id", needs=FULL_WRITE)
    async def update(self, caller: Caller, folder_id: str, changes: Json) -> Folder:
        """Rename a folder, or move it into another; `parent_id` None: to the top."""
        if "name" in changes:
            if changes["name"] is None:
                raise Invalid("`name` cannot be null: a folder has a name.")
            changes = changes | {"name": folder_name(changes["name"])}
        return await self._store.folders.change(caller.scope, folder_id, changes)

    @verb(DELETE, "delete_folder", target="folder_id", needs=FULL_WRITE)
    async def delete(self, caller: Caller, folder_id: str, *, cascade_items: bool = False) -> None:
        left = await self._epics.of_folder(caller.library_id, folder_id) if cascade_items else []
        await self._store.folders.delete(
            caller.scope,
            folder_id,
            cascade_items=cascade_items,
            permanent=self._epics.without_trash,
        )
        await self._epics.follow(caller.scope, left)

    @verb(WRITE, target="item_id")
    async def file(self, caller: Caller, item_id: str, folder_ids: Sequence[str]) -> list[str]:
        """Add an item to folders, and return those that are new. A token may only use its own
        folders, and one for a single folder cannot file."""
        if caller.single_folder is not None:
            raise ForbiddenScope(
                "A token for one folder cannot file items. Everything it adds is filed in its "
                "folder."
            )
        outside = (
            [] if caller.folders is None else [f for f in folder_ids if f not in caller.folders]
        )
        if outside:
            raise ForbiddenScope(
                "Some folders are out of this token's scope.", out_of_scope=outside
            )
        return await self._store.items.file(
            caller.scope, ItemRef.parse(item_id), folder_ids, token_id=caller.token_id
        )

    @verb(WRITE, target="item_id")
    async def unfile(self, caller: Caller, item_id: str, folder_id: str) -> None:
        if caller.folders is not None and folder_id not in caller.folders:
            raise ForbiddenScope(
                "That folder is out of this token's scope.", out_of_scope=[folder_id]
            )
        await self._store.items.unfile(caller.scope, ItemRef.parse(item_id), folder_id)


@dataclass(eq=False)
class FolderIds:
    """Ids of folders by their path, for an import. Folders that do not exist yet are created."""

    _folders: Folders
    _caller: Caller
    _ids: dict[tuple[str, ...], str] | None = field(default=None, init=False)
    created: int = field(default=0, init=False)

    async def find(self, path: str) -> str:
        if self._ids is None:
            listed = await self._folders.list_folders(self._caller)
            self._ids = {path_key(node.names): node.id for node in folder_list(listed)}
        names = split_path(path)
        # What lies deeper than folders can is named in the last one.
        names = (*names[: DEEPEST - 1], *filter(None, ["/".join(names[DEEPEST - 1 :])]))
        folder_id = None
        for depth in range(1, len(names) + 1):
            key = path_key(names[:depth])
            if key not in self._ids:
                made = await self._folders.create(self._caller, names[depth - 1], folder_id)
                self._ids[key] = made.id
                self.created += 1
            folder_id = self._ids[key]
        if folder_id is None:
            raise Invalid(f"{path!r} names no folder.")
        return folder_id
