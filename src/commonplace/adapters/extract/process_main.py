"""The process that reads: a request per line in, an answer with its length before it out."""

import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from threading import Timer
from typing import BinaryIO

from commonplace.adapters.extract import formats, media_type, process_limits, process_protocol
from commonplace.adapters.extract.input_file import Caps, Source, bounded
from commonplace.errors import IngestFailed
from commonplace.model import Json

_IDLE_SECONDS = 60
_SPENT_MEGABYTES = 400  # one that has grown this large is replaced, to give the memory back


def main() -> None:
    process_limits.die_with_parent(int(sys.argv[1]))
    signal.signal(
        signal.SIGINT, signal.SIG_IGN
    )  # a key reaches all processes of a terminal; whoever started this one ends it
    logging.disable()  # what libraries find odd about a file is of no use to whoever runs the server
    answers = _private_output()
    while request := _next_line():
        asked = json.loads(request)
        caps = Caps(**asked["caps"])
        process_limits.limit_process(caps)
        answer = _answer(asked["verb"], process_protocol.source(asked["source"]), caps)
        spent = {"spent": process_limits.peak_megabytes() > _SPENT_MEGABYTES}
        body = process_protocol.answer(answer | spent)
        if len(body) > process_protocol.LARGEST_ANSWER:
            body = process_protocol.answer(
                {"failed": "There is more in the file than can be kept of one.", **spent}
            )
        answers.write(b"%d\n%b" % (len(body), body))
        answers.flush()


def _answer(verb: str, source: Source, caps: Caps) -> Json:
    verbs: dict[str, Callable[[Source, Caps], Json]] = {
        "kind": _kind,
        "extract": _extract,
        "feed": _feed,
    }
    try:
        return verbs[verb](source, caps)
    except IngestFailed as failed:
        return {"failed": failed.message}
    except MemoryError:
        return {
            "failed": f"Reading the file would take more than {caps.megabytes} MB of memory.",
            "spent": True,
        }
    except RecursionError:
        return {"failed": "The file is nested too deeply to be read."}
    except Exception:
        # Libraries raise all kinds of things on files that are damaged on purpose; none of it is this process's fault.
        return {"failed": process_protocol.UNREADABLE}


def _kind(source: Source, caps: Caps) -> Json:
    return {"kind": media_type.sniff(source.path, source.media_type, source.name)}


def _extract(source: Source, caps: Caps) -> Json:
    return asdict(bounded(formats.read(source, caps)))


def _feed(source: Source, caps: Caps) -> Json:
    from commonplace.adapters.extract import feed  # most readers never see one

    return asdict(feed.parse(source, caps))


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


if __name__ == "__main__":
    main()
