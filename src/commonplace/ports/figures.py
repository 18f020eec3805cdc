"""Counts for those who look after a library."""

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from commonplace.model import Scope


@dataclass(frozen=True, slots=True)
class Totals:
    items: int
    words: int
    sections: int
    characters: int  # of text, as kept
    by_type: dict[str, int]


class Figures(Protocol):
    async def totals(self, scope: Scope) -> Totals: ...

    async def added(self, scope: Scope, since: datetime) -> dict[str, int]:
        """Items by the day (ISO, UTC) they were added."""
        ...

    async def calls(self, library_id: str, since: datetime) -> dict[str, int]:
        """What tokens did, by day, as far as the activity logs reach back."""
        ...

    async def state(self, library_id: str) -> str:
        """The same as long as no item, relation, filing or vector of the library has changed."""
        ...

    async def size(self) -> int:
        """Bytes that the whole database takes."""
        ...
