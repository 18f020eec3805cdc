"""One page shows and ends everything that has access to a library."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.interfaces.house import open_house
from tests.interfaces.test_web_access import browser
from tests.interfaces.test_webhooks import Receiver, host_of, verify
from tests.stub_service import running

pytestmark = pytest.mark.anyio
HTML = {"Accept": "text/html"}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running(Receiver()) as service:
        yield service


async def post(client: httpx.AsyncClient, path: str, **form: str) -> str:
    page = await client.get("/tokens", headers=HTML)
    token = re.search(r'data-csrf="(\w+)"', page.text)
    assert token
    answer = await client.post(path, data=form, headers=HTML | {"X-CSRF-Token": token[1]})
    if answer.status_code == 303:
        answer = await client.get(answer.headers["location"], headers=HTML)
    assert answer.status_code == 200, answer.text
    return answer.text


async def test_grants_tokens_webhooks_and_browsers_are_shown_and_ended(
    data_dir: Path, receiver: Receiver
) -> None:
    async with (
        open_house(data_dir, fetch_allow_hosts=host_of(receiver)) as house,
        await browser(house, "owner") as client,
    ):
        other = await house.app.accounts.open_session(house.owner.person_id, "Firefox/1 Linux")
        made = await post(client, "/webhooks", url=f"{receiver.url}/hook")
        secret = re.search(r'<code id="secret">([^<]+)</code>', made)
        assert secret
        page = (await client.get("/tokens", headers=HTML)).text
        assert secret[1] not in page, "it is shown once"
        assert f"{receiver.url}/hook" in page
        assert "Firefox on Linux" in page
        assert "two" in page, "a token"
        [webhook] = await house.app.webhooks.all(house.owner)
        assert "Test event delivered." in await post(client, f"/webhooks/{webhook.id}/test")
        verify(receiver.requests[0], secret[1].replace("&#43;", "+"))
        page = await post(client, f"/webhooks/{webhook.id}/delete")
        assert f"{receiver.url}/hook" not in page
        sessions = re.findall(r'action="/account/sessions/(\w+)"', page)
        for session in sessions:
            await post(client, f"/account/sessions/{session}")
        assert "Firefox on Linux" not in (await client.get("/tokens", headers=HTML)).text
        assert other
