"""Members of a library and their roles. Invitations are secrets: shown once, used once,
expiring."""

import secrets
from dataclasses import dataclass
from datetime import timedelta

from commonplace.core.people.accounts import Accounts, Visitor, checked
from commonplace.core.people.authorization import (
    ADMIN,
    DELETE,
    FULL_SCOPE,
    FULL_WRITE,
    READ,
    WRITE,
    Needs,
    Service,
    digest,
    owner_of_library,
    verb,
)
from commonplace.core.people.passkeys import Passkeys, Site
from commonplace.core.people.tokens import NewToken, mint, new_person
from commonplace.errors import Conflict, ForbiddenScope, Invalid, NameTaken, NotFound
from commonplace.model import Caller, Invitation, Json, Member, Passkey, Role, new_id, now
from commonplace.store import Store

INVITATION_DAYS = 7
NO_SUCH = "The invitation is unknown, used or expired. Ask for a new one."


@dataclass(frozen=True, slots=True)
class AcceptedInvitation:
    person_id: str
    library_id: str
    role: Role
    token: str  # for that library, shown once; "" if none was requested
    new_person: bool


@dataclass(frozen=True, slots=True)
class OpenInvitation:
    """An invitation, as its holder sees it."""

    invitation: Invitation
    library: str
    by: str


@dataclass(eq=False)
class Members(Service):
    @verb(READ, "list_members", needs=FULL_SCOPE, primary=True)
    async def all(self, caller: Caller) -> list[Member]:
        return await self._store.members.of_library(caller.library_id)

    @verb(WRITE, target="person_id", needs=ADMIN)
    async def change_role(self, caller: Caller, person_id: str, role: Role) -> Member:
        await self._require_reach(caller, person_id, role)
        return await self._store.members.change_role(caller.library_id, person_id, role)

    @verb(DELETE, "remove_member", target="person_id", needs=ADMIN)
    async def remove(self, caller: Caller, person_id: str) -> None:
        """Remove a member and revoke their tokens. Items they added stay."""
        await self._require_reach(caller, person_id)
        await self._store.members.remove(caller.library_id, person_id)

    @verb(WRITE, target="role", needs=ADMIN)
    async def invite(
        self, caller: Caller, role: Role, email: str | None = None, days: int = INVITATION_DAYS
    ) -> tuple[Invitation, str]:
        """Create an invitation, and return it with its secret, which is only stored as a hash."""
        _require_may_give(caller, role)
        at, secret = now(), "inv_" + secrets.token_urlsafe(32)
        invitation = Invitation(
            new_id(),
            caller.library_id,
            role,
            email,
            caller.person_id,
            at,
            at + timedelta(days=days),
        )
        await self._store.members.invite(invitation, digest(secret))
        return invitation, secret

    @verb(READ, "list_invitations", needs=ADMIN, primary=True)
    async def invitations(self, caller: Caller) -> list[Invitation]:
        return await self._store.members.invitations(caller.library_id)

    @verb(DELETE, "withdraw_invitation", target="invitation_id", needs=ADMIN)
    async def withdraw(self, caller: Caller, invitation_id: str) -> None:
        if not await self._store.members.withdraw(caller.library_id, invitation_id):
            raise NotFound("Invitation not found, or already accepted")

    @verb(READ, needs=FULL_SCOPE, primary=True)
    async def leave(self, caller: Caller) -> None:
        """Leave the library. Items the person added stay."""
        _require_guest(caller, caller.person_id)
        await self._store.members.remove(caller.library_id, caller.person_id)

    @verb(WRITE, target=lambda name: " ".join(name.split())[:200], needs=ADMIN)
    async def rename_library(self, caller: Caller, name: str) -> None:
        name = " ".join(name.split())
        if not 0 < len(name) <= 200:
            raise Invalid("Enter a library name of up to 200 characters.")
        await self._store.members.rename_library(caller.library_id, name)

    async def find_invitation(self, secret: str) -> OpenInvitation:
        """Return an invitation by its secret. No sign-in is needed."""
        invitation = await self._open(secret)
        by = await self._store.accounts.person(invitation.invited_by)
        return OpenInvitation(
            invitation,
            await self._store.members.library_name(invitation.library_id),
            by.name if by else "somebody",
        )

    async def accept(
        self,
        caller: Caller | None,
        secret: str,
        name: str | None = None,
        email: str | None = None,
        *,
        with_token: bool = True,
        sign_in: str | Passkey | None = None,
    ) -> AcceptedInvitation:
        """Accept an invitation, as the caller or as a new person who signs in with a password or
        passkey."""
        if caller is not None:
            await self._access.admit(caller, Needs(WRITE, "accept_invitation", FULL_WRITE))
        invitation = await self._open(secret)
        if caller is not None:
            if name is not None or email is not None:
                raise Invalid(
                    "You already have an account. Leave out name and email, or send no token."
                )
            person = await self._store.accounts.person(caller.person_id)
            if person is None:
                raise NotFound(NO_SUCH)
        else:
            email = email or invitation.email
            if not name or not email:
                raise Invalid(
                    "Send your token to accept with your account, or a name and an email to "
                    "create one."
                )
            person = new_person(name, email)
        require_addressee(invitation, person.email)
        # All capabilities: the role limits them, and may change later.
        token, token_secret = mint(
            invitation.library_id, person.id, NewToken(f"invited: {person.name}", write=True)
        )
        await self._store.members.accept(
            invitation,
            person,
            (token, digest(token_secret)) if with_token else None,
            new=caller is None,
            sign_in=sign_in,
        )
        return AcceptedInvitation(
            person.id,
            invitation.library_id,
            invitation.role,
            token_secret if with_token else "",
            caller is None,
        )

    async def _open(self, secret: str) -> Invitation:
        invitation = await self._store.members.find_invitation(digest(secret))
        if (
            invitation is None
            or invitation.accepted_at is not None
            or invitation.expires_at <= now()
        ):
            raise NotFound(NO_SUCH)
        return invitation

    async def _require_reach(
        self, caller: Caller, person_id: str, role: Role | None = None
    ) -> None:
        """Check that the caller's role may manage this member: admins cannot change owners."""
        if role is not None:
            _require_may_give(caller, role)
        held = await self._store.people.role(person_id, caller.library_id)
        if held is None:
            raise NotFound("Member not found")
        if held == Role.OWNER and caller.role is not Role.OWNER:
            raise ForbiddenScope("Only an owner can change or remove an owner.")
        _require_guest(caller, person_id)


def require_addressee(invitation: Invitation, email: str) -> None:
    if invitation.email is not None and invitation.email.lower() != email.lower():
        raise ForbiddenScope("The invitation is for another email address.")


def _require_guest(caller: Caller, person_id: str) -> None:
    if person_id == caller.library_id:
        raise Conflict("This is the person's own library. Its first owner cannot be changed.")


def _require_may_give(caller: Caller, role: Role) -> None:
    if role is Role.OWNER and caller.role is not Role.OWNER:
        raise ForbiddenScope("Only an owner can make another owner.")


@dataclass(eq=False)
class Invitations:
    """Accepts invitations in the browser: as an existing person, or as a new one with a password or
    passkey."""

    _store: Store
    _accounts: Accounts
    _passkeys: Passkeys
    _members: Members

    async def accept_as_visitor(self, visitor: Visitor, secret: str) -> AcceptedInvitation:
        """Accept as an existing person. The browser switches to the joined library."""
        done = await self._members.accept(
            owner_of_library(visitor.person), secret, with_token=False
        )
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
                f"There is already an account for {email}. Sign in, then open the link again.",
                field="email",
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
