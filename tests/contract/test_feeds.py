"""Feeds of every kind, and those that only nearly are."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from commonplace.adapters.extract import FileExtractor
from commonplace.errors import IngestFailed
from commonplace.model import FeedEntry

pytestmark = pytest.mark.anyio

URL = "https://river.example/feeds/all"
PODCAST = """<?xml version="1.0" encoding="UTF-8"?><rss version="2.0" xmlns:itunes="http://www.itunes.com/dtds/podcast-1.0.dtd">
<channel><title>River &amp; Weir</title><link>https://river.example/</link>
<item><title>Herons</title><link>/episodes/2</link><guid isPermaLink="false">ep-2</guid><pubDate>Sat, 02 Mar 2024 08:00:00 GMT</pubDate>
<description><![CDATA[<p>All about <b>herons</b>.</p><script>alert(1)</script>]]></description>
<enclosure url="https://cdn.example/cover.jpg" type="image/jpeg"/><enclosure url="https://cdn.example/2.mp3?x=1" type="audio/mpeg" length="5"/></item>
<item><title>Coots</title><link>https://river.example/episodes/1</link><enclosure url="/1.m4a" type=""/></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Notes</title>
<entry><id>urn:1</id><title type="html">On &lt;i&gt;coots&lt;/i&gt;</title><link rel="alternate" href="coots"/>
<updated>2024-05-01T10:00:00+02:00</updated><summary>Short.</summary><content type="html">&lt;p&gt;Longer text.&lt;/p&gt;</content></entry></feed>"""
JSON = """{"version": "https://jsonfeed.org/version/1.1", "title": "Notes", "items": [
{"id": 7, "url": "https://river.example/7", "title": "Seven", "content_html": "<p>Seven\\ud800 herons.</p>",
 "date_published": "2024-05-01T10:00:00Z", "attachments": [{"url": "https://cdn.example/7.ogg", "mime_type": "audio/ogg"}]},
{"id": "8", "external_url": "https://else.example/", "content_text": "No title, but text"}, 5]}"""


@pytest.fixture(scope="module")
async def extractor(anyio_backend: str) -> AsyncIterator[FileExtractor]:
    extractor = FileExtractor(processes=1)
    yield extractor
    await extractor.close()


@pytest.fixture
def feed(tmp_path, extractor):
    async def read(data: str | bytes):
        (tmp_path / "feed").write_bytes(data.encode() if isinstance(data, str) else data)
        return await extractor.parse_feed(tmp_path / "feed", URL)

    return read


async def test_a_podcast(feed) -> None:
    found = await feed(PODCAST)
    assert (found.title, found.url) == ("River & Weir", URL)
    assert found.entries == (
        FeedEntry(
            "ep-2",
            "Herons",
            "https://river.example/episodes/2",
            "https://cdn.example/2.mp3?x=1",
            datetime(2024, 3, 2, 8, tzinfo=UTC),
            "All about **herons**.",
        ),
        FeedEntry(
            "https://river.example/episodes/1",
            "Coots",
            "https://river.example/episodes/1",
            "https://river.example/1.m4a",
        ),
    )


async def test_an_atom_feed(feed) -> None:
    (entry,) = (await feed(ATOM)).entries
    assert entry == FeedEntry(
        "urn:1",
        "On coots",
        "https://river.example/feeds/coots",
        None,
        datetime(2024, 5, 1, 8, tzinfo=UTC),
        "Longer text.",
    )


async def test_a_json_feed(feed) -> None:
    found = await feed(JSON)
    assert found.entries == (
        FeedEntry(
            "7",
            "Seven",
            "https://river.example/7",
            "https://cdn.example/7.ogg",
            datetime(2024, 5, 1, 10, tzinfo=UTC),
            "Seven herons.",
        ),
        FeedEntry(
            "8", "No title, but text", "https://else.example/", None, None, "No title, but text"
        ),
    )


async def test_a_malformed_feed_gives_what_can_be_read(feed) -> None:
    found = await feed(PODCAST[: PODCAST.index("<item><title>Coots")] + "<item><title>Cut & off")
    assert found.entries[0].title == "Herons"


async def test_the_declared_encoding_of_a_feed_is_followed(feed) -> None:
    found = await feed(
        ATOM.replace("Notes", "Gewässer")
        .encode("latin-1")
        .join([b"<?xml version='1.0' encoding='iso-8859-1'?>", b""])
    )
    assert found.title == "Gewässer"


async def test_a_feed_without_entries_is_a_feed(feed) -> None:
    found = await feed("<rss version='2.0'><channel><title>New</title></channel></rss>")
    assert (found.title, found.entries) == ("New", ())


@pytest.mark.parametrize(
    "data",
    [
        "",
        "<html><body>Hello</body></html>",
        "{",
        '{"items": []}',
        "[1]",
        '{"version": 1}',
        "\x00\x01",
        "{" * 100_000,
        b"<?xml version='1.0' encoding='UTF\xff'?><rss/>",
    ],
)
async def test_what_is_no_feed_says_so(feed, data) -> None:
    with pytest.raises(IngestFailed, match="not a feed"):
        await feed(data)


async def test_entities_of_a_feed_are_not_expanded(feed) -> None:
    entities = '<!ENTITY a0 "ha">' + "".join(
        f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12)
    )
    found = await feed(
        f"<!DOCTYPE rss [{entities}]><rss version='2.0'><channel><title>Laughs &a11;</title></channel></rss>"
    )
    assert len(found.title) < 300


async def test_a_feed_added_like_a_page_is_read_as_a_text(extractor, tmp_path) -> None:
    (tmp_path / "feed").write_text(PODCAST)
    found = await extractor.extract(tmp_path / "feed", "application/rss+xml", url=URL)
    assert (found.title, found.text) == (
        "River & Weir",
        "## Herons\n\nAll about **herons**.\n\n## Coots",
    )
    assert found.links == ("https://cdn.example/2.mp3?x=1", "https://river.example/1.m4a")
