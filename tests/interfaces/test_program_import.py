"""Exports of other programs on both engines: what is kept, once, and what a report says."""

import json
import zipfile
from collections.abc import AsyncIterator, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from commonplace.app import open_app
from commonplace.core.services import Services
from commonplace.core.transfer import opml
from commonplace.core.transfer.markdown_folder import ImportResult
from commonplace.errors import Invalid
from commonplace.model import Caller, FullItem, ItemFilter, Outcome, folder_list, no_advance
from commonplace.settings import Settings
from tests.webserver import WebServer, page, web_server

pytestmark = pytest.mark.anyio
ARTICLE = (
    "<html><head><title>{0}</title></head><body><article><h1>{0}</h1>{1}</article></body></html>"
)
WORDS = "".join(
    f"<p>Paragraph {n}: the heron stands in the weir and waits for fish to pass.</p>"
    for n in range(12)
)


@pytest.fixture
def web() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages["/heron"] = page(ARTICLE.format("The heron", WORDS))
        yield server


class Reader:
    def __init__(self, app: Services, owner: Caller, folder: Path) -> None:
        self.app, self.owner, self.folder = app, owner, folder

    async def take(self, content: Any, name: str = "export", **how: Any) -> ImportResult:
        if not isinstance(content, str | bytes):
            content = json.dumps(content)
        file = self.folder / name
        file.write_bytes(content.encode() if isinstance(content, str) else content)
        return await self.app.program_import.run(self.owner, file, no_advance, **how)

    async def items(self) -> dict[str, FullItem]:
        found, _ = await self.app.library.page(self.owner, ItemFilter(), limit=100)
        return {item.title: await self.app.library.read(self.owner, item.id) for item in found}


@pytest.fixture
async def reader(
    data_dir: Path, tmp_path: Path, either_engine: dict[str, str], web: WebServer
) -> AsyncIterator[Reader]:
    settings = Settings(
        data_dir=data_dir, embedder="static", fetch_allow_hosts=web.host, **either_engine
    )
    async with open_app(settings) as app:
        await app.people.ensure_owner()
        owner = await app.access.owner()
        assert owner is not None
        yield Reader(app, owner, tmp_path)


def counts(result: ImportResult) -> tuple[int, int, int]:
    return tuple(result.outcomes[outcome] for outcome in Outcome)  # type: ignore[return-value]


async def test_pages_keep_what_their_owner_wrote_and_are_imported_once(
    reader: Reader, web: WebServer
) -> None:
    saved = [
        {
            "href": f"{web.url}/heron",
            "description": "My bird",
            "extended": "Seen twice",
            "tags": "a b",
        },
        {"href": f"{web.url}/gone", "description": "Lost", "extended": "Was good", "tags": "c"},
    ]
    assert counts(first := await reader.take(saved)) == (2, 0, 0)
    assert [name for name, _ in first.unreachable] == [f"{web.url}/gone"]
    assert (await reader.items())["Lost"].item.source_status == "unreachable"
    assert counts(await reader.take(saved)) == (0, 0, 2)
    found = await reader.items()
    bird, lost = found["My bird"], found["Lost"]
    assert "stands in the weir" in bird.text and bird.item.tags == ("a", "b")
    assert (bird.item.source_status, lost.item.source_status) == (None, "gone")
    for reading, note in ((bird, "Seen twice"), (lost, "Was good")):
        [told] = await reader.app.annotations.of(reader.owner, reading.item.id)
        assert told.text == note
    web.pages["/gone"] = page(ARTICLE.format("Found again", WORDS))
    assert counts(await reader.take(saved)) == (0, 1, 1)
    lost = (await reader.items())["Lost"]
    assert "stands in the weir" in lost.text and lost.item.source_status == "changed"


async def test_pages_of_omnivore_are_not_fetched(reader: Reader, web: WebServer) -> None:
    entry = {"title": "Weirs", "url": f"{web.url}/heron", "slug": "w", "labels": ["wet"]}
    with zipfile.ZipFile(made := BytesIO(), "w") as archive:
        archive.writestr("metadata_0_to_1.json", json.dumps([entry]))
        archive.writestr("content/w.html", "<p>As it was then.</p>")
    for expected in ((1, 0, 0), (0, 0, 1)):
        assert counts(await reader.take(made.getvalue())) == expected
    assert (await reader.items())["Weirs"].text == "As it was then."
    assert not web.requests


async def test_a_zip_of_notes_is_joined_and_another_one_does_not_replace_it(
    reader: Reader,
) -> None:
    def vault(words: str) -> bytes:
        with zipfile.ZipFile(made := BytesIO(), "w") as archive:
            archive.writestr("Home.md", f"{words} [[Birds]] ![[list.txt]]")
            archive.writestr("in/Birds.md", "Herons #wet")
            archive.writestr("list.txt", "Boots and binoculars.")
        return made.getvalue()

    assert counts(await reader.take(vault("One"), "a.zip")) == (2, 0, 0)
    assert counts(await reader.take(vault("One"), "a.zip")) == (0, 0, 2)
    assert counts(await reader.take(vault("One grown"), "a.zip")) == (0, 1, 1)
    found = await reader.items()
    assert found.keys() == {"Home", "Birds", "list"}
    assert found["Birds"].item.tags == ("wet",) and found["Birds"].folders[0].name == "in"
    joins = await reader.app.library.relations(reader.owner, [found["Home"].item.id])
    assert {join.to_id for join in joins if join.explicit} == {
        found["Birds"].item.id,
        found["list"].item.id,
    }
    await reader.take(vault("Two"), "b.zip")
    texts = [reading.text for reading in (await reader.items()).values()]
    everything, _ = await reader.app.library.page(reader.owner, ItemFilter(), limit=100)
    assert sum(item.title == "Home" for item in everything) == 2, texts


async def test_conversations_become_sessions_that_grow(reader: Reader) -> None:
    def talk(*said: str) -> list[Any]:
        messages = [
            {"uuid": str(n), "sender": "human", "text": text} for n, text in enumerate(said)
        ]
        return [
            {
                "uuid": "c",
                "name": "Birds",
                "created_at": "2024-03-02T08:00:00Z",
                "chat_messages": messages,
            }
        ]

    assert counts(await reader.take(talk("Why?"))) == (1, 0, 0)
    assert counts(await reader.take(talk("Why?"))) == (0, 0, 1)
    assert counts(await reader.take(talk("Why?", "And when?"))) == (0, 1, 0)


async def test_subscriptions_are_taken_without_a_request_and_given_again(
    reader: Reader, web: WebServer
) -> None:
    made = (
        '<opml version="2.0"><body><outline text="News &amp; more"><outline text="Herons" '
        f'xmlUrl="{web.url}/feed?a=1&amp;b=2"/></outline></body></opml>'
    )
    for expected in ((1, 0, 0), (0, 0, 1)):
        assert counts(await reader.take(made)) == expected
    assert not web.requests
    [feed] = await reader.app.feeds.all(reader.owner)
    folders = folder_list(await reader.app.folders.list_folders(reader.owner))
    paths = {node.id: node.path for node in folders}
    assert (feed.title, paths[feed.folder_id or ""]) == ("Herons", "News & more")
    for _ in range(2):
        await opml.write(reader.app.feeds, reader.app.folders, reader.owner, reader.folder)
    written = reader.folder / "feeds.opml"
    assert counts(await reader.take(written.read_text())) == (0, 0, 1)
    written.write_text("mine")
    with pytest.raises(Invalid, match="already exists"):
        await opml.write(reader.app.feeds, reader.app.folders, reader.owner, reader.folder)


async def test_a_dry_run_counts_and_changes_nothing(reader: Reader, web: WebServer) -> None:
    saved = [
        {"href": f"{web.url}/heron", "description": "Bird"},
        {"href": "javascript:1", "description": "J"},
    ]
    result = await reader.take(saved, dry_run=True)
    assert (result.found["bookmarks"], result.found["not kept"]) == (1, 1)
    assert await reader.items() == {} and not web.requests
    with pytest.raises(Invalid, match="Nothing to import"):
        await reader.take("plain words", dry_run=True)
