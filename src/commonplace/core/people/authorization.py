"""Access checks. `identify` turns a credential into a caller, `admit` allows or refuses a call."""

import asyncio
import hashlib
import logging
from dataclasses import dataclass

from commonplace.errors import (
    CapabilityDenied,
    CommonplaceError,
    ForbiddenScope,
    RateLimited,
    Unauthorized,
)
from commonplace.model import Caller, Capability, Event, Role, Token, now
from commonplace.ports import Limits
from commonplace.settings import Settings
from commonplace.store import Store

log = logging.getLogger(__name__)
HOUR = 3600
JWT_SECONDS = 365 * 24 * HOUR + 60  # a minute of tolerance for clocks


@dataclass(frozen=True, slots=True)
class Action:
    """A kind of call: the capability it needs and the setting that limits its rate."""

    name: str
    capability: Capability
    allowance: str


READ = Action("read", Capability.READ, "rate_reads_per_hour")
WRITE = Action("write", Capability.WRITE, "rate_writes_per_hour")
DELETE = Action("delete", Capability.WRITE, "rate_deletes_per_hour")
# the same limit as deletes, counted separately
UPLOAD = Action("upload", Capability.WRITE, "rate_deletes_per_hour")


class Access:
    def __init__(self, store: Store, limits: Limits, settings: Settings) -> None:
        self._store = store
        self._limits = limits
        self._settings = settings
        self._events: list[Event] = []
        self._flushing = asyncio.Lock()

    async def identify(self, bearer: str | None) -> Caller:
        """Return the caller of an Authorization header's value (without `Bearer `)."""
        if not bearer:
            raise Unauthorized(
                "Send `Authorization: Bearer sk_...`. Create a token with `commonplace token "
                "create`."
            )
        if bearer.startswith("sk_"):
            return await self._by_token(bearer)
        return await self._by_jwt(bearer)

    async def owner(self) -> Caller | None:
        """Return the first person, for local use: all capabilities, no limits."""
        people = await self._store.people.all()
        if not people:
            return None
        return Caller(
            people[0].id, people[0].id, people[0].name, frozenset(Capability), role=Role.OWNER
        )

    async def admit(
        self,
        caller: Caller,
        action: Action,
        verb: str,
        target: str | None = None,
        *,
        needs_full_write: bool = False,
        needs_full_scope: bool = False,
        needs_admin: bool = False,
    ) -> None:
        """Allow a call, or raise the reason why not.

        `needs_full_scope`: the caller must see the whole library. `needs_full_write`: and may write
        to it. `needs_admin`: and has a role that manages members.
        """
        try:
            needs_full_write = needs_full_write or needs_admin
            required = Capability.WRITE if needs_full_write else action.capability
            if required not in caller.capabilities:
                raise CapabilityDenied(required, sorted(caller.capabilities))
            if (needs_full_write or needs_full_scope) and (
                caller.folders is not None or caller.kb_only
            ):
                raise ForbiddenScope("This needs a token for the whole library.")
            if needs_admin and not caller.role.manages_members:
                raise ForbiddenScope(
                    f"This requires an owner or admin of the library. Your role is {caller.role}."
                )
            await self._spend(caller, action)
        except (CapabilityDenied, ForbiddenScope, RateLimited):
            self._note(caller, verb, target, ok=False)
            raise
        self._note(caller, verb, target, ok=True)

    async def request(self, caller: Caller) -> int | None:
        """Count an HTTP request. Returns the seconds to wait if there were too many in a minute."""
        bound = self._settings.rate_requests_per_minute
        if not bound or caller.limit_key is None:
            return None
        window = await self._limits.hit(f"{caller.limit_key}:http", bound, 60)
        return None if window.allowed else whole_seconds(window.reset)

    async def flush(self) -> None:
        """Write the recorded activity."""
        async with self._flushing:  # readers of the log wait for a write in progress
            events, self._events = self._events, []
            if events:
                await self._store.tokens.record(events)

    async def keep_flushing(self, every: float = 1.0) -> None:
        while True:
            await asyncio.sleep(every)
            try:
                await self.flush()
            except CommonplaceError as error:
                log.warning("Recent activity could not be written: %s", error.message)
            except Exception:
                # the loop must go on, or events would pile up
                log.exception("Recent activity could not be written")

    async def _spend(self, caller: Caller, action: Action) -> None:
        bound: int = getattr(self._settings, action.allowance)
        if bound and caller.limit_key is not None:
            window = await self._limits.hit(f"{caller.limit_key}:{action.name}", bound, HOUR)
            if not window.allowed:
                raise RateLimited(whole_seconds(window.reset))

    def _note(self, caller: Caller, verb: str, target: str | None, *, ok: bool) -> None:
        if caller.token_id is not None:
            self._events.append(Event(caller.library_id, caller.token_id, verb, target, ok))

    async def _by_token(self, secret: str) -> Caller:
        token = await self._store.tokens.by_digest(digest(secret))
        if token is None or token.revoked_at is not None:
            raise Unauthorized("The token is unknown or was revoked.")
        if token.expires_at is not None and token.expires_at <= now():
            raise Unauthorized("The token has expired. Create a new one.")
        return bearer_of(token, limit_key=token.id)

    async def _by_jwt(self, encoded: str) -> Caller:
        if not self._settings.jwt_secret:
            raise Unauthorized("The token is unknown or was revoked.")
        import jwt  # slow to import, and most servers only use tokens

        try:
            # `iat` is no start time: an issuer's clock may be ahead of ours.
            claims = jwt.decode(
                encoded,
                self._settings.jwt_secret,
                algorithms=["HS256"],
                options={"require": ["sub"], "verify_aud": False, "verify_iat": False},
            )
        except (jwt.InvalidTokenError, OverflowError) as error:  # an `exp` of Infinity
            raise Unauthorized(f"The JWT is not valid: {error}.") from None
        person_id, library_id, expires = claims["sub"], claims.get("org"), claims.get("exp")
        if not library_id:
            raise Unauthorized("organization_id required")
        if expires is None or int(expires) > now().timestamp() + JWT_SECONDS:
            raise Unauthorized("The JWT must expire within a year: set its `exp` claim.")
        is_text = (
            isinstance(library_id, str) and f"{person_id}{library_id}".isprintable()
        )  # databases take no NUL
        role = await self._store.people.role(person_id, library_id) if is_text else None
        if role is None:
            raise Unauthorized("The JWT's subject is not a member of its organization.")
        return Caller(
            library_id,
            person_id,
            str(claims.get("name") or person_id),
            may(Role(role), frozenset(Capability)),
            limit_key=f"jwt:{library_id}:{person_id}",
            role=Role(role),
            agent=True,
        )


def bearer_of(token: Token, limit_key: str | None = None) -> Caller:
    """Return the caller of a token: its capabilities, limited by the person's current role."""
    if token.role is None:
        raise Unauthorized("The token's person is no longer a member of the library.")
    return Caller(
        token.library_id,
        token.person_id,
        token.name,
        may(token.role, token.capabilities),
        token.folders,
        token.kb_only,
        token.id,
        limit_key,
        token.role,
        agent=True,
    )


def may(role: Role, given: frozenset[Capability]) -> frozenset[Capability]:
    return given if role.can_write else given & {Capability.READ}


def digest(secret: str) -> str:
    """Hash a secret. Tokens are 256 random bits, so a fast hash is as safe as a slow one."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def whole_seconds(wait: float) -> int:
    return max(1, int(wait + 0.999))
