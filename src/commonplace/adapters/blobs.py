"""Files that are kept as they came: in the data folder, or in an object store."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import anyio.to_thread

from commonplace.errors import ConfigurationError, NotFound, StorageFailed, extra
from commonplace.ports import Blobs
from commonplace.settings import Settings

SCHEMES = ("s3://", "gs://", "az://")
_CHUNK = 8 * 1024 * 1024


def make_blobs(settings: Settings) -> Blobs:
    """Choose the storage of files. An object store takes its credentials from the usual variables
    (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on)."""
    if not settings.blobs_url:
        return FolderBlobs(settings.data_dir / "blobs")
    if not settings.blobs_url.startswith(SCHEMES):
        raise ConfigurationError(
            f"COMMONPLACE_BLOBS_URL must start with {', '.join(SCHEMES)} "
            "(leave it empty for a folder)."
        )
    with extra("s3", "COMMONPLACE_BLOBS_URL"):
        import obstore
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    try:
        return RemoteBlobs(obstore, from_url(settings.blobs_url))
    except (BaseError, ValueError) as error:
        raise ConfigurationError(
            f"COMMONPLACE_BLOBS_URL cannot be used: {_first_line(error)}"
        ) from None


@dataclass(eq=False)
class FolderBlobs:
    _folder: Path

    async def put(self, key: str, file: Path) -> None:
        with _failures(OSError):
            await anyio.to_thread.run_sync(_copy, file, self._folder / key)

    async def size(self, key: str) -> int | None:
        with suppress(NotFound), _failures(OSError):
            return (await anyio.to_thread.run_sync((self._folder / key).stat)).st_size
        return None

    async def delete(self, key: str) -> None:
        with _failures(OSError):
            await anyio.to_thread.run_sync((self._folder / key).unlink, True)

    @asynccontextmanager
    async def file(self, key: str) -> AsyncIterator[Path]:
        path = self._folder / key
        if not await anyio.to_thread.run_sync(path.is_file):
            raise NotFound("File not found.")
        yield path

    async def put_url(self, key: str, seconds: int) -> str | None:
        return None

    async def close(self) -> None:
        """Nothing is kept open between requests."""


def _copy(file: Path, path: Path) -> None:
    """Copy beside the place first: what is under the key is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{uuid4().hex}.part")
    try:
        shutil.copyfile(file, part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


class RemoteBlobs:
    def __init__(self, library: Any, store: Any) -> None:
        """`library`: obstore, which comes with an extra; `store`: one of its object stores."""
        self._library, self._store = library, store

    async def put(self, key: str, file: Path) -> None:
        with self._failures():
            await self._library.put_async(
                self._store, key, file, chunk_size=_CHUNK, max_concurrency=2
            )

    async def size(self, key: str) -> int | None:
        with suppress(NotFound), self._failures():
            return int((await self._library.head_async(self._store, key))["size"])
        return None

    async def delete(self, key: str) -> None:
        with suppress(NotFound), self._failures():
            await self._library.delete_async(self._store, key)

    @asynccontextmanager
    async def file(self, key: str) -> AsyncIterator[Path]:
        with tempfile.TemporaryDirectory(prefix="commonplace-") as folder:
            path = Path(folder) / "blob"
            with self._failures(), path.open("wb") as out:
                answer = await self._library.get_async(self._store, key)
                async for chunk in answer.stream(min_chunk_size=_CHUNK):
                    await anyio.to_thread.run_sync(out.write, chunk)
            yield path

    async def put_url(self, key: str, seconds: int) -> str | None:
        with self._failures():
            return str(
                await self._library.sign_async(self._store, "PUT", key, timedelta(seconds=seconds))
            )

    async def close(self) -> None:
        """Nothing is kept open between requests."""

    def _failures(self) -> AbstractContextManager[None]:
        return _failures(OSError, self._library.exceptions.BaseError)


@contextmanager
def _failures(*errors: type[Exception]) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:  # obstore raises it, too
        raise NotFound("File not found.") from None
    except errors as error:
        raise StorageFailed(f"The file store failed: {_first_line(error)}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:300]
