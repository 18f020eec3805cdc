"""The process that reads: a request per line in, an answer with its length before it out."""

import json
import logging
import os
import re
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from threading import Timer
from typing import BinaryIO

from commonplace.adapters.extract import feeds, readers, wire
from commonplace.adapters.extract.source import Caps, Source
from commonplace.errors import IngestFailed
from commonplace.model import Extracted, Feed, Json

_IDLE_SECONDS = 60
_SPENT_MEGABYTES = 400  # one that has grown this large is replaced, to give the memory back


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a key reaches all processes of a terminal; whoever started this one ends it
    logging.disable()  # what libraries find odd about a file is of no use to whoever runs the server
    answers = _private_output()
    while request := _next_line():
        asked = json.loads(request)
        caps = Caps(**asked["caps"])
        _hold_to(caps)
        answer = _answer(asked["verb"], wire.source(asked["source"]), caps)
        body = wire.line(answer | {"spent": _peak_megabytes() > _SPENT_MEGABYTES})
        answers.write(b"%d\n%b" % (len(body), body))
        answers.flush()


def _answer(verb: str, source: Source, caps: Caps) -> Json:
    verbs: dict[str, Callable[[Source, Caps], Extracted | Feed]] = {"extract": readers.read, "feed": feeds.parse}
    try:
        return asdict(verbs[verb](source, caps))
    except IngestFailed as failed:
        return {"failed": failed.message}
    except MemoryError:
        return {"failed": f"Reading the file would take more than {caps.megabytes} MB of memory.", "spent": True}
    except RecursionError:
        return {"failed": "The file is nested too deeply to be read."}


def _private_output() -> BinaryIO:
    """Libraries that print must not print into the answers."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _next_line() -> bytes:
    leave = Timer(_IDLE_SECONDS, os._exit, [0])
    leave.daemon = True
    leave.start()
    request = sys.stdin.buffer.readline()
    leave.cancel()
    return request


if sys.platform == "linux":
    import resource

    def _hold_to(caps: Caps) -> None:
        size = caps.megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def _peak_megabytes() -> float:
        """Of this program alone: getrusage would count the server that started it, as large as it was then."""
        peak = re.search(r"^VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)
        return int(peak[1]) / 1000 if peak else 0.0
else:
    def _hold_to(caps: Caps) -> None:
        """Other systems do not enforce such a limit; the one on time remains."""

    def _peak_megabytes() -> float:
        return 0.0


if __name__ == "__main__":
    main()
