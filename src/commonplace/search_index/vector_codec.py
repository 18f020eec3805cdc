"""Vectors of 16-bit floats as each engine keeps them: SQLite as they are, Postgres as pgvector's halfvec."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from commonplace.database.transaction import WireVector

HalfMatrix = NDArray[np.float16]


@dataclass(frozen=True, slots=True)
class Format:
    column: str  # how a vector is read, as bytes
    name: str  # the column itself
    put: str  # writes :vector of section :id with :stamp, if there is such a section
    value: Callable[[bytes], Any]  # what :vector is given as
    matrix: Callable[[Sequence[bytes]], HalfMatrix]  # rows of what was read, all of one length


def _plain(read: Sequence[bytes]) -> HalfMatrix:
    return np.frombuffer(b"".join(read), np.float16).reshape(len(read), -1)


def _sent(read: Sequence[bytes]) -> HalfMatrix:
    """On the wire: two 16-bit numbers, then the elements with their high byte first."""
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
