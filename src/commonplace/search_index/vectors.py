"""The vectors of an index: 16-bit floats, and sign bits to preselect candidates."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import simsimd
from numpy.typing import NDArray

from commonplace.ports import Vector
from commonplace.search_index.postings import Rows
from commonplace.search_index.row_owners import grow
from commonplace.search_index.sign_bits import sign_words
from commonplace.search_index.vector_codec import HalfMatrix

SCANNED_AT_ONCE = (
    16_384  # rows, so that what is worked out on the way stays in the processor's cache
)
FAR = 255  # a distance for rows that may not be found


class Vectors:
    def __init__(self) -> None:
        self.matrix: HalfMatrix = np.empty((0, 0), np.float16)
        # One array for each word of the sign bits: a scan reads them one after the other.
        self.signs: list[NDArray[np.uint64]] = []
        self.has = np.empty(0, bool)

    @classmethod
    def of(cls, arrays: Mapping[str, NDArray[Any]]) -> "Vectors":
        vectors = cls()
        vectors.has, vectors.matrix = arrays["has"], arrays["matrix"]
        vectors.signs = [array for name, array in arrays.items() if name.startswith("signs")]
        return vectors

    def arrays(self, rows: Rows | slice) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the arrays that `of` restores this from, for these rows only."""
        yield "has", self.has[rows]
        yield "matrix", self.matrix[rows]
        for n, signs in enumerate(self.signs):
            yield f"signs{n}", signs[rows]

    def reserve(self, size: int) -> None:
        used = len(self.has)
        self.has = grow(self.has, size, used)
        self.matrix = grow(self.matrix, size, used)
        self.signs = [grow(word, size, used) for word in self.signs]

    def set(self, rows: Rows, matrix: HalfMatrix) -> None:
        """Set the vectors of rows that are reserved."""
        words = sign_words(matrix)
        if not self.signs:
            self.matrix = np.zeros((len(self.has), matrix.shape[1]), np.float16)
            self.signs = [np.zeros(len(self.has), np.uint64) for _ in words]
        self.matrix[rows] = matrix
        for signs, word in zip(self.signs, words, strict=True):
            signs[rows] = word
        self.has[rows] = True

    def forget(self, rows: Rows) -> None:
        self.has[rows] = False


def cosines(matrix: HalfMatrix, rows: Rows, vector: Vector) -> NDArray[np.float32]:
    if not len(rows):
        return np.empty(0, np.float32)
    # simsimd multiplies 16-bit floats directly; numpy converts them and takes four times as long.
    products = simsimd.cdist(vector.astype(np.float16)[None], matrix.take(rows, axis=0), "dot")
    first: NDArray[np.float32] = np.asarray(products, np.float32)[0]
    return first
