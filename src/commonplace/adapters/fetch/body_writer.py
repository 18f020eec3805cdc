"""Write a response's body to a file, decompressing it, up to a size limit."""

import zlib
from pathlib import Path
from typing import Self

from commonplace.errors import IngestFailed, StorageFailed

_PIECE = 1 << 18  # decompressed at once; bounds the memory that a zip bomb can take
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f"


class BodyWriter:
    """A context manager that writes a body of at most `max_bytes`, compressed and decompressed.

    `encoding` is the Content-Encoding; with `empty`, an empty body is accepted.
    """

    def __init__(self, path: Path, encoding: str, max_bytes: int, *, empty: bool = False) -> None:
        self._compressed, self._may_be_empty = _is_compressed(encoding), empty
        self._max_bytes, self._received, self.size = max_bytes, 0, 0
        self._path = path
        self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def check_length(self, length: str | None) -> None:
        """Refuse a body that is too large by its Content-Length, before reading any of it."""
        if length is not None and length.isdecimal() and int(length) > self._max_bytes:
            raise self._too_large()

    def write(self, data: bytes) -> None:
        self._received += len(data)
        if self._received > self._max_bytes:
            raise self._too_large()
        if self._compressed:
            self._decompress(data)
        else:
            self._store(data)

    def finish(self) -> None:
        if self._compressed and self._received and not self._decompressor.eof:
            raise IngestFailed("The response ended before it was complete.", transient=True)
        if not self.size and not self._may_be_empty:
            raise IngestFailed("The response is empty.")

    def _decompress(self, data: bytes) -> None:
        try:
            while data:
                if self._decompressor.eof:
                    if not data.startswith(_GZIP_MAGIC):
                        return  # padding, which browsers ignore too
                    # A gzip file may have several members.
                    self._decompressor = zlib.decompressobj(_GZIP_OR_ZLIB)
                self._store(self._decompressor.decompress(data, _PIECE))
                data = self._decompressor.unconsumed_tail or self._decompressor.unused_data
        except zlib.error:
            raise IngestFailed("The response's compression is damaged.") from None

    def _store(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._max_bytes:
            raise self._too_large()
        try:
            self._file.write(data)
        except OSError as error:
            raise StorageFailed(f"The download cannot be written ({error.strerror}).") from error

    def _too_large(self) -> IngestFailed:
        return IngestFailed(f"The file is larger than {self._max_bytes / 1e6:.3g} MB.")


def _is_compressed(encoding: str) -> bool:
    name = encoding.strip().lower()
    if name not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise IngestFailed(f"The response has an unknown compression ({name[:40]}).")
    return name not in ("", "identity")
