"""`python -m torture.scaled FACTOR ...`: the `commonplace` command with shorter retry waits.

A minute's outage then uses up as many retries as one of ten minutes. Time-outs stay as they are.
"""

import sys
from datetime import timedelta

import anyio

from commonplace.adapters import http_client
from commonplace.core.jobs import worker
from commonplace.interfaces.cli.main import main


def scale(factor: float) -> None:
    class Impatient:
        """What `adapters.http` asks of anyio."""

        @staticmethod
        async def sleep(seconds: float) -> None:
            await anyio.sleep(seconds / factor)

    if http_client.anyio is not anyio or worker.timedelta is not timedelta:
        raise SystemExit("The waits to scale have moved; torture/scaled.py has to follow.")
    worker.SWEEP_SECONDS /= factor
    http_client.anyio = Impatient  # type: ignore[assignment,attr-defined]
    worker.timedelta = lambda **time: timedelta(**time) / factor  # type: ignore[assignment,misc,attr-defined]


if __name__ == "__main__":
    scale(float(sys.argv[1]))
    sys.argv = ["commonplace", *sys.argv[2:]]
    main()
