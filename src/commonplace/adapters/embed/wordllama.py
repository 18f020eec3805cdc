"""The fast embedder: a table of word vectors, averaged.

Some hundred times faster than `local`, somewhat weaker.
"""

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from commonplace.adapters.embed.batches import clean, first, flat, regroup, require_own, unit
from commonplace.adapters.embed.safetensors_file import read_index, read_tensor
from commonplace.adapters.model_download import installed
from commonplace.errors import ConfigurationError, extra
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings
from commonplace.thread_pool import ThreadPool

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_MODEL, _DIMENSIONS = "wordllama-l2_supercat", 256
_SHORT = 500  # characters
_BYTES = 200_000  # of a passage; its average has long settled by then


class StaticEmbedder:
    dimensions = _DIMENSIONS
    quick = True
    stamp = f"static/{_MODEL}/{_DIMENSIONS}"

    def __init__(self, settings: Settings) -> None:
        require_own(settings, _MODEL, _DIMENSIONS)
        with extra("static", "The static embedder"):
            import tokenizers  # noqa: F401

            folder = installed("wordllama")
            if folder is None:
                raise ModuleNotFoundError("wordllama")
        self._weights = folder / "weights" / "l2_supercat_256.safetensors"
        self._vocabulary = folder / "tokenizers" / "l2_supercat_tokenizer_config.json"
        for file in (self._weights, self._vocabulary):
            if not file.is_file():
                raise ConfigurationError(
                    f"{file} is missing. Reinstall it: pip install --force-reinstall wordllama"
                )
        self._threads = ThreadPool(2, "embed")
        self._lock = Lock()
        self._loaded: tuple[Tokenizer, Vectors] | None = None

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        return regroup(await self._threads.run(lambda: self._embed(flat(texts))), texts)

    async def query(self, text: str) -> Vector:
        if self._loaded is None or len(text) > _SHORT:
            return first(await self._threads.run(lambda: self._embed([text])))
        # A twentieth of a millisecond, less than handing it to a thread takes.
        return first(self._embed([text]))

    async def close(self) -> None:
        self._threads.close()

    def _embed(self, texts: Sequence[str]) -> Vectors:
        tokenizer, table = self._load()
        encodings = tokenizer.encode_batch_fast(
            [clean(text, _BYTES) for text in texts], add_special_tokens=False
        )
        sums = np.zeros((len(texts), self.dimensions), np.float32)
        for row, encoding in zip(sums, encodings, strict=True):
            table.take(encoding.ids, axis=0).sum(axis=0, out=row)
        return unit(sums)

    def _load(self) -> "tuple[Tokenizer, Vectors]":
        with self._lock:
            if self._loaded is None:
                self._loaded = _read(self._vocabulary, self._weights)
            return self._loaded


@cache  # every application in a process has the same, and nobody changes it
def _read(vocabulary: Path, weights: Path) -> "tuple[Tokenizer, Vectors]":
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(vocabulary))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    table = read_tensor(weights, read_index(weights)["embedding.weight"])
    return tokenizer, np.array(table, np.float32)
