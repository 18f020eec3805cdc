"""Published items and saves: what others may see, derived from items and kept apart from them."""

from collections.abc import Sequence
from typing import Protocol

from commonplace.model import Audience, DiskFilter, Item, ItemRef, Published, RedactedDisk, Scope


class Disks(Protocol):
    """A view is of a certain change of its item; every later change of the item makes it `stale`, whoever makes it."""

    async def preview(self, item: Item) -> RedactedDisk | None:
        """The view that was derived of the item as it is now, published or not."""

    async def keep_preview(self, scope: Scope, item: Item, view: RedactedDisk) -> None:
        """Keep the view of an item for its owner alone. It goes with the item, and is old once the item has changed."""

    async def publish(
        self, scope: Scope, item: Item, audience: Audience, view: RedactedDisk, summary: str = ""
    ) -> Published:
        """Seen by others from now on. `item`: as it was when the view was derived."""
        ...

    async def unpublish(self, scope: Scope, item_id: str) -> None:
        """Seen by no other from now on; saves stay, and count again when it is published again."""
        ...

    async def derived(self, published: Published, view: RedactedDisk) -> None:
        """The view of the change that `published` was read at."""
        ...

    async def set_vector(self, published: Published, stamp: str, vector: bytes) -> None:
        """Of the view that was derived for `published`."""
        ...

    async def find(self, ref: ItemRef, saver: str | None) -> Published:
        """Of any library. NotFound: it is not there, or not published."""
        ...

    async def of_items(self, library_id: str, item_ids: Sequence[str]) -> dict[str, Published]:
        """Those of the library's items that are published."""
        ...

    async def saved(
        self, saver: str, where: DiskFilter, *, limit: int, offset: int
    ) -> tuple[list[Published], int]:
        """What a library saved and is still published, saved last first; and how many there are in all."""
        ...

    async def stale(self, saver: str) -> list[Published]:
        """What a library saved and has to be derived again."""
        ...

    async def save(self, saver: str, person_id: str, published: Published) -> Published:
        """Saving again changes nothing. NotFound: it is not published any more."""
        ...

    async def unsave(self, saver: str, ref: ItemRef) -> None:
        """Also of what is not published any more. NotFound: the library did not save it."""
        ...

    async def owner(self, library_id: str) -> tuple[str, str]:
        """Id and name of the person who speaks for the library."""
        ...

    async def vectors(self, item: Item, stamp: str) -> list[bytes]:
        """Of the item's sections."""
        ...

    async def names(self, scope: Scope, section_ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        """(public_id, title) of the items that the sections belong to, within the scope."""
        ...

    async def view_vector(self, published: Published, stamp: str) -> bytes | None: ...

    async def saved_vectors(
        self, saver: str, stamp: str, limit: int
    ) -> list[tuple[str, str, bytes]]:
        """(public_id, title, vector of the view) of what a library saved last."""
        ...
