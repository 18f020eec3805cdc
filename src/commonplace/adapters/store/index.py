"""What an engine does its own way: keeping sections searchable. Everything else in the store is the same SQL."""

from collections.abc import Sequence
from typing import Any, Protocol

from commonplace.model import Item, ItemFilter, Scope, Scored, Section, Words
from commonplace.ports import Vector


class SectionIndex(Protocol):
    """Methods with `tx` run inside the caller's transaction."""

    def insert(self, tx: Any, item: Item, sections: Sequence[Section], stamp: str) -> None:
        """Write section rows (and the vectors they carry), searchable by keyword once committed."""
        ...

    def remove(self, tx: Any, library_id: str, item_id: str) -> None: ...

    def refile(self, tx: Any, library_id: str, item_id: str) -> None:
        """The item's folders changed."""
        ...

    def set_vectors(self, tx: Any, stamp: str, vectors: Sequence[tuple[int, bytes]]) -> None: ...

    def vectors(self, tx: Any, library_id: str, item_ids: Sequence[str]) -> dict[int, tuple[str, bytes]]:
        """Stamp and float16 bytes by section id."""
        ...

    def keyword(self, tx: Any, scope: Scope, words: Words, limit: int, where: ItemFilter | None) -> list[Scored]: ...

    def nearest(self, tx: Any, scope: Scope, vector: Vector, stamp: str, limit: int,
                also: Sequence[int], where: ItemFilter | None) -> list[Scored]: ...
