"""One suite for the folder and for an object store."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from commonplace.adapters.blobs import make_blobs
from commonplace.errors import ConfigurationError, NotFound, StorageFailed
from commonplace.ports import Blobs
from commonplace.settings import Settings
from tests.object_store import BUCKET, CREDENTIALS, running_s3
from tests.services import free_port

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def s3_address() -> Iterator[str]:
    with running_s3(free_port()) as address:
        yield address


@pytest.fixture(params=["folder", pytest.param("s3", marks=pytest.mark.slow)])
def settings(
    request: pytest.FixtureRequest, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> Settings:
    if request.param == "folder":
        return Settings(data_dir=data_dir)
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("s3_address"))
    return Settings(data_dir=data_dir, blobs_url=f"s3://{BUCKET}/{data_dir.parent.name}")


@pytest.fixture
def blobs(settings: Settings) -> Blobs:
    return make_blobs(settings)


@pytest.mark.parametrize("size", [0, 11, 20_000_000])
async def test_what_was_put_is_read_back(blobs: Blobs, tmp_path: Path, size: int) -> None:
    file = tmp_path / "file"
    file.write_bytes(bytes(range(250)) * (size // 250) + b"x" * (size % 250))
    await blobs.put("uploads/a/b", file)
    assert await blobs.size("uploads/a/b") == size
    async with blobs.file("uploads/a/b") as found:
        assert found.read_bytes() == file.read_bytes()


async def test_putting_again_replaces(blobs: Blobs, tmp_path: Path) -> None:
    for text in ("first, and longer", "second"):
        (tmp_path / "file").write_text(text)
        await blobs.put("key", tmp_path / "file")
    async with blobs.file("key") as found:
        assert found.read_text() == "second"


async def test_what_was_deleted_is_gone_and_may_be_deleted_again(
    blobs: Blobs, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("text")
    await blobs.put("key", tmp_path / "file")
    await blobs.delete("key")
    await blobs.delete("key")
    assert await blobs.size("key") is None
    with pytest.raises(NotFound):
        async with blobs.file("key"):
            pass


async def test_a_signed_address_takes_the_bytes_where_there_is_one(
    blobs: Blobs, settings: Settings
) -> None:
    url = await blobs.put_url("uploads/signed", 60)
    assert (url is None) == (not settings.blobs_url)
    if url is not None:
        async with httpx.AsyncClient() as client:
            (await client.put(url, content=b"sent by somebody else")).raise_for_status()
        assert await blobs.size("uploads/signed") == 21


async def test_a_store_that_cannot_be_used_says_so_at_the_start(data_dir: Path) -> None:
    with pytest.raises(ConfigurationError, match="COMMONPLACE_BLOBS_URL must start with s3://"):
        make_blobs(Settings(data_dir=data_dir, blobs_url="ftp://somewhere"))


@pytest.mark.slow
async def test_a_store_that_fails_is_told_in_words(
    s3_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_address)
    (tmp_path / "file").write_text("text")
    with pytest.raises((StorageFailed, NotFound)):
        await make_blobs(Settings(data_dir=tmp_path, blobs_url="s3://no-such-bucket")).put(
            "key", tmp_path / "file"
        )
