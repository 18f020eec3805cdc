"""How much of the machine this process may use while it reads one file. Linux enforces all of it, others only part."""

import ctypes
import os
import re
import signal
import sys
from math import ceil
from pathlib import Path

from commonplace.adapters.extract.input_file import Caps

_PR_SET_PDEATHSIG = 1

if sys.platform == "win32":

    def limit_cpu(seconds: int) -> None:
        """Not enforced here; the limit on wall-clock time remains."""
else:
    import resource

    def limit_cpu(seconds: int) -> None:
        """End this process (SIGXCPU) after so many more seconds of processor time; it may have read other files before."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        _, hard = resource.getrlimit(resource.RLIMIT_CPU)
        soft = ceil(used.ru_utime + used.ru_stime) + seconds
        resource.setrlimit(
            resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard)
        )


if sys.platform == "linux":

    def limit_process(caps: Caps) -> None:
        size = caps.megabytes * 1_000_000
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        limit_cpu(caps.cpu_seconds)

    def die_with_parent(parent: int) -> None:
        """Be killed when the server ends, however it ends and whatever is being read."""
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it had ended before we asked
            os._exit(1)

    def peak_megabytes() -> float:
        """Of this program alone: getrusage would count the server that started it, as large as it was then."""
        peak = re.search(r"^VmHWM:\s+(\d+)", Path("/proc/self/status").read_text(), re.MULTILINE)
        return int(peak[1]) / 1000 if peak else 0.0
else:

    def limit_process(caps: Caps) -> None:
        limit_cpu(caps.cpu_seconds)

    def die_with_parent(parent: int) -> None:
        """A reader notices the end of its input when it asks for the next file."""

    def peak_megabytes() -> float:
        return 0.0
