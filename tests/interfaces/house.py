"""A whole server in one process, with the people who come to its doors."""

import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import httpx

from commonplace.app import make_asgi, open_app
from commonplace.core.items.drafts import Draft
from commonplace.core.people.tokens import NewToken
from commonplace.core.services import Services
from commonplace.interfaces.http.app import HttpApp
from commonplace.model import Caller, Capability, Role
from commonplace.settings import Settings

ADDRESS = "http://127.0.0.1:8642"
NO_LIMITS = {
    "rate_requests_per_minute": 0,
    "rate_reads_per_hour": 0,
    "rate_writes_per_hour": 0,
    "rate_deletes_per_hour": 0,
}
MCP_HEADERS = {
    "Accept": "application/json, text/event-stream",
    "MCP-Protocol-Version": "2025-11-25",
}
LONG_TEXT = "\n\n".join(
    f"# Part {n}\n\n" + f"The zebra of part {n} grazes quietly by the river. " * 20
    for n in range(12)
)
UNTOUCHED = 1.0  # when the database of the fixture `data_dir` was changed last


@dataclass(repr=False)
class House:
    app: Services
    asgi: HttpApp
    owner: Caller  # at the machine: everything allowed, nothing counted
    stranger: Caller  # the same in another library
    tokens: dict[str, str] = field(default_factory=dict)
    folders: dict[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return "House()"  # hypothesis shows it

    def client(
        self, character: str | None = None, *, token: str | None = None
    ) -> httpx.AsyncClient:
        secret = self.tokens[character] if character else token
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.asgi),
            base_url=ADDRESS,
            headers={"Authorization": f"Bearer {secret}"} if secret else {},
        )

    async def token(self, name: str, **wish: Any) -> str:
        _, secret = await self.app.people.create_token(self.owner, NewToken(name, **wish))
        return secret

    async def join(self, name: str, role: Role = Role.MEMBER) -> str:
        """The token of a new member of the owner's library."""
        _, invitation = await self.app.members.invite(self.owner, role)
        return (
            await self.app.members.accept(None, invitation, name, f"{name.lower()}@example.org")
        ).token

    async def add(
        self,
        title: str,
        *,
        folder: str | None = None,
        by: Caller | None = None,
        in_kb: bool = True,
        text: str = "",
    ) -> tuple[str, str | None]:
        """(item id, job id) of a new item, filed in a folder of that name."""
        by = by or self.owner
        added = await self.app.library.add(
            by,
            Draft("text", title, text or f"{title}: the zebra grazes by the river.", in_kb=in_kb),
        )
        if folder:
            await self.app.folders.file(by, added.item.id, [self.folders[folder]])
        return added.item.id, added.job_id


@asynccontextmanager
async def open_house(
    data_dir: Path, *, own: dict[str, Any] | None = None, **settings: Any
) -> AsyncIterator[House]:
    """Characters: owner, reader, one_folder (Red), two_folder (Red, Blue), kb_only, expired, revoked, stranger, and a viewer, who
    was a member with a token that writes before.

    `own`: parts of the application that the test brings along (own_transcriber, own_videos).
    """
    wanted = Settings(data_dir=data_dir, **({"embedder": "static"} | NO_LIMITS | settings))
    database = data_dir / "commonplace.sqlite3"
    ready = None
    if not wanted.database_url and database.exists() and database.stat().st_mtime == UNTOUCHED:
        folder, ready = await _ready_house()
        shutil.copytree(folder, data_dir, dirs_exist_ok=True)
    async with open_app(wanted, **(own or {})) as app:
        asgi = make_asgi(app)
        async with asgi.api.router.lifespan_context(asgi.api):
            yield replace(ready, app=app, asgi=asgi) if ready else await _furnish(app, asgi)


_ready: list[tuple[Path, House]] = []


async def _ready_house() -> tuple[Path, House]:
    """A folder to copy, and who lives there: furnishing takes three times as long as all else."""
    if not _ready:
        folder = Path(tempfile.mkdtemp())
        async with open_house(folder) as house:
            _ready.append((folder, house))
    return _ready[0]


async def _furnish(app: Services, asgi: HttpApp) -> House:
    owner = await app.people.ensure_owner()
    stranger, strangers_token = await app.people.create_with_token(
        "Stranger", "stranger@example.org"
    )
    house = House(
        app,
        asgi,
        *(
            Caller(person.id, person.id, person.name, frozenset(Capability), role=Role.OWNER)
            for person in (owner, stranger)
        ),
    )
    house.folders = {
        name: (await app.folders.create(house.owner, name)).id for name in ("Red", "Blue", "Green")
    }
    house.folders["Theirs"] = (await app.folders.create(house.stranger, "Theirs")).id
    red, blue = house.folders["Red"], house.folders["Blue"]
    house.tokens = {
        "owner": await house.token("owner", write=True),
        "reader": await house.token("reader"),
        "one_folder": await house.token("one", write=True, folders=(red,)),
        "two_folder": await house.token("two", write=True, folders=(red, blue)),
        "kb_only": await house.token("kb", write=True, kb_only=True),
        "expired": await house.token("expired", write=True, expires_days=-1),
        "revoked": await house.token("revoked", write=True),
        "stranger": strangers_token,
        "viewer": await house.join("Viewer"),
    }
    [viewer] = [member for member in await app.members.all(house.owner) if member.name == "Viewer"]
    await app.members.change_role(house.owner, viewer.person_id, Role.VIEWER)
    revoked = (await app.access.identify(house.tokens["revoked"])).token_id
    assert revoked is not None
    await app.people.revoke_token(house.owner, revoked)
    return house


async def rpc(
    client: httpx.AsyncClient, method: str, params: dict[str, Any] | None = None, path: str = "/mcp"
) -> Any:
    """The JSON-RPC answer (with `result` or `error`) of one MCP request."""
    message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params or {}}
    return (await client.post(path, headers=MCP_HEADERS, json=message)).json()


async def call_tool(
    client: httpx.AsyncClient, name: str, arguments: dict[str, Any], path: str = "/mcp"
) -> Any:
    return await rpc(client, "tools/call", {"name": name, "arguments": arguments}, path)
