"""Embedding services over HTTP: what they share beyond asking."""

from collections.abc import Sequence

import numpy as np

from commonplace.adapters.http_client import Service
from commonplace.errors import EmbeddingFailed
from commonplace.model import Json
from commonplace.ports import Vectors

BULK, SEARCH = 60.0, 5.0  # seconds of patience: a job can wait, somebody who searches cannot


class EmbeddingService(Service):
    def __init__(
        self, name: str, url: str, key: str, *, pauses: Sequence[float], timeout: float
    ) -> None:
        super().__init__(
            f"{name} embedding",
            url,
            key,
            headers={"Authorization": f"Bearer {key}"},
            setting="COMMONPLACE_EMBEDDER",
            failure=lambda message, status: EmbeddingFailed(message),
            pauses=pauses,
            timeout=timeout,
        )

    async def post(self, path: str, body: Json, patience: float) -> Json:
        return await self.ask("POST", path, patience, lambda: {"json": body})

    def entries(self, answer: Json, count: int) -> list[Json]:
        """What is under `data`, in the order of its `index`: one entry for each thing asked."""
        try:
            ordered: list[Json] = sorted(answer["data"], key=lambda entry: int(entry["index"]))
            places = [int(entry["index"]) for entry in ordered]
        except (KeyError, TypeError, ValueError):
            raise self.puzzled() from None
        if places != list(range(count)):
            raise self.failed(f"gave {len(places)} answers to {count} questions")
        return ordered

    def vectors(self, answer: Json, count: int, dimensions: int) -> Vectors:
        try:
            vectors: Vectors = np.array(
                [entry["embedding"] for entry in self.entries(answer, count)], np.float32
            )
        except (KeyError, TypeError, ValueError):
            raise self.puzzled() from None
        if vectors.shape != (count, dimensions):
            raise self.failed(
                f"gave vectors of {vectors.shape[-1]} numbers, not {dimensions}; "
                "check COMMONPLACE_EMBEDDER_MODEL and COMMONPLACE_EMBEDDER_DIMENSIONS"
            )
        if not np.isfinite(vectors).all():
            raise self.failed("gave numbers that are not finite")
        return vectors
