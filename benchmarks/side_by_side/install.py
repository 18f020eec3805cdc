"""Each peer in an environment of its own under the cache folder, installed once; what that took is kept beside it."""

import functools
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from .peers import Peer

BESIDE = (
    "numpy==2.4.6",
    "psutil==7.2.2",
)  # what the harness needs; there before, so not counted as the peer's
PATIENCE = 600


def python_of(peer: Peer, cache: Path) -> Path:
    if not peer.packages:
        return Path(sys.executable)
    root = root_of(peer, cache)
    return (root / "srv" if root else cache / "peers") / peer.key / "bin" / "python"


def root_of(peer: Peer, cache: Path) -> Path | None:
    """A Debian of its own, which is entered by chroot: for a Python that loads SQLite's extensions where this machine has none."""
    wanted = (
        peer.extensions
        and not _able(peer.python)
        and os.geteuid() == 0
        and shutil.which("debootstrap")
    )
    return cache / "debian" if wanted else None


def install(peer: Peer, cache: Path) -> dict:
    """seconds, megabytes and versions, or `failed` with the reason. What failed is tried again the next time."""
    if not peer.packages:
        return {}
    python = python_of(peer, cache)
    told = python.parent.parent / "installed.json"
    if told.exists() and (known := json.loads(told.read_text()))["packages"] == list(peer.packages):
        return known
    result: dict = {"packages": list(peer.packages)}
    try:
        result |= _install(peer, python, root_of(peer, cache))
    except subprocess.SubprocessError as error:
        said = (getattr(error, "stderr", None) or "").strip()
        return result | {"failed": (said or str(error))[-400:]}
    told.write_text(json.dumps(result, indent=1))
    return result


def _install(peer: Peer, python: Path, root: Path | None) -> dict:
    uv = Path(sys.executable).with_name("uv")
    folder = python.parent.parent
    shutil.rmtree(folder, ignore_errors=True)
    if root:
        return _install_within(root, peer, folder)
    _run(
        [
            uv,
            "venv",
            "--quiet",
            "--python",
            _interpreter(peer.python),
            *(["--seed"] if peer.by_pip else []),
            folder,
        ]
    )
    reach = ["--quiet", "--no-cache", "--system-certs", "--python", python]
    if not peer.apart:
        _run([uv, "pip", "install", *reach, *BESIDE])
    empty, start = _size(folder), time.perf_counter()
    if peer.by_pip:
        _run([python, "-m", "pip", "install", "--quiet", "--no-cache-dir", *peer.packages])
    else:
        _run([uv, "pip", "install", *reach, *peer.packages])
    listed = subprocess.run(
        [uv, "pip", "list", "--python", python, "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        "seconds": time.perf_counter() - start,
        "mb": (_size(folder) - empty) / 1e6,
        "versions": {entry["name"]: entry["version"] for entry in json.loads(listed.stdout)},
    }


def _install_within(root: Path, peer: Peer, folder: Path) -> dict:
    if not (root / "usr" / "bin" / "python3").exists():
        root.parent.mkdir(parents=True, exist_ok=True)
        _run(
            [
                "debootstrap",
                "--variant=minbase",
                "--include=python3,python3-venv,ca-certificates",
                "trixie",
                root,
            ]
        )
    for shared in (
        "etc/resolv.conf",
        "etc/hosts",
        "etc/ssl/certs/ca-certificates.crt",
        "etc/pip.conf",
    ):
        if Path("/", shared).exists():
            shutil.copy(Path("/", shared), root / shared)
    place = Path("/", folder.relative_to(root))
    _run(["chroot", root, "python3", "-m", "venv", place])
    empty, start = _size(folder), time.perf_counter()
    _run(
        [
            "chroot",
            root,
            place / "bin" / "pip",
            "install",
            "--quiet",
            "--no-cache-dir",
            *peer.packages,
        ]
    )
    took = time.perf_counter() - start
    listed = subprocess.run(
        ["chroot", str(root), str(place / "bin" / "pip"), "list", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    return {
        "seconds": took,
        "mb": (_size(folder) - empty) / 1e6,
        "versions": {entry["name"]: entry["version"] for entry in json.loads(listed.stdout)},
    }


def _interpreter(version: str) -> str:
    return next(iter([*_able(version), *_found(version)]), version)


@functools.cache
def _able(version: str) -> tuple[str, ...]:
    """Those whose sqlite3 loads extensions, which some products need."""
    probe = "import sqlite3, ensurepip; sqlite3.Connection.enable_load_extension"
    return tuple(
        python
        for python in _found(version)
        if not subprocess.run([python, "-c", probe], capture_output=True).returncode
    )


def _found(version: str) -> list[str]:
    """A version manager keeps more than the path shows."""
    kept = [
        Path(f"/usr/bin/python{version}"),
        *sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}*/bin/python")),
    ]
    return [str(python) for python in kept if python.exists()]


def _run(command: list) -> None:
    subprocess.run(
        [str(part) for part in command],
        check=True,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def _size(folder: Path) -> int:
    return sum(
        file.stat().st_size
        for file in folder.rglob("*")
        if file.is_file() and not file.is_symlink()
    )
