"""A server on this machine that speaks the documented protocols of Voyage (contextualised) and OpenAI embeddings."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event
from typing import Any
from zlib import crc32

import numpy as np

from tests.stub_service import KEY, Mishap, Stand, running


class Refused(Exception):
    """What the real service would answer with HTTP 400."""


@dataclass
class EmbeddingService:
    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    mishaps: list[Mishap] = field(default_factory=list)  # each is used up by one request
    closing: Event = field(default_factory=Event)

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        if path == "/v1/contextualizedembeddings":
            return _voyage(body)
        if path == "/v1/embeddings":
            return _openai(body)
        raise Refused(f"no such path {path}")


def _voyage(body: dict[str, Any]) -> dict[str, Any]:
    inputs, dimension = body["inputs"], body["output_dimension"]
    if body["input_type"] not in ("query", "document") or dimension not in (256, 512, 1024, 2048):
        raise Refused("input_type or output_dimension is not supported")
    if not 1 <= len(inputs) <= 1000 or not all(inputs):
        raise Refused("inputs must be 1 to 1000 lists that are not empty")
    if sum(_tokens(text) for texts in inputs for text in texts) > 32_000:
        raise Refused("too many tokens")
    return _list(
        [_list(_entries(texts, dimension)) | {"index": index} for index, texts in enumerate(inputs)]
    )


def _openai(body: dict[str, Any]) -> dict[str, Any]:
    texts = body["input"]
    if (
        not 1 <= len(texts) <= 2048
        or sum(map(_tokens, texts)) > 300_000
        or max(map(_tokens, texts)) > 8191
    ):
        raise Refused("too many inputs or tokens")
    return _list(_entries(texts, body.get("dimensions", 1536)))


def _list(entries: list[Any]) -> dict[str, Any]:
    """Entries carry their index, and no promise about their order: so they come backwards here."""
    return {"object": "list", "data": entries[::-1], "usage": {"total_tokens": 1}}


def _entries(texts: list[str], dimension: int) -> list[dict[str, Any]]:
    if not all(text.strip() for text in texts):
        raise Refused("input cannot be an empty string")
    return [
        {"object": "embedding", "index": index, "embedding": _vector(text, dimension)}
        for index, text in enumerate(texts)
    ]


def _vector(text: str, dimension: int) -> list[float]:
    """Texts that share words are alike, as with a real model; and not of length one, as with some servers."""
    words = [
        np.random.default_rng(crc32(word.encode())).normal(size=dimension)
        for word in set(text.lower().split())
    ]
    return [float(number) for number in np.sum(words, axis=0)]


def _tokens(text: str) -> int:
    return max(1, len(text.encode()) // 3)


class _Handler(Stand):
    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.service.bodies.append(body)
        if self.service.mishaps:
            self.mishap(self.service.mishaps.pop(0))
        elif self.headers["Authorization"] != f"Bearer {KEY}":
            self.send(
                401, json.dumps({"detail": f"Incorrect API key {self.headers['Authorization']}"})
            )
        else:
            try:
                self.send(200, json.dumps(self.service.answer(self.path, body)))
            except Refused as refused:
                self.send(400, json.dumps({"detail": str(refused)}))


@contextmanager
def embedding_service() -> Iterator[EmbeddingService]:
    with running(EmbeddingService(), _Handler) as service:
        yield service
