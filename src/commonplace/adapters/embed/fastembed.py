"""Any model of the fastembed package, which downloads it with its first use."""

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Any

import numpy as np
from anyio import CapacityLimiter, Lock as Turn, to_thread

from commonplace.adapters.embed.batches import clean, first, flat, regroup, require_own, unit
from commonplace.errors import ConfigurationError, EmbeddingFailed, extra
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

_BATCH = 8  # passages; a query waits for one batch at most
_BYTES = 100_000


class FastembedEmbedder:
    quick = False

    def __init__(self, settings: Settings) -> None:
        with extra("fastembed", "The fastembed embedder"):
            from fastembed import TextEmbedding
        self._name = settings.embedder_model or "BAAI/bge-small-en-v1.5"
        try:
            self.dimensions: int = TextEmbedding.get_embedding_size(self._name)
        except ValueError:
            raise ConfigurationError(
                f"fastembed has no model {self._name!r}: change COMMONPLACE_EMBEDDER_MODEL."
            ) from None
        require_own(settings, self._name, self.dimensions)
        self.stamp = f"fastembed/{self._name}/{self.dimensions}"
        self._make, self._threads = TextEmbedding, settings.threads or None
        self._cache = str(settings.data_dir / "models" / "fastembed")
        self._loading = Lock()
        self._model: Any = None
        self._one, self._bulk = CapacityLimiter(1), Turn()  # as in minilm.py

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        passages = flat(texts)
        found = [np.empty((0, self.dimensions), np.float32)]
        for start in range(0, len(passages), _BATCH):
            async with self._bulk:
                found.append(
                    await to_thread.run_sync(
                        self._passages, passages[start : start + _BATCH], limiter=self._one
                    )
                )
        return regroup(np.concatenate(found), texts)

    async def query(self, text: str) -> Vector:
        return first(await to_thread.run_sync(self._query, text, limiter=self._one))

    async def close(self) -> None:
        self._model = None

    def _passages(self, texts: Sequence[str]) -> Vectors:
        return _vectors(self._load().passage_embed([clean(text, _BYTES) for text in texts]))

    def _query(self, text: str) -> Vectors:
        return _vectors(self._load().query_embed([clean(text, _BYTES)]))

    def _load(self) -> Any:
        with self._loading:
            if self._model is None:
                try:
                    self._model = self._make(
                        model_name=self._name, cache_dir=self._cache, threads=self._threads
                    )
                except Exception as error:  # the hub's client has no common base of its errors
                    raise EmbeddingFailed(
                        f"fastembed could not load {self._name}: {error}"
                    ) from error
            return self._model


def _vectors(found: Iterable[Any]) -> Vectors:
    return unit(np.array(list(found), np.float32))
