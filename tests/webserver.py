"""A web server on this machine that can be told to misbehave in every way that real ones do."""

import gzip
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.client import parse_headers
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer
from threading import Event, Thread

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Request:
    path: str
    headers: dict[str, str]  # names in lower case


@dataclass(frozen=True)
class Wire:
    """The server's end of one connection, after the request was read."""

    request: Request
    sock: socket.socket
    closing: Event

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)

    def drip(self, data: bytes, seconds: float) -> None:
        """A byte now and then, until the client leaves or the server closes."""
        for byte in data:
            if self.closing.wait(seconds):
                return
            self.send(bytes([byte]))

    def hang(self) -> None:
        self.closing.wait()


Behaviour = Callable[[Wire], None]


def page(
    body: bytes | str,
    content_type: str | None = "text/html; charset=utf-8",
    status: int = 200,
    **headers: str,
) -> Behaviour:
    """An ordinary answer. `Retry_After="3"` becomes the header Retry-After."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(data)}"]
    lines += [f"Content-Type: {content_type}"] if content_type is not None else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return raw("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + data)


def redirect(to: str, status: int = 302) -> Behaviour:
    return page("moved", status=status, Location=to)


def raw(data: bytes) -> Behaviour:
    return lambda wire: wire.send(data)


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """One for each request; the last for all that follow."""
    left = list(behaviours)
    return lambda wire: (left.pop(0) if len(left) > 1 else left[0])(wire)


def _endless_body(wire: Wire) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    while not wire.closing.is_set():
        wire.send(b"more and more " * 4096)


def _endless_hints(wire: Wire) -> None:
    while not wire.closing.is_set():
        wire.send(b"HTTP/1.1 103 Early Hints\r\n\r\n")


def _endless_headers(wire: Wire) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\n")
    while not wire.closing.is_set():
        wire.send(b"X-More: and more\r\n" * 1000)


def _endless_redirects(wire: Wire) -> None:
    redirect(f"/endless-redirects?{len(wire.request.path)}{wire.request.path[-20:]}x")(wire)


def _slow_redirects(wire: Wire) -> None:
    if not wire.closing.wait(0.4):
        redirect(f"{wire.request.path}?"[:50] + "x")(wire)


def _endless_nothing(wire: Wire) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
    while not wire.closing.is_set():
        wire.send(gzip.compress(b"") * 1000)


def _stalled_body(wire: Wire) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of it")
    wire.hang()


def _slow_body(wire: Wire) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    wire.drip(b"." * 100_000, 0.02)


def _reset(wire: Wire) -> None:
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of it")
    wire.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.sock.close()


_BOMB = gzip.compress(bytes(64 << 20))
_CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

# Path -> what it does instead of giving a page. A client gets none of these to the end.
NASTY: dict[str, Behaviour] = {
    "/not-found": page("no", status=404),
    "/gone": page("no", status=410),
    "/out-of-order": page("no", status=500),
    "/unknown-status": page("no", status=799),
    "/not-modified": page("", status=304),
    "/redirect-to-nowhere": page("", status=302),
    "/redirect-to-itself": redirect("/redirect-to-itself"),
    "/circle": redirect("/circle/2"),
    "/circle/2": redirect("/circle/3"),
    "/circle/3": redirect("/circle#top"),
    "/endless-redirects": _endless_redirects,
    "/slow-redirects": _slow_redirects,
    "/redirect-to-loopback": redirect("http://127.0.0.1:1/"),
    "/redirect-to-metadata": redirect("http://169.254.169.254/latest/meta-data/"),
    "/redirect-to-mapped": redirect("//[::ffff:10.0.0.1]/"),
    "/redirect-to-decimal": redirect("http://2130706433:1/", 307),
    "/redirect-to-file": redirect("file:///etc/passwd", 301),
    "/redirect-to-ftp": redirect("ftp://example.com/", 308),
    "/redirect-to-data": redirect("data:text/html,hello", 303),
    "/redirect-to-password": redirect("http://user:password@example.com/"),
    "/redirect-to-rubbish": redirect("http://[half/"),
    "/silent": Wire.hang,
    "/slow-headers": lambda wire: wire.drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"." * 100_000, 0.02),
    "/slow-body": _slow_body,
    "/stalled-body": _stalled_body,
    "/endless-body": _endless_body,
    "/endless-nothing": _endless_nothing,
    "/endless-hints": _endless_hints,
    "/endless-headers": _endless_headers,
    "/huge-header": raw(b"HTTP/1.1 200 OK\r\nX-Huge: " + b"." * 1_000_000 + b"\r\n\r\n"),
    "/announces-too-much": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n"),
    "/gzip-bomb": page(_BOMB, Content_Encoding="gzip"),
    "/gzip-bomb-twice": page(gzip.compress(_BOMB), Content_Encoding="gzip, gzip"),
    "/gzip-cut": page(gzip.compress(b"hello " * 100)[:-12], Content_Encoding="gzip"),
    "/gzip-damaged": page(b"this is not gzip", Content_Encoding="gzip"),
    "/brotli": page(b"\x0b\x02\x80hello\x03", Content_Encoding="br"),
    "/zstd": page(b"\x28\xb5\x2f\xfd", Content_Encoding="zstd"),
    "/empty": page(b""),
    "/no-content": raw(b"HTTP/1.1 204 No Content\r\n\r\n"),
    "/truncated": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhalf of it"),
    "/truncated-chunks": raw(_CHUNKED + b"5\r\nhello\r\n"),
    "/bad-chunks": raw(_CHUNKED + b"five\r\nhello\r\n0\r\n\r\n"),
    "/two-lengths": raw(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    "/reset": _reset,
    "/hangs-up": lambda wire: None,
    "/not-http": raw(b"SSH-2.0-OpenSSH_9.9\r\n"),
}


@dataclass
class WebServer:
    host: str = ""  # with the port, as in an address
    scheme: str = "http"
    pages: dict[str, Behaviour] = field(
        default_factory=lambda: dict(NASTY)
    )  # by path, without the query
    requests: list[Request] = field(default_factory=list)
    closing: Event = field(default_factory=Event)

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}"

    @property
    def port(self) -> int:
        return int(self.host.rpartition(":")[2])

    def answer(self, wire: Wire) -> None:
        self.requests.append(wire.request)
        self.pages.get(wire.request.path.partition("?")[0], NASTY["/not-found"])(wire)


def _handler(server: WebServer) -> type[StreamRequestHandler]:
    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):  # the client left
                if self.rfile.peek(1)[:1] != b"G":
                    self.request.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    return
                path = self.rfile.readline().decode("latin-1").split(" ")[1]
                headers = {name.lower(): value for name, value in parse_headers(self.rfile).items()}
                server.answer(Wire(Request(path, headers), self.request, server.closing))

    return Handler


class _Sockets(ThreadingTCPServer):
    request_queue_size = 128
    allow_reuse_address = True


@contextmanager
def web_server(tls: ssl.SSLContext | None = None) -> Iterator[WebServer]:
    server = WebServer(scheme="https" if tls else "http")
    sockets = _Sockets(("127.0.0.1", 0), _handler(server))
    server.host = f"127.0.0.1:{sockets.server_address[1]}"
    if tls:
        sockets.socket = tls.wrap_socket(
            sockets.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = Thread(target=sockets.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.closing.set()
        sockets.shutdown()
        thread.join()
        sockets.server_close()


def certificate_for(name: str, folder: Path) -> ssl.SSLContext:
    """Signed by itself, and kept with its key in `server.pem` of the folder."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "server.pem"
    pem.write_bytes(
        certificate.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    return context
