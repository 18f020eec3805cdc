"""What vector search should answer, computed the slow and certain way."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from commonplace.model import Scope, Scored

TOLERANCE = 2e-3  # float16 on both sides


@dataclass
class Kept:
    library_id: str
    stamp: str
    folders: set[str]
    vectors: dict[int, NDArray[np.float32]]  # by section id


@dataclass
class Oracle:
    items: dict[str, Kept] = field(default_factory=dict)

    def cosines(self, scope: Scope, vector: NDArray[np.float32], stamp: str) -> dict[int, float]:
        """Of every section in scope that has a vector of this stamp."""
        return {
            section_id: float(stored.astype(np.float16).astype(np.float32) @ vector)
            for kept in self.items.values()
            if kept.library_id == scope.library_id and kept.stamp == stamp
            if scope.folders is None or kept.folders & scope.folders
            for section_id, stored in kept.vectors.items()
        }

    def check(
        self, scope: Scope, vector: NDArray[np.float32], stamp: str, limit: int, found: list[Scored]
    ) -> None:
        """Nothing from outside the scope, nothing missing, true cosines, best first."""
        true = self.cosines(scope, vector, stamp)
        ids = [hit.section_id for hit in found]
        assert len(set(ids)) == len(ids), "a section twice"
        assert set(ids) <= set(true), "a section from outside the scope, or without a vector"
        assert all(abs(hit.score - true[hit.section_id]) < TOLERANCE for hit in found)
        assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
        best = sorted(true.values(), reverse=True)[:limit]
        assert len(found) >= len(best), "a short answer"
        assert all(
            hit.score >= score - TOLERANCE for hit, score in zip(found, best, strict=False)
        ), "a nearer one was missed"
