"""The fetcher: redirects, waits, caps and manners, over connections that the guard makes."""

import ssl
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
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
from commonplace.adapters.fetch.body_writer import BodyWriter
from commonplace.adapters.fetch.response_headers import (
    charset,
    conditional_headers,
    media_type,
    retry_after,
    status_error,
    translate_errors,
    validators,
)
from commonplace.adapters.fetch.retries import HostLimiter, TimeBudget
from commonplace.errors import IngestFailed
from commonplace.model import Fetched, Json

MAX_REDIRECTS = 8
REDIRECTS = (301, 302, 303, 307, 308)
BUSY = (429, 503)
NOT_MODIFIED = 304
AUDIO = (".mp3", ".m4a", ".wav", ".ogg", ".flac", ".aac")
RETRIES, LONGEST_WAIT = (
    2,
    5.0,
)  # what a server that is busy may ask of somebody who waits for the answer
HEADERS: dict[str | bytes, str | bytes] = {
    "User-Agent": f"Mozilla/5.0 (compatible; Commonplace/{__version__}; reads what its user asked to keep)",
    "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
    "Accept-Encoding": "gzip",
    "Connection": "close",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OutgoingRequest:
    """What is asked for besides the address."""

    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class Answer:
    """Whatever a server said, in memory."""

    status: int
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes


Take = Callable[[httpcore.Response, httpx.Headers, httpx.URL, TimeBudget], Awaitable[T | None]]


class WebFetcher:
    """`timeout` is how long servers may take until an answer begins, redirects included, and may pause within it."""

    def __init__(
        self,
        *,
        allowed: AllowedHosts | None = None,
        timeout: float = 20.0,
        resolver: Resolver = system_resolver,
        ssl_context: ssl.SSLContext | None = None,
        folder: Path | None = None,
    ) -> None:
        self._guard = AddressGuard(allowed or AllowedHosts(), resolver)
        self._timeout, self._folder = timeout, folder
        self._ssl = ssl_context or httpx.create_ssl_context(trust_env=False)
        self._ssl.set_alpn_protocols(["http/1.1"])
        self._turns = HostLimiter()

    @asynccontextmanager
    async def get(
        self,
        url: str,
        *,
        max_bytes: int,
        sample_bytes: int | None = None,
        known: Json | None = None,
    ) -> AsyncIterator[Fetched]:
        with _temporary_file(self._folder) as path:

            async def save(
                answer: httpcore.Response, headers: httpx.Headers, at: httpx.URL, budget: TimeBudget
            ) -> Fetched | None:
                if answer.status == NOT_MODIFIED and known:
                    return Fetched(
                        str(at), "", None, path, 0, known | validators(headers), unchanged=True
                    )
                if not 200 <= answer.status < 300:
                    return None
                return await self._save(answer, headers, at, path, max_bytes, sample_bytes, budget)

            yield await self._follow(
                parse_url(url), OutgoingRequest(headers=conditional_headers(known or {})), save
            )

    async def send(self, url: str, request: OutgoingRequest, *, max_bytes: int) -> Answer:
        """For libraries that speak some site's own protocol: any method, any status, through the same guard."""
        with _temporary_file(self._folder) as path:

            async def keep(
                answer: httpcore.Response, headers: httpx.Headers, at: httpx.URL, budget: TimeBudget
            ) -> Answer | None:
                if answer.status in REDIRECTS and "Location" in headers and request.method == "GET":
                    return None
                await self._pour(
                    answer,
                    BodyWriter(path, headers.get("Content-Encoding", ""), max_bytes, empty=True),
                    budget,
                )
                body = await anyio.Path(path).read_bytes()
                return Answer(answer.status, str(at), tuple(headers.multi_items()), body)

            return await self._follow(parse_url(url), request, keep)

    async def close(self) -> None:
        """Nothing is kept open between requests."""

    async def _follow(self, url: httpx.URL, request: OutgoingRequest, take: Take[T]) -> T:
        """What `take` makes of the first answer that it takes; redirects are followed, and those who are busy waited for."""
        budget, seen, retries = TimeBudget(self._timeout), [url], RETRIES
        while True:
            host = url.raw_host.decode("ascii")
            async with self._turns.take(host):
                with budget.running(), translate_errors(host, self._timeout):
                    async with self._ask(url, request) as answer:
                        headers = httpx.Headers(answer.headers)
                        if (taken := await take(answer, headers, url, budget)) is not None:
                            return taken
            if answer.status in REDIRECTS and "Location" in headers:
                url = _next(headers["Location"], seen)
                continue
            wait = retry_after(headers) if answer.status in BUSY else None
            if wait is None or wait > LONGEST_WAIT or not retries:
                raise status_error(answer.status, wait)
            retries -= 1
            await anyio.sleep(wait)

    @asynccontextmanager
    async def _ask(
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
            # No pool: it would look the name up by itself, and lose a place to each request that is cancelled.
            connection = httpcore.AsyncHTTP11Connection(origin=target.origin, stream=stream)
            timeouts = {"read": self._timeout, "write": self._timeout}
            async with connection.stream(
                request.method,
                target,
                headers=_headers(url, request),
                content=request.body,
                extensions={"timeout": timeouts},
            ) as answer:
                yield answer
        finally:
            with anyio.CancelScope(shield=True):
                await plain.aclose()

    async def _save(
        self,
        answer: httpcore.Response,
        headers: httpx.Headers,
        url: httpx.URL,
        path: Path,
        max_bytes: int,
        sample_bytes: int | None,
        budget: TimeBudget,
    ) -> Fetched:
        said = headers.get("Content-Type", "")
        enough = (
            sample_bytes
            if sample_bytes is not None and _is_recording(media_type(said), url)
            else None
        )
        sink = BodyWriter(path, headers.get("Content-Encoding", ""), max_bytes)
        if enough is None:
            sink.expect(headers.get("Content-Length"))
        await self._pour(answer, sink, budget, enough)
        return Fetched(
            str(url), media_type(said), charset(said), path, sink.size, validators(headers)
        )

    async def _pour(
        self,
        answer: httpcore.Response,
        sink: BodyWriter,
        budget: TimeBudget,
        enough: int | None = None,
    ) -> None:
        with sink:
            async for chunk in answer.aiter_stream():
                budget.earn(len(chunk))
                await anyio.to_thread.run_sync(sink.write, chunk)
                if enough is not None and sink.size >= enough:
                    return
            sink.finish()


def _headers(url: httpx.URL, request: OutgoingRequest) -> dict[str | bytes, str | bytes]:
    """Ours, unless the wish has others; the host and how the connection is used are nobody else's to say."""
    own = ("host", "accept-encoding", "connection", "content-length", "transfer-encoding")
    wished: dict[str | bytes, str | bytes] = {
        name.title(): value for name, value in request.headers.items() if name.lower() not in own
    }
    if request.body:
        wished["Content-Length"] = str(len(request.body))
    return HEADERS | wished | {"Host": url.netloc}


def _is_recording(said: str, url: httpx.URL) -> bool:
    vague = said in ("", "application/octet-stream", "binary/octet-stream")
    return said.startswith(("audio/", "video/")) or (vague and url.path.lower().endswith(AUDIO))


@contextmanager
def _temporary_file(folder: Path | None) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(prefix="commonplace-", dir=folder, delete=False) as file:
        path = Path(file.name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _next(location: str, seen: list[httpx.URL]) -> httpx.URL:
    url = parse_url(location, seen[-1])
    if url in seen:
        circle = " -> ".join(map(str, [*seen[seen.index(url) :], url]))
        raise IngestFailed(f"The address redirects in a circle: {circle}")
    if len(seen) > MAX_REDIRECTS:
        raise IngestFailed(f"The address redirects more than {MAX_REDIRECTS} times.")
    seen.append(url)
    return url
