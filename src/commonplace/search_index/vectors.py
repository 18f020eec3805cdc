"""The vectors of an index: 16-bit floats, and sign bits to preselect candidates.

A vector's bits are the signs of up to 512 random projections. The signs of the dimensions
themselves lose too much if a model has few dimensions or skewed ones: of the true ten nearest, .972
were among the best 2,000 of 60,000 (static embedder, 256 dimensions); with these projections, .998.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from hashlib import shake_256
from typing import Any

import numpy as np
import simsimd
from numpy.typing import NDArray

from commonplace.ports import Vector
from commonplace.search_index.postings import Rows
from commonplace.search_index.row_owners import grow

# Rows, so that what is worked out on the way stays in the processor's cache.
SCANNED_AT_ONCE = 16_384
FAR = 255  # a distance for rows that may not be found

# These kernels sum in 16 bits: the order of results would depend on the machine.
for _kernel in ("sapphire", "sve_f16"):
    simsimd.disable_capability(_kernel)

HalfMatrix = NDArray[np.float16]
_NO_VECTORS = {"has": np.empty(0, bool), "matrix": np.empty((0, 0), np.float16)}


class Vectors:
    def __init__(self, arrays: Mapping[str, NDArray[Any]] = _NO_VECTORS) -> None:
        self.has, self.matrix = arrays["has"], arrays["matrix"]
        # One array for each word of the sign bits: a scan reads them one after the other.
        self.signs = [array for name, array in arrays.items() if name.startswith("signs")]

    def arrays(self, rows: Rows | slice) -> Iterator[tuple[str, NDArray[Any]]]:
        """Yield the arrays to restore this from, for these rows only."""
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


def halves(read: Sequence[bytes]) -> HalfMatrix:
    """Return a matrix of vectors of one length, as SQLite stores them."""
    return np.frombuffer(b"".join(read), np.float16).reshape(len(read), -1)


def cosines(matrix: HalfMatrix, rows: Rows, vector: Vector) -> NDArray[np.float32]:
    if not len(rows):
        return np.empty(0, np.float32)
    # simsimd multiplies 16-bit floats directly; numpy converts them and takes four times as long.
    products = simsimd.cdist(vector.astype(np.float16)[None], matrix.take(rows, axis=0), "dot")
    first: NDArray[np.float32] = np.asarray(products, np.float32)[0]
    return first


# -- sign bits


def sign_words(matrix: NDArray[np.floating]) -> NDArray[np.uint64]:
    """Pack the sign bits of each vector into 64-bit words, one word a row of the result."""
    packed = np.packbits(matrix.astype(np.float32) @ _projection(matrix.shape[1]) > 0, axis=1)
    padded = np.zeros((len(matrix), -(-packed.shape[1] // 8) * 8), np.uint8)
    padded[:, : packed.shape[1]] = packed
    return np.ascontiguousarray(padded.view(np.uint64).T)


@lru_cache(maxsize=8)
def _projection(dimensions: int) -> NDArray[np.float32]:
    """Return Hadamard columns with shuffled signs. They never change, because bits are stored."""
    hadamard = np.ones((1, 1), np.float32)
    while len(hadamard) < dimensions:
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    flips = np.unpackbits(
        np.frombuffer(shake_256(b"commonplace signs").digest(dimensions), np.uint8)
    )[: 2 * dimensions]
    halves = [
        hadamard[:dimensions, :dimensions] * (2.0 * half[:, None] - 1)
        for half in flips.reshape(2, dimensions)
    ]
    bits = min(2 * dimensions, max(512, dimensions))
    return np.ascontiguousarray(np.hstack(halves)[:, :bits], np.float32)
