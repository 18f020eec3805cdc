"""The wheel, installed in each way that users know, serves its first page within a minute."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
SECONDS = 60
# Without bytecode, which pip writes and uv does not. The model is downloaded later, and is not counted.
MEGABYTES = 290


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
        "--wheel-dir", folder, ROOT)  # fmt: skip
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with pipx and uv, and nothing of ours."""
    folder = tmp_path_factory.mktemp("tools")
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "pip", "install", "--quiet", "pipx", "uv")
    return folder / "bin"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty machine's: no caches, no tools."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PIPX_HOME", str(tmp_path / "pipx"))
    monkeypatch.setenv("PIPX_BIN_DIR", str(tmp_path / "bin"))
    monkeypatch.setenv("UV_TOOL_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_TOOL_BIN_DIR", str(tmp_path / "bin"))
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv-cache"))
    monkeypatch.setenv("PIP_CACHE_DIR", str(tmp_path / "pip-cache"))
    monkeypatch.delenv("PYTHONPATH", raising=False)
    (tmp_path / "home").mkdir()
    return tmp_path


def by_pip(wheel: Path, tools: Path, home: Path) -> list[object]:
    run(sys.executable, "-m", "venv", home / "venv")
    run(home / "venv" / "bin" / "pip", "install", "--quiet", wheel)
    return [home / "venv" / "bin" / "commonplace"]


def by_pipx(wheel: Path, tools: Path, home: Path) -> list[object]:
    run(tools / "pipx", "install", "--quiet", "--python", sys.executable, wheel)
    return [home / "bin" / "commonplace"]


def by_uv_tool(wheel: Path, tools: Path, home: Path) -> list[object]:
    run(tools / "uv", "tool", "install", "--quiet", "--python", sys.executable, wheel)
    return [home / "bin" / "commonplace"]


def by_uvx(wheel: Path, tools: Path, home: Path) -> list[object]:
    return [tools / "uvx", "--python", sys.executable, "--from", wheel, "commonplace"]


@pytest.mark.parametrize("install", [by_pip, by_pipx, by_uv_tool, by_uvx])
def test_serves_its_first_page_within_a_minute(
    install: Callable[[Path, Path, Path], list[object]], wheel: Path, tools: Path, home: Path
) -> None:
    began, worked = time.monotonic(), cpu_seconds()
    command = install(wheel, tools, home)
    with serving([*command, "serve", "--json", "--port", "0"], home / "data") as address:
        page = urllib.request.urlopen(f"{address}/sign-in").read().decode()
        took = time.monotonic() - began
        assert "Search matches keywords only: the embedding model is missing." in page
    packages = next(path for path in home.rglob("site-packages") if (path / "commonplace").is_dir())
    size = megabytes(packages)
    spent = cpu_seconds() - worked
    print(f"{install.__name__}: {took:.0f} s ({spent:.0f} of cpu), {size:.0f} MB without bytecode")
    assert spent < SECONDS  # other tests may keep the machine busy
    assert size < MEGABYTES


def cpu_seconds() -> float:
    """Of processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def megabytes(packages: Path) -> float:
    files = (path for path in packages.rglob("*") if path.is_file() and path.suffix != ".pyc")
    unneeded = re.compile(r"(pip|setuptools|pkg_resources|_distutils_hack)\b")
    ours = (path for path in files if not unneeded.match(path.relative_to(packages).parts[0]))
    return sum(path.stat().st_size for path in ours) / 1e6


class serving:
    """A server, from its first line until the end of the block."""

    def __init__(self, command: list[object], data_dir: Path) -> None:
        self._process = subprocess.Popen(
            [str(part) for part in command],
            env=os.environ | {"COMMONPLACE_DATA_DIR": str(data_dir)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def __enter__(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        return str(json.loads(line)["address"])

    def __exit__(self, *problem: object) -> None:
        os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(timeout=30)
        if self._process.stdout is not None:
            self._process.stdout.close()


def run(*command: object) -> None:
    subprocess.run([str(part) for part in command], check=True, timeout=300)
