"""Voyage's contextualised models: the passages of a document are embedded together, each knowing the others."""

from collections.abc import Iterator, Sequence

import numpy as np

from commonplace.adapters.embed.batches import first, packed, regroup, unit, worded
from commonplace.adapters.embed.service import BULK, SEARCH, EmbeddingService
from commonplace.adapters.http_client import PAUSES, TIMEOUT
from commonplace.errors import ConfigurationError
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

_PATH = "/v1/contextualizedembeddings"
_DIMENSIONS = (256, 512, 1024, 2048)
# A request may hold 32,000 tokens and 1,000 documents. Even dense text, at two bytes a token, stays within this.
_BYTES, _DOCUMENTS = 64_000, 1_000


class VoyageEmbedder:
    quick = False

    def __init__(
        self, settings: Settings, *, pauses: Sequence[float] = PAUSES, timeout: float = TIMEOUT
    ) -> None:
        if not settings.embedder_key:
            raise ConfigurationError(
                "The voyage embedder needs a key: set COMMONPLACE_EMBEDDER_KEY."
            )
        self.dimensions = settings.embedder_dimensions or 1024
        if self.dimensions not in _DIMENSIONS:
            raise ConfigurationError(
                f"COMMONPLACE_EMBEDDER_DIMENSIONS must be one of {_DIMENSIONS} for voyage, "
                f"not {self.dimensions}."
            )
        self._model = settings.embedder_model or "voyage-context-3"
        self.stamp = f"voyage/{self._model}/{self.dimensions}"
        url = settings.embedder_url or "https://api.voyageai.com"
        self._service = EmbeddingService(
            "voyage", url, settings.embedder_key, pauses=pauses, timeout=timeout
        )

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        found = [np.empty((0, self.dimensions), np.float32)]
        for inputs in _requests(texts):
            found += await self._embed(inputs, "document", BULK)
        return regroup(np.concatenate(found), texts)

    async def query(self, text: str) -> Vector:
        (vectors,) = await self._embed([[worded(text, _BYTES)]], "query", SEARCH)
        return first(vectors)

    async def close(self) -> None:
        await self._service.close()

    async def _embed(self, inputs: list[list[str]], kind: str, patience: float) -> list[Vectors]:
        body = {
            "inputs": inputs,
            "input_type": kind,
            "model": self._model,
            "output_dimension": self.dimensions,
        }
        answer = await self._service.post(_PATH, body, patience)
        entries = self._service.entries(answer, len(inputs))
        return [
            unit(self._service.vectors(entry, len(passages), self.dimensions))
            for entry, passages in zip(entries, inputs, strict=True)
        ]


def _requests(documents: Sequence[Sequence[str]]) -> Iterator[list[list[str]]]:
    """Whole documents where they fit; one that is too long for a request is cut into windows of its own."""
    windows = (
        window
        for document in documents
        for window in packed((worded(text, _BYTES) for text in document), _size, _BYTES, _DOCUMENTS)
    )
    return packed(windows, lambda window: sum(map(_size, window)), _BYTES, _DOCUMENTS)


def _size(text: str) -> int:
    return len(text.encode())
