"""The fetcher: redirects, retries, timeouts and size limits over guarded connections."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeVar

import anyio
import anyio.to_thread
import httpcore
import httpx

from commonplace import __version__
from commonplace.adapters.fetch.address_guard import (
    AddressGuard,
    AllowedHosts,
    Resolver,
    parse_url,
    system_resolver,
)
from commonplace.adapters.fetch.limits import BodyWriter, HostLimiter, TimeBudget
from commonplace.adapters.fetch.response_headers import (
    charset,
    conditional_headers,
    max_age,
    media_type,
    retry_after,
    status_error,
    translate_errors,
    validators,
)
from commonplace.errors import IngestFailed
from commonplace.model import Fetched, Json

ANSWER_SECONDS = 20.0
MAX_REDIRECTS = 8
REDIRECTS = (301, 302, 303, 307, 308)
BUSY = (429, 503)
NOT_MODIFIED = 304
AUDIO = (".mp3", ".m4a", ".wav", ".ogg", ".flac", ".aac")
RETRIES, LONGEST_WAIT = 2, 5.0  # of a busy server, while somebody waits for the answer
AGENT = "Commonplace"  # by which robots.txt knows it
HEADERS: dict[str | bytes, str | bytes] = {
    "User-Agent": (
        f"Mozilla/5.0 (compatible; {AGENT}/{__version__}; reads what its user asked to keep)"
    ),
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}
# Headers that no caller may set.
_RESERVED = ("host", "accept-encoding", "connection", "content-length", "transfer-encoding")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """Method, headers and body of a request."""

    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response of any status, in memory."""

    status: int
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


# Takes a response, or returns None to have it followed, retried or refused.
Handler = Callable[[httpcore.Response, httpx.Headers, httpx.URL, TimeBudget], Awaitable[T | None]]


class WebFetcher:
    """Fetch from public addresses, and from `allowed` hosts elsewhere.

    `timeout`: seconds until a response must begin, redirects included, and between its parts.
    """

    def __init__(
        self,
        *,
        allowed: AllowedHosts = frozenset(),
        timeout: float = ANSWER_SECONDS,
        resolver: Resolver = system_resolver,
        ssl_context: ssl.SSLContext | None = None,
        folder: Path | None = None,
    ) -> None:
        self._guard = AddressGuard(allowed, resolver)
        self._timeout, self._folder = timeout, folder
        self._ssl = ssl_context or httpx.create_ssl_context(trust_env=False)
        self._ssl.set_alpn_protocols(["http/1.1"])
        self._limiter = HostLimiter()

    @asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        max_bytes: int,
        sample_bytes: int | None = None,
        known: Json | None = None,
        redirects: bool = True,
    ) -> AsyncIterator[Fetched]:
        with TemporaryDirectory(prefix="commonplace-", dir=self._folder) as folder:
            path = Path(folder) / "body"

            async def save(
                answer: httpcore.Response, headers: httpx.Headers, at: httpx.URL, budget: TimeBudget
            ) -> Fetched | None:
                if answer.status == NOT_MODIFIED and known:
                    return Fetched(
                        str(at), "", None, path, 0, known | validators(headers), unchanged=True
                    )
                if answer.status in REDIRECTS and not redirects:
                    raise IngestFailed(
                        "The URL redirects, which is not allowed here.",
                        location=str(_redirect(headers.get("Location", ""), [at])),
                    )
                if not 200 <= answer.status < 300:
                    return None
                declared = headers.get("Content-Type", "")
                kind = media_type(declared)
                enough = sample_bytes if _is_recording(kind, at) else None
                with path.open("wb") as file:
                    writer = BodyWriter(
                        file, headers.get("Content-Encoding", ""), max_bytes, empty=False
                    )
                    if enough is None:
                        writer.check_length(headers.get("Content-Length"))
                    await _write_body(answer, writer, budget, enough)
                return Fetched(
                    str(at),
                    kind,
                    charset(declared),
                    path,
                    writer.size,
                    validators(headers),
                    max_age(headers),
                    headers.get("X-Robots-Tag", ""),
                )

            yield await self._follow(
                parse_url(url), OutgoingRequest(headers=conditional_headers(known or {})), save
            )

    async def send(self, url: str, request: OutgoingRequest, *, max_bytes: int) -> Answer:
        """Send any request and return any response, through the same guard.

        For libraries that speak the protocol of a certain site.
        """

        async def load(
            answer: httpcore.Response, headers: httpx.Headers, at: httpx.URL, budget: TimeBudget
        ) -> Answer | None:
            if answer.status in REDIRECTS and "Location" in headers and request.method == "GET":
                return None
            body = BytesIO()
            await _write_body(
                answer,
                BodyWriter(body, headers.get("Content-Encoding", ""), max_bytes, empty=True),
                budget,
                None,
            )
            return Answer(answer.status, str(at), tuple(headers.multi_items()), body.getvalue())

        return await self._follow(parse_url(url), request, load)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> int:
        async def status(
            answer: httpcore.Response, headers: httpx.Headers, at: httpx.URL, budget: TimeBudget
        ) -> int:
            return answer.status

        return await self._follow(parse_url(url), OutgoingRequest("POST", headers, body), status)

    async def check(self, url: str) -> None:
        parsed = parse_url(url)
        port = parsed.port or (443 if parsed.scheme == "https" else 80)
        await self._guard.check(parsed.raw_host.decode("ascii"), port)

    async def close(self) -> None:
        """Do nothing: no connection outlives its request."""

    async def _follow(self, url: httpx.URL, request: OutgoingRequest, handle: Handler[T]) -> T:
        """Follow redirects and wait for busy servers until `handle` takes a response."""
        budget, seen, retries = TimeBudget(self._timeout), [url], RETRIES
        while True:
            host = url.raw_host.decode("ascii")
            async with self._limiter.acquire(host):
                with budget.running(), translate_errors(host, self._timeout):
                    async with self._request(url, request) as answer:
                        headers = httpx.Headers(answer.headers)
                        if (taken := await handle(answer, headers, url, budget)) is not None:
                            return taken
            if answer.status in REDIRECTS and "Location" in headers:
                url = _redirect(headers["Location"], seen)
                continue
            wait = retry_after(headers) if answer.status in BUSY else None
            if wait is None or wait > LONGEST_WAIT or not retries:
                raise status_error(answer.status, wait)
            retries -= 1
            await anyio.sleep(wait)

    @asynccontextmanager
    async def _request(
        self, url: httpx.URL, request: OutgoingRequest
    ) -> AsyncIterator[httpcore.Response]:
        host, secure = url.raw_host.decode("ascii"), url.scheme == "https"
        port = url.port or (443 if secure else 80)  # 0 was refused
        target = httpcore.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=port, target=url.raw_path
        )
        plain = await self._guard.connect(host, port, self._timeout)
        try:
            stream = await plain.start_tls(self._ssl, host, self._timeout) if secure else plain
            # No pool: it would resolve the host itself, and leak a slot per cancelled request.
            connection = httpcore.AsyncHTTP11Connection(origin=target.origin, stream=stream)
            async with connection.stream(
                request.method,
                target,
                headers=_headers(url, request),
                content=request.body,
                extensions={"timeout": {"read": self._timeout, "write": self._timeout}},
            ) as answer:
                yield answer
        finally:
            with anyio.CancelScope(shield=True):
                await plain.aclose()


async def _write_body(
    answer: httpcore.Response, writer: BodyWriter, budget: TimeBudget, enough: int | None
) -> None:
    """Write the body, or its first `enough` bytes."""
    async for chunk in answer.aiter_stream():
        budget.extend(len(chunk))
        await anyio.to_thread.run_sync(writer.write, chunk)
        if enough is not None and writer.size >= enough:
            return
    writer.finish()


def _headers(url: httpx.URL, request: OutgoingRequest) -> dict[str | bytes, str | bytes]:
    """Combine our headers with the request's, which take precedence unless reserved."""
    own: dict[str | bytes, str | bytes] = {
        name.title(): value
        for name, value in request.headers.items()
        if name.lower() not in _RESERVED
    }
    if request.body:
        own["Content-Length"] = str(len(request.body))
    return HEADERS | own | {"Host": url.netloc}


def _is_recording(kind: str, url: httpx.URL) -> bool:
    is_vague = kind in ("", "application/octet-stream", "binary/octet-stream")
    return url.path.lower().endswith(AUDIO) if is_vague else kind.startswith(("audio/", "video/"))


def _redirect(location: str, seen: list[httpx.URL]) -> httpx.URL:
    url = parse_url(location, seen[-1])
    if url in seen:
        circle = " -> ".join(map(str, [*seen[seen.index(url) :], url]))
        raise IngestFailed(f"The URL redirects in a circle: {circle}")
    if len(seen) > MAX_REDIRECTS:
        raise IngestFailed(f"The URL redirects more than {MAX_REDIRECTS} times.")
    seen.append(url)
    return url
