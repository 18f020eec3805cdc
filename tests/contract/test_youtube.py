"""Captions, out of pages and tracks as YouTube serves them."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import parse_qs, urlsplit

import pytest

from commonplace.adapters.youtube import YouTubeCaptions
from commonplace.errors import IngestFailed
from commonplace.model import Fetched, Mark

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
OLD_XML = (
    '<?xml version="1.0"?><transcript><text start="1.2" dur="2">The heron stood</text>'
    '<text start="3.2" dur="1">at the weir &amp;amp; mill.</text><text start="65" dur="1">Then it left.</text></transcript>'
)
NEW_XML = (
    '<timedtext format="3"><body><p t="1200" d="2000"><s>The heron</s><s t="400"> stood</s></p>'
    '<p t="3200" d="1000">at the weir &amp;amp; mill.</p><p t="65000" d="900">Then it left.</p></body></timedtext>'
)


def track(language: str, kind: str | None = None) -> dict:
    return {
        "baseUrl": f"/api/timedtext?v=abc&lang={language}&kind={kind or ''}",
        "languageCode": language,
    } | ({"kind": kind} if kind else {})


def watch(tracks: list[dict], **status: str) -> str:
    player = {
        "playabilityStatus": status or {"status": "OK"},
        "videoDetails": {"videoId": "abc", "title": "Herons; {live} </b>", "author": "River Paper"},
        "microformat": {"playerMicroformatRenderer": {"publishDate": "2024-03-02T00:00:00-08:00"}},
        "captions": {"playerCaptionsTracklistRenderer": {"captionTracks": tracks}}
        if tracks
        else {},
    }
    return f"<html><script>var ytInitialPlayerResponse = {json.dumps(player)};var meta = 1;</script></html>"


@pytest.fixture
def captions(tmp_path: Path) -> Callable[..., YouTubeCaptions]:
    def serve(page: str, timed: str = "", languages: tuple[str, ...] = ("en",)) -> YouTubeCaptions:
        @asynccontextmanager
        async def get(url: str, *, max_bytes: int) -> AsyncIterator[Fetched]:
            asked = urlsplit(url)
            asked_for.append(asked)
            path = tmp_path / "answer"
            path.write_text(page if asked.path == "/watch" else timed)
            yield Fetched(url, "text/html", "utf-8", path, path.stat().st_size)

        return YouTubeCaptions(SimpleNamespace(get=get), languages)

    asked_for: list = []
    serve.asked_for = asked_for
    return serve


@pytest.mark.parametrize(
    "timed", [json.dumps(EVENTS), OLD_XML, NEW_XML], ids=["json3", "xml", "srv3"]
)
async def test_captions_become_text_with_times(captions, timed) -> None:
    found = await captions(watch([track("en")]), timed).fetch("abc")
    assert (found.title, found.author, found.language) == (
        "Herons; {live} </b>",
        "River Paper",
        "en",
    )
    assert found.published_at.astimezone(UTC) == datetime(2024, 3, 2, 8, tzinfo=UTC)
    assert found.text == TEXT
    assert found.marks == (Mark(0, {"seconds": 1.2}), Mark(TEXT.index("Then"), {"seconds": 65.0}))


@pytest.mark.parametrize(
    ("tracks", "languages", "chosen"),
    [
        ([track("de"), track("en", "asr"), track("en-GB")], ("en",), ("en-GB", "")),
        ([track("de"), track("en", "asr")], ("en",), ("en", "asr")),
        ([track("fr", "asr"), track("de")], ("en",), ("de", "")),
        ([track("en"), track("de", "asr")], ("de", "en"), ("de", "asr")),
    ],
)
async def test_the_best_track_is_asked_for_as_json(captions, tracks, languages, chosen) -> None:
    await captions(watch(tracks), json.dumps(EVENTS), languages).fetch("abc")
    page, timed = captions.asked_for
    assert (page.hostname, parse_qs(page.query)["v"]) == ("www.youtube.com", ["abc"])
    query = parse_qs(timed.query, keep_blank_values=True)
    assert (query["lang"][0], query["kind"][0], query["fmt"]) == (*chosen, ["json3"])


@pytest.mark.parametrize(
    ("tracks", "timed"), [([], ""), ([track("en")], ""), ([track("en")], '{"events": []}')]
)
async def test_no_captions_is_no_failure(captions, tracks, timed) -> None:
    assert await captions(watch(tracks), timed).fetch("abc") is None


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        (watch([], status="ERROR", reason="Video unavailable"), "Video unavailable"),
        (
            watch([], status="LOGIN_REQUIRED", reason="Sign in to confirm your age"),
            "confirm your age",
        ),
        ("<html>Before you continue to YouTube</html>", "consent"),
        ("ytInitialPlayerResponse = {broken", "consent"),
    ],
)
async def test_a_video_that_is_not_shown_says_why(captions, page, reason) -> None:
    with pytest.raises(IngestFailed, match=reason):
        await captions(page).fetch("abc")


@pytest.mark.parametrize("timed", ["{broken", "[1]", '<text start="x">a</text>', '{"events": [5]}'])
async def test_broken_captions_say_so(captions, timed) -> None:
    with pytest.raises(IngestFailed, match="cannot be read"):
        await captions(watch([track("en")]), timed).fetch("abc")
