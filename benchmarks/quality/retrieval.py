"""Retrieval on the development sets: `python -m benchmarks.quality.retrieval [embedder ...]`.

The three modes beside naive hybrid search: pieces of 180 words with the title before them,
.7 cosine + .3 BM25 / best, which stands in the column *before*. Figures are nDCG@10, recall@10
and recall@5. COMMONPLACE_DATA: the folder of sets; COMMONPLACE_CACHE: a folder where
vectors are kept between runs.
"""

import asyncio
import os
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from hashlib import sha256
from math import log
from pathlib import Path

import numpy as np

from commonplace import app
from commonplace.adapters.embed import make_embedder
from commonplace.core.services import Services
from commonplace.core.transfer.evaluation import Evaluation, RetrievalSet, measure, read_set
from commonplace.model import Caller, Mode, no_advance
from commonplace.ports import Embedder, Vector, Vectors
from commonplace.settings import Settings

SETS = ("docs_rag", "code_rag", "xquad_en", "cranfield", "chats")
EMBEDDERS = ("local", "static")
METRICS = ("ndcg@10", "recall@10", "recall@5")
NAIVE = "naive hybrid"
WORDS, K1, B = 180, 1.2, 0.75
Means = dict[str, float]
_WORD = re.compile(r"[^\W_]+")


class Remembering:
    """An embedder that keeps vectors in a folder, so that a second run is fast."""

    quick = True  # documents are embedded as they are added

    def __init__(self, embedder: Embedder, folder: str | None) -> None:
        self._embedder, self._folder = embedder, Path(folder) if folder else None
        self.stamp, self.dimensions = embedder.stamp, embedder.dimensions

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        file = self._file("documents", *("\n".join(document) for document in texts))
        if file is not None and file.exists():
            vectors = np.load(file)
        else:
            found = await self._embedder.documents(texts)
            vectors = np.concatenate([np.empty((0, self.dimensions), np.float32), *found])
            self._keep(file, vectors)
        ends = np.cumsum([len(document) for document in texts], dtype=np.int64)
        return list(np.split(vectors, ends[:-1])) if len(ends) else []

    async def query(self, text: str) -> Vector:
        file = self._file("query", text)
        if file is not None and file.exists():
            return np.load(file)
        vector = await self._embedder.query(text)
        self._keep(file, vector)
        return vector

    async def close(self) -> None:
        await self._embedder.close()

    def _file(self, *key: str) -> Path | None:
        if self._folder is None:
            return None
        name = sha256("\0".join((self.stamp, *key)).encode("utf-8", "replace")).hexdigest()
        return self._folder / f"{name}.npy"

    def _keep(self, file: Path | None, vectors: Vectors) -> None:
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            np.save(file, vectors)


def data() -> Path:
    return Path(os.environ.get("COMMONPLACE_DATA") or Path(__file__).parents[3] / "shared" / "data")


def _measure(ranked: Sequence[str], judged: Mapping[str, int]) -> Means:
    found = measure(ranked, judged)
    return {metric: found[metric] for metric in METRICS}


def _mean(found: Sequence[Means]) -> Means:
    return {metric: sum(each[metric] for each in found) / len(found) for metric in METRICS}


@asynccontextmanager
async def remembering_app(embedder: str) -> AsyncIterator[tuple[Services, Caller]]:
    """Open an empty library whose vectors are kept between runs."""
    app.make_embedder = lambda settings: Remembering(
        make_embedder(settings), os.environ.get("COMMONPLACE_CACHE")
    )
    try:
        async with app.scratch_app(Settings(embedder=embedder)) as services:
            await services.people.ensure_owner()
            caller = await services.access.owner()
            assert caller is not None
            yield services, caller
    finally:
        app.make_embedder = make_embedder


async def ours(judged: RetrievalSet, embedder: str) -> dict[str, Means]:
    """Return the metrics of each mode."""
    async with remembering_app(embedder) as (services, caller):
        evaluation = Evaluation(services, caller)
        folders = await evaluation.add(judged.documents, no_advance)
        while await services.worker.run_once():  # those that repeat a text
            pass
        search = services.search
        found: dict[str, list[Means]] = {str(mode): [] for mode in Mode}
        for query in judged.queries:
            asking = caller
            if query.group is not None:
                asking = replace(caller, folders=frozenset({folders[query.group]}))
            for mode in Mode:
                ranked = await evaluation._ranked(search, asking, query.text, mode)
                found[str(mode)].append(_measure(ranked, judged.judgements[query.id]))
    return {mode: _mean(rows) for mode, rows in found.items()}


async def naive(judged: RetrievalSet, embedder: str) -> Means:
    """Return the metrics of what one writes in an afternoon."""
    made = Remembering(
        make_embedder(Settings(embedder=embedder)), os.environ.get("COMMONPLACE_CACHE")
    )
    pieces = [
        (document, f"{document.title}\n{' '.join(words[start : start + WORDS])}".strip())
        for document in judged.documents
        for words in [(document.text or document.title).split()]
        for start in range(0, max(len(words), 1), WORDS)
    ]
    vectors = np.concatenate(await made.documents([[text] for _, text in pieces]))
    bags = [Counter(_WORD.findall(text.lower())) for _, text in pieces]
    rows_of: dict[str | None, list[int]] = {}
    for row, (document, _) in enumerate(pieces):
        rows_of.setdefault(document.group, []).append(row)
    found = []
    for query in judged.queries:
        rows = rows_of[query.group] if query.group is not None else list(range(len(pieces)))
        keyword = _bm25(_WORD.findall(query.text.lower()), [bags[row] for row in rows])
        cosines = np.clip(vectors[rows] @ await made.query(query.text), 0, 1)
        scores = 0.7 * cosines + 0.3 * keyword / max(float(keyword.max()), 1e-30)
        best = [pieces[rows[place]][0].id for place in np.argsort(-scores, kind="stable")]
        found.append(_measure(list(dict.fromkeys(best)), judged.judgements[query.id]))
    await made.close()
    return _mean(found)


def _bm25(words: Sequence[str], bags: Sequence[Counter[str]]) -> Vector:
    lengths = np.array([bag.total() for bag in bags], np.float32)
    scores = np.zeros(len(bags), np.float32)
    for word in words:
        counts = np.array([bag[word] for bag in bags], np.float32)
        number = int((counts > 0).sum())
        rarity = log(1 + (len(bags) - number + 0.5) / (number + 0.5))
        scores += (
            rarity * counts * (K1 + 1) / (counts + K1 * (1 - B + B * lengths / lengths.mean()))
        )
    return scores


async def figures(embedders: Sequence[str] = EMBEDDERS) -> list[tuple[str, str, str]]:
    """Return, for each set and embedder, naive hybrid search and ours."""
    rows = []
    for name in SETS:
        if not (data() / name).is_dir():
            continue
        judged = read_set(data() / name)
        for embedder in embedders:
            plain, modes = await naive(judged, embedder), await ours(judged, embedder)
            for mode, means in modes.items():
                rows.append((f"{name}, {embedder}, {mode}", _told(plain), _told(means)))
    return rows


def _told(means: Means) -> str:
    return " / ".join(f"{means[metric]:.3f}" for metric in METRICS)


if __name__ == "__main__":
    print(" | ".join(("set, embedder, mode", NAIVE, f"now ({' / '.join(METRICS)})")))
    for row in asyncio.run(figures(sys.argv[1:] or EMBEDDERS)):
        print(" | ".join(row), flush=True)
