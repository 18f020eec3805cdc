"""An S3-compatible server for tests: moto's, in an environment of its own, as its pins and ours do not go together."""

import fcntl
import hashlib
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[1]
PINS = ROOT / "requirements-s3.txt"
BUCKET = "commonplace"
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_ALLOW_HTTP": "true",
}


@contextmanager
def running_s3(port: int) -> Iterator[str]:
    """Its address; there is one empty bucket."""
    process = subprocess.Popen(
        [_environment() / "bin" / "moto_server", "-p", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        address = f"http://127.0.0.1:{port}"
        _make_bucket(address, process)
        yield address
    finally:
        process.terminate()
        process.wait(timeout=10)


def _environment() -> Path:
    """Made once for each state of the pins, by the first of the test processes; the others wait for it."""
    folder = ROOT / ".cache" / f"s3-{hashlib.sha256(PINS.read_bytes()).hexdigest()[:12]}"
    ready = folder / "ready"
    folder.parent.mkdir(exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
            options = ["--quiet", "--no-deps", "--require-hashes", "--requirement", PINS]
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


def _make_bucket(address: str, process: subprocess.Popen[bytes], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        try:
            httpx.put(f"{address}/{BUCKET}").raise_for_status()
            return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail(f"The S3 server did not answer (exit code {process.poll()}).", pytrace=False)
