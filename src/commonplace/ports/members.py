"""Who belongs to a library, and who was asked to."""

from typing import Protocol

from commonplace.model import Invitation, Member, Passkey, Person, Token


class Members(Protocol):
    async def of_library(self, library_id: str) -> list[Member]:
        """Owners first, then by name."""
        ...

    async def change_role(self, library_id: str, person_id: str, role: str) -> Member:
        """Conflict: they are the last owner."""
        ...

    async def remove(self, library_id: str, person_id: str) -> None:
        """Their tokens for the library are revoked with it. Conflict: they are the last owner."""
        ...

    async def invite(self, invitation: Invitation, digest: str) -> None: ...

    async def invitations(self, library_id: str) -> list[Invitation]:
        """Newest first."""
        ...

    async def withdraw(self, library_id: str, invitation_id: str) -> bool:
        """Whether there was one that nobody had accepted yet."""
        ...

    async def invited(self, digest: str) -> Invitation | None: ...

    async def library_name(self, library_id: str) -> str: ...

    async def rename_library(self, library_id: str, name: str) -> None: ...

    async def accept(
        self,
        invitation: Invitation,
        person: Person,
        token: tuple[Token, str] | None,
        *,
        new: bool,
        sign_in: str | Passkey | None = None,
    ) -> None:
        """In one transaction: the person (when `new`, with a library of their own), the membership, the token (with its
        digest) if they want one, what they sign in with (a password's hash, or a passkey of nobody yet), and the invitation is
        used up. Conflict: it is by now, or they are a member already. NameTaken: the address is known."""
        ...
