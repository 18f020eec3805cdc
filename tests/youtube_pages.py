"""What YouTube answers, as far as yt-dlp asks: the page of one video and its player, with streams wherever a test has them."""

import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from commonplace.adapters.fetch.client import Answer, OutgoingRequest, WebFetcher

VIDEO = "abcdefghijk"


_OWNER = {
    "contents": {
        "twoColumnWatchNextResults": {
            "results": {
                "results": {
                    "contents": [
                        {
                            "videoSecondaryInfoRenderer": {
                                "owner": {
                                    "videoOwnerRenderer": {
                                        "title": {"runs": [{"text": "River Paper"}]},
                                    }
                                }
                            }
                        }
                    ]
                }
            }
        }
    }
}


def stream(
    url: str, *, itag: int = 249, kbits: int = 50, size: int | None = None
) -> dict[str, Any]:
    return {
        "itag": itag,
        "url": url,
        "mimeType": 'audio/webm; codecs="opus"',
        "bitrate": kbits * 1000,
        "averageBitrate": kbits * 1000,
        "approxDurationMs": "12000",
        "audioSampleRate": "48000",
        **({"contentLength": str(size)} if size is not None else {}),
    }


def track(url: str, language: str = "en", *, by_machine: bool = False) -> dict[str, Any]:
    """A track of captions, which is served at an address."""
    return {
        "baseUrl": f"{url}?v={VIDEO}&lang={language}{'&kind=asr' if by_machine else ''}",
        "name": {"simpleText": language},
        "vssId": f"{'a' if by_machine else ''}.{language}",
        "languageCode": language,
        "isTranslatable": True,
        **({"kind": "asr"} if by_machine else {}),
    }


@dataclass
class YouTubePages:
    """Pages come from here, streams from the web; `asked` are the addresses of pages that were asked for."""

    web: WebFetcher
    streams: list[dict[str, Any]]
    status: dict[str, Any] = field(default_factory=lambda: {"status": "OK"})
    live: bool = False
    tracks: list[dict[str, Any]] = field(default_factory=list)
    description: str = ""
    asked: list[str] = field(default_factory=list)
    wishes: list[OutgoingRequest] = field(default_factory=list)

    @property
    def get(self) -> Any:
        return self.web.get

    async def send(self, url: str, wish: OutgoingRequest, *, max_bytes: int) -> Answer:
        self.asked.append(url)
        self.wishes.append(wish)
        parts = urlsplit(url)
        if parts.hostname != "www.youtube.com":
            return await self.web.send(url, wish, max_bytes=max_bytes)
        player = json.dumps(self._player())
        body = (
            f"<html><script>var ytInitialPlayerResponse = {player};</script>"
            f"<script>var ytInitialData = {json.dumps(_OWNER)};</script></html>"
            if parts.path == "/watch"
            else player
        )
        return Answer(
            200,
            url,
            (
                ("content-type", "text/html"),
                ("set-cookie", "VISITOR=1; Domain=.youtube.com; Path=/"),
                ("set-cookie", "YSC=2; Domain=.youtube.com; Path=/"),
            ),
            body.encode(),
        )

    def _player(self) -> dict[str, Any]:
        details = {
            "videoId": VIDEO,
            "title": "Herons at dawn",
            "lengthSeconds": "12",
            "author": "River Paper",
            "shortDescription": self.description,
            "channelId": "UCx",
            **({"isLive": True, "isLiveContent": True} if self.live else {}),
        }
        return {
            "playabilityStatus": self.status,
            "videoDetails": details,
            "microformat": {
                "playerMicroformatRenderer": {
                    "lengthSeconds": "12",
                    "uploadDate": "2024-03-02T00:00:00-08:00",
                }
            },
            "streamingData": {"expiresInSeconds": "21540", "adaptiveFormats": self.streams},
            "captions": {
                "playerCaptionsTracklistRenderer": {
                    "captionTracks": self.tracks,
                    "translationLanguages": [
                        {"languageCode": code, "languageName": {"simpleText": code}}
                        for code in ("de", "en", "fr")
                    ],
                }
            },
        }
