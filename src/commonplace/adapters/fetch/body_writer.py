"""Where an answer's body goes: a file, unpacked on the way, and never more of it than was allowed."""

import zlib
from pathlib import Path
from typing import Self

from commonplace.errors import IngestFailed, StorageFailed

_PIECE = 1 << 18  # unpacked at once; bounds the memory that a bomb can take
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f"


class BodyWriter:
    def __init__(self, path: Path, encoding: str, max_bytes: int, *, empty: bool = False) -> None:
        self._packed, self._may_be_empty = _is_packed(encoding), empty
        self._max_bytes, self._coming, self.size = max_bytes, 0, 0
        self._path = path
        self._unpacker = zlib.decompressobj(_GZIP_OR_ZLIB)

    def __enter__(self) -> Self:
        self._file = self._path.open("wb")
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def expect(self, length: str | None) -> None:
        """What the server announced. Nothing is read of what is too large by its own account."""
        if length is not None and length.isdecimal() and int(length) > self._max_bytes:
            raise self._too_large()

    def write(self, data: bytes) -> None:
        self._coming += len(data)
        if self._coming > self._max_bytes:
            raise self._too_large()
        if self._packed:
            self._unpack(data)
        else:
            self._keep(data)

    def finish(self) -> None:
        if self._packed and self._coming and not self._unpacker.eof:
            raise IngestFailed("The answer broke off before it was complete.", transient=True)
        if not self.size and not self._may_be_empty:
            raise IngestFailed("The answer is empty.")

    def _unpack(self, data: bytes) -> None:
        try:
            while data:
                if self._unpacker.eof:
                    if not data.startswith(_GZIP_MAGIC):
                        return  # padding, which browsers pass over too
                    self._unpacker = zlib.decompressobj(
                        _GZIP_OR_ZLIB
                    )  # gzip files may be several in a row
                self._keep(self._unpacker.decompress(data, _PIECE))
                data = self._unpacker.unconsumed_tail or self._unpacker.unused_data
        except zlib.error:
            raise IngestFailed("The answer is compressed, and damaged.") from None

    def _keep(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self._max_bytes:
            raise self._too_large()
        try:
            self._file.write(data)
        except OSError as error:
            raise StorageFailed(f"The download cannot be written ({error.strerror}).") from error

    def _too_large(self) -> IngestFailed:
        return IngestFailed(f"The file is larger than {self._max_bytes / 1e6:.3g} MB.")


def _is_packed(encoding: str) -> bool:
    match encoding.strip().lower():
        case "" | "identity":
            return False
        case "gzip" | "x-gzip" | "deflate":
            return True
        case other:
            raise IngestFailed(
                f"The answer is compressed in a way that was not asked for ({other[:40]})."
            )
