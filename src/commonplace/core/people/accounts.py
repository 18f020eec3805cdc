"""Accounts of the web app: sign-in, sessions, passwords."""

import asyncio
import hmac
import json
import re
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from commonplace.core.people.authorization import (
    FULL_WRITE,
    READ,
    Needs,
    Service,
    digest,
    may,
    whole_seconds,
)
from commonplace.errors import ForbiddenScope, Invalid, NotFound, RateLimited, Unauthorized
from commonplace.model import (
    Caller,
    Capability,
    Membership,
    Person,
    Token,
    WebSession,
    find_by_id,
    now,
)
from commonplace.ports import Limits

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

LIFETIME, A_WHILE = timedelta(days=30), timedelta(days=1)  # after the last visit, to a day
CLAIM, CLAIM_LIFETIME = "claim", timedelta(hours=24)
SHOWN = timedelta(minutes=5)
SHORTEST, LONGEST = 10, 200
DEVICE, DEVICE_LIFETIME = "device", timedelta(days=365)
# Sign-in attempts within WINDOW seconds: per device, or per account and IP address; per IP address;
# and per account by unknown devices.
ATTEMPTS, FROM_ONE_ADDRESS, ON_ONE_ACCOUNT, WINDOW = 10, 50, 100, 900
HASHING = 2  # passwords checked at once: each takes 64 MB and a core
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+")


@dataclass(frozen=True, slots=True)
class Visitor:
    """A signed-in person. Behind `caller`, pages use the same methods as tokens."""

    person: Person
    session: WebSession
    library: Membership  # the current one
    libraries: tuple[Membership, ...]  # all they belong to, their own first
    caller: Caller
    viewing: Token | None = None  # the token of "View as"
    extended: bool = False  # the session was extended, so the cookie must be renewed

    @property
    def has_full_write(self) -> bool:
        """Whether they can write to the whole library."""
        return Capability.WRITE in self.caller.capabilities and self.viewing is None

    @property
    def manages_members(self) -> bool:
        """Whether they can manage the library's members."""
        return self.has_full_write and self.library.role.manages_members


@dataclass(eq=False)
class Accounts(Service):
    _limits: Limits
    _hasher: PasswordHasher = field(default_factory=PasswordHasher)
    _hashing: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(HASHING))
    _nobody: str = ""  # checked when there is no password, so that timing reveals nothing

    # -- being signed in

    async def visitor(self, secret: str | None) -> Visitor | None:
        found = await self._store.accounts.session(digest(secret)) if secret else None
        if found is None:
            return None
        session, person, libraries = found
        # A removed member is back in their own library, which always exists.
        library = next(
            (each for each in libraries if each.library_id == session.library_id), libraries[0]
        )
        extended = session.expires_at - now() < LIFETIME - A_WHILE
        if extended:
            await self._store.accounts.extend_session(session.digest, now() + LIFETIME)
        caller = _member(person, library)
        tokens = await self._store.tokens.of_library(library.library_id) if session.view_as else []
        token = next((token for token in tokens if token.id == session.view_as), None)
        if token is not None:
            caller = replace(
                caller,
                capabilities=frozenset({Capability.READ}),
                folders=token.folders,
                kb_only=token.kb_only,
            )
        return Visitor(person, session, library, tuple(libraries), caller, token, extended)

    async def sign_in(
        self, email: str, password: str, *, address: str, about: str, device: str | None = None
    ) -> str:
        """Sign in with a password, and return the secret for the session cookie."""
        person = await self._store.accounts.find_by_email(email.strip())
        await self.limit_attempts(
            person.id if person else email.strip().lower()[:200], address, device
        )
        right = await self._verified(
            await self._store.accounts.password_hash(person.id) if person else None, password
        )
        if person is None or not right:
            raise Unauthorized("Wrong email or password.", field="password")
        return await self.open_session(person.id, about)

    async def sign_in_by_proxy(self, email: str, *, about: str) -> str:
        """Sign in the person whom a trusted proxy names, and return the secret for the session
        cookie."""
        person = await self._store.accounts.find_by_email(email)
        if person is None:
            raise ForbiddenScope(
                "There is no person with the email that the proxy sent. Ask for an invitation."
            )
        return await self.open_session(person.id, about)

    async def limit_attempts(self, account: str, address: str, device: str | None) -> None:
        """Count a sign-in attempt. A known device has its own limit, so that nobody can lock its
        owner out; others are limited by IP address and account."""
        # The IP address first: attempts beyond its limit must not count against the account.
        limits = {
            f"signin-from:{address}": FROM_ONE_ADDRESS,
            f"signin:{address}:{account}": ATTEMPTS,
            f"signin-on:{account}": ON_ONE_ACCOUNT,
        }
        if device and await self._is_known(device, account):
            limits = {f"signin-by:{digest(device)}": ATTEMPTS}
        for key, amount in limits.items():
            await self.throttle(key, amount)

    async def remember_device(self, session: str, device: str | None) -> str:
        """Return the secret that marks the session's browser as known at the next sign-in."""
        found = await self._store.accounts.session(digest(session))
        if found is None:
            raise Unauthorized("Sign in first.")
        if device and await self._is_known(device, found[1].id):
            return device
        return await self._new_secret(DEVICE, found[1].id, DEVICE_LIFETIME)

    async def _is_known(self, device: str, person_id: str) -> bool:
        return await self._store.accounts.check_secret(digest(device), DEVICE) == (True, person_id)

    async def open_session(
        self, person_id: str, about: str, *, library_id: str | None = None
    ) -> str:
        """Open a session for an authenticated person, in their own library or one they are a member
        of."""
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
        """Sign out this browser, or all others."""
        mine = visitor.session.digest
        await self._store.accounts.close_sessions(
            visitor.person.id, only=None if others else mine, but=mine if others else None
        )

    async def view_as(self, visitor: Visitor, token_id: str | None) -> None:
        """View the library as a token, or stop with None."""
        if token_id is not None:
            await self._access.admit(visitor.caller, Needs(READ, "view_as", FULL_WRITE), token_id)
            library_id = visitor.library.library_id
            find_by_id(await self._store.tokens.of_library(library_id), token_id, "Token")
        await self._store.accounts.set_view_as(visitor.session.digest, token_id)

    async def switch_library(self, visitor: Visitor, library_id: str) -> Membership:
        """Open another library in this browser."""
        for library in visitor.libraries:
            if library.library_id == library_id:
                await self._store.accounts.switch_library(visitor.session.digest, library_id)
                return library
        raise NotFound("Library not found")

    # -- new secrets, which a page shows for a while

    async def seal(self, visitor: Visitor, session: str, target: str, secret: str) -> None:
        """Keep the new secret of `target` for a while. Only the secret of the browser's session
        opens it, which no server, database or backup has."""
        sealed = _box(session).encrypt(json.dumps([target, secret]).encode()).decode()
        await self._store.accounts.seal(visitor.session.digest, sealed, now() + SHOWN)

    def sealed(self, visitor: Visitor, session: str, target: str) -> tuple[str, int] | None:
        """Return the new secret of `target`, and for how many seconds it may be shown."""
        kept, until = visitor.session.sealed, visitor.session.sealed_until
        if not target or kept is None or until is None or until <= now():
            return None
        named, secret = json.loads(_box(session).decrypt(kept))
        return (secret, whole_seconds((until - now()).total_seconds())) if named == target else None

    async def forget_sealed(self, visitor: Visitor) -> None:
        await self._store.accounts.seal(visitor.session.digest, None, None)

    # -- coming in the first time

    async def invitation(self, person: Person) -> str:
        """Create the secret of a sign-in link, valid once and for a day."""
        return await self._new_secret(CLAIM, person.id, CLAIM_LIFETIME)

    async def _new_secret(self, purpose: str, person_id: str, lifetime: timedelta) -> str:
        secret = secrets.token_urlsafe(32)
        await self._store.accounts.add_secret(digest(secret), purpose, person_id, now() + lifetime)
        return secret

    async def first_invitation(self) -> str | None:
        """Create a sign-in link for the first person, while they have no other way to sign in."""
        first = await self._store.people.first()
        return (
            await self.invitation(first) if first and not await self.can_sign_in(first.id) else None
        )

    async def invited(self, secret: str) -> Person:
        good, person_id = await self._store.accounts.check_secret(digest(secret), CLAIM)
        person = await self._store.accounts.person(person_id) if good and person_id else None
        if person is None:
            raise NotFound(
                "This link was used or has expired. Create a new one with `commonplace user link`."
            )
        return person

    async def claim(self, secret: str, name: str, email: str, password: str, *, about: str) -> str:
        """Sign in by a link and set the password. People who can already sign in may leave it
        out."""
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
            raise NotFound("This link was already used.")
        return await self.open_session(person.id, about)

    # -- one's own account

    async def rename(self, visitor: Visitor, name: str, email: str) -> None:
        await self._store.accounts.rename(visitor.person.id, *checked(name, email))

    async def has_password(self, visitor: Visitor) -> bool:
        return await self._store.accounts.password_hash(visitor.person.id) is not None

    async def change_password(self, visitor: Visitor, old: str, new: str) -> None:
        """Change the password, sign out all other browsers and void open sign-in links."""
        await self.check_password(visitor, old, "old")
        await self._store.accounts.set_password(
            visitor.person.id,
            await self.hashed(new, "new"),
            keep=visitor.session.digest,
            void=CLAIM,
        )

    async def check_password(
        self, visitor: Visitor, password: str, field: str = "password"
    ) -> None:
        """Check the current password. People without one passed by signing in. `field`: of the
        form."""
        known = await self._store.accounts.password_hash(visitor.person.id)
        if known is not None:
            await self.throttle(f"password:{visitor.person.id}", ATTEMPTS)
            if not await self._verified(known, password):
                raise Unauthorized("The current password is wrong.", field=field)

    async def sessions(self, visitor: Visitor) -> list[WebSession]:
        """Return the person's open sessions, newest first."""
        return (await self._store.accounts.sessions(visitor.person.id))[::-1]

    async def close_session(self, visitor: Visitor, session_id: str) -> None:
        for session in await self._store.accounts.sessions(visitor.person.id):
            if session.id == session_id:
                await self._store.accounts.close_sessions(visitor.person.id, only=session.digest)
                return
        raise NotFound("That browser is no longer signed in.")

    async def throttle(self, key: str, amount: int) -> None:
        window = await self._limits.hit(key, amount, WINDOW)
        if not window.allowed:
            raise RateLimited(whole_seconds(window.reset))

    async def can_sign_in(self, person_id: str) -> bool:
        """Whether they have a password or a passkey."""
        return await self._store.accounts.password_hash(person_id) is not None or bool(
            await self._store.accounts.passkeys(person_id)
        )

    async def hashed(self, password: str, field: str = "password") -> str:
        if not SHORTEST <= len(password) <= LONGEST:
            raise Invalid(
                f"A password has {SHORTEST} to {LONGEST} characters. A few words are easiest to "
                "remember.",
                field=field,
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


def _box(session: str) -> "Fernet":
    from cryptography.fernet import Fernet  # 20 ms to import, for few requests

    return Fernet(urlsafe_b64encode(hmac.digest(session.encode(), b"sealed", "sha256")))


def caller_in(visitor: Visitor, library_id: str) -> Caller:
    """Return the visitor as the caller in one of their libraries."""
    for library in visitor.libraries:
        if library.library_id == library_id:
            return _member(visitor.person, library)
    raise NotFound("Library not found")


def _member(person: Person, library: Membership) -> Caller:
    return Caller(
        library.library_id,
        person.id,
        person.name,
        may(library.role, frozenset(Capability)),
        role=library.role,
    )


def checked(name: str, email: str) -> tuple[str, str]:
    name, email = " ".join(name.split()), email.strip()
    if not name or len(name) > 200:
        raise Invalid("Enter a name of up to 200 characters.", field="name")
    if not _EMAIL.fullmatch(email) or len(email) > 200:
        raise Invalid(
            "Enter an email address such as you@example.org. You sign in with it.", field="email"
        )
    return name, email
