"""What comes in: files that are uploaded, and items that are still to be read."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Protocol

from commonplace.model import Content, Item, Job, Json, Scope, Section, Upload


class Unread(Protocol):
    async def complete(
        self,
        scope: Scope,
        item: Item,
        content: Content,
        changes: dict[str, Any],
        *,
        sections: Sequence[Section],
        stamp: str,
        jobs: Sequence[Job],
    ) -> Item:
        """Give an unread item what its source said. Where the scope already holds that, the answer is the item that is there:
        it takes the unread one's place, ids included, unless somebody has changed that one or related something to it.
        NotFound: it was deleted meanwhile. Conflict: it was changed, or the key stands for something else by now."""
        ...


class Uploads(Protocol):
    async def create(self, upload: Upload) -> None: ...

    async def get(self, upload_id: str) -> Upload:
        """Of any library: whoever asks has to check whose it is."""
        ...

    async def of_item(self, scope: Scope, item_id: str) -> Upload | None:
        """The file that an item in scope was made of."""
        ...

    async def awaited(self) -> list[Upload]:
        """Those to be queued when their last byte arrives, and which have no item yet."""
        ...

    async def finish(self, upload: Upload, item_id: str, answer: Json | None = None) -> str:
        """Say which item came of it, and what was answered; the item that is there already, if another was first."""
        ...

    async def spent(self, at: datetime, *, keep: bool) -> list[Upload]:
        """Whose bytes nobody needs: those that expired or whose item is gone; and, unless originals are kept, those
        that were read or written down."""
        ...

    async def forget(self, uploads: Sequence[Upload]) -> None: ...

    async def expire(self, library_id: str) -> None:
        """All of a library's, now; none of them is queued any more."""
        ...
