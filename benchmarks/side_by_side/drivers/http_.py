"""A keep-alive connection a thread, spoken by hand: the client's own cost should not be what is measured."""

import json
import socket
import threading
import time


class Http:
    def __init__(self, port: int, headers: "dict[str, str] | None" = None) -> None:
        self.port, self.headers, self._local = port, headers or {}, threading.local()

    def ask(self, method: str, path: str, body=None, headers: "dict[str, str] | None" = None):
        """(status, headers, parsed JSON or text); an event stream gives its last message."""
        content = b"" if body is None else json.dumps(body).encode()
        lines = {
            "Host": f"127.0.0.1:{self.port}",
            "Content-Type": "application/json",
            "Content-Length": str(len(content)),
            "Accept": "application/json, text/event-stream",
            **self.headers,
            **(headers or {}),
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        sent = f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + content
        for again in (False, True):
            try:
                stream = self._stream(new=again)
                stream.write(sent)
                stream.flush()
                return self._answer(stream)
            except (OSError, EOFError):
                self._local.stream = None
                if again:
                    raise
        raise AssertionError

    def _stream(self, new: bool):
        if new or getattr(self._local, "stream", None) is None:
            connection = socket.create_connection(("127.0.0.1", self.port), timeout=120)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._local.stream = connection.makefile("rwb")
        return self._local.stream

    def _answer(self, stream):
        line = stream.readline()
        if not line:
            raise EOFError
        status, told = int(line.split()[1]), {}
        while line := stream.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            told[name.lower()] = value.strip()
        if told.get("transfer-encoding") == "chunked":
            parts = []
            while size := int(stream.readline(), 16):
                parts.append(stream.read(size))
                stream.readline()
            stream.readline()
            raw = b"".join(parts)
        else:
            raw = stream.read(int(told.get("content-length", 0)))
        if told.get("connection") == "close":
            self._local.stream = None
        if "event-stream" in told.get("content-type", ""):
            raw = [part for part in raw.split(b"\n") if part.startswith(b"data: ")][-1][6:]
        try:
            return status, told, json.loads(raw) if raw else None
        except ValueError:
            return status, told, raw.decode(errors="replace")

    def wait(self, path: str, process, seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while process.poll() is None and time.monotonic() < end:
            try:
                if self.ask("GET", path)[0] < 500:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise RuntimeError(f"no answer on {path} (exit code {process.poll()})")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return listener.getsockname()[1]
