"""What every driver can do; each says how its product does it."""

import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from work import Work


class Base:
    over = "library"  # or MCP, REST: how a user of the product reaches it
    answers = "passages"  # or ids: what a search brings, without asking again
    durable = "yes"  # whether a write is on the disk (fsync) when it is answered; seen by what it asks of the system
    own_vectors = False  # True: what it embeds is not exactly the note, so there is no exact answer to compare with
    modes: tuple[str, ...] = ("semantic",)
    scopes = False  # whether it can search within a group
    batch = 1000
    _pool: "ThreadPoolExecutor | None" = None

    def open(self, folder: Path, work: Work) -> None:
        raise NotImplementedError

    def add(self, n: int) -> None:
        self.bulk(range(n, n + 1))

    def lay_out(self, notes: range) -> None:
        """As files, where that is how many notes at once are given: whoever has them has them so."""

    def bulk(self, notes: range) -> None:
        raise NotImplementedError

    def search(self, mode: str, q: int, group: "str | None" = None) -> list[int]:
        return self.search_text(mode, self.work.questions[q], self.work.question_vectors[q], group)

    def search_text(self, mode: str, text: str, vector, group: "str | None" = None) -> list[int]:
        raise NotImplementedError

    def together(self, mode: str, questions: list[int], clients: int) -> None:
        self._pool = self._pool or ThreadPoolExecutor(clients)  # kept, so that connections are
        list(self._pool.map(lambda q: self.search(mode, q), questions))

    def get(self, n: int) -> None:
        raise NotImplementedError

    def delete(self, n: int) -> None:
        raise NotImplementedError

    def settle(self, patience: float) -> None:
        """Until all that was added is found by every mode."""

    def idle(self, seconds: float) -> None:
        """Ask nothing for so long."""
        time.sleep(seconds)

    def close(self) -> None:
        pass

    def pids(self) -> list[int]:
        return [os.getpid()]

    def besides(self) -> float:
        """Seconds on the processor of commands that have come and gone."""
        return 0.0


class Server(Base):
    """A product that runs as a server of its own: `open` starts it."""

    server: "subprocess.Popen | None" = None

    def close(self) -> None:
        self.server.terminate()
        try:
            self.server.wait(30)
        except subprocess.TimeoutExpired:
            self.server.kill()
            self.server.wait()
        self.server = None

    def pids(self) -> list[int]:
        return [self.server.pid] if self.server else []


def number(name: str) -> int:
    """Of a note, or of a part of it: some name parts after the whole."""
    return int(name.rsplit("-", 1)[1].split()[0])


def plain(text: str) -> str:
    """Words only: what stands between them is syntax to some."""
    return " ".join("".join(c if c.isalnum() else " " for c in text).split())
