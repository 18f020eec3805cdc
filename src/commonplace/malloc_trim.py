"""Memory that was freed, given back to the system."""

import ctypes
import sys


def release_memory() -> None:
    """After something large was let go of: glibc would keep it in the process."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
    if trim:
        trim(0)
