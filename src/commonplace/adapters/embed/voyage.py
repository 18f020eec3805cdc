"""Voyage's contextual models: the passages of a document are embedded together."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from commonplace.adapters.embed.batches import batch, clean_or_placeholder, first, regroup, unit
from commonplace.adapters.embed.service import BULK, SEARCH, RemoteEmbedder
from commonplace.errors import ConfigurationError
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

_PATH = "/v1/contextualizedembeddings"
_DIMENSIONS = (256, 512, 1024, 2048)
# A request may hold 32,000 tokens and 1,000 documents. Even dense text has two bytes a token.
_BYTES, _DOCUMENTS = 64_000, 1_000


class VoyageEmbedder(RemoteEmbedder):
    def __init__(self, settings: Settings, **timing: Any) -> None:
        if not settings.embedder_key:
            raise ConfigurationError(
                "The voyage embedder needs a key: set COMMONPLACE_EMBEDDER_KEY."
            )
        dimensions = settings.embedder_dimensions or 1024
        if dimensions not in _DIMENSIONS:
            raise ConfigurationError(
                f"COMMONPLACE_EMBEDDER_DIMENSIONS must be one of {_DIMENSIONS} for voyage, "
                f"not {dimensions}."
            )
        url = settings.embedder_url or "https://api.voyageai.com"
        model = settings.embedder_model or "voyage-context-3"
        super().__init__("voyage", settings, url, model, dimensions, **timing)

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        found = [np.empty((0, self.dimensions), np.float32)]
        for inputs in _requests(texts):
            found += await self._embed(inputs, "document", BULK)
        return regroup(np.concatenate(found), texts)

    async def query(self, text: str) -> Vector:
        (vectors,) = await self._embed([[clean_or_placeholder(text, _BYTES)]], "query", SEARCH)
        return first(vectors)

    async def _embed(self, inputs: list[list[str]], kind: str, seconds: float) -> list[Vectors]:
        body = {
            "inputs": inputs,
            "input_type": kind,
            "model": self._model,
            "output_dimension": self.dimensions,
        }
        answer = await self.ask("POST", _PATH, seconds, lambda: {"json": body})
        entries = self._entries(answer, len(inputs))
        return [
            unit(self._vectors(entry, len(passages)))
            for entry, passages in zip(entries, inputs, strict=True)
        ]


def _requests(documents: Sequence[Sequence[str]]) -> Iterator[list[list[str]]]:
    """Group whole documents into requests; one that is too long is split into windows."""
    windows = (
        window
        for document in documents
        for window in batch(
            (clean_or_placeholder(text, _BYTES) for text in document), _size, _BYTES, _DOCUMENTS
        )
    )
    return batch(windows, lambda window: sum(map(_size, window)), _BYTES, _DOCUMENTS)


def _size(text: str) -> int:
    return len(text.encode())
