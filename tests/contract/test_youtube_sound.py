"""The sound of videos: the real yt-dlp on pages as YouTube serves them, with no way out but the fetcher."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from commonplace.adapters import youtube as youtube_adapter
from commonplace.adapters.fetch.address_guard import parse_allowed
from commonplace.adapters.fetch.client import OutgoingRequest, WebFetcher
from commonplace.adapters.youtube import YouTube
from commonplace.errors import IngestFailed
from tests.webserver import WebServer, Wire, page, web_server
from tests.youtube_pages import VIDEO, YouTubePages, stream

pytestmark = pytest.mark.anyio

SOUND = bytes(range(256)) * 100


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages["/playback"] = _ranged
        yield server


@pytest.fixture
def web(server: WebServer, tmp_path: Path) -> Iterator[WebFetcher]:
    yield WebFetcher(allowed=parse_allowed(server.host), folder=tmp_path)
    assert list(tmp_path.iterdir()) == [], "nothing is left behind"


def _ranged(wire: Wire) -> None:
    asked = parse_qs(urlsplit(wire.request.path).query).get("range")
    first, last = map(int, asked[0].split("-")) if asked else (0, len(SOUND))
    page(SOUND[first : last + 1], "audio/webm")(wire)


async def heard(sound: YouTube, max_bytes: int = 1_000_000) -> bytes:
    async with sound.open(VIDEO, max_bytes=max_bytes) as path:
        return path.read_bytes()


async def test_title_and_length_are_told_and_the_smallest_good_stream_is_taken(
    web: WebFetcher, server: WebServer
) -> None:
    youtube = YouTubePages(
        web,
        [
            stream(f"{server.url}/large?", itag=140, kbits=129),
            stream(f"{server.url}/playback?x=1", size=len(SOUND)),
        ],
    )
    sound = YouTube(youtube)
    video = await sound.read(VIDEO)
    assert (video.found.title, video.seconds, video.has_captions) == (
        "Herons at dawn",
        12.0,
        False,
    )
    assert not server.requests, "looking for it downloads nothing"
    assert await heard(sound) == SOUND
    assert {urlsplit(request.path).path for request in server.requests} == {"/playback"}
    assert {urlsplit(url).hostname for url in youtube.asked} == {"www.youtube.com"}
    assert {wish.method for wish in youtube.wishes} == {"GET", "POST"}
    later = {name.lower(): value for name, value in youtube.wishes[1].headers.items()}
    assert "VISITOR=1" in later["cookie"] and "YSC=2" in later["cookie"], (
        "cookies are kept within one visit"
    )


@pytest.mark.parametrize("piece", [1000, 12_800, 25_600, 100_000])
@pytest.mark.parametrize("size", [None, len(SOUND)])
async def test_it_comes_in_pieces(
    web: WebFetcher,
    server: WebServer,
    piece: int,
    size: int | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sound = YouTube(YouTubePages(web, [stream(f"{server.url}/playback?x=1", size=size)]))
    original = sound._info

    async def info(video_id: str, **options: bool) -> dict:
        return await original(video_id, **options) | {
            "downloader_options": {"http_chunk_size": piece}
        }

    monkeypatch.setattr(sound, "_info", info)
    assert await heard(sound) == SOUND


async def test_a_stream_larger_than_allowed_is_refused(web: WebFetcher, server: WebServer) -> None:
    for size in (len(SOUND), None):
        with pytest.raises(IngestFailed, match="larger than"):
            await heard(
                YouTube(YouTubePages(web, [stream(f"{server.url}/playback?x=1", size=size)])),
                max_bytes=1000,
            )


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"streams": []}, "it has no audio"),
        (
            {"status": {"status": "ERROR", "reason": "Video unavailable"}, "streams": []},
            "Video unavailable",
        ),
        (
            {
                "status": {"status": "UNPLAYABLE", "reason": "Not shown in your country"},
                "streams": [],
            },
            "Not shown in your country",
        ),
        ({"live": True}, "live"),
    ],
)
async def test_what_is_not_to_be_had_says_why(
    web: WebFetcher, server: WebServer, wrong: dict, reason: str
) -> None:
    youtube = YouTubePages(
        web, wrong.pop("streams", [stream(f"{server.url}/playback?x=1")]), **wrong
    )
    with pytest.raises(IngestFailed, match=reason) as refused:
        await YouTube(youtube).read(VIDEO)
    assert "github.com" not in refused.value.message and "--" not in refused.value.message


async def test_streams_in_a_private_network_are_not_reached(server: WebServer) -> None:
    guarded = WebFetcher()
    with pytest.raises(IngestFailed, match="private network"):
        await heard(YouTube(YouTubePages(guarded, [stream(f"{server.url}/playback?x=1")])))
    assert not server.requests


async def test_yt_dlp_itself_cannot_reach_a_private_network(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a page talks it into asking for goes through the guard."""
    monkeypatch.setattr(youtube_adapter, "_WATCH", f"{server.url}/watch")
    monkeypatch.setitem(youtube_adapter._OPTIONS, "allowed_extractors", ["generic"])
    with pytest.raises(IngestFailed, match="private network"):
        await YouTube(WebFetcher()).read(VIDEO)
    assert not server.requests


async def test_the_fetcher_sends_what_it_is_told_and_answers_with_any_status(
    web: WebFetcher, server: WebServer
) -> None:
    server.pages |= {"/refused": page("no", status=403, Set_Cookie="a=b"), "/empty": page("")}
    answer = await web.send(
        f"{server.url}/refused",
        OutgoingRequest(headers={"X-Own": "1", "Host": "evil.example"}),
        max_bytes=100,
    )
    assert (answer.status, answer.body, dict(answer.headers)["set-cookie"]) == (403, b"no", "a=b")
    assert (server.requests[0].headers["x-own"], server.requests[0].headers["host"]) == (
        "1",
        server.host,
    )
    assert (await web.send(f"{server.url}/empty", OutgoingRequest(), max_bytes=100)).body == b""
    with pytest.raises(IngestFailed, match="larger"):
        await web.send(f"{server.url}/gzip-bomb", OutgoingRequest(), max_bytes=10_000)
    with pytest.raises(IngestFailed, match="private network"):
        await web.send(f"{server.url}/redirect-to-metadata", OutgoingRequest(), max_bytes=100)
