"""OpenAI's embeddings, and every server that speaks its protocol."""

from collections.abc import Sequence

import numpy as np

from commonplace.adapters.embed.batches import first, flat, packed, regroup, unit, worded
from commonplace.adapters.embed.service import BULK, SEARCH, EmbeddingService
from commonplace.adapters.http_client import PAUSES, TIMEOUT
from commonplace.errors import ConfigurationError
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

_URL = "https://api.openai.com/v1"
_DIMENSIONS = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
# A text may have 8,191 tokens and a request 300,000. A token is a byte at the least, so these hold for any text.
_TEXT_BYTES, _REQUEST_BYTES, _REQUEST_TEXTS = 8_000, 280_000, 128


class OpenAIEmbedder:
    quick = False

    def __init__(
        self, settings: Settings, *, pauses: Sequence[float] = PAUSES, timeout: float = TIMEOUT
    ) -> None:
        url = settings.embedder_url or _URL
        if url == _URL and not settings.embedder_key:
            raise ConfigurationError(
                "The openai embedder needs a key: set COMMONPLACE_EMBEDDER_KEY "
                "(or COMMONPLACE_EMBEDDER_URL for a server of your own)."
            )
        self._model = settings.embedder_model or "text-embedding-3-small"
        self._asked = settings.embedder_dimensions
        if not self._asked and self._model not in _DIMENSIONS:
            raise ConfigurationError(
                f"How long are the vectors of {self._model}? Set COMMONPLACE_EMBEDDER_DIMENSIONS."
            )
        self.dimensions = self._asked or _DIMENSIONS[self._model]
        self.stamp = f"openai/{self._model}/{self.dimensions}"
        self._service = EmbeddingService(
            "openai", url, settings.embedder_key, pauses=pauses, timeout=timeout
        )

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        found = [np.empty((0, self.dimensions), np.float32)]
        passages = (worded(text, _TEXT_BYTES) for text in flat(texts))
        for batch in packed(
            passages, lambda text: len(text.encode()), _REQUEST_BYTES, _REQUEST_TEXTS
        ):
            found.append(await self._embed(batch, BULK))
        return regroup(np.concatenate(found), texts)

    async def query(self, text: str) -> Vector:
        return first(await self._embed([worded(text, _TEXT_BYTES)], SEARCH))

    async def close(self) -> None:
        await self._service.close()

    async def _embed(self, texts: list[str], patience: float) -> Vectors:
        body = {"input": texts, "model": self._model} | (
            {"dimensions": self._asked} if self._asked else {}
        )
        answer = await self._service.post("/embeddings", body, patience)
        return unit(self._service.vectors(answer, len(texts), self.dimensions))
