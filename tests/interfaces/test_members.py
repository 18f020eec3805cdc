"""A shared library: who is let in, in which role, and what that lets them do."""

import asyncio
import time
from pathlib import Path

import anyio
import httpx
import jwt
import pytest

from commonplace.app import open_app
from commonplace.errors import CommonplaceError
from commonplace.model import Role
from commonplace.settings import Settings
from tests.interfaces.command import Commands
from tests.interfaces.conftest import OpenHouse
from tests.interfaces.house import ADDRESS, House, call_tool, rpc

pytestmark = pytest.mark.anyio
SECRET = "s" * 32
TEXT = {"kind": "text", "title": "New", "text": "A new text of more than twenty characters."}


async def test_a_new_person_comes_in_by_invitation(house: House) -> None:
    async with house.client("owner") as owner, house.client() as nobody:
        made = (
            await owner.post(
                "/api/v1/invitations", json={"role": "member", "email": "ada@example.org"}
            )
        ).json()
        assert made["token"].startswith("inv_") and made["accepted_at"] is None
        listed = await owner.get("/api/v1/invitations")
        assert made["token"] not in listed.text and made["id"] in listed.text
        wrong = await nobody.post(
            "/api/v1/invitations/accept",
            json={"token": made["token"], "name": "Eve", "email": "e@x.org"},
        )
        assert (wrong.status_code, wrong.json()["error"]) == (403, "forbidden_scope")
        nameless = await nobody.post("/api/v1/invitations/accept", json={"token": made["token"]})
        assert nameless.status_code == 422
        joined = await nobody.post(
            "/api/v1/invitations/accept", json={"token": made["token"], "name": "Ada"}
        )
        assert joined.status_code == 201, joined.text
        assert (
            joined.json()["role"],
            joined.json()["library_id"],
            joined.json()["new_person"],
        ) == ("member", house.owner.library_id, True)
        again = await nobody.post(
            "/api/v1/invitations/accept", json={"token": made["token"], "name": "Ada"}
        )
        unknown = await nobody.post(
            "/api/v1/invitations/accept", json={"token": "inv_x", "name": "Ada", "email": "a@b.org"}
        )
        assert again.status_code == unknown.status_code == 404
        assert again.json() == unknown.json()
        async with house.client(token=joined.json()["token"]) as ada:
            assert (await ada.post("/api/v1/ingest", json=TEXT)).status_code == 201
            assert (await ada.post("/api/v1/invitations", json={"role": "viewer"})).json()[
                "error"
            ] == "forbidden_scope"
            assert {m["name"] for m in (await ada.get("/api/v1/members")).json()["members"]} == {
                "Owner",
                "Ada",
                "Viewer",
            }


async def test_who_has_an_account_accepts_as_who_they_are(house: House) -> None:
    _, secret = await house.app.members.invite(house.owner, Role.VIEWER)
    async with house.client("stranger") as stranger, house.client("expired") as expired:
        assert (
            await expired.post(
                "/api/v1/invitations/accept",
                json={"token": secret, "name": "X", "email": "x@y.org"},
            )
        ).status_code == 401
        double = await stranger.post(
            "/api/v1/invitations/accept", json={"token": secret, "name": "Two", "email": "t@w.org"}
        )
        assert double.status_code == 422
        joined = (await stranger.post("/api/v1/invitations/accept", json={"token": secret})).json()
        assert (joined["person_id"], joined["role"], joined["new_person"]) == (
            house.stranger.person_id,
            "viewer",
            False,
        )
    async with house.client(token=joined["token"]) as guest:
        assert (await guest.get("/api/v1/items")).status_code == 200
        assert (await guest.post("/api/v1/ingest", json=TEXT)).json()[
            "error"
        ] == "capability_denied"


async def test_a_role_holds_at_once_by_every_face(house_with: OpenHouse) -> None:
    async with house_with(jwt_secret=SECRET) as house:
        token = await house.join("Ada")
        [ada] = [m for m in await house.app.members.all(house.owner) if m.name == "Ada"]
        claims = jwt.encode(
            {"sub": ada.person_id, "org": house.owner.library_id, "exp": int(time.time()) + 3600},
            SECRET,
            algorithm="HS256",
        )
        for bearer in (token, claims):
            async with house.client("owner") as owner, house.client(token=bearer) as client:
                await owner.patch(f"/api/v1/members/{ada.person_id}", json={"role": "member"})
                assert (await client.post("/api/v1/ingest", json=TEXT)).status_code in (200, 201)
                await owner.patch(f"/api/v1/members/{ada.person_id}", json={"role": "viewer"})
                refused = await client.post("/api/v1/ingest", json=TEXT)
                assert (refused.status_code, refused.json()["have"]) == (403, ["read"])
                shown = {
                    tool["name"] for tool in (await rpc(client, "tools/list"))["result"]["tools"]
                }
                assert "search_knowledge_base" in shown and "add_to_knowledge" not in shown
                answer = await call_tool(client, "add_to_knowledge", TEXT)
                assert answer["error"]["data"]["error"] == "capability_denied"
        async with (
            house.client("owner") as owner,
            house.client(token=token) as client,
            house.client(token=claims) as by_jwt,
        ):
            assert (await owner.delete(f"/api/v1/members/{ada.person_id}")).json() == {"ok": True}
            assert (await client.get("/api/v1/items")).status_code == 401
            assert (await by_jwt.get("/api/v1/items")).status_code == 401


async def test_admins_rule_but_over_owners(house: House) -> None:
    admin, member = await house.join("Admin", Role.ADMIN), await house.join("Member")
    ids = {m.name: m.person_id for m in await house.app.members.all(house.owner)}
    async with house.client(token=admin) as client:
        assert (
            await client.patch(f"/api/v1/members/{ids['Member']}", json={"role": "viewer"})
        ).json()["role"] == "viewer"
        for refused in (
            await client.patch(f"/api/v1/members/{ids['Member']}", json={"role": "owner"}),
            await client.patch(f"/api/v1/members/{ids['Owner']}", json={"role": "viewer"}),
            await client.delete(f"/api/v1/members/{ids['Owner']}"),
            await client.post("/api/v1/invitations", json={"role": "owner"}),
        ):
            assert (refused.status_code, refused.json()["error"]) == (403, "forbidden_scope")
    async with house.client(token=member) as client:
        assert (await client.delete(f"/api/v1/members/{ids['Admin']}")).json()[
            "error"
        ] == "capability_denied"
    async with house.client("owner") as owner:
        last = await owner.patch(f"/api/v1/members/{ids['Owner']}", json={"role": "member"})
        assert (last.status_code, last.json()["error"]) == (409, "conflict")
        assert (
            await owner.patch(f"/api/v1/members/{ids['Admin']}", json={"role": "king"})
        ).status_code == 422


async def test_members_see_and_revoke_only_their_own_tokens(house: House) -> None:
    member = await house.join("Member")
    owners = await house.app.people.tokens(house.owner)
    async with house.client(token=member) as client:
        [own] = (await client.get("/api/v1/tokens")).json()["tokens"]
        assert own["name"] == "invited: Member"
        theirs = next(token for token in owners if token.person_id == house.owner.person_id)
        assert (await client.delete(f"/api/v1/tokens/{theirs.id}")).status_code == 404
        assert (await client.get(f"/api/v1/tokens/{theirs.id}/activity")).status_code == 404
        assert (await client.delete(f"/api/v1/tokens/{own['id']}")).json() == {"ok": True}


async def accept(data_dir: Path, secret: str, name: str) -> str:
    """Accept an invitation, as the page and REST do, and return the new person's token."""
    async with open_app(Settings(data_dir=data_dir, embedder="static")) as app:
        done = await app.members.accept(None, secret, name, f"{name.lower()}@example.org")
        return str(done.token)


def test_members_by_the_command_line(data_dir: Path) -> None:
    run = Commands(data_dir)
    secret = run.text("member", "invite", "--role", "viewer").strip()
    assert [i["role"] for i in run.json("member", "list")["invitations"]] == ["viewer"]
    assert "viewer\tinvited until" in run.text("member", "list")
    token = anyio.run(accept, data_dir, secret, "Ada")
    listed = run.json("member", "list")
    assert {m["name"]: m["role"] for m in listed["members"]} == {"Owner": "owner", "Ada": "viewer"}
    assert listed["invitations"] == []
    assert "'write' capability" in run.fails("folder", "create", "No", "--token", token)
    assert "Ada" in run.text("member", "list", "--token", token)
    assert "The role of Ada is now member" in run.text(
        "member", "role", "ada@example.org", "member"
    )
    run.text("folder", "create", "Yes", "--token", token)
    assert "no member" in run.fails("member", "role", "nobody@example.org", "none")
    assert run.text("member", "role", "ada@example.org", "none") == "Removed ada@example.org.\n"
    assert "revoked" in run.fails("folder", "list", "--token", token)
    unused = run.json("member", "invite")
    run.text("member", "invite", "--withdraw", unused["id"])
    with pytest.raises(CommonplaceError, match="unknown"):
        anyio.run(accept, data_dir, unused["token"], "Bea")


async def test_processes_that_start_at_once_for_the_first_time_have_one_owner(
    data_dir: Path,
) -> None:
    async with open_app(Settings(data_dir=data_dir, embedder="static")) as app:
        owners = await asyncio.gather(*(app.people.ensure_owner() for _ in range(4)))
        assert [owners[0]] * 4 == owners and await app.store.people.all() == owners[:1]


async def test_a_stranger_cannot_use_up_what_others_may_try_with_their_invitations(
    house_with: OpenHouse,
) -> None:
    body = {"token": "inv_guess", "name": "Eve", "email": "eve@example.org"}

    def coming_from(address: str) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(house.asgi, client=(address, 1)), base_url=ADDRESS
        )

    async with house_with(rate_requests_per_minute=3) as house:
        _, secret = await house.app.members.invite(house.owner, Role.VIEWER)
        for addresses in (
            ["203.0.113.9"] * 4,
            ["2001:db8::1", "2001:db8::2", "2001:db8::3", "2001:db8::4"],
        ):
            answers = []
            for address in addresses:
                async with coming_from(address) as eve:
                    answers.append(
                        (await eve.post("/api/v1/invitations/accept", json=body)).status_code
                    )
            assert answers == [404, 404, 404, 429]
        async with coming_from("198.51.100.7") as ada:
            accepted = {"token": secret, "name": "Ada", "email": "ada@example.org"}
            assert (await ada.post("/api/v1/invitations/accept", json=accepted)).status_code == 201
