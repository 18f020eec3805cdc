"""Helpers of the embedders: batches of passages, unit vectors."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar, cast

import numpy as np

from commonplace.errors import ConfigurationError
from commonplace.ports import Vector, Vectors
from commonplace.settings import Settings

T = TypeVar("T")


def require_own(settings: Settings, model: str, dimensions: int) -> None:
    """Refuse settings for another model, where an embedder has only one."""
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
    """Cut to `limit` bytes of UTF-8; replace lone surrogates, which JSON cannot carry."""
    return text[:limit].encode("utf-8", "replace")[:limit].decode("utf-8", "ignore")


def clean_or_placeholder(text: str, limit: int) -> str:
    """Clean a text for services that refuse an empty one."""
    text = clean(text, limit).replace("\0", " ")
    return text if text.strip() else "(empty)"


def batch(items: Iterable[T], size: Callable[[T], int], limit: int, most: int) -> Iterator[list[T]]:
    """Group neighbours, up to `most` with a total size of `limit`; one alone may be larger."""
    run: list[T] = []
    used = 0
    for item in items:
        if run and (used + size(item) > limit or len(run) == most):
            yield run
            run, used = [], 0
        run.append(item)
        used += size(item)
    if run:
        yield run


def unit(vectors: Vectors) -> Vectors:
    lengths: Vectors = np.linalg.norm(vectors, axis=1, keepdims=True)
    # A text without a known word has to point somewhere.
    units = np.full_like(vectors, vectors.shape[1] ** -0.5)
    np.divide(vectors, lengths, out=units, where=lengths > 0)
    return units


def first(vectors: Vectors) -> Vector:
    return cast(Vector, vectors[0])
