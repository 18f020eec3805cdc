"""Captions of videos: the real yt-dlp on pages as YouTube serves them."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from commonplace.adapters.fetch.address_guard import parse_allowed
from commonplace.adapters.fetch.client import WebFetcher
from commonplace.adapters.youtube import YouTube
from commonplace.errors import IngestFailed
from commonplace.model import Chapter, Mark, Video
from tests.webserver import WebServer, page, web_server
from tests.youtube_pages import VIDEO, YouTubePages, stream, track

pytestmark = pytest.mark.anyio

EVENTS = {
    "events": [
        {"tStartMs": 0, "dDurationMs": 500, "id": 1},
        {
            "tStartMs": 1200,
            "dDurationMs": 2000,
            "segs": [{"utf8": "The heron"}, {"utf8": " stood"}],
        },
        {"tStartMs": 3100, "aAppend": 1, "segs": [{"utf8": "\n"}]},
        {"tStartMs": 3200, "dDurationMs": 1000, "segs": [{"utf8": "at the weir &amp; mill."}]},
        {"tStartMs": 4000, "dDurationMs": 900, "segs": [{"utf8": "[Music]"}]},
        {"tStartMs": 65000, "dDurationMs": 900, "segs": [{"utf8": "Then it left."}]},
    ]
}
TEXT = "The heron stood at the weir & mill.\n\nThen it left."


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server() as server:
        server.pages["/captions"] = page(json.dumps(EVENTS), "application/json")
        server.pages["/empty"] = page("", "application/json")
        server.pages["/sound"] = page(b"sound", "audio/webm")
        yield server


@pytest.fixture
def web(server: WebServer, tmp_path: Path) -> WebFetcher:
    return WebFetcher(allowed=parse_allowed(server.host), folder=tmp_path)


async def read(web: WebFetcher, url: str, *tracks: dict[str, Any], **pages: Any) -> Video:
    """What is read of a video with these tracks, and with sound."""
    pages = {"streams": [stream(f"{url}/sound?")], "tracks": list(tracks)} | pages
    return await YouTube(YouTubePages(web, **pages)).read(VIDEO)


async def test_captions_become_text_with_times(web: WebFetcher, server: WebServer) -> None:
    video = await read(web, server.url, track(f"{server.url}/captions"))
    found = video.found
    assert (found.title, found.author, found.language) == ("Herons at dawn", "River Paper", "en")
    assert (
        found.published_at
        and found.published_at.astimezone(UTC).date() == datetime(2024, 3, 2).date()
    )
    assert found.text == TEXT and video.has_captions and video.seconds == 12
    assert found.marks == (Mark(0, {"seconds": 1.2}), Mark(TEXT.index("Then"), {"seconds": 65.0}))
    [asked] = [parse_qs(urlsplit(each.path).query) for each in server.requests]
    assert asked["fmt"] == ["json3"]


async def test_the_description_and_chapters_are_kept(web: WebFetcher, server: WebServer) -> None:
    about = "A film about herons.\n\n0:00 At the weir\n0:05 At the mill\n0:08 Away\n\nBy the paper."
    events = {
        "events": [
            {"tStartMs": at * 1000, "dDurationMs": 900, "segs": [{"utf8": words}]}
            for at, words in ((0, "One."), (2, "Two."), (6, "Three."), (9, "Four."))
        ]
    }
    server.pages["/captions"] = page(json.dumps(events), "application/json")
    video = await read(web, server.url, track(f"{server.url}/captions"), description=about)
    assert video.found.text == (
        "A film about herons.\n\nBy the paper.\n\n"
        "## At the weir\n\nOne. Two.\n\n## At the mill\n\nThree.\n\n## Away\n\nFour."
    )
    assert video.chapters[1:] == (Chapter(5.0, "At the mill"), Chapter(8.0, "Away"))
    text = video.found.text
    assert [(text[mark.at :].split("\n")[0], mark.locator) for mark in video.found.marks] == [
        ("## At the weir", {"seconds": 0.0}),
        ("## At the mill", {"seconds": 6.0}),
        ("## Away", {"seconds": 9.0}),
    ]


@pytest.mark.parametrize(
    ("tracks", "chosen"),
    [
        ([("de", False), ("en", True), ("en-GB", False)], ("en-GB", False)),
        ([("de", False), ("en", True)], ("en", True)),
        ([("en", False), ("de", True)], ("de", True)),  # German spoken, English written
        ([("fr", False)], ("fr", False)),
        ([("fr", False), ("en", False)], ("en", False)),
    ],
)
async def test_the_best_track_is_asked_for(
    web: WebFetcher,
    server: WebServer,
    tracks: list[tuple[str, bool]],
    chosen: tuple[str, bool],
) -> None:
    listed = [track(f"{server.url}/captions", code, by_machine=made) for code, made in tracks]
    video = await read(web, server.url, *listed)
    [asked] = [parse_qs(urlsplit(each.path).query) for each in server.requests]
    assert (asked["lang"][0], "kind" in asked, "tlang" in asked) == (*chosen, False)
    assert video.found.language == chosen[0].partition("-")[0]


async def test_an_empty_track_is_refused_and_not_transcribed(
    web: WebFetcher, server: WebServer
) -> None:
    with pytest.raises(IngestFailed, match="does not give out the captions") as raised:
        await read(web, server.url, track(f"{server.url}/empty"))
    assert raised.value.transient
    german = track(f"{server.url}/captions", "de")
    video = await read(web, server.url, track(f"{server.url}/empty"), german)
    assert (video.found.language, video.found.text) == ("de", TEXT)


async def test_tracks_that_only_browsers_get_are_refused(
    web: WebFetcher, server: WebServer
) -> None:
    closed = track(f"{server.url}/empty")
    closed["baseUrl"] += "&exp=xpe"
    with pytest.raises(IngestFailed, match="does not give out the captions"):
        await read(web, server.url, closed)
    assert not server.requests


async def test_a_video_without_captions_is_to_be_heard(web: WebFetcher, server: WebServer) -> None:
    video = await read(web, server.url, description="A film about herons.")
    assert (video.has_captions, video.found.text) == (False, "A film about herons.")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"status": "ERROR", "reason": "Video unavailable"}, "Video unavailable"),
        ({"status": "UNPLAYABLE", "reason": "Not shown in your country"}, "your country"),
    ],
)
async def test_a_video_that_is_not_shown_says_why(
    web: WebFetcher, server: WebServer, status: dict[str, str], reason: str
) -> None:
    with pytest.raises(IngestFailed, match=reason):
        await read(web, server.url, streams=[], status=status)


@pytest.mark.parametrize("timed", ["{broken", "[1]", "<text>", '{"events": [5]}'])
async def test_broken_captions_say_so(web: WebFetcher, server: WebServer, timed: str) -> None:
    server.pages["/captions"] = page(timed, "application/json")
    with pytest.raises(IngestFailed, match="cannot be read"):
        await read(web, server.url, track(f"{server.url}/captions"))
