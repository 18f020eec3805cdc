"""The reader process: takes one request per line, and answers with a length and JSON."""

import json
import logging
import os
import signal
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from threading import Timer
from typing import BinaryIO

from commonplace.adapters.extract import formats, media_type, process_limits
from commonplace.adapters.extract.input_file import (
    LARGEST_ANSWER,
    UNREADABLE,
    Caps,
    Source,
    limit_size,
)
from commonplace.errors import IngestFailed
from commonplace.model import Json

_IDLE_SECONDS = 60
_RETIRE_MEGABYTES = 500  # a process that has grown this large is replaced, to free the memory


def main() -> None:
    process_limits.die_with_parent(int(sys.argv[1]))
    sys.setrecursionlimit(5_000)  # HTML has up to 256 levels, of a few calls each
    # Ctrl-C reaches all processes of a terminal; the server ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable()  # libraries' remarks about a file are of no use to an operator
    warnings.simplefilter("ignore")
    answers = _private_output()
    while request := _next_line():
        asked = json.loads(request)
        caps = Caps(**asked["caps"])
        source = Source(**(asked["source"] | {"path": Path(asked["source"]["path"])}))
        process_limits.limit_process(caps)
        answer = _answer(asked["verb"], source, caps, asked["options"])
        retire = {"retire": process_limits.peak_megabytes() > _RETIRE_MEGABYTES}
        body = _encode(retire | answer)
        if len(body) > LARGEST_ANSWER:
            body = _encode({"failed": "The file contains more than can be stored."} | retire)
        answers.write(b"%d\n%b" % (len(body), body))
        answers.flush()


def _answer(verb: str, source: Source, caps: Caps, options: Json) -> Json:
    try:
        if verb == "detect_type":
            return {"kind": media_type.sniff(source.path, source.media_type, source.name)}
        if verb == "extract":
            return asdict(limit_size(formats.read(source, caps)))
        if verb == "draw_page":
            from commonplace.adapters.extract.pdf import picture

            return picture.draw(source, source.page)
        if verb == "export":
            from commonplace.adapters import exports

            return exports.export(source, caps, **options)
        if verb == "draw":
            from commonplace.adapters.extract.picture import draw

            return {"data": draw(source, caps, **options)}
        if verb == "site":
            from commonplace.adapters.extract import site

            return asdict(site.read(source, caps))
        from commonplace.adapters.extract import feed  # few readers ever see one

        return asdict(feed.parse(source, caps))
    except IngestFailed as failed:
        return {"failed": failed.message}
    except MemoryError:
        return {
            "failed": f"Reading the file takes more than {caps.megabytes} MB of memory.",
            "retire": True,
        }
    except RecursionError:
        return {"failed": "The file is nested too deeply to be read."}
    except Exception:  # libraries raise anything on files that are damaged on purpose
        return {"failed": UNREADABLE}


def _encode(answer: Json) -> bytes:
    text = json.dumps(answer, default=str, separators=(",", ":"), ensure_ascii=False)
    return text.encode("utf-8", "replace") + b"\n"


def _private_output() -> BinaryIO:
    """Reserve standard output for answers; anything that libraries print goes to stderr."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _next_line() -> bytes:
    """Wait for a request; end the process when none comes for a while."""
    leave = Timer(_IDLE_SECONDS, os._exit, [0])
    leave.daemon = True
    leave.start()
    request = sys.stdin.buffer.readline()
    leave.cancel()
    return request


if __name__ == "__main__":
    main()
