"""What the embedders have in common: flat lists of passages, unit vectors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from commonplace.errors import ConfigurationError
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

T = TypeVar("T")


def require_own(settings: Settings, model: str, dimensions: int) -> None:
    """For embedders that are one model of one dimension: a setting that asks for another is a mistake, not a wish."""
    if settings.embedder_model not in ("", model):
        raise ConfigurationError(
            f"The {settings.embedder} embedder is always {model}; "
            f"COMMONPLACE_EMBEDDER_MODEL says {settings.embedder_model!r}."
        )
    if settings.embedder_dimensions not in (0, dimensions):
        raise ConfigurationError(
            f"{model} has {dimensions} dimensions; "
            f"COMMONPLACE_EMBEDDER_DIMENSIONS says {settings.embedder_dimensions}."
        )


def flat(documents: Sequence[Sequence[str]]) -> list[str]:
    return [passage for document in documents for passage in document]


def regroup(vectors: Vectors, documents: Sequence[Sequence[str]]) -> list[Vectors]:
    ends = np.cumsum([len(document) for document in documents], dtype=np.int64)
    return list(np.split(vectors, ends[:-1])) if len(ends) else []


def clean(text: str, limit: int) -> str:
    """At most `limit` bytes of UTF-8, without lone surrogates: neither tokenisers nor JSON can carry those."""
    return text[:limit].encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def worded(text: str, limit: int) -> str:
    """The same for services that refuse a text without a word in it."""
    text = clean(text, limit).replace("\0", " ")
    return text if text.strip() else "(empty)"


def packed(
    things: Iterable[T], size: Callable[[T], int], limit: int, most: int
) -> Iterator[list[T]]:
    """Runs of neighbours, `most` at most, that are within the limit together (a thing alone may be over it)."""
    run: list[T] = []
    used = 0
    for thing in things:
        if run and (used + size(thing) > limit or len(run) == most):
            yield run
            run, used = [], 0
        run.append(thing)
        used += size(thing)
    if run:
        yield run


def unit(vectors: Vectors) -> Vectors:
    lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
    units = np.full_like(
        vectors, vectors.shape[1] ** -0.5
    )  # a text without a known word has to point somewhere
    np.divide(vectors, lengths, out=units, where=lengths > 0)
    return units


def first(vectors: Vectors) -> Vector:
    vector: Vector = vectors[0]
    return vector
