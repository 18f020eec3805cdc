"""16-bit float vectors as each engine stores them: bytes in SQLite, `halfvec` in Postgres."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.database.transaction import WireVector

HalfMatrix = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Format:
    column: str  # SQL that reads a vector as bytes
    name: str  # the column
    put: str  # SQL that stores :vector of section :id with :stamp, if the section exists
    value: Callable[[bytes], Any]  # encodes :vector
    matrix: Callable[[Sequence[bytes]], HalfMatrix]  # decodes vectors of one length


def _plain(read: Sequence[bytes]) -> HalfMatrix:
    return np.frombuffer(b"".join(read), np.float16).reshape(len(read), -1)


def _sent(read: Sequence[bytes]) -> HalfMatrix:
    """Decode the wire format: two 16-bit numbers, then big-endian elements."""
    return np.frombuffer(b"".join(read), ">f2").reshape(len(read), -1)[:, 2:].astype(np.float16)


def _to_send(vector: bytes) -> WireVector:
    halves = np.frombuffer(vector, np.float16)
    return WireVector(np.array([len(halves), 0], ">u2").tobytes() + halves.astype(">f2").tobytes())


FORMATS = {
    "sqlite": Format(
        "vector",
        "vector",
        """INSERT INTO vectors (library_id, item_id, section_id, stamp,
           vector) SELECT library_id, item_id, id, :stamp, :vector
           FROM sections
           WHERE id = :id
           ON CONFLICT (library_id, item_id, section_id) DO UPDATE
           SET stamp = excluded.stamp, vector = excluded.vector""",
        bytes,
        _plain,
    ),
    "postgres": Format(
        "halfvec_send(embedding)",
        "embedding",
        """INSERT INTO vectors (library_id, item_id, section_id, stamp,
           embedding) SELECT s.library_id, s.item_id, s.id, :stamp, :vector::halfvec
           FROM sections AS s
           WHERE s.id = :id FOR KEY SHARE OF s
           ON CONFLICT (section_id) DO UPDATE
           SET stamp = excluded.stamp, embedding = excluded.embedding""",
        _to_send,
        _sent,
    ),
}
