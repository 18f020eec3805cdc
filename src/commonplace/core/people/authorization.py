"""Access checks. `identify` turns a credential into a caller, `admit` allows or refuses a call."""

import asyncio
import hashlib
import logging
import math
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, cast, overload

from commonplace.database.routing import route_call
from commonplace.errors import (
    CapabilityDenied,
    CommonplaceError,
    ForbiddenScope,
    RateLimited,
    Unauthorized,
)
from commonplace.model import Caller, Capability, Event, Person, Role, SecretKind, Token, now
from commonplace.ports import Limits, Window
from commonplace.settings import Settings
from commonplace.store import Store
from commonplace.telemetry import operation

log = logging.getLogger(__name__)
HOUR = 3600
MCP_PATHS = ("/mcp", "/mcp/core", "/mcp/knowledge", "/mcp/graph", "/mcp/disks", "/api/mcp")
MCP_FACTOR = 3  # agents make several requests for one task
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
JWT_SECONDS = 365 * 24 * HOUR + 60  # a minute of tolerance for clocks


@dataclass(frozen=True, slots=True)
class Bucket:
    """Calls that are counted together: the capability they need, and the setting that limits
    them."""

    name: str
    capability: Capability
    setting: str


READ = Bucket("reads", Capability.READ, "rate_reads_per_hour")
WRITE = Bucket("writes", Capability.WRITE, "rate_writes_per_hour")
GRAPH_WRITE = Bucket("graph_writes", Capability.WRITE, "rate_graph_writes_per_hour")
DELETE = Bucket("deletes", Capability.WRITE, "rate_deletes_per_hour")
# the same limit as deletes, counted separately
UPLOAD = Bucket("uploads", Capability.WRITE, "rate_deletes_per_hour")
BUCKETS = (READ, WRITE, GRAPH_WRITE, DELETE, UPLOAD)


@dataclass(frozen=True, slots=True)
class Allowance:
    """What is left of a limit; nothing is set if it is off."""

    limit: int | None = None  # per hour
    remaining: int | None = None
    reset: int | None = None  # seconds until all uses are free again


class Requirement(StrEnum):
    """A condition beyond a capability. Each includes the ones before it."""

    NONE = "none"
    FULL_SCOPE = "full_scope"  # a token for the whole library
    FULL_WRITE = "full_write"  # that may write to it
    ADMIN = "admin"  # of a role that manages members


FULL_SCOPE, FULL_WRITE, ADMIN = (
    Requirement.FULL_SCOPE,
    Requirement.FULL_WRITE,
    Requirement.ADMIN,
)


@dataclass(frozen=True, slots=True)
class Needs:
    """The conditions of a call, and its name in the activity log; empty if the call decides it."""

    bucket: Bucket
    name: str
    requirement: Requirement = Requirement.NONE

    @property
    def capability(self) -> Capability:
        whole = self.requirement in (Requirement.FULL_WRITE, Requirement.ADMIN)
        return Capability.WRITE if whole else self.bucket.capability


@dataclass(eq=False)
class Access:
    _store: Store
    _limits: Limits
    _settings: Settings
    _events: list[Event] = field(default_factory=list)
    resources: frozenset[str] = field(init=False)  # the URLs that OAuth tokens may be good for
    _flushing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def __post_init__(self) -> None:
        issuer = self._settings.issuer
        self.resources = frozenset([issuer, *(issuer + path for path in MCP_PATHS)])

    async def identify(self, bearer: str | None, *, mcp: bool = False) -> Caller:
        """Return the caller of an Authorization header's value (without `Bearer `). `mcp`: at an
        MCP endpoint, for which OAuth clients usually ask."""
        if not bearer:
            raise Unauthorized(
                "Send `Authorization: Bearer sk_...`. Create a token with `commonplace token "
                "create`."
            )
        if bearer.startswith("sk_"):
            return await self._by_token(bearer)
        if bearer.startswith("co_"):
            return await self._by_access_token(bearer, mcp=mcp)
        return await self._by_jwt(bearer)

    async def deputy(self, library_id: str, person_id: str, token_id: str | None) -> Caller:
        """Return the caller of what a person or token once set up, with their present rights and no
        limits. Unauthorized: they have none any more."""
        if token_id is None:
            role = await self._store.people.role(person_id, library_id)
            if role is None:
                raise Unauthorized("Its person is no longer a member of the library.")
            rights = may(Role(role), frozenset(Capability))
            return Caller(library_id, person_id, "", rights, role=Role(role))
        tokens = await self._store.tokens.of_library(library_id)
        token = next((each for each in tokens if each.id == token_id), None)
        return replace(_checked(token, "Create it again with a new one."), limit_key=None)

    async def owner(self) -> Caller | None:
        """Return the first person, for local use: all capabilities, no limits."""
        first = await self._store.people.first()
        return owner_of_library(first) if first else None

    async def admit(self, caller: Caller, needs: Needs, target: str | None = None) -> None:
        """Allow a call and count it, or raise the reason why not."""
        self.require(caller, needs, target)
        bucket, bound = needs.bucket, self._bound(caller, needs.bucket)
        window = await self._limits.hit(_key(caller, bucket), bound, HOUR) if bound else None
        allowed = window is None or window.allowed
        self._note(caller, needs.name, target, ok=allowed)
        if window and not allowed:
            wait, name = whole_seconds(window.reset), bucket.name[:-1].replace("_", " ")
            duration = f"{math.ceil(wait / 60)} min" if wait >= 60 else f"{wait} s"
            raise RateLimited(
                wait,
                f"{name.capitalize()} limit reached: {bound:,} per hour for this token. Retry in "
                f"{duration}, or raise COMMONPLACE_{bucket.setting.upper()}.",
                limit=bucket.name,
                per_hour=bound,
            )

    def require(self, caller: Caller, needs: Needs, target: str | None = None) -> None:
        """Raise the reason why the caller may never make this call, if there is one. Counts
        nothing."""
        try:
            if needs.capability not in caller.capabilities:
                raise CapabilityDenied(needs.capability, sorted(caller.capabilities))
            if needs.requirement is Requirement.NONE:
                return
            if not caller.whole_library:
                raise ForbiddenScope("This needs a token for the whole library.")
            if needs.requirement is Requirement.ADMIN and not caller.role.manages_members:
                raise ForbiddenScope(
                    f"This requires an owner or admin of the library. Your role is {caller.role}."
                )
        except (CapabilityDenied, ForbiddenScope):
            self._note(caller, needs.name, target, ok=False)
            raise

    async def request(self, caller: Caller, *, mcp: bool = False) -> Window | None:
        """Count an HTTP request in its minute; None if that limit is off. Requests to MCP endpoints
        are counted apart, and may be more."""
        bound = self._settings.rate_requests_per_minute * (MCP_FACTOR if mcp else 1)
        if not bound or caller.limit_key is None:
            return None
        return await self._limits.hit(f"{caller.limit_key}:{'mcp' if mcp else 'http'}", bound, 60)

    async def is_operator(self, caller: Caller) -> bool:
        """Whether this is the server's first person, without a token: only they may see that there
        are other libraries, and back up all of them."""
        first = await self._store.people.first()
        return (
            caller.role is Role.OWNER
            and caller.token_id is None
            and caller.whole_library
            and first is not None
            and caller.person_id == first.id
        )

    async def limits(self, caller: Caller) -> dict[str, Allowance]:
        """Return what is left of each hourly limit, by the name of its bucket. Counts nothing."""
        found: dict[str, Allowance] = {}
        for bucket in BUCKETS:
            found[bucket.name] = Allowance()
            if bound := self._bound(caller, bucket):
                window = await self._limits.peek(_key(caller, bucket), bound, HOUR)
                found[bucket.name] = Allowance(bound, window.remaining, math.ceil(window.reset))
        return found

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

    def _bound(self, caller: Caller, bucket: Bucket) -> int:
        """Return a bucket's calls per hour; 0: unlimited."""
        off = bucket is GRAPH_WRITE and not self._settings.rate_writes_per_hour
        return 0 if off or caller.limit_key is None else getattr(self._settings, bucket.setting)

    def note(
        self, library_id: str, token_id: str | None, verb: str, target: str | None, *, ok: bool
    ) -> None:
        """Write a line into a token's activity log."""
        if token_id is not None:
            self._events.append(Event(library_id, token_id, verb, target, ok))

    def _note(self, caller: Caller, verb: str, target: str | None, *, ok: bool) -> None:
        self.note(caller.library_id, caller.token_id, verb, target, ok=ok)

    async def _by_token(self, secret: str) -> Caller:
        token = await self._store.tokens.by_digest(digest(secret))
        return _checked(token, "Create a new one.")

    async def _by_access_token(self, secret: str, *, mcp: bool) -> Caller:
        found = await self._store.oauth.secret(digest(secret))
        if found is None or found[0].kind is not SecretKind.ACCESS:
            raise Unauthorized("The access token is unknown or was revoked.")
        access, grant = found
        if access.expires_at <= now():
            raise Unauthorized("The access token has expired. Refresh it.")
        caller = _checked(grant, "Sign in again.")
        if grant.resource not in self.resources or not (
            mcp or grant.resource == self._settings.issuer
        ):
            raise Unauthorized("The access token is for another resource, not for this address.")
        return replace(
            caller, capabilities=caller.capabilities & {*map(Capability, access.scopes.split())}
        )

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


@dataclass(eq=False)
class Service:
    """A part of the core whose verbs admit their caller."""

    _store: Store
    _access: Access


class BoundVerb(Protocol[P, R_co]):
    needs: Needs

    def __call__(
        self, caller: Caller, /, *args: P.args, **kwargs: P.kwargs
    ) -> Coroutine[Any, Any, R_co]:
        """Admit the caller, and run the method."""


class Verb(Protocol[P, R_co]):
    """A method that admits its caller before it runs."""

    needs: Needs

    @overload
    def __get__(self, service: None, owner: type, /) -> "Verb[P, R_co]":
        """Return the method of the class."""

    @overload
    def __get__(self, service: object, owner: type, /) -> BoundVerb[P, R_co]:
        """Return the method of a service."""


def verb(
    bucket: Bucket,
    name: str | Callable[..., str] = "",
    *,
    target: str | Callable[..., str | None] | None = None,
    needs: Requirement = Requirement.NONE,
    primary: bool = False,
) -> Callable[[Callable[Concatenate[Any, Caller, P], Coroutine[Any, Any, R]]], Verb[P, R]]:
    """Admit the caller before a method of an object with `_access` runs.

    `name`: in the activity log; the method's if left out. `target`: the parameter that is logged.
    Either can be a function, whose parameters are those of the method with the same names.
    `primary`: a read that no replica may answer, since others than members write what it reads.
    """

    def decorate(
        method: Callable[Concatenate[Any, Caller, P], Coroutine[Any, Any, R]],
    ) -> Verb[P, R]:
        fixed = (name or method.__name__) if isinstance(name, str) else ""
        required = Needs(bucket, fixed, needs)
        read_name = None if isinstance(name, str) else _reader(method, name)
        read_target = None if target is None else _reader(method, target)

        @wraps(method)
        async def admitted(self: Any, caller: Caller, /, *args: P.args, **kwargs: P.kwargs) -> R:
            named = replace(required, name=read_name(args, kwargs)) if read_name else required
            await self._access.admit(
                caller, named, read_target(args, kwargs) if read_target else None
            )
            service = f"{type(self).__name__}.{method.__name__}"
            with (
                operation("call", service, {"commonplace.call": service}),
                route_call(caller.library_id, primary=primary or bucket is not READ),
            ):
                return await method(self, caller, *args, **kwargs)

        admitted.needs = required  # type: ignore[attr-defined]
        return cast(Verb[P, R], admitted)

    return decorate


def _reader(
    method: Callable[..., Any], wanted: str | Callable[..., Any]
) -> Callable[[tuple[Any, ...], Mapping[str, Any]], Any]:
    """Return a function that reads a value from the arguments of a call. Faster than binding
    them."""
    names = {wanted} if isinstance(wanted, str) else signature(wanted).parameters.keys()
    parameters = list(signature(method).parameters.values())[2:]  # after self and the caller
    places = [(n, each.name, each.default) for n, each in enumerate(parameters)]
    places = [place for place in places if place[1] in names]
    assert len(places) == len(names), f"{method.__qualname__} has no parameters {names}"

    def read(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        found = {
            name: args[n] if n < len(args) else kwargs.get(name, default)
            for n, name, default in places
        }
        return found[wanted] if isinstance(wanted, str) else wanted(**found)

    return read


def _checked(token: Token | None, remedy: str) -> Caller:
    if token is None or token.revoked_at is not None:
        raise Unauthorized("The token is unknown or was revoked.")
    if token.expires_at is not None and token.expires_at <= now():
        raise Unauthorized(f"The token has expired. {remedy}")
    return bearer_of(token, limit_key=token.id)


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


def owner_of_library(person: Person) -> Caller:
    """Return the caller of a person in their own library: all capabilities, no limits."""
    return Caller(person.id, person.id, person.name, frozenset(Capability), role=Role.OWNER)


def may(role: Role, given: frozenset[Capability]) -> frozenset[Capability]:
    return given if role.can_write else given & {Capability.READ}


def digest(secret: str) -> str:
    """Hash a secret. Tokens are 256 random bits, so a fast hash is as safe as a slow one."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def _key(caller: Caller, bucket: Bucket) -> str:
    return f"{caller.limit_key}:{bucket.name}"


def whole_seconds(wait: float) -> int:
    return max(1, math.ceil(wait))
