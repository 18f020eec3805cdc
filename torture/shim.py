"""Faults from outside: a preloaded library that fails writes and moves the clock."""

import mmap
import shutil
import struct
import subprocess
from functools import cache
from pathlib import Path

from torture.harness import require

SOURCE = Path(__file__).with_name("shim.c")
FIELDS = ("countdown", "error", "sticky", "calls", "fired", "clock")
SIZE = 8 * len(FIELDS)


def compiler() -> str | None:
    return shutil.which("cc")


@cache
def build(folder: Path) -> Path:
    program = compiler()
    require(program, "A C compiler is missing: apt-get install gcc libc6-dev.")
    library = folder / "shim.so"
    subprocess.run(
        [program, "-shared", "-fPIC", "-O1", "-o", library, SOURCE], check=True, capture_output=True
    )
    return library


class Shim:
    """Controls the library in every process that was started with `env`."""

    def __init__(self, folder: Path, root: Path) -> None:
        root.mkdir(parents=True, exist_ok=True)
        control = folder / "control"
        control.write_bytes(bytes(SIZE))
        with control.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), SIZE)
        self.env = {
            "LD_PRELOAD": str(build(folder)),
            "TORTURE_CONTROL": str(control),
            "TORTURE_ROOT": str(root),
        }

    def get(self, name: str) -> int:
        value: int = struct.unpack_from("q", self._memory, 8 * FIELDS.index(name))[0]
        return value

    def set(self, **values: int) -> None:
        for name, value in values.items():
            struct.pack_into("q", self._memory, 8 * FIELDS.index(name), value)

    def arm(self, call: int, error: int, sticky: bool) -> None:
        """Fail the call of that number, counted from now on. Error 0: write half of it."""
        self.set(countdown=0, calls=0, fired=0)
        self.set(error=error, sticky=int(sticky and error != 0), countdown=call)

    def disarm(self) -> int:
        """How many calls have failed."""
        self.set(countdown=0)
        return self.get("fired")
