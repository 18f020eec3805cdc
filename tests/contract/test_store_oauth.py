"""OAuth in the store: codes and refresh tokens are used up once, whoever comes at the same time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from commonplace.model import OAUTH, OAuthSecret, SecretKind, Token, new_id, now
from commonplace.store import Store
from tests.contract.library import Library

pytestmark = pytest.mark.anyio
NOBODY = "cl_nobody"


async def grant(ann: Library, *folders: str) -> tuple[Token, OAuthSecret]:
    """A grant and its code."""
    token = Token(
        new_id(),
        ann.id,
        ann.id,
        "Probe",
        frozenset(),
        frozenset(folders) or None,
        False,
        now(),
        now() + timedelta(days=9),
        kind=OAUTH,
        client_id=NOBODY,
        redirect_host="claude.ai",
        resource="https://kb.example.org/mcp",
    )
    code = secret(token, SecretKind.CODE, redirect_uri="https://claude.ai/cb", challenge="c")
    await ann.store.oauth.grant(token, code)
    return token, code


def secret(token: Token, kind: SecretKind, **more: str) -> OAuthSecret:
    until = now() + timedelta(minutes=1)
    return OAuthSecret(new_id(), token.library_id, token.id, kind, "read", until, **more)


async def is_good(store: Store, token: Token) -> bool:
    [found] = [t for t in await store.tokens.of_library(token.library_id) if t.id == token.id]
    return found.revoked_at is None


async def test_a_secret_is_found_with_its_grant_as_they_were_made(ann: Library) -> None:
    token, code = await grant(ann, await ann.folder("work"))
    assert await ann.store.oauth.secret(code.digest) == (code, token)
    assert await ann.store.oauth.secret("other") is None
    [listed] = await ann.store.oauth.grants(ann.id)
    assert listed == token and listed.role == "owner"


async def test_a_code_is_redeemed_once_whoever_comes_at_once(
    ann: Library, open_store: Callable[[], Awaitable[Store]]
) -> None:
    token, code = await grant(ann)
    stores = [ann.store, await open_store()]
    done = await asyncio.gather(
        *(
            stores[n % 2].oauth.redeem(code.digest, [secret(token, SecretKind.ACCESS)])
            for n in range(8)
        )
    )
    assert sorted(done) == [False] * 7 + [True]
    assert not await is_good(ann.store, token)


async def test_a_refresh_token_has_one_successor_whoever_comes_at_once(
    ann: Library, open_store: Callable[[], Awaitable[Store]]
) -> None:
    token, code = await grant(ann)
    refresh = secret(token, SecretKind.REFRESH)
    await ann.store.oauth.redeem(code.digest, [refresh])
    stores = [ann.store, await open_store()]

    async def rotate(n: int) -> str | None:
        def successor(salt: str) -> OAuthSecret:
            return replace(secret(token, SecretKind.REFRESH), digest=f"after-{salt}")

        access = secret(token, SecretKind.ACCESS)
        return await stores[n % 2].oauth.rotate(refresh.digest, access, f"salt{n}", successor)

    [salt] = set(await asyncio.gather(*map(rotate, range(16))))
    assert salt and await ann.store.oauth.secret(f"after-{salt}")
    assert await is_good(ann.store, token)
    used = await ann.store.oauth.secret(refresh.digest)
    assert used and used[0].used_at is not None


async def test_what_is_over_is_deleted_with_its_grant_folder_or_library(ann: Library) -> None:
    folder = await ann.folder("work")
    token, code = await grant(ann, folder)
    access = secret(token, SecretKind.ACCESS)
    await ann.store.oauth.redeem(code.digest, [access])
    await ann.store.oauth.tidy()
    assert await ann.store.oauth.secret(access.digest)
    await ann.store.oauth.forget(access.digest)
    assert await ann.store.oauth.secret(access.digest) is None
    await ann.store.folders.delete(ann.scope(), folder, cascade_items=False)
    assert not await is_good(ann.store, token)
    await ann.store.people.delete(ann.id)
    assert await ann.store.oauth.secret(code.digest) is None


async def test_grants_and_their_secrets_are_in_a_backup(ann: Library, tmp_path: Path) -> None:
    token, code = await grant(ann)
    await ann.store.dump(tmp_path / "all.backup")
    await ann.store.people.delete(ann.id)
    await ann.store.load(tmp_path / "all.backup", replace=True)
    assert await ann.store.oauth.secret(code.digest) == (code, token)
