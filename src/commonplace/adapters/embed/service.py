"""The common part of embedding services over HTTP."""

from collections.abc import Sequence

import numpy as np

from commonplace.adapters.http_client import PAUSES, TIMEOUT, HttpService
from commonplace.errors import EmbeddingFailed
from commonplace.model import Json
from commonplace.ports import Vectors
from commonplace.settings import Settings

BULK, SEARCH = 60.0, 5.0  # seconds for all attempts: a job can wait, a search cannot


class RemoteEmbedder(HttpService):
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
        return vectors
