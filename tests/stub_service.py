"""A web service on this machine, for servers that follow somebody's documented protocol."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, TypeVar

KEY = "secret-key-of-the-tests"


@dataclass(frozen=True)
class Mishap:
    """Instead of an answer: a status, headers and a body; or silence, until the server is closed."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: str = "{}"
    silent: bool = False


class Refused(Exception):
    """What the real service would refuse."""

    def __init__(self, status: int, body: dict[str, Any]) -> None:
        self.status, self.body = status, body


@dataclass
class Request:
    method: str
    path: str
    headers: dict[str, str]  # names in small letters
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class StubService:
    url: str = ""
    requests: list[Request] = field(default_factory=list)
    mishaps: dict[str, list[Mishap]] = field(
        default_factory=dict
    )  # by the end of the path; each is used up by one request
    closing: Event = field(default_factory=Event)

    def answer(self, request: Request) -> dict[str, Any]:
        raise NotImplementedError

    def asked(self, method: str, path: str) -> list[Request]:
        return [
            request
            for request in self.requests
            if request.method == method and request.path == path
        ]


class Stand(BaseHTTPRequestHandler):
    """How any such server sends, is silent, and keeps quiet about it."""

    service: Any

    def mishap(self, mishap: Mishap) -> None:
        if mishap.silent:
            self.service.closing.wait()
        else:
            self.send(mishap.status, mishap.body, mishap.headers)

    def send(self, status: int, body: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {**(headers or {}), "Content-Length": str(len(body.encode()))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        pass


class _Handler(Stand):
    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, body)
        self.service.requests.append(request)
        mishaps = next(
            (
                left
                for path, left in self.service.mishaps.items()
                if left and self.path.endswith(path)
            ),
            [],
        )
        if mishaps:
            self.mishap(mishaps.pop(0))
            return
        try:
            self.send(200, json.dumps(self.service.answer(request)))
        except Refused as refused:
            self.send(refused.status, json.dumps(refused.body))

    do_GET = do_POST = _serve


S = TypeVar("S")


@contextmanager
def running(service: S, stand: type[Stand] = _Handler) -> Iterator[S]:
    """Any service with a `url` to be told and an event `closing`."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (stand,), {"service": service}))
    service.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield service
    finally:
        service.closing.set()
        server.shutdown()
        thread.join()
        server.server_close()
