"""Files that are kept as they came: in the data folder, or in an object store."""

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio.to_thread
import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

from commonplace.errors import ConfigurationError, NotFound, StorageFailed
from commonplace.ports import Blobs
from commonplace.settings import Settings

if TYPE_CHECKING:
    from obstore.store import ObjectStore

SCHEMES = ("s3://", "gs://", "az://")
_CHUNK = 8 * 1024 * 1024


def make_blobs(settings: Settings) -> Blobs:
    """Credentials of an object store come by its usual variables (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL ...)."""
    if not settings.blobs_url:
        return FolderBlobs(settings.data_dir / "blobs")
    if not settings.blobs_url.startswith(SCHEMES):
        raise ConfigurationError(
            f"COMMONPLACE_BLOBS_URL must start with {', '.join(SCHEMES)} (leave it empty for a folder)."
        )
    try:
        return RemoteBlobs(from_url(settings.blobs_url))
    except (BaseError, ValueError) as error:
        raise ConfigurationError(
            f"COMMONPLACE_BLOBS_URL cannot be used: {_first_line(error)}"
        ) from None


class _Stored:
    """What both have in common; `_store` is obstore's."""

    _store: Any

    async def put(self, key: str, file: Path) -> None:
        with _failures():
            await obstore.put_async(self._store, key, file, chunk_size=_CHUNK, max_concurrency=2)

    async def size(self, key: str) -> int | None:
        try:
            with _failures():
                return int((await obstore.head_async(self._store, key))["size"])
        except NotFound:
            return None

    async def delete(self, key: str) -> None:
        try:
            with _failures():
                await obstore.delete_async(self._store, key)
        except NotFound:
            return

    async def close(self) -> None:
        """Nothing is kept open between requests."""


class FolderBlobs(_Stored):
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = LocalStore(folder, mkdir=True)

    @asynccontextmanager
    async def file(self, key: str) -> AsyncIterator[Path]:
        path = self._folder / key
        if not await anyio.to_thread.run_sync(path.is_file):
            raise NotFound("The file is not there.")
        yield path

    async def put_url(self, key: str, seconds: int) -> str | None:
        return None


class RemoteBlobs(_Stored):
    def __init__(self, store: "ObjectStore") -> None:
        self._store = store

    @asynccontextmanager
    async def file(self, key: str) -> AsyncIterator[Path]:
        with tempfile.TemporaryDirectory(prefix="commonplace-") as folder:
            path = Path(folder) / "blob"
            with _failures(), path.open("wb") as out:
                answer = await obstore.get_async(self._store, key)
                async for chunk in answer.stream(min_chunk_size=_CHUNK):
                    await anyio.to_thread.run_sync(out.write, chunk)
            yield path

    async def put_url(self, key: str, seconds: int) -> str | None:
        with _failures():
            return await obstore.sign_async(self._store, "PUT", key, timedelta(seconds=seconds))


@contextmanager
def _failures() -> Iterator[None]:
    # obstore raises Python's own error for a missing file, and its own for what else goes wrong.
    try:
        yield
    except FileNotFoundError:
        raise NotFound("The file is not there.") from None
    except (BaseError, OSError) as error:
        raise StorageFailed(f"The file store failed: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]
