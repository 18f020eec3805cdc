"""A small library to try things with: a few notes that are added, and removed again, at once."""

from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from commonplace.core.items.drafts import Draft, text_content
from commonplace.core.items.folders import Folders
from commonplace.core.items.library import Library
from commonplace.core.people.authorization import DELETE, FULL_WRITE, WRITE, Service, verb
from commonplace.model import Caller, Folder
from commonplace.text.front_matter import parse

FOLDER = "Sample library"
_NOTES = files(__package__).joinpath("sample")


@dataclass(eq=False)
class Samples(Service):
    _library: Library
    _folders: Folders

    @verb(WRITE, "add_sample", needs=FULL_WRITE)
    async def add(self, caller: Caller) -> Folder:
        """Add the sample to a folder of its own. What is there already stays as it is."""
        folder = await self._find(caller) or await self._folders.create(caller, FOLDER)
        for draft in reversed(drafts()):  # the first is the newest
            added = await self._library.add(caller, draft)
            await self._folders.file(caller, added.item.id, [folder.id])
        return folder

    @verb(DELETE, "remove_sample", needs=FULL_WRITE)
    async def remove(self, caller: Caller) -> int:
        """Delete the sample's notes for good and return how many there were. Notes that somebody
        has edited stay, and so does the folder if something is left in it."""
        caller, removed = replace(caller, step=None), 0  # this cannot be undone
        for draft in drafts():
            content, item = await self._store.items.find_by_key(
                caller.scope, text_content(caller, draft).key, draft.entity_type
            )
            if content is not None and item is not None and item.content_id == content.id:
                await self._library.delete(caller, item.id, permanent=True)
                removed += 1
        folder = await self._find(caller)
        if folder is not None:
            impact = await self._store.folders.folder_impact(caller.scope, folder.id)
            if impact.items == 0:
                await self._folders.delete(caller, folder.id)
        return removed

    async def _find(self, caller: Caller) -> Folder | None:
        folders = await self._folders.list_folders(caller)
        return next(filter(is_sample, folders), None)


def is_sample(folder: Folder) -> bool:
    return folder.name == FOLDER and folder.parent_id is None


@cache
def drafts() -> tuple[Draft, ...]:
    notes = [
        parse(path.read_text("utf-8"), path.name)
        for path in sorted(_NOTES.iterdir(), key=lambda path: path.name)
        if path.name.endswith(".md")
    ]
    return tuple(Draft("text", note.title, note.text, tags=note.tags) for note in notes)
