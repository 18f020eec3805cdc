"""Limits on the process that reads a file. Only Linux enforces all of them."""

import ctypes
import os
import re
import signal
import sys
from math import ceil
from pathlib import Path

from commonplace.adapters.extract.input_file import Caps

if sys.platform != "win32":
    import resource


def limit_cpu(seconds: int) -> None:
    """End this process (SIGXCPU) after so many more seconds of processor time."""
    if sys.platform != "win32":  # where only the limit on wall-clock time holds
        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = ceil(used.ru_utime + used.ru_stime) + seconds
        resource.setrlimit(
            resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
        )


def limit_process(caps: Caps) -> None:
    if sys.platform == "linux":
        size = caps.megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    limit_cpu(caps.cpu_seconds)


def die_with_parent(parent: int) -> None:
    """Be killed when the server ends for any reason, even while reading.

    Elsewhere than on Linux, a reader notices the end of its input with the next request.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG
        if os.getppid() != parent:  # it had ended before we asked
            os._exit(1)


def peak_megabytes() -> float:
    """Return this program's peak; getrusage would include the server that started it."""
    status = Path("/proc/self/status").read_text() if sys.platform == "linux" else ""
    peak = re.search(r"^VmHWM:\s+(\d+)", status, re.MULTILINE)
    return int(peak[1]) / 1000 if peak else 0.0
