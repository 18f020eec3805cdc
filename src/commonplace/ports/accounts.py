"""How people sign in, as the store keeps it."""

from datetime import datetime
from typing import Protocol

from commonplace.model import Membership, Passkey, Person, WebSession


class Accounts(Protocol):
    async def person(self, person_id: str) -> Person | None: ...

    async def by_email(self, email: str) -> Person | None: ...

    async def rename(self, person_id: str, name: str, email: str) -> None:
        """A library that bears the person's name goes along. NameTaken: somebody else has the address."""
        ...

    async def password(self, person_id: str) -> str | None:
        """Its hash."""
        ...

    async def set_password(
        self, person_id: str, hash: str, *, keep: str | None = None, void: str | None = None
    ) -> None:
        """And sign out all browsers of the person but the one with the session `keep`, by digest. `void`: the purpose of
        secrets for one use that end with the old password."""
        ...

    async def claim(
        self, digest: str, purpose: str, person_id: str, name: str, email: str, hash: str | None
    ) -> bool:
        """Redeem a secret, rename the person and set their password, or none of it; whether the secret was good. Other
        secrets of the person for that purpose end with it. A new password signs out all browsers of the person; None keeps
        the old one."""
        ...

    async def add_passkey(self, passkey: Passkey) -> None: ...

    async def passkey(self, passkey_id: str) -> Passkey | None: ...

    async def passkeys(self, person_id: str) -> list[Passkey]: ...

    async def used_passkey(self, passkey_id: str, uses: int) -> None: ...

    async def drop_passkey(self, person_id: str, passkey_id: str) -> bool: ...

    async def open_session(self, session: WebSession) -> None: ...

    async def session(self, digest: str) -> tuple[WebSession, Person, list[Membership]] | None:
        """A session that has not expired, whose it is, and the libraries they are in: their own first."""
        ...

    async def sessions(self, person_id: str) -> list[WebSession]: ...

    async def prolong_session(self, digest: str, expires_at: datetime) -> None: ...

    async def view_as(self, digest: str, token_id: str | None) -> None: ...

    async def turn_to(self, digest: str, library_id: str) -> None:
        """The session is in that library from now on, seen with the person's own eyes."""
        ...

    async def close_sessions(
        self, person_id: str, *, only: str | None = None, but: str | None = None
    ) -> None:
        """All of a person's, or only one, or all but one; by digest."""
        ...

    async def promise(
        self, digest: str, purpose: str, person_id: str | None, expires_at: datetime
    ) -> None:
        """A secret that is good for one use. What has expired is forgotten."""
        ...

    async def promised(self, digest: str, purpose: str) -> tuple[bool, str | None]:
        """Whether it is still good, and for whom."""
        ...

    async def redeem(self, digest: str, purpose: str) -> tuple[bool, str | None]:
        """The same, and from now on it is not; of two who try at once, one succeeds."""
        ...
