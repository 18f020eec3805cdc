"""What OAuth clients of other people open: a server on a port, and a browser that presses Connect."""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import httpx

from tests.interfaces.house import House
from tests.interfaces.live import live_house
from tests.interfaces.oauth_flow import PAGE, Person

ROOT = Path(__file__).parents[2]
SCRIPT = """#!{python}
# What the client opens instead of a browser: press Connect, and follow the way back.
import asyncio, sys
sys.path.insert(0, {root!r})
import httpx
from tests.interfaces.oauth_browser import consent
httpx.get(asyncio.run(consent({address!r}, {secret!r}, sys.argv[-1], {write!r})))
"""


@contextmanager
def serving(data_dir: Path, **settings: Any) -> Iterator[tuple[str, House, str]]:
    """A server, and the secret of a browser in which the owner is signed in."""
    with live_house(data_dir, **settings) as (address, house):
        secret = asyncio.run(house.app.accounts.open_session(house.owner.person_id, "test"))
        yield address, house, secret


async def consent(address: str, secret: str, url: str, write: str = "1") -> str:
    """Where the browser goes after the person has pressed Connect."""
    name = f"commonplace_{urlsplit(address).port}"
    async with httpx.AsyncClient(base_url=address, headers=PAGE, cookies={name: secret}) as http:
        answer = await Person(http).decide(dict(parse_qsl(urlsplit(url).query)), write=write)
    return answer.headers["location"]


def pressing_connect(folder: Path, address: str, secret: str, write: str = "1") -> Path:
    """The program that clients take for the browser, in a folder for their PATH."""
    browser = folder / "xdg-open"
    folder.mkdir()
    browser.write_text(
        SCRIPT.format(
            python=sys.executable, root=str(ROOT), address=address, secret=secret, write=write
        )
    )
    browser.chmod(0o755)
    return browser
