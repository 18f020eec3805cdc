"""Embedding services over HTTP: OpenAI's API, which many servers have, and Voyage's."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from commonplace.adapters.embed.batches import (
    batch,
    clean_or_placeholder,
    first,
    flat,
    regroup,
    unit,
)
from commonplace.adapters.http_client import PAUSES, TIMEOUT, HttpService
from commonplace.errors import ConfigurationError, EmbeddingFailed
from commonplace.model import Json
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

BULK, SEARCH = 60.0, 5.0  # seconds for all attempts: a job can wait, a search cannot
_OPENAI = "https://api.openai.com/v1"
_OPENAI_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
# A text may have 8,191 tokens and a request 300,000. A token has at least one byte.
_TEXT_BYTES, _REQUEST_BYTES, _REQUEST_TEXTS = 8_000, 280_000, 128
_VOYAGE_DIMENSIONS = (256, 512, 1024, 2048)
# A request may hold 32,000 tokens and 1,000 documents. Even dense text has two bytes a token.
_VOYAGE_BYTES, _VOYAGE_DOCUMENTS = 64_000, 1_000


class RemoteEmbedder(HttpService, ABC):
    quick = False

    def __init__(
        self,
        name: str,
        settings: Settings,
        url: str,
        model: str,
        dimensions: int,
        *,
        pauses: Sequence[float] = PAUSES,
        timeout: float = TIMEOUT,
    ) -> None:
        self.dimensions, self._model = dimensions, model
        self.stamp = f"{name}/{model}/{dimensions}"
        super().__init__(
            f"{name} embedding",
            url,
            settings.embedder_key,
            headers={"Authorization": f"Bearer {settings.embedder_key}"},
            setting="COMMONPLACE_EMBEDDER",
            failure=lambda message, status: EmbeddingFailed(message),
            pauses=pauses,
            timeout=timeout,
        )

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        found = [np.empty((0, self.dimensions), np.float32)]
        for inputs in self._requests(texts):
            found += await self._embed(inputs, "document", BULK)
        return regroup(np.concatenate(found), texts)

    async def query(self, text: str) -> Vector:
        return first((await self._embed(next(self._requests([[text]])), "query", SEARCH))[0])

    @abstractmethod
    def _requests(self, documents: Sequence[Sequence[str]]) -> Iterator[list[Any]]:
        """Group the passages into the inputs of requests."""

    @abstractmethod
    async def _embed(self, inputs: list[Any], kind: str, seconds: float) -> list[Vectors]:
        """Return the unit vectors of one request. `kind`: document or query."""

    def _entries(self, answer: Json, count: int) -> list[Json]:
        """Return the `count` entries of `data`, ordered by their `index`."""
        try:
            ordered: list[Json] = sorted(answer["data"], key=lambda entry: int(entry["index"]))
            places = [int(entry["index"]) for entry in ordered]
        except (KeyError, TypeError, ValueError):
            raise self.unexpected() from None
        if places != list(range(count)):
            raise self.failure(f"gave {len(places)} answers to {count} questions")
        return ordered

    def _vectors(self, answer: Json, count: int) -> Vectors:
        try:
            vectors: Vectors = np.array(
                [entry["embedding"] for entry in self._entries(answer, count)], np.float32
            )
        except (KeyError, TypeError, ValueError):
            raise self.unexpected() from None
        if vectors.shape != (count, self.dimensions):
            raise self.failure(
                f"gave vectors of {vectors.shape[-1]} numbers, not {self.dimensions}; "
                "check COMMONPLACE_EMBEDDER_MODEL and COMMONPLACE_EMBEDDER_DIMENSIONS"
            )
        if not np.isfinite(vectors).all():
            raise self.failure("gave numbers that are not finite")
        return unit(vectors)


class OpenAIEmbedder(RemoteEmbedder):
    """OpenAI's embeddings, and every server with the same API."""

    def __init__(self, settings: Settings, **timing: Any) -> None:
        url = settings.embedder_url or _OPENAI
        if url == _OPENAI and not settings.embedder_key:
            raise ConfigurationError(
                "The openai embedder needs a key: set COMMONPLACE_EMBEDDER_KEY "
                "(or COMMONPLACE_EMBEDDER_URL for a server of your own)."
            )
        model = settings.embedder_model or "text-embedding-3-small"
        self._requested = settings.embedder_dimensions
        if not self._requested and model not in _OPENAI_DIMENSIONS:
            raise ConfigurationError(
                f"The dimensions of {model} are unknown: set COMMONPLACE_EMBEDDER_DIMENSIONS."
            )
        super().__init__(
            "openai", settings, url, model, self._requested or _OPENAI_DIMENSIONS[model], **timing
        )

    def _requests(self, documents: Sequence[Sequence[str]]) -> Iterator[list[str]]:
        return batch(
            (clean_or_placeholder(text, _TEXT_BYTES) for text in flat(documents)),
            _size,
            _REQUEST_BYTES,
            _REQUEST_TEXTS,
        )

    async def _embed(self, inputs: list[str], kind: str, seconds: float) -> list[Vectors]:
        body: Json = {"input": inputs, "model": self._model}
        if self._requested:
            body["dimensions"] = self._requested
        return [
            self._vectors(
                await self.ask("POST", "/embeddings", seconds, lambda: {"json": body}), len(inputs)
            )
        ]


class VoyageEmbedder(RemoteEmbedder):
    """Voyage's contextual models: the passages of a document are embedded together."""

    def __init__(self, settings: Settings, **timing: Any) -> None:
        if not settings.embedder_key:
            raise ConfigurationError(
                "The voyage embedder needs a key: set COMMONPLACE_EMBEDDER_KEY."
            )
        dimensions = settings.embedder_dimensions or 1024
        if dimensions not in _VOYAGE_DIMENSIONS:
            raise ConfigurationError(
                f"COMMONPLACE_EMBEDDER_DIMENSIONS must be one of {_VOYAGE_DIMENSIONS} for voyage, "
                f"not {dimensions}."
            )
        super().__init__(
            "voyage",
            settings,
            settings.embedder_url or "https://api.voyageai.com",
            settings.embedder_model or "voyage-context-3",
            dimensions,
            **timing,
        )

    def _requests(self, documents: Sequence[Sequence[str]]) -> Iterator[list[list[str]]]:
        """Group whole documents into requests; one that is too long is split into windows."""
        windows = (
            window
            for document in documents
            for window in batch(
                (clean_or_placeholder(text, _VOYAGE_BYTES) for text in document),
                _size,
                _VOYAGE_BYTES,
                _VOYAGE_DOCUMENTS,
            )
        )
        return batch(
            windows, lambda window: sum(map(_size, window)), _VOYAGE_BYTES, _VOYAGE_DOCUMENTS
        )

    async def _embed(self, inputs: list[list[str]], kind: str, seconds: float) -> list[Vectors]:
        body = {
            "inputs": inputs,
            "input_type": kind,
            "model": self._model,
            "output_dimension": self.dimensions,
        }
        entries = self._entries(
            await self.ask("POST", "/v1/contextualizedembeddings", seconds, lambda: {"json": body}),
            len(inputs),
        )
        return [
            self._vectors(entry, len(passages))
            for entry, passages in zip(entries, inputs, strict=True)
        ]


def _size(text: str) -> int:
    return len(text.encode())
