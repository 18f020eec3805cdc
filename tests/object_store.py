"""An S3-compatible server for tests: moto's, in an environment of its own, as its pins and ours do not go together."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.own_environment import own_environment

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
        [own_environment("s3") / "bin" / "moto_server", "-p", str(port)],
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


def _make_bucket(address: str, process: subprocess.Popen[bytes], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        try:
            httpx.put(f"{address}/{BUCKET}").raise_for_status()
            return
        except httpx.TransportError:
            time.sleep(0.05)
    pytest.fail(f"The S3 server did not answer (exit code {process.poll()}).", pytrace=False)
