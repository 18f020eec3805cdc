"""People at the web app: how they prove who they are, and the caller that a signed-in browser is."""

import asyncio
import re
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from commonplace.core.people.authorization import READ, Access, digest, may, whole_seconds
from commonplace.errors import Invalid, NotFound, RateLimited, Unauthorized
from commonplace.model import Caller, Capability, Membership, Person, Role, Token, WebSession, now
from commonplace.ports import Limits
from commonplace.store import Store

LIFETIME, A_WHILE = timedelta(days=30), timedelta(days=1)  # after the last visit, to a day
CLAIM, CLAIM_LIFETIME = "claim", timedelta(hours=24)
SHORTEST, LONGEST = 10, 200
DEVICE, DEVICE_LIFETIME = "device", timedelta(days=365)
# Attempts to sign in within WINDOW seconds: by one device or on one account from one address, in all from one address,
# and in all on one account by devices that nobody has signed in to it with before.
ATTEMPTS, FROM_ONE_ADDRESS, ON_ONE_ACCOUNT, WINDOW = 10, 50, 100, 900
HASHING = 2  # passwords checked at once: each takes 64 MB and a core
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")
_WRONG = "That address and password do not belong together."


@dataclass(frozen=True, slots=True)
class Visitor:
    """Somebody who is signed in. Behind `caller`, all pages use the verbs that tokens use."""

    person: Person
    session: WebSession
    library: Membership  # the one they are in now
    libraries: tuple[Membership, ...]  # all that they could turn to, their own first
    caller: Caller
    viewing: Token | None = None  # the token whose eyes they look through
    prolonged: bool = False  # just now: the browser has to be told to keep its cookie as long

    @property
    def has_full_write(self) -> bool:
        """Whether they may do what takes write access to the whole library."""
        return Capability.WRITE in self.caller.capabilities and self.viewing is None

    @property
    def manages_members(self) -> bool:
        """Whether they say who belongs to the library."""
        return self.has_full_write and self.library.role.manages_members

    @property
    def at_home(self) -> Caller:
        """As the owner of their own library, wherever they are now."""
        return Caller(
            self.person.id, self.person.id, self.person.name, frozenset(Capability), role=Role.OWNER
        )


class Accounts:
    def __init__(self, store: Store, access: Access, limits: Limits) -> None:
        self._store = store
        self._access = access
        self._limits = limits
        self._hasher = PasswordHasher()
        self._hashing = asyncio.Semaphore(HASHING)
        self._nobody = ""  # a hash to check against when there is none, so that nobody can tell by the time it takes

    # -- being signed in

    async def visitor(self, secret: str | None) -> Visitor | None:
        found = await self._store.accounts.session(digest(secret)) if secret else None
        if found is None:
            return None
        session, person, libraries = found
        # Who was taken out of a library is back in their own, which is always there.
        library = next(
            (each for each in libraries if each.library_id == session.library_id), libraries[0]
        )
        prolonged = session.expires_at - now() < LIFETIME - A_WHILE
        if prolonged:
            await self._store.accounts.extend_session(session.digest, now() + LIFETIME)
        caller = Caller(
            library.library_id,
            person.id,
            person.name,
            may(library.role, frozenset(Capability)),
            role=library.role,
        )
        if session.view_as is not None:
            tokens = await self._store.tokens.of_library(library.library_id)
            token = next((token for token in tokens if token.id == session.view_as), None)
            if token is not None:
                seen = replace(
                    caller,
                    capabilities=frozenset({Capability.READ}),
                    folders=token.folders,
                    kb_only=token.kb_only,
                )
                return Visitor(person, session, library, tuple(libraries), seen, token, prolonged)
        return Visitor(person, session, library, tuple(libraries), caller, prolonged=prolonged)

    async def sign_in(
        self, email: str, password: str, *, address: str, about: str, device: str | None = None
    ) -> str:
        """The secret for the browser's cookie."""
        person = await self._store.accounts.find_by_email(email.strip())
        await self.limit_attempts(
            person.id if person else email.strip().lower()[:200], address, device
        )
        known = await self._store.accounts.password_hash(person.id) if person else None
        right = await self._verified(known, password)
        if person is None or not right:
            raise Unauthorized(_WRONG)
        return await self.open_session(person.id, about)

    async def limit_attempts(self, account: str, address: str, device: str | None) -> None:
        """Count an attempt to sign in. A device that was signed in to the account before is limited by itself, so that
        nobody can lock its owner out; all others by address and account."""
        if device and await self._is_known(device, account):
            await self.throttle(f"signin-by:{digest(device)}", ATTEMPTS)
            return
        # The address first: whoever has tried too often from there must not use up what others may try.
        await self.throttle(f"signin-from:{address}", FROM_ONE_ADDRESS)
        await self.throttle(f"signin:{address}:{account}", ATTEMPTS)
        await self.throttle(f"signin-on:{account}", ON_ONE_ACCOUNT)

    async def remember_device(self, session: str, device: str | None) -> str:
        """The secret by which the browser of a new session is known at the next sign-in: the one it has, or a new one."""
        found = await self._store.accounts.session(digest(session))
        if found is None:
            raise Unauthorized("Sign in first.")
        if device and await self._is_known(device, found[1].id):
            return device
        device = secrets.token_urlsafe(32)
        await self._store.accounts.add_secret(
            digest(device), DEVICE, found[1].id, now() + DEVICE_LIFETIME
        )
        return device

    async def _is_known(self, device: str, person_id: str) -> bool:
        return await self._store.accounts.check_secret(digest(device), DEVICE) == (True, person_id)

    async def open_session(
        self, person_id: str, about: str, *, library_id: str | None = None
    ) -> str:
        """A new session, in their own library or one they are a member of, for somebody who has proved who they are."""
        secret = secrets.token_urlsafe(32)
        await self._store.accounts.open_session(
            WebSession(
                digest(secret),
                person_id,
                library_id or person_id,
                now() + LIFETIME,
                about=about[:300],
            )
        )
        return secret

    async def sign_out(self, visitor: Visitor, *, others: bool = False) -> None:
        """This browser, or all others."""
        mine = visitor.session.digest
        await self._store.accounts.close_sessions(
            visitor.person.id, only=None if others else mine, but=mine if others else None
        )

    async def view_as(self, visitor: Visitor, token_id: str | None) -> None:
        """See the library as a token does, until told otherwise."""
        if token_id is not None:
            await self._access.admit(
                visitor.caller, READ, "view_as", token_id, needs_full_write=True
            )
            if all(
                token.id != token_id
                for token in await self._store.tokens.of_library(visitor.library.library_id)
            ):
                raise NotFound("Token not found")
        await self._store.accounts.set_view_as(visitor.session.digest, token_id)

    async def switch_library(self, visitor: Visitor, library_id: str) -> Membership:
        """This browser is in that library from now on."""
        for library in visitor.libraries:
            if library.library_id == library_id:
                await self._store.accounts.switch_library(visitor.session.digest, library_id)
                return library
        raise NotFound("Library not found")

    # -- coming in the first time

    async def invitation(self, person: Person) -> str:
        """The secret of a link that signs its holder in, once, within a day, and lets them choose a password."""
        secret = secrets.token_urlsafe(32)
        await self._store.accounts.add_secret(
            digest(secret), CLAIM, person.id, now() + CLAIM_LIFETIME
        )
        return secret

    async def first_invitation(self) -> str | None:
        """For the first person, as long as they cannot sign in in any other way."""
        people = await self._store.people.all()
        return (
            await self.invitation(people[0])
            if people and not await self.can_sign_in(people[0].id)
            else None
        )

    async def invited(self, secret: str) -> Person:
        good, person_id = await self._store.accounts.check_secret(digest(secret), CLAIM)
        person = await self._store.accounts.person(person_id) if good and person_id else None
        if person is None:
            raise NotFound(
                "This link has been used, or its time is over. `commonplace user link` makes a new one."
            )
        return person

    async def claim(self, secret: str, name: str, email: str, password: str, *, about: str) -> str:
        """Sign in by a link. Who can sign in in another way too may leave the password out, and keeps it."""
        person = await self.invited(secret)
        name, email = checked(name, email)
        hashed = (
            await self.hashed(password)
            if password or not await self.can_sign_in(person.id)
            else None
        )
        if not await self._store.accounts.claim(
            digest(secret), CLAIM, person.id, name, email, hashed
        ):
            raise NotFound("This link has been used in the meantime.")
        return await self.open_session(person.id, about)

    # -- one's own account

    async def rename(self, visitor: Visitor, name: str, email: str) -> None:
        await self._store.accounts.rename(visitor.person.id, *checked(name, email))

    async def has_password(self, visitor: Visitor) -> bool:
        return await self._store.accounts.password_hash(visitor.person.id) is not None

    async def change_password(self, visitor: Visitor, old: str, new: str) -> None:
        """All other browsers are signed out, and links that were made before sign nobody in."""
        await self.check_password(visitor, old)
        await self._store.accounts.set_password(
            visitor.person.id, await self.hashed(new), keep=visitor.session.digest, void=CLAIM
        )

    async def check_password(self, visitor: Visitor, password: str) -> None:
        """That it is them who sit there; who has no password has proved it by signing in."""
        known = await self._store.accounts.password_hash(visitor.person.id)
        if known is not None:
            await self.throttle(f"password:{visitor.person.id}", ATTEMPTS)
            if not await self._verified(known, password):
                raise Unauthorized("That is not the password you have now.")

    async def sessions(self, visitor: Visitor) -> list[WebSession]:
        """Browsers that are signed in as them, the newest first."""
        return (await self._store.accounts.sessions(visitor.person.id))[::-1]

    async def close_session(self, visitor: Visitor, session_id: str) -> None:
        for session in await self._store.accounts.sessions(visitor.person.id):
            if session.id == session_id:
                await self._store.accounts.close_sessions(visitor.person.id, only=session.digest)
                return
        raise NotFound("That browser is not signed in any more.")

    async def throttle(self, key: str, amount: int) -> None:
        wait = await self._limits.hit(key, amount, WINDOW)
        if wait is not None:
            raise RateLimited(whole_seconds(wait))

    async def can_sign_in(self, person_id: str) -> bool:
        """Whether they have a password or a passkey."""
        accounts = self._store.accounts
        return await accounts.password_hash(person_id) is not None or bool(
            await accounts.passkeys(person_id)
        )

    async def hashed(self, password: str) -> str:
        if not SHORTEST <= len(password) <= LONGEST:
            raise Invalid(
                f"A password has {SHORTEST} to {LONGEST} characters; a few words in a row are easiest to remember."
            )
        return await asyncio.to_thread(self._hasher.hash, password)

    async def _verified(self, known: str | None, password: str) -> bool:
        async with self._hashing:
            return await asyncio.to_thread(self._verify, known, password)

    def _verify(self, known: str | None, password: str) -> bool:
        if known is None and not self._nobody:
            self._nobody = self._hasher.hash(secrets.token_urlsafe(16))
        try:
            return (
                self._hasher.verify(known or self._nobody, password[:LONGEST]) and known is not None
            )
        except (VerificationError, InvalidHashError):
            return False


def checked(name: str, email: str) -> tuple[str, str]:
    name, email = " ".join(name.split()), email.strip()
    if not name or len(name) > 200:
        raise Invalid("Give a name of up to 200 characters.")
    if not _EMAIL.fullmatch(email) or len(email) > 200:
        raise Invalid(
            "Give an e-mail address, such as you@example.org; it is what you sign in with."
        )
    return name, email
