"""A peer for the tests of taking turns: it keeps nothing, says in a file what it was asked, and fails where it is told to."""

import os
import subprocess
import time
from pathlib import Path

from drivers.base import Server

NAME, SAID = os.environ.get("NAME", ""), os.environ.get("SAID", os.devnull)


class Driver(Server):
    def open(self, folder, work):
        self.work, self.server = work, subprocess.Popen(["sleep", "60"])
        self._say("open", self.server.pid)

    def _say(self, part, what):
        with Path(SAID).open("a") as said:
            said.write(f"{NAME} {part} {what}\n")
        if os.environ.get("DIES") == part:
            os._exit(3)
        if os.environ.get("SLEEPS") == part:
            time.sleep(float(os.environ["SECONDS"]))
        if os.environ.get("FAILS") == part:
            raise ValueError("it will not")

    def bulk(self, notes):
        self._say("bulk", len(notes))

    def search(self, mode, q, group=None):
        self._say(mode, q)
        return [q]

    def search_text(self, mode, text, vector, group=None):
        return []

    def get(self, n):
        self._say("get", n)

    def delete(self, n):
        self._say("delete", n)

    def idle(self, seconds):
        """There is nothing to wait for."""
