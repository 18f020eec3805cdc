"""All nouns behind one door."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from commonplace.model import Json
from commonplace.ports.accounts import Accounts
from commonplace.ports.disks import Disks
from commonplace.ports.figures import Figures
from commonplace.ports.intake import Unread, Uploads
from commonplace.ports.keeping import (
    Candidates,
    Captures,
    Contents,
    Feeds,
    Folders,
    Items,
    Quotas,
    Relations,
    Sections,
    Versions,
)
from commonplace.ports.members import Members
from commonplace.ports.people import People, Tokens
from commonplace.ports.queue import Jobs

Advance = Callable[[int, int], None]  # (done so far, in all)


def silent(done: int, total: int) -> None:
    """For whom nobody waits."""


class Store(Protocol):
    @property
    def people(self) -> People: ...

    @property
    def tokens(self) -> Tokens: ...

    @property
    def accounts(self) -> Accounts: ...

    @property
    def figures(self) -> Figures: ...

    @property
    def folders(self) -> Folders: ...

    @property
    def items(self) -> Items: ...

    @property
    def unread(self) -> Unread: ...

    @property
    def contents(self) -> Contents: ...

    @property
    def quotas(self) -> Quotas: ...

    @property
    def sections(self) -> Sections: ...

    @property
    def jobs(self) -> Jobs: ...

    @property
    def uploads(self) -> Uploads: ...

    @property
    def feeds(self) -> Feeds: ...

    @property
    def relations(self) -> Relations: ...

    @property
    def captures(self) -> Captures: ...

    @property
    def disks(self) -> Disks: ...

    @property
    def members(self) -> Members: ...

    @property
    def candidates(self) -> Candidates: ...

    @property
    def versions(self) -> Versions: ...

    async def open(self) -> None:
        """Connect and bring the schema up to date, under a lock."""
        ...

    async def ping(self) -> None: ...

    async def check(self) -> None:
        """Damaged when the database's pages do not hang together. Reads all of them."""
        ...

    async def describe(self) -> Json:
        """`engine`, its `version`, the `schema`'s number, and `checkpoint_bytes`: files kept for a quick start."""
        ...

    async def dump(self, file: Path, advance: Advance = silent) -> dict[str, int]:
        """Everything, as of one moment, in one file that any engine can load; rows by table."""
        ...

    async def load(self, file: Path, *, replace: bool, advance: Advance = silent) -> dict[str, int]:
        """All of a dump or nothing. Conflict when something is there that `replace` does not give up."""
        ...

    async def close(self) -> None: ...
