"""Webhooks: what is sent to whom, how it is signed, and what happens when nobody takes it."""

import base64
import gzip
import hmac
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from commonplace.app import open_app, restore_backup
from commonplace.core.events import webhooks as core
from commonplace.core.items.drafts import Draft
from commonplace.core.services import Services
from commonplace.model import Caller, Role, Webhook, no_advance
from commonplace.settings import Settings
from tests.interfaces.house import House, open_house
from tests.stub_service import Mishap, Request, StubService, running

pytestmark = pytest.mark.anyio
PATH = "/api/v1/webhooks"


class Receiver(StubService):
    def answer(self, request: Request) -> dict[str, Any]:
        return {}

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(each.json()["type"], each.json()["item_id"]) for each in self.requests]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running(Receiver()) as service:
        yield service


def host_of(receiver: Receiver) -> str:
    return receiver.url.partition("//")[2]


@pytest.fixture
async def house(
    data_dir: Path, receiver: Receiver, either_engine: dict[str, str]
) -> AsyncIterator[House]:
    async with open_house(data_dir, fetch_allow_hosts=host_of(receiver), **either_engine) as opened:
        yield opened


async def create(client: httpx.AsyncClient, receiver: Receiver, **body: Any) -> dict[str, Any]:
    made = await client.post(PATH, json={"url": f"{receiver.url}/hook", **body})
    assert made.status_code == 201, made.text
    return dict(made.json())


async def deliver(house: House) -> None:
    """What the workers do in the background."""
    await house.app.store.webhooks.enqueue_due()
    await house.app.worker.run_once()


def verify(request: Request, secret: str) -> None:
    """As the libraries of Standard Webhooks do."""
    assert secret.startswith("whsec_")
    key = base64.b64decode(secret.removeprefix("whsec_"))
    assert 24 <= len(key) <= 64
    message_id, at = request.headers["webhook-id"], request.headers["webhook-timestamp"]
    signed = f"{message_id}.{at}.".encode() + request.body
    expected = base64.b64encode(hmac.digest(key, signed, "sha256")).decode()
    assert request.headers["webhook-signature"].split() == [f"v1,{expected}"]
    assert message_id == request.json()["id"]


async def test_events_are_posted_in_order_and_signed(house: House, receiver: Receiver) -> None:
    await house.add("Before")
    async with house.client("owner") as owner:
        made = await create(owner, receiver)
        item, _ = await house.add("Heron")
        await owner.delete(f"/api/v1/items/{item}")
        await deliver(house)
        listed = (await owner.get("/api/v1/events")).json()["events"]
        assert [each.json() for each in receiver.requests] == listed[-3:]
        assert receiver.told == [
            ("item.added", item),
            ("item.ready", item),
            ("item.deleted", item),
        ]
        for request in receiver.requests:
            verify(request, made["secret"])
            assert "Heron" not in request.body.decode()
        await deliver(house)
        assert len(receiver.requests) == 3
        read = (await owner.get(f"{PATH}/{made['id']}")).json()
        assert read["delivered_at"]
        assert read == {
            **{name: value for name, value in made.items() if name != "secret"},
            "delivered_at": read["delivered_at"],
        }
        assert (await owner.get(PATH)).json() == {"webhooks": [read], "total": 1}


async def test_only_the_types_asked_for_are_posted(house: House, receiver: Receiver) -> None:
    async with house.client("owner") as owner:
        await create(owner, receiver, events=["item.deleted"])
        item, _ = await house.add("Heron")
        await deliver(house)
        await owner.delete(f"/api/v1/items/{item}")
        await deliver(house)
        assert receiver.told == [("item.deleted", item)]
        for events in (["job.progress"], ["item.gone"], []):
            refused = await owner.post(PATH, json={"url": f"{receiver.url}/hook", "events": events})
            assert refused.status_code == 422


async def test_a_scoped_token_has_webhooks_of_its_scope(house: House, receiver: Receiver) -> None:
    async with house.client("one_folder") as one, house.client("owner") as owner:
        made = await create(one, receiver)
        red, _ = await house.add("Red", folder="Red")
        await house.add("Blue", folder="Blue")
        await deliver(house)
        assert {item for _, item in receiver.told} == {red}
        for name in ("two_folder", "reader", "stranger", "viewer"):
            async with house.client(name) as other:
                assert (await other.get(PATH)).json()["webhooks"] == []
                assert (await other.get(f"{PATH}/{made['id']}")).status_code == 404
                assert (await other.delete(f"{PATH}/{made['id']}")).status_code in (403, 404)
        assert [each["id"] for each in (await owner.get(PATH)).json()["webhooks"]] == [made["id"]]
        async with house.client("reader") as reader:
            refused = await reader.post(PATH, json={"url": receiver.url})
            assert refused.json()["error"] == "capability_denied"


async def test_a_webhook_ends_with_its_token(house: House, receiver: Receiver) -> None:
    async with house.client("one_folder") as one, house.client("owner") as owner:
        await create(one, receiver)
        await owner.delete(f"/api/v1/folders/{house.folders['Red']}")
        assert (await owner.get(PATH)).json()["total"] == 0
        async with house.client(token=await house.join("Mia")) as member:
            await create(member, receiver)
        [mia] = [each for each in await house.app.members.all(house.owner) if each.name == "Mia"]
        await house.app.members.change_role(house.owner, mia.person_id, Role.VIEWER)
        assert (await owner.get(PATH)).json()["total"] == 1
        await house.app.members.remove(house.owner, mia.person_id)
        assert (await owner.get(PATH)).json()["total"] == 0
        await house.add("Nobody is told")
        await deliver(house)
        assert receiver.requests == []


async def test_deleting_a_webhook_ends_it(house: House, receiver: Receiver) -> None:
    async with house.client("owner") as owner:
        made = await create(owner, receiver)
        await house.add("Heron")
        await house.app.store.webhooks.enqueue_due()
        assert (await owner.delete(f"{PATH}/{made['id']}")).json() == {"ok": True}
        assert (await owner.delete(f"{PATH}/{made['id']}")).status_code == 404
        await deliver(house)
        assert receiver.requests == []


async def test_a_failed_delivery_is_repeated_and_nothing_overtakes_it(
    house: House, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "PAUSES", [timedelta(0)] * 9)
    receiver.mishaps["/hook"] = [
        Mishap(500),
        Mishap(302, {"Location": f"{receiver.url}/elsewhere"}),
    ]
    async with house.client("owner") as owner:
        made = await create(owner, receiver)
        await house.add("Heron")
        await deliver(house)
        read = (await owner.get(f"{PATH}/{made['id']}")).json()
        assert (read["active"], read["error"]) == (True, "The server answered with HTTP 500.")
        await deliver(house)
        await deliver(house)
        ids = [request.headers["webhook-id"] for request in receiver.requests]
        assert len(ids) == 4
        assert len(set(ids[:3])) == 1, "the same event, under the same id"
        assert {request.path for request in receiver.requests} == {"/hook"}
        assert (await owner.get(f"{PATH}/{made['id']}")).json()["error"] is None


async def test_pauses_are_kept_and_make_a_day(house: House, receiver: Receiver) -> None:
    assert timedelta(hours=20) < sum(core.PAUSES, timedelta()) < timedelta(hours=28)
    receiver.mishaps["/hook"] = [Mishap(500)] * 5
    async with house.client("owner") as owner:
        await create(owner, receiver)
        await house.add("Heron")
        await deliver(house)
        await deliver(house)
        assert len(receiver.requests) == 1, "the next attempt is not due"


async def test_after_ten_attempts_it_is_disabled_until_a_test_arrives(
    house: House, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(core, "PAUSES", [timedelta(0)] * 9)
    receiver.mishaps["/hook"] = [Mishap(503)] * 11
    async with house.client("owner") as owner:
        made = await create(owner, receiver)
        item, _ = await house.add("Heron")
        for _ in range(15):
            await deliver(house)
        assert len(receiver.requests) == 10
        read = (await owner.get(f"{PATH}/{made['id']}")).json()
        assert (read["active"], read["disabled_at"] is None) == (False, False)
        report = await house.app.overview.report(house.owner)
        assert [each.id for each in report.webhooks] == [made["id"]]
        failed = (await owner.post(f"{PATH}/{made['id']}/test")).json()
        assert failed == {
            "ok": False,
            "status": 503,
            "error": "The server answered with HTTP 503.",
        }
        assert (await owner.post(f"{PATH}/{made['id']}/test")).json() == {
            "ok": True,
            "status": 200,
            "error": None,
        }
        verify(receiver.requests[-1], made["secret"])
        assert receiver.requests[-1].json().keys() == {"id", "type", "at", "item_id", "actor"}
        await deliver(house)
        assert receiver.told[-2:] == [("item.added", item), ("item.ready", item)]


async def test_gone_disables_at_once(house: House, receiver: Receiver) -> None:
    receiver.mishaps["/hook"] = [Mishap(410)]
    async with house.client("owner") as owner:
        made = await create(owner, receiver)
        await house.add("Heron")
        await deliver(house)
        assert not (await owner.get(f"{PATH}/{made['id']}")).json()["active"]


async def test_a_worker_that_dies_between_sending_and_noting_sends_again(
    house: House, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with house.client("owner") as owner:
        await create(owner, receiver)
        item, _ = await house.add("Heron")
        await house.app.store.webhooks.enqueue_due()
        monkeypatch.setattr("commonplace.core.jobs.worker.LEASE_SECONDS", -1)  # it is lost at once
        with monkeypatch.context() as dying:
            dying.setattr(type(house.app.store.webhooks), "advance", _die)
            with pytest.raises(_Killed):
                await house.app.worker.run_once()
        assert len(receiver.requests) == 1
        await deliver(house)
        assert receiver.told == [("item.added", item)] * 2 + [("item.ready", item)]
        ids = [request.headers["webhook-id"] for request in receiver.requests]
        assert ids[0] == ids[1]


class _Killed(BaseException):
    """Like kill -9, nothing catches it."""


async def _die(*args: Any, **kwargs: Any) -> None:
    raise _Killed


# -- without a database of its own


@dataclass(frozen=True)
class Guarded:
    url: str
    word: str


GUARDED = [
    Guarded("http://127.0.0.1:9/hook", "private network"),
    Guarded("http://[::1]/hook", "private network"),
    Guarded("http://2130706433/hook", "private network"),
    Guarded("http://169.254.169.254/latest", "private network"),
    Guarded("http://localhost/hook", "private network"),
    Guarded("ftp://example.org/hook", "http"),
    Guarded("http://user:secret@example.org/hook", "user name"),
]


@pytest.mark.parametrize("case", GUARDED, ids=lambda case: case.url)
async def test_private_addresses_are_refused(data_dir: Path, case: Guarded) -> None:
    async with open_house(data_dir) as house, house.client("owner") as owner:
        refused = await owner.post(PATH, json={"url": case.url})
        assert refused.status_code == 422
        assert case.word in refused.json()["message"]
        assert (await owner.get(PATH)).json()["total"] == 0


@asynccontextmanager
async def reopened(data_dir: Path, **settings: Any) -> AsyncIterator[Services]:
    async with open_app(Settings(data_dir=data_dir, embedder="static", **settings)) as app:
        yield app


async def after_an_add(app: Services, owner: Caller) -> Webhook:
    """The only webhook, after the background has tried to tell of an event."""
    await app.library.add(owner, Draft("text", "Heron", "The heron waits for fish."))
    await app.store.webhooks.enqueue_due()
    await app.worker.run_once()
    [webhook] = await app.webhooks.all(owner)
    return webhook


async def test_an_address_that_is_private_only_later_gets_nothing(
    data_dir: Path, receiver: Receiver
) -> None:
    async with (
        open_house(data_dir, fetch_allow_hosts=host_of(receiver)) as house,
        house.client("owner") as client,
    ):
        await create(client, receiver)
    async with reopened(data_dir) as app:
        webhook = await after_an_add(app, house.owner)
        assert "private network" in (webhook.error or "")
        assert receiver.requests == []


async def test_backups_do_not_hold_secrets_and_another_server_says_so(
    data_dir: Path, receiver: Receiver, tmp_path: Path
) -> None:
    allowed = host_of(receiver)
    async with (
        open_house(data_dir, fetch_allow_hosts=allowed) as house,
        house.client("owner") as client,
    ):
        made = await create(client, receiver)
        await house.app.store.dump(tmp_path / "all.backup")
    stolen = gzip.decompress((tmp_path / "all.backup").read_bytes()).decode()
    assert made["id"] in stolen
    assert made["secret"].removeprefix("whsec_") not in stolen
    other = tmp_path / "another server"
    settings = Settings(data_dir=other, embedder="static")
    await restore_backup(settings, tmp_path / "all.backup", force=False, advance=no_advance)
    async with reopened(other, fetch_allow_hosts=allowed) as app:
        webhook = await after_an_add(app, house.owner)
        assert webhook.disabled_at
        assert "create it again" in (webhook.error or "")
        assert receiver.requests == []
