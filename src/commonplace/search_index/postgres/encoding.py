"""Values of the search tables in the binary form that Postgres sends and takes."""

import zlib
from collections.abc import Collection, Sequence
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from commonplace.database.transaction import WireVector
from commonplace.search_index.bm25 import K1, damping
from commonplace.text.stems import NUMBERS

MOST_TERMS = 16_000  # of a section; pgvector takes no more
_INT4 = 23  # the number of this type
_HEAD = 12  # bytes before the numbers of a sparse vector


def uuid(id: str) -> WireVector:
    return WireVector(UUID(id).bytes)


def halfvec(vector: bytes) -> WireVector:
    """Encode float16 bytes: two 16-bit numbers, then big-endian elements."""
    halves = np.frombuffer(vector, np.float16)
    return WireVector(np.array([len(halves), 0], ">u2").tobytes() + halves.astype(">f2").tobytes())


def halves(read: Sequence[bytes]) -> NDArray[np.float16]:
    """Return a matrix of vectors of one length."""
    return np.frombuffer(b"".join(read), ">f2").reshape(len(read), -1)[:, 2:].astype(np.float16)


def sparse(numbers: Sequence[int], weights: Sequence[float]) -> WireVector:
    """Encode a sparse vector. Its inner product with `section_words.weights` is a score."""
    order = np.argsort(np.asarray(numbers, np.int64))
    return _sparse(np.asarray(numbers, np.int64)[order], np.asarray(weights, np.float32)[order])


def section_weights(
    terms: bytes, counts: bytes, length: int
) -> tuple[WireVector, NDArray[np.int64]]:
    """Encode the terms of a section (see pack_terms), and return them in order too."""
    numbers = np.frombuffer(terms, np.uint32).astype(np.int64)[:MOST_TERMS]
    order = np.argsort(numbers)
    numbers, halved = numbers[order], np.frombuffer(counts, np.uint8)[:MOST_TERMS][order]
    count = halved * np.float32(0.5)
    damped = damping(np.array([min(length, 65_535)], np.float32))
    return _sparse(numbers, count * np.float32(K1 + 1) / (count + damped)), numbers


def terms(read: bytes) -> NDArray[np.int64]:
    """Return the terms of a sparse vector."""
    count = int.from_bytes(read[4:8], "big")
    return np.frombuffer(read, ">i4", count, _HEAD).astype(np.int64)


def keys(library_id: str, numbers: Collection[int]) -> WireVector:
    """Return a number for each of a library's terms, in an array. Two libraries may have the same
    number for different terms."""
    return integers(np.fromiter(numbers, np.int64, len(numbers)) ^ salt(library_id))


def salt(library_id: str) -> int:
    """Return 32 bits, signed, that all keys of a library differ from its terms by."""
    return int(np.array(zlib.crc32(UUID(library_id).bytes), np.uint32).view(np.int32))


def integers(numbers: NDArray[np.int64]) -> WireVector:
    """Encode an array of 32-bit integers."""
    head = np.array([1, 0, _INT4, len(numbers), 1] if len(numbers) else [0, 0, _INT4], ">i4")
    elements = np.empty((len(numbers), 2), ">i4")
    elements[:, 0], elements[:, 1] = 4, numbers
    return WireVector(head.tobytes() + elements.tobytes())


def _sparse(numbers: NDArray[np.int64], weights: NDArray[np.float32]) -> WireVector:
    head = np.array([NUMBERS, len(numbers), 0], ">i4")
    return WireVector(
        head.tobytes() + numbers.astype(">i4").tobytes() + weights.astype(">f4").tobytes()
    )
