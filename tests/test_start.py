"""What is imported before it is needed makes every command and every start slower."""

import subprocess
import sys
from pathlib import Path

import pytest

RARE = (
    "av",
    "faster_whisper",
    "jwt",
    "limits",
    "onnxruntime",
    "psycopg",
    "redis",
    "tokenizers",
    "trafilatura",
    "webauthn",
)


OPENED = """
import asyncio, sys
from pathlib import Path
from commonplace.app import open_app
from commonplace.settings import Settings

async def main():
    async with open_app(Settings(data_dir=Path(sys.argv[1])), workers=1):
        print(*({"av", "faster_whisper", "httpx", "igraph", "jwt", "redis", "stopwordsiso", "trafilatura", "webauthn", "yt_dlp",
                 "commonplace.adapters.reflect.rules"} & sys.modules.keys()))

asyncio.run(main())
"""


def test_nor_does_an_application_that_runs(data_dir: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-c", OPENED, str(data_dir)], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == []


@pytest.mark.parametrize(
    ("imported", "unneeded"),
    [
        (
            "commonplace.interfaces.cli.main",
            ("numpy", "pydantic", "httpx", "commonplace.app", *RARE),
        ),
        ("commonplace.app", ("starlette", "mcp", "commonplace.interfaces", "httpx", *RARE)),
        ("commonplace.interfaces.web.app", ("igraph", "mcp")),
        ("commonplace.interfaces.rest.app", ("mcp",)),
        ("commonplace.interfaces.mcp.endpoints", ("mcp",)),
    ],
)
def test_a_start_brings_in_only_what_it_needs(imported: str, unneeded: tuple[str, ...]) -> None:
    code = f"import sys, {imported}; print(*(set({unneeded!r}) & sys.modules.keys()))"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.split() == []
