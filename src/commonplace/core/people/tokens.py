"""People and their access tokens."""

import secrets
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from commonplace.core.people.authorization import (
    DELETE,
    FULL_WRITE,
    READ,
    WRITE,
    Allowance,
    Service,
    digest,
    verb,
)
from commonplace.errors import Invalid, NameTaken, NotFound
from commonplace.model import (
    OAUTH,
    Caller,
    Capability,
    Event,
    Person,
    Token,
    Usage,
    find_by_id,
    find_folders,
    new_id,
    now,
)

DEFAULT_EXPIRY_DAYS = 365
FIRST_TOKEN = "owner"


@dataclass(frozen=True, slots=True)
class NewToken:
    name: str
    write: bool = False
    folders: tuple[str, ...] | None = None  # ids, paths or names; None: the whole library
    kb_only: bool = False
    expires_days: int | None = DEFAULT_EXPIRY_DAYS  # None: never


@dataclass(frozen=True, slots=True)
class Me:
    caller: Caller
    person: Person | None  # None: deleted meanwhile
    library: str
    token: Token | None  # None: a JWT, or a person at the command line
    limits: dict[str, Allowance]  # by bucket
    usage: tuple[Usage, Usage] | None  # of the library, and its quota; None: hidden from the scope


@dataclass(eq=False)
class People(Service):
    async def ensure_owner(self) -> Person:
        """Return the first person, creating them on the first start. Concurrent starts create
        one."""
        first = await self._store.people.first()
        if first is None:
            with suppress(NameTaken):
                return await self.create("Owner", "owner@localhost")
            first = await self._store.people.first()
        assert first is not None
        return first

    async def first_token(self) -> str | None:
        """Create the owner's first token and return its secret; None if it exists."""
        owner = await self.ensure_owner()
        if any(
            token.name == FIRST_TOKEN for token in await self._store.tokens.of_library(owner.id)
        ):
            return None
        _, secret = await self._mint(owner.id, owner.id, NewToken(FIRST_TOKEN, write=True), None)
        return secret

    async def create(self, name: str, email: str) -> Person:
        """Create a person with a library."""
        person = new_person(name, email)
        await self._store.people.create(person)
        return person

    async def create_with_token(self, name: str, email: str) -> tuple[Person, str]:
        person = new_person(name, email)
        token, secret = mint(person.id, person.id, NewToken(FIRST_TOKEN, write=True), None)
        await self._store.people.create(person, (token, digest(secret)))
        return person, secret

    async def find(self, who: str) -> Person | None:
        """Return the person with this id or email; with "", the server's first person."""
        if not who:
            return await self._store.people.first()
        accounts = self._store.accounts
        return await accounts.person(who) or await accounts.find_by_email(who)

    async def count(self) -> int:
        return await self._store.people.count()

    @verb(WRITE, target=lambda new: new.name, needs=FULL_WRITE)
    async def create_token(self, caller: Caller, new: NewToken) -> tuple[Token, str]:
        """Create a token, and return it with its secret, which is only stored as a hash."""
        return await self._mint(
            caller.library_id,
            caller.person_id,
            new,
            None if new.folders is None else await self.folder_ids(caller, new.folders),
        )

    @verb(READ, primary=True)
    async def me(self, caller: Caller) -> Me:
        """Tell a caller who they are, what they may do, and what is left of their limits."""
        tokens = await self._store.tokens.of_library(caller.library_id)
        return Me(
            caller,
            await self._store.accounts.person(caller.person_id),
            await self._store.members.library_name(caller.library_id),
            next((token for token in tokens if token.id == caller.token_id), None),
            await self._access.limits(caller),
            await self._store.figures.usage(caller.library_id) if caller.whole_library else None,
        )

    @verb(READ, "list_tokens", needs=FULL_WRITE, primary=True)
    async def tokens(self, caller: Caller) -> list[Token]:
        """Return the library's tokens; only their own for callers who cannot manage members."""
        return await self._of(caller)

    @verb(READ, "read_token", target="token_id", needs=FULL_WRITE, primary=True)
    async def token(self, caller: Caller, token_id: str) -> Token:
        return find_by_id(await self._of(caller), token_id, "Token")

    @verb(DELETE, target="token_id", needs=FULL_WRITE)
    async def revoke_token(self, caller: Caller, token_id: str) -> None:
        token = find_by_id(await self._of(caller), token_id, "Token")
        if not await self._store.tokens.revoke(caller.library_id, token_id):
            raise NotFound("Token not found")
        if token.kind == OAUTH:
            self._access.note(token.library_id, token.id, "oauth_revoked", None, ok=True)

    @verb(READ, "token_activity", target="token_id", needs=FULL_WRITE, primary=True)
    async def activity(self, caller: Caller, token_id: str, limit: int = 100) -> list[Event]:
        find_by_id(await self._of(caller), token_id, "Token")
        await self._access.flush()
        return await self._store.tokens.activity(caller.library_id, token_id, limit)

    async def _of(self, caller: Caller) -> list[Token]:
        return [
            token
            for token in await self._store.tokens.of_library(caller.library_id)
            if caller.role.manages_members or token.person_id == caller.person_id
        ]

    async def folder_ids(self, caller: Caller, wanted: Sequence[str]) -> frozenset[str]:
        """Return the ids of folders that the caller names by id, path or name."""
        folders = await self._store.folders.list_folders(caller.scope)
        found = {each: find_folders(folders, each) for each in wanted}
        if unknown := [each for each in wanted if not found[each]]:
            raise NotFound(f"There is no folder {unknown[0]!r}.", folders=unknown)
        if several := [each for each in wanted if len(found[each]) > 1]:
            paths = ", ".join(node.path for node in found[several[0]])
            raise Invalid(f"Several folders are named {several[0]!r}. Use an id or path: {paths}.")
        if not wanted:
            raise Invalid("Choose at least one folder.")
        return frozenset(found[each][0].id for each in wanted)

    async def _mint(
        self, library_id: str, person_id: str, new: NewToken, folders: frozenset[str] | None
    ) -> tuple[Token, str]:
        token, secret = mint(library_id, person_id, new, folders)
        await self._store.tokens.create(token, digest(secret))
        return token, secret


def new_person(name: str, email: str) -> Person:
    return Person(new_id(), name, email, now())


def mint(
    library_id: str, person_id: str, new: NewToken, folders: frozenset[str] | None = None
) -> tuple[Token, str]:
    """Make a token and its secret, not stored yet."""
    at = now()
    token = Token(
        id=new_id(),
        library_id=library_id,
        person_id=person_id,
        name=new.name,
        capabilities=frozenset(Capability) if new.write else frozenset({Capability.READ}),
        folders=folders,
        kb_only=new.kb_only,
        created_at=at,
        expires_at=None if new.expires_days is None else at + timedelta(days=new.expires_days),
    )
    return token, "sk_" + secrets.token_urlsafe(32)
