"""Limits on HTTP connections: how many there are, how large and slow requests may be."""

import asyncio
import logging
import sys
from collections import Counter
from functools import partial
from ipaddress import ip_address, ip_network
from types import SimpleNamespace
from typing import Any

import orjson
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)

from commonplace.interfaces.http.gate import network_of
from commonplace.settings import Settings

log = logging.getLogger(__name__)

MAX_HEADER_BYTES, MAX_HEADER_LINES = 64 * 1024, 100
HEADER_SECONDS = 10.0
IDLE_SECONDS = 5  # between two requests on one connection
BODY_BYTES_PER_SECOND = 1024
BODY_GRACE_SECONDS = 20.0  # what a body may lag behind that rate at first
BODY_STALL_SECONDS = 60.0  # and after it was fast for a while
UNREAD_SECONDS = 120.0  # in which a client takes nothing of its answer
LINGER_SECONDS, LINGER_BYTES = 2.0, 256 * 1024
MAX_PER_ADDRESS = 200
PROBES, MAX_PROBES, PROBE_SECONDS = (
    (b"/healthz", b"/readyz"),
    16,
    2.0,
)  # answered although there is no room
SPARE_FILES = 512  # open files besides connections: database, models, fetches
CROWDED = 503, "too_many_connections", "Too many connections are open. Try again later."


class Admission:
    """Counts the open connections of one server, all of them and by client network."""

    def __init__(self, settings: Settings) -> None:
        self._most = settings.max_connections
        self._proxies = [ip_network(each) for each in settings.proxies]
        self._open: Counter[str] = Counter()
        # connections that may only ask for PROBES, the oldest first
        self.probes: list[LimitedProtocol] = []
        self._warn_at = 0.0

    def admit(self, address: str, now: float) -> str | None:
        """Count a new connection; None when there are too many. The answer goes to `release`."""
        network = "" if self._is_proxy(address) else network_of(address)
        crowded = bool(network) and self._open[network] >= MAX_PER_ADDRESS
        if self._most and (crowded or self._open.total() >= self._most):
            if now >= self._warn_at:
                log.warning(
                    "Refused a connection from %s: %d are open, %d of them from there",
                    address,
                    self._open.total(),
                    self._open[network],
                )
                self._warn_at = now + 60
            return None
        self._open[network] += 1
        return network

    def release(self, network: str) -> None:
        self._open[network] -= 1
        if not self._open[network]:
            del self._open[network]

    def _is_proxy(self, address: str) -> bool:
        try:
            ip = ip_address(address.partition("%")[0])
        except ValueError:  # a Unix socket
            return True
        return any(ip in network for network in self._proxies)


class LimitedProtocol(HttpToolsProtocol):
    """One connection, with limits on its size and speed.

    Bytes are counted before the parser sees them: it joins the pieces of one header line, which
    takes quadratic time.
    """

    def __init__(self, admission: Admission, **options: Any) -> None:
        super().__init__(**options)
        self._admission = admission
        # None: there is no room for it, but an orchestrator must not take the server for dead
        self._network: str | None = None
        self._refusal: tuple[int, str, str] | None = None  # what to answer when the parser gives up
        self._running: RequestResponseCycle | None = None
        self._lingering = False
        self._drained = 0
        # of the message that is being read
        self._in_body = False
        self._advanced = False  # whether headers ended, or a piece of a body came
        self._pending = 0  # bytes since that was so
        self._lines = 0
        self._since = self.loop.time()
        self._credit = self._credit_at = 0.0
        self._keep_alive = False
        # of the answer
        self._unsent, self._sent_at = 0, 0.0

    # -- the connection

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._network = self._admission.admit(
            self.client[0] if self.client else "", self.loop.time()
        )
        if self._network is None:
            self._admission.probes.append(self)
            if len(self._admission.probes) > MAX_PROBES:
                self._admission.probes.pop(0).turn_away()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._network is not None:
            self._admission.release(self._network)
        if self in self._admission.probes:
            self._admission.probes.remove(self)
        self._disconnect()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        while data and not self._lingering and not self.transport.is_closing():
            room = MAX_HEADER_BYTES - self._pending
            piece, data, self._advanced = data[:room], data[room:], False
            super().data_received(piece)
            self._pending = 0 if self._advanced else self._pending + len(piece)
            if self._pending >= MAX_HEADER_BYTES:
                self._refuse(
                    431, "headers_too_large", f"Headers may have {MAX_HEADER_BYTES:,} bytes."
                )
        self._drained += len(data)
        if self._drained > LINGER_BYTES:
            self.flow.pause_reading()

    def check(self, now: float) -> None:
        """Enforce the limits on time; called once a second."""
        unsent = self.transport.get_write_buffer_size()
        if not unsent or unsent != self._unsent:
            self._unsent, self._sent_at = unsent, now
        elif now - self._sent_at > UNREAD_SECONDS:
            self.transport.abort()
        if self._lingering or self.transport.is_closing():
            return
        if self._in_body:
            # The clock stands while it is the server that keeps the client waiting.
            if not self.flow.read_paused and not self.cycle.waiting_for_100_continue:
                self._credit -= now - self._credit_at
            self._credit_at = now
            if self._credit < 0:
                self._refuse(
                    408,
                    "request_timeout",
                    "The body came too slowly. Send it again over a faster connection.",
                )
        elif not self._is_busy() and now - self._since > (
            PROBE_SECONDS if self._network is None else HEADER_SECONDS
        ):
            if self._pending:
                self._refuse(408, "request_timeout", f"Headers may take {HEADER_SECONDS:.0f} s.")
            else:
                self.transport.close()

    # -- what the parser reports

    def on_message_begin(self) -> None:
        self._since, self._lines = self.loop.time(), 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        self._lines += 1
        if self._lines > MAX_HEADER_LINES:
            self._give_up(
                431, "headers_too_large", f"A request may have {MAX_HEADER_LINES} header lines."
            )
        if not self._in_body:  # trailers must not pass for headers
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        upgrades = self.parser.should_upgrade()
        if upgrades and any(
            name in (b"content-length", b"transfer-encoding") for name, _ in self.headers
        ):
            # The parser would take the body for the new protocol's, and drop it.
            self._give_up(
                400,
                "bad_request",
                "Upgrades are not supported. Send the request without `Upgrade`.",
            )
        if self._network is None and self.url not in PROBES:
            self._give_up(*CROWDED)
        self._advanced = self._in_body = True
        self._credit, self._credit_at = BODY_GRACE_SECONDS, self.loop.time()
        super().on_headers_complete()
        # An answer that comes before the whole body ends the connection: the rest is not read.
        self._keep_alive = self.cycle.keep_alive and not upgrades and self._network is not None
        self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        self._advanced = True
        self._credit = min(BODY_STALL_SECONDS, self._credit + len(body) / BODY_BYTES_PER_SECOND)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._advanced, self._in_body = True, False
        if not self.cycle.response_started:
            self.cycle.keep_alive = self._keep_alive
        super().on_message_complete()

    def on_response_complete(self) -> None:
        self._since = self.loop.time()
        if not self._lingering:
            super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(*(self._refusal or (400, "bad_request", msg)))

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the request is answered as an ordinary one, then the connection ends."""

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._running = cycle
        cycle.transport = SimpleNamespace(  # type: ignore[assignment]
            write=self.transport.write, is_closing=self.transport.is_closing, close=self._close
        )
        super()._start_asgi_task(cycle, app)

    # -- ending it

    def _is_busy(self) -> bool:
        return self._running is not None and not self._running.response_complete

    def _give_up(self, *refusal: Any) -> None:
        self._refusal = refusal
        raise ValueError(refusal)

    def turn_away(self) -> None:
        """Close at once: there are newer connections that there is no room for either."""
        if not self._is_busy() and not self._lingering:
            self._write(*CROWDED)
        self.transport.close()

    def _refuse(self, status: int, code: str, message: str) -> None:
        if self._lingering:
            return
        begun = self._is_busy() and self._running is not None and self._running.response_started
        self._disconnect()
        if not begun:
            self._write(status, code, message)
        self._linger()

    def _write(self, status: int, code: str, message: str) -> None:
        body = orjson.dumps({"error": code, "message": message})
        self.transport.write(
            STATUS_LINE[status] + b"content-type: application/json\r\nconnection: close\r\n"
            b"content-length: %d\r\n\r\n%s" % (len(body), body)
        )

    def _disconnect(self) -> None:
        """Tell the application that nobody listens any more."""
        self.pipeline.clear()
        if self._running is not None and self._is_busy():
            self._running.disconnected = True
            self._running.message_event.set()
            self.flow.resume_writing()

    def _close(self) -> None:
        if self._in_body:
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        """Close with a delay: a client that is still sending would never see its answer."""
        if self._lingering or self.transport.is_closing():
            return
        self._lingering = True
        self._unset_keepalive_if_required()
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self.loop.call_later(LINGER_SECONDS, self.transport.abort)


class LimitedServer(uvicorn.Server):
    """Serves HTTP within the limits above and those of the settings."""

    def __init__(self, app: ASGIApp, settings: Settings, **options: Any) -> None:
        protocol: Any = partial(LimitedProtocol, Admission(settings))
        logging.getLogger("uvicorn.error").addFilter(_is_not_about_a_refusal)
        super().__init__(
            uvicorn.Config(
                app,
                http=protocol,
                ws="none",
                log_config=None,
                access_log=False,
                lifespan="on",
                proxy_headers=False,
                server_header=False,
                timeout_keep_alive=IDLE_SECONDS,
                **options,
            )
        )
        if settings.max_connections and sys.platform != "win32":
            _allow_open_files(settings.max_connections + SPARE_FILES)

    async def on_tick(self, counter: int) -> bool:
        if counter % 10 == 0:
            now = asyncio.get_running_loop().time()
            for connection in list(self.server_state.connections):
                if isinstance(connection, LimitedProtocol):
                    connection.check(now)
        return await super().on_tick(counter)


def _is_not_about_a_refusal(record: logging.LogRecord) -> bool:
    """Drop the line that uvicorn logs for each refused request: senders could fill the disk."""
    return record.msg != "Invalid HTTP request received."


def _allow_open_files(count: int) -> None:
    """Raise the soft limit, often 1,024: when it is used up, nobody can connect."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < count:
        wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
