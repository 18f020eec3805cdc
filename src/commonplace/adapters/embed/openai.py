"""OpenAI's embeddings, and every server with the same API."""

from collections.abc import Sequence
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
from commonplace.adapters.embed.service import BULK, SEARCH, RemoteEmbedder
from commonplace.errors import ConfigurationError
from commonplace.model import Json
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

_URL = "https://api.openai.com/v1"
_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
# A text may have 8,191 tokens and a request 300,000. A token has at least one byte.
_TEXT_BYTES, _REQUEST_BYTES, _REQUEST_TEXTS = 8_000, 280_000, 128


class OpenAIEmbedder(RemoteEmbedder):
    def __init__(self, settings: Settings, **timing: Any) -> None:
        url = settings.embedder_url or _URL
        if url == _URL and not settings.embedder_key:
            raise ConfigurationError(
                "The openai embedder needs a key: set COMMONPLACE_EMBEDDER_KEY "
                "(or COMMONPLACE_EMBEDDER_URL for a server of your own)."
            )
        model = settings.embedder_model or "text-embedding-3-small"
        self._requested = settings.embedder_dimensions
        if not self._requested and model not in _DIMENSIONS:
            raise ConfigurationError(
                f"The dimensions of {model} are unknown: set COMMONPLACE_EMBEDDER_DIMENSIONS."
            )
        dimensions = self._requested or _DIMENSIONS[model]
        super().__init__("openai", settings, url, model, dimensions, **timing)

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        found = [np.empty((0, self.dimensions), np.float32)]
        passages = (clean_or_placeholder(text, _TEXT_BYTES) for text in flat(texts))
        for inputs in batch(
            passages, lambda text: len(text.encode()), _REQUEST_BYTES, _REQUEST_TEXTS
        ):
            found.append(await self._embed(inputs, BULK))
        return regroup(np.concatenate(found), texts)

    async def query(self, text: str) -> Vector:
        return first(await self._embed([clean_or_placeholder(text, _TEXT_BYTES)], SEARCH))

    async def _embed(self, texts: list[str], seconds: float) -> Vectors:
        body: Json = {"input": texts, "model": self._model}
        if self._requested:
            body["dimensions"] = self._requested
        answer = await self.ask("POST", "/embeddings", seconds, lambda: {"json": body})
        return unit(self._vectors(answer, len(texts)))
