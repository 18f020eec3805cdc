"""People, and the tokens that they hand to their agents."""

from collections.abc import Sequence
from typing import Protocol

from commonplace.model import Event, Person, Token


class People(Protocol):
    async def create(self, person: Person, token: tuple[Token, str] | None = None) -> None:
        """A person, a library of their own, which has the person's id, and a token with its digest, if given. NameTaken: the
        email is known."""
        ...

    async def all(self) -> list[Person]: ...

    async def role(self, person_id: str, library_id: str) -> str | None: ...

    async def remove(self, person_id: str) -> None:
        """The person, their library and all that hangs on it. Conflict: items are in it, or others belong to it."""
        ...


class Tokens(Protocol):
    async def create(self, token: Token, digest: str) -> None: ...

    async def by_digest(self, digest: str) -> Token | None: ...

    async def of_library(self, library_id: str) -> list[Token]: ...

    async def revoke(self, library_id: str, token_id: str) -> bool: ...

    async def record(self, events: Sequence[Event]) -> None:
        """Append to the activity log and move `last_used_at`."""
        ...

    async def activity(self, library_id: str, token_id: str, limit: int) -> list[Event]: ...
