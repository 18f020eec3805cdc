"""Accepting invitations in the browser: as an existing person, or as a new one with a password or
passkey."""

from dataclasses import dataclass

from commonplace.core.people.accounts import Accounts, Visitor, checked
from commonplace.core.people.members import (
    AcceptedInvitation,
    Members,
    require_addressee,
)
from commonplace.core.people.passkeys import Passkeys, Site
from commonplace.core.people.tokens import new_person
from commonplace.errors import NameTaken
from commonplace.model import Json
from commonplace.store import Store


@dataclass(eq=False)
class Invitations:
    _store: Store
    _accounts: Accounts
    _passkeys: Passkeys
    _members: Members

    async def accept_as_visitor(self, visitor: Visitor, secret: str) -> AcceptedInvitation:
        """Accept as an existing person. The browser switches to the joined library."""
        done = await self._members.accept(visitor.as_owner, secret, with_token=False)
        await self._store.accounts.switch_library(visitor.session.digest, done.library_id)
        return done

    async def accept_with_password(
        self, secret: str, name: str, email: str, password: str, *, about: str
    ) -> str:
        """Accept as a new person, and return the secret for the session cookie."""
        name, email = checked(name, email)
        await self._members.find_invitation(secret)
        done = await self._members.accept(
            None,
            secret,
            name,
            email,
            with_token=False,
            sign_in=await self._accounts.hashed(password),
        )
        return await self._accounts.open_session(done.person_id, about, library_id=done.library_id)

    async def offer_passkey(self, secret: str, name: str, email: str, site: Site) -> Json:
        """Offer a passkey, unless the sign-up would be refused anyway: an unknown passkey would
        stay in the browser."""
        name, email = checked(name, email)
        require_addressee((await self._members.find_invitation(secret)).invitation, email)
        if await self._store.accounts.find_by_email(email):
            raise NameTaken(
                f"There is already an account for {email}. Sign in, then open the link again."
            )
        return await self._passkeys.registration_options(new_person(name, email), site)

    async def accept_with_passkey(
        self, secret: str, name: str, email: str, site: Site, credential: Json, *, about: str
    ) -> str:
        name, email = checked(name, email)
        done = await self._members.accept(
            None,
            secret,
            name,
            email,
            with_token=False,
            sign_in=await self._passkeys.verify_registration("", site, credential, "The first"),
        )
        return await self._accounts.open_session(done.person_id, about, library_id=done.library_id)
