"""Links, tags and attachments of a folder of notes, as Obsidian and Logseq write them."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from commonplace.model import Json, Kind, Relation
from commonplace.text import front_matter
from commonplace.text.note_links import NOTES, Names, aliases_of, find_references


@dataclass(eq=False)
class Vault:
    """Collects what notes refer to while they are read, to join them when all are known."""

    _library_id: str
    _names: Names = field(default_factory=Names)
    _links: list[tuple[str, str]] = field(default_factory=list)  # (path, link)
    _ids: dict[str, str] = field(default_factory=dict)  # of items by their path

    def take(self, note: front_matter.Note, path: str) -> front_matter.Note:
        """Return a note with the #tags of its text."""
        found = find_references(note.text)
        self._links += [(path, link) for link in found.links]
        tags = tuple(dict.fromkeys((*note.tags, *found.tags)))
        return note if tags == note.tags else replace(note, front=note.front | {"tags": [*tags]})

    def name(self, path: str, item_id: str, front: Json) -> None:
        self._names.add(path, path, aliases_of(front))
        self._ids[path] = item_id

    def files(self, root: Path) -> dict[Path, list[str]]:
        """Return the files below `root` that notes embed or link to, each with the notes' ids."""
        others = Names()
        for file in sorted(root.rglob("*")):
            path = file.relative_to(root)
            hidden = any(part.startswith(".") for part in path.parts)
            is_note = file.suffix.lower() in NOTES
            if not (hidden or is_note or file.is_symlink()) and file.is_file():
                others.add(path.as_posix(), path.as_posix())
        found: dict[Path, list[str]] = {}
        for path_of_note, link in self._links:
            if to := others.find(link, path_of_note):
                found.setdefault(root / to, []).append(self._ids[path_of_note])
        return found

    def relations(self) -> list[Relation]:
        joins = {
            (self._ids[path], self._ids[to]): None
            for path, link in self._links
            if (to := self._names.find(link, path)) is not None and to != path
        }
        return [self.join(from_id, to_id) for from_id, to_id in joins]

    def join(self, from_id: str, to_id: str) -> Relation:
        return Relation(self._library_id, from_id, Kind.RELATED_TO, to_id, explicit=True)
