"""The add box without scripts: files come in with the form."""

import pytest

from tests.interfaces.house import House
from tests.interfaces.test_web_people import browser, csrf

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    ("name", "kept_as"),
    [
        ("plain.txt", "plain"),
        ("..", "."),
        ("記" * 190 + ".txt", "記" * 190),
        ("C:\\papers\\mine.txt", "mine"),
    ],
)
async def test_a_file_is_kept_whatever_it_is_called(house: House, name: str, kept_as: str) -> None:
    async with await browser(house, house.owner.person_id) as client:
        sent = await client.post(
            "/add",
            data={"csrf": await csrf(client)},
            files={"file": (name, b"A text that is long enough.")},
        )
        assert sent.status_code == 303, sent.text
        while await house.app.worker.run_once():
            pass
        [item] = await house.app.library.recent(house.owner)
        assert item.title == kept_as
