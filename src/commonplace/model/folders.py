"""Folders, their names, and the tree that they make."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from commonplace.model.ids import Stored, normalize

DEEPEST = 8  # levels of folders
_ESCAPED = re.compile(r"[/\\]")
_PART = re.compile(r"(?:[^/\\]|\\.|\\$)+", re.DOTALL)
_UNESCAPE = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Folder(Stored):
    name: str
    created_at: datetime
    parent_id: str | None = None  # None: at the top, or in a folder that the reader does not see
    item_count: int = 0


@dataclass(frozen=True, slots=True)
class FolderImpact:
    """The effects of deleting a folder."""

    items: int
    alone: int  # of these, items in no other folder
    tokens: int  # that see only this folder, and are revoked with it


@dataclass(frozen=True, slots=True)
class FolderNode:
    """A folder with what lies in it, as far as the reader sees it."""

    folder: Folder
    names: tuple[str, ...]  # of the folders above and its own
    children: "list[FolderNode]" = field(default_factory=list)

    @property
    def id(self) -> str:
        return self.folder.id

    @property
    def label(self) -> str:
        """Its path for people."""
        return " / ".join(self.names)

    @property
    def path(self) -> str:
        """Its path for files and commands, which `split_path` reads."""
        return join_path(self.names)

    @property
    def subtree(self) -> "Iterator[FolderNode]":
        """The folder and all below, each after the one it lies in."""
        yield self
        for child in self.children:
            yield from child.subtree


def folder_tree(folders: Iterable[Folder]) -> list[FolderNode]:
    """Return the folders at the top, with the others in them, in the order given."""
    below: dict[str | None, list[Folder]] = {}
    known = {folder.id: folder for folder in folders}
    for folder in known.values():
        parent = folder.parent_id if folder.parent_id in known else None
        below.setdefault(parent, []).append(folder)

    def nodes(parent: str | None, above: tuple[str, ...]) -> list[FolderNode]:
        return [
            FolderNode(each, names := (*above, each.name), nodes(each.id, names))
            for each in below.get(parent, ())
        ]

    return nodes(None, ())


def folder_list(folders: Iterable[Folder]) -> list[FolderNode]:
    """Return all folders in the order of the tree."""
    return [node for top in folder_tree(folders) for node in top.subtree]


def join_path(names: Iterable[str]) -> str:
    return "/".join(_ESCAPED.sub(r"\\\g<0>", name) for name in names)


def split_path(path: str) -> tuple[str, ...]:
    r"""Return the names of a path. A slash within a name is written `\/`."""
    return tuple(
        name for part in _PART.findall(path) if (name := _UNESCAPE.sub(r"\1", part).strip())
    )


def find_folders(folders: Iterable[Folder], wanted: str) -> list[FolderNode]:
    """Return the folders that somebody means by an id, a path or a name."""
    nodes, key = folder_list(folders), path_key(split_path(wanted))
    for is_meant in (
        lambda node: node.id == wanted,
        lambda node: path_key(node.names) == key,
        lambda node: folder_key(node.folder.name) == folder_key(wanted),
    ):
        if found := [node for node in nodes if is_meant(node)]:
            return found
    return []


def folder_name(name: str) -> str:
    """Normalize a folder's name for display."""
    return normalize("NFC", " ".join(name.split()))


def folder_key(name: str) -> str:
    """Return the key that folder names are compared by."""
    return normalize("NFC", folder_name(name).casefold())


def path_key(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(map(folder_key, names))
