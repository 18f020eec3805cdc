"""Return freed memory to the system."""

import ctypes
import sys


def release_memory() -> None:
    """Call this after freeing much: glibc would keep the memory in the process."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim:
        trim(0)
