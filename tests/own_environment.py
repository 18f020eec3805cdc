"""Environments for programs of tests whose pins and ours do not go together."""

import fcntl
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def own_environment(name: str) -> Path:
    """The folder of an environment with `requirements-NAME.txt`.

    Made once for each state of the pins, by the first of the test processes; the others wait for it.
    """
    pins = ROOT / f"requirements-{name}.txt"
    folder = ROOT / ".cache" / f"{name}-{hashlib.sha256(pins.read_bytes()).hexdigest()[:12]}"
    ready = folder / "ready"
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            options = ["--quiet", "--no-deps", "--require-hashes", "--requirement", pins]
            uv = [
                Path(sys.executable).with_name("uv"),
                "pip",
                "install",
                "--system-certs",
                "--python",
                folder / "bin" / "python",
            ]
            if subprocess.run([*uv, *options]).returncode:  # uv does not read pip's configuration
                subprocess.run([folder / "bin" / "pip", "install", *options], check=True)
            ready.touch()
    return folder
