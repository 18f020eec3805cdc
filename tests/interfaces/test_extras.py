"""Whatever needs an extra that is not installed is refused in words, with the line that installs it."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from commonplace.adapters.blobs import make_blobs
from commonplace.adapters.coordination import make_limits, make_wake
from commonplace.adapters.youtube import YouTube
from commonplace.errors import ConfigurationError, IngestFailed
from commonplace.settings import Settings
from commonplace.store import make_store
from tests.interfaces.command import Commands
from tests.recordings import record, tone
from tests.webserver import page, web_server

SCANNED = Path(__file__).parents[1] / "samples" / "scanned.pdf"
LAZY = ("postgres", "redis_backend")


def install_line(extra: str) -> str:
    return f"needs the extra '{extra}'. Install it: pip install 'commonplace[{extra}]'"


@pytest.mark.parametrize(
    ("make", "changes", "module", "extra"),
    [
        (make_store, {"database_url": "postgresql://x"}, "psycopg", "postgres"),
        (make_limits, {"redis_url": "redis://x"}, "redis.asyncio", "redis"),
        (make_wake, {"redis_url": "redis://x"}, "redis.asyncio", "redis"),
        (make_blobs, {"blobs_url": "s3://x"}, "obstore", "s3"),
    ],
)
def test_a_setting_names_its_extra_at_the_start(
    make: Callable[[Settings], Any],
    changes: dict[str, str],
    module: str,
    extra: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in [name for name in sys.modules if name.endswith(LAZY)]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigurationError) as raised:
        make(Settings(**changes))  # type: ignore[arg-type]
    assert install_line(extra) in raised.value.message


@pytest.mark.parametrize("kind", ["image", "scanned pages"])
def test_pictures_of_text_need_ocr(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    (tmp_path / "blocked").mkdir()
    (tmp_path / "blocked" / "rapidocr.py").write_text("raise ModuleNotFoundError('rapidocr')")
    file = SCANNED
    if kind == "image":
        file = tmp_path / "dot.png"
        file.write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 100)
    # Files are read in another process, which finds its modules by this.
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'blocked'}:{':'.join(sys.path)}")
    refuse(Commands(data_dir), file, "ocr")


@pytest.mark.parametrize("kind", ["file", "address"])
def test_recordings_need_speech(
    data_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    file = record(tmp_path / "hum.wav", tone(1.0, 48_000))
    monkeypatch.setitem(sys.modules, "av", None)
    with web_server() as web:
        web.pages["/hum.wav"] = page(file.read_bytes(), "audio/wav")
        allowed = web.url.removeprefix("http://")
        cli = Commands(data_dir, fetch_allow_hosts=allowed)
        refuse(cli, file if kind == "file" else f"{web.url}/hum.wav", "speech")


@pytest.mark.anyio
async def test_videos_need_video(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("yt_dlp")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "yt_dlp", None)
    with pytest.raises(IngestFailed) as raised:
        await YouTube(None).read("aaaaaaaaaaa")  # type: ignore[arg-type]
    assert install_line("video") in raised.value.message


def refuse(cli: Commands, source: Path | str, extra: str) -> None:
    result = cli.run("add", source)
    assert result.exit_code == 1, result.stdout
    assert install_line(extra) in result.stderr + result.stdout
    assert cli.json("list")["total"] == 0
