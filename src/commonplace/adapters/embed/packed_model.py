"""The default model as it was made of its weights, in a file: checking and packing them takes
several times as long as starting the model."""

import zlib
from contextlib import suppress
from pathlib import Path

from commonplace.adapters.embed.minilm_onnx import FORMAT
from commonplace.model import new_id

_NAME = "minilm-int8"


def load(weights: Path, folder: Path) -> bytes | None:
    """Return the model that was made of these weights, if it is there and undamaged."""
    with suppress(OSError):
        checksum, packed = (file := _path(weights, folder).read_bytes())[:4], file[4:]
        if _checksum(packed) == checksum:
            return packed
    return None


def save(packed: bytes, weights: Path, folder: Path) -> None:
    """Keep the model in place of those of other weights; the folder may be read-only."""
    draft = folder / f".{new_id()}"
    with suppress(OSError):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            draft.write_bytes(_checksum(packed) + packed)
            for outdated in folder.glob(f"{_NAME}-*.onnx"):
                outdated.unlink()
            draft.replace(_path(weights, folder))
        finally:
            draft.unlink(missing_ok=True)


def _path(weights: Path, folder: Path) -> Path:
    """The name tells which weights these were: the same file, unchanged since."""
    found = weights.stat()
    return folder / f"{_NAME}-{FORMAT}-{found.st_size}-{found.st_mtime_ns}.onnx"


def _checksum(packed: bytes) -> bytes:
    return zlib.crc32(packed).to_bytes(4, "little")
