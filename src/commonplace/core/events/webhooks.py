"""Webhooks: events sent to an address, signed as Standard Webhooks says (standardwebhooks.com).

A webhook's job sends its events one by one, in order. What was sent is noted after each answer, so
that an event may come twice, under the same `webhook-id`, but none is left out.
"""

import asyncio
import hmac
import logging
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from functools import partial

import orjson

from commonplace import __version__
from commonplace.core.events.events import AT_ONCE, EventView, views
from commonplace.core.jobs.worker import run_each
from commonplace.core.people.authorization import DELETE, READ, WRITE, Access, Service, verb
from commonplace.core.people.signing_key import signing_key
from commonplace.errors import CommonplaceError, IngestFailed, Invalid, Unauthorized
from commonplace.model import (
    Caller,
    EventType,
    Job,
    Json,
    Scope,
    Webhook,
    digest,
    find_by_id,
    moment,
    new_id,
    now,
    parse_time,
)
from commonplace.ports import Fetcher
from commonplace.settings import Settings
from commonplace.store import Store

log = logging.getLogger(__name__)
LOOK_SECONDS = 1.0
SECRET = "whsec_"
TEST = "webhook.test"
GONE = 410
# Between ten attempts, about a day in all.
PAUSES = [timedelta(seconds=s) for s in (5, 30, 120, 600, 1800, 5400, 10_800, 21_600, 43_200)]
# The queue takes no pause longer than two hours: longer ones are taken in steps.
LONGEST_STEP = timedelta(hours=1)
TURN = timedelta(seconds=60)  # after which other webhooks have theirs


@dataclass(frozen=True, slots=True)
class Delivery:
    ok: bool
    status: int | None  # of HTTP; None: no answer
    error: str | None


def body_of(event: EventView) -> Json:
    """Return an event as lists and streams show it."""
    return asdict(event) | {"at": moment(event.at)}


@dataclass(eq=False)
class Sender:
    """Signs events and sends them."""

    _fetcher: Fetcher
    _settings: Settings

    async def secret(self, webhook_id: str) -> str:
        """Return the secret of a webhook, which is derived from this server's key."""
        key = await asyncio.to_thread(signing_key, self._settings.data_dir, "webhook")
        return SECRET + b64encode(hmac.digest(key, webhook_id.encode(), "sha256")).decode()

    async def check(self, url: str) -> None:
        """Raise Invalid if nothing may be sent to the address."""
        try:
            await self._fetcher.check(url)
        except IngestFailed as error:
            raise Invalid(error.message) from None

    async def send(self, webhook: Webhook, event: Json) -> Delivery:
        secret = await self.secret(webhook.id)
        body, at = orjson.dumps(event), str(int(now().timestamp()))
        signed = b".".join((event["id"].encode(), at.encode(), body))
        mac = hmac.digest(b64decode(secret.removeprefix(SECRET)), signed, "sha256")
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"Commonplace/{__version__}",
            "webhook-id": event["id"],
            "webhook-timestamp": at,
            "webhook-signature": f"v1,{b64encode(mac).decode()}",
        }
        try:
            status = await self._fetcher.post(webhook.url, headers, body)
        except IngestFailed as error:
            return Delivery(False, None, error.message)
        ok = 200 <= status < 300
        return Delivery(ok, status, None if ok else f"The server answered with HTTP {status}.")


@dataclass(eq=False)
class Webhooks(Service):
    _sender: Sender

    @verb(WRITE, "create_webhook")
    async def create(
        self, caller: Caller, url: str, events: Sequence[str] = ()
    ) -> tuple[Webhook, str]:
        """Create a webhook with the caller's scope; return it and its secret."""
        await self._sender.check(url)
        webhook_id = new_id()
        secret = await self._sender.secret(webhook_id)
        webhook = Webhook(
            webhook_id,
            caller.library_id,
            caller.person_id,
            caller.token_id,
            url,
            tuple(dict.fromkeys(events)) or tuple(each.value for each in EventType),
            digest(secret),
        )
        return await self._store.webhooks.create(webhook), secret

    @verb(READ, "list_webhooks")
    async def all(self, caller: Caller) -> list[Webhook]:
        """Return the caller's webhooks; all of the library for those who manage it."""
        return await self._of(caller)

    @verb(READ, "read_webhook", target="webhook_id")
    async def get(self, caller: Caller, webhook_id: str) -> Webhook:
        return find_by_id(await self._of(caller), webhook_id, "Webhook")

    @verb(DELETE, "delete_webhook", target="webhook_id")
    async def delete(self, caller: Caller, webhook_id: str) -> None:
        await self._store.webhooks.delete(find_by_id(await self._of(caller), webhook_id, "Webhook"))

    @verb(WRITE, "test_webhook", target="webhook_id")
    async def test(self, caller: Caller, webhook_id: str) -> Delivery:
        """Send an event that did not happen. If it arrives, a disabled webhook works again."""
        webhook = find_by_id(await self._of(caller), webhook_id, "Webhook")
        actor = caller.token_id or caller.person_id
        event = {"id": f"test_{new_id()}", "type": TEST, "at": moment(now()), "item_id": None}
        result = await self._sender.send(webhook, event | {"actor": actor})
        if result.ok and webhook.error is not None:
            await self._store.webhooks.enable(webhook)
        return result

    async def _of(self, caller: Caller) -> list[Webhook]:
        manages = caller.whole_library and caller.can_write
        return [
            each
            for each in await self._store.webhooks.of_library(caller.library_id)
            if (caller.token_id is not None and each.token_id == caller.token_id)
            or (manages and (caller.role.manages_members or each.person_id == caller.person_id))
        ]

    async def keep_queuing(self) -> None:
        """Queue the jobs of webhooks that have events to send."""
        while True:
            try:
                await self._store.webhooks.enqueue_due()
            except CommonplaceError as error:
                log.warning("Webhooks could not be looked at; trying again: %s", error.message)
            except Exception:
                log.exception("Webhooks could not be looked at; trying again")
            await asyncio.sleep(LOOK_SECONDS)


@dataclass(eq=False)
class WebhookJobs:
    at_once = 1

    _store: Store
    _access: Access
    _sender: Sender

    async def run(self, worker: str, jobs: Sequence[Job]) -> None:
        await run_each(self._store, worker, jobs, partial(self._run, worker))

    async def _run(self, worker: str, job: Job) -> None:
        """Send what has happened, for a while; the rest is queued again."""
        store, failures = self._store.webhooks, int(job.payload.get("failures", 0))
        due = parse_time(job.payload.get("due"))
        if due is not None and due > now():
            return await self._pause(worker, job, due)
        until = now() + TURN
        while now() < until:
            webhook, seq = await store.get(job.library_id, job.id)
            if webhook.disabled_at is not None:
                return
            try:
                scope = await self._scope(webhook)
            except Unauthorized as error:
                return await store.record_failure(webhook, error.message, disable=True)
            page = await self._store.events.list_after(scope, seq, AT_ONCE, webhook.events)
            for each, event in zip(page.events, views(page), strict=True):
                sent = await self._sender.send(webhook, body_of(event))
                if not sent.ok:
                    return await self._failed(worker, job, webhook, sent, failures + 1)
                if not await store.advance(webhook, each.seq, delivered=True) or now() > until:
                    return
                failures = 0
            await store.advance(webhook, page.after, delivered=False)
            if len(page.events) < AT_ONCE:
                return

    async def _scope(self, webhook: Webhook) -> Scope:
        """Return what the webhook's caller sees. Unauthorized: they see nothing any more."""
        secret = await self._sender.secret(webhook.id)
        if digest(secret) != webhook.secret_digest:
            raise Unauthorized(
                "Its secret is lost: this server has another signing key. Delete the webhook and "
                "create it again."
            )
        caller = await self._access.deputy(webhook.library_id, webhook.person_id, webhook.token_id)
        return caller.scope

    async def _failed(
        self, worker: str, job: Job, webhook: Webhook, sent: Delivery, failures: int
    ) -> None:
        over = failures > len(PAUSES) or sent.status == GONE
        await self._store.webhooks.record_failure(webhook, sent.error or "", disable=over)
        if over:
            log.warning("Webhook %s is disabled: %s", webhook.id, sent.error)
            return
        due = now() + PAUSES[failures - 1]
        payload = {"failures": failures, "due": due.isoformat()}
        await self._store.jobs.set_payload(worker, job, payload)
        await self._pause(worker, job, due)

    async def _pause(self, worker: str, job: Job, due: datetime) -> None:
        await self._store.jobs.postpone(worker, job, min(due, now() + LONGEST_STEP))
