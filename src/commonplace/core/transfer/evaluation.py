"""Evaluate search quality on a set of documents, queries and judgements."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import log2
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from commonplace.core.items.drafts import Record
from commonplace.core.search.search import Search
from commonplace.core.search.similarity import SimilarityScale
from commonplace.core.services import Services
from commonplace.errors import Invalid
from commonplace.model import Advance, Caller, Item, Mode, new_public_id
from commonplace.ports import Embedder, Vector, Vectors

AT_ONCE = 100
DEPTH, SHALLOW = 10, 5
METRICS = (f"ndcg@{DEPTH}", f"recall@{DEPTH}", f"recall@{SHALLOW}", f"mrr@{DEPTH}")


@dataclass(frozen=True, slots=True)
class Text:
    id: str
    text: str
    title: str = ""
    group: str | None = None


@dataclass(frozen=True, slots=True)
class RetrievalSet:
    documents: tuple[Text, ...]
    queries: tuple[Text, ...]  # those that have a judgement
    judgements: Mapping[str, Mapping[str, int]]  # by query, by document


# -- reading a set


def read_set(folder: Path) -> RetrievalSet:
    documents, queries = _texts(folder / "corpus.jsonl"), _texts(folder / "queries.jsonl")
    judgements = _judgements(
        folder / "qrels.tsv", {d.id for d in documents}, {q.id for q in queries}
    )
    groups = {document.group for document in documents}
    lost = [query for query in queries if query.group is not None and query.group not in groups]
    if lost:
        raise Invalid(f"Query {lost[0].id!r} is of group {lost[0].group!r}, which no document has.")
    judged = tuple(query for query in queries if query.id in judgements)
    if not judged:
        raise Invalid(f"{folder / 'qrels.tsv'} has no judgement with a score above 0.")
    return RetrievalSet(tuple(documents), judged, judgements)


def _texts(file: Path) -> list[Text]:
    found: dict[str, Text] = {}
    for number, line in _lines(file):
        try:
            text = _text(json.loads(line))
        except (ValueError, KeyError, TypeError) as error:
            raise Invalid(
                f"{file}, line {number}: an object with _id and text is expected ({error})."
            ) from None
        if text.id in found:
            raise Invalid(f"{file}, line {number}: the _id {text.id!r} is there twice.")
        found[text.id] = text
    if not found:
        raise Invalid(f"{file} is empty.")
    return list(found.values())


def _text(row: Any) -> Text:
    if not isinstance(row, dict):
        raise TypeError("this is not an object")
    group = row.get("group")
    if not isinstance(row["text"], str) or not isinstance(row.get("title") or "", str):
        raise TypeError("text and title must be strings")
    return Text(
        str(row["_id"]), row["text"], row.get("title") or "", None if group is None else str(group)
    )


def _judgements(file: Path, documents: set[str], queries: set[str]) -> dict[str, dict[str, int]]:
    judgements: dict[str, dict[str, int]] = {}
    for number, line in _lines(file, start=2):  # after the header
        try:
            query, document, score = line.split("\t")[:3]
            grade = int(score)
        except ValueError:
            raise Invalid(
                f"{file}, line {number}: query-id, corpus-id and a whole score are expected, "
                "with tabs between them."
            ) from None
        for name, known, where in ((query, queries, "queries"), (document, documents, "corpus")):
            if name not in known:
                raise Invalid(f"{file}, line {number}: {name!r} is not in {where}.jsonl.")
        if grade > 0:
            judgements.setdefault(query, {})[document] = grade
    return judgements


def _lines(file: Path, start: int = 1) -> list[tuple[int, str]]:
    """Return the lines that are not empty, with their numbers."""
    try:
        lines = enumerate(file.read_text(encoding="utf-8").split("\n"), 1)
        return [(number, line) for number, line in lines if number >= start and line.strip()]
    except FileNotFoundError:
        raise Invalid(
            f"There is no {file.name} in {file.parent}; a retrieval set has corpus.jsonl, "
            "queries.jsonl "
            "and qrels.tsv."
        ) from None
    except UnicodeDecodeError:
        raise Invalid(f"{file} is not UTF-8 text.") from None


# -- measuring


def measure(ranked: Sequence[str], judged: Mapping[str, int]) -> dict[str, float]:
    """Compute nDCG, recall and MRR. `ranked`: documents, best first."""
    gains = [judged.get(document, 0) for document in ranked[:DEPTH]]
    ideal = sorted(judged.values(), reverse=True)[:DEPTH]
    first = next((place for place, gain in enumerate(gains, 1) if gain), None)
    return dict(
        zip(
            METRICS,
            (
                _discounted(gains) / _discounted(ideal),
                sum(gain > 0 for gain in gains) / len(judged),
                sum(gain > 0 for gain in gains[:SHALLOW]) / len(judged),
                1 / first if first else 0.0,
            ),
            strict=True,
        )
    )


def _discounted(gains: Sequence[int]) -> float:
    return sum(gain / log2(place + 1) for place, gain in enumerate(gains, 1))


# -- running


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Runs a retrieval set in an empty library."""

    services: Services
    caller: Caller
    _documents: dict[str, str] = field(default_factory=dict)  # by item
    _items: dict[int, str] = field(default_factory=dict)  # by section

    async def add(self, documents: Sequence[Text], advance: Advance) -> dict[str, str]:
        """Add the documents, and return the folder of each group."""
        names = sorted({document.group for document in documents if document.group is not None})
        # Numbered: folder names that look alike are one, groups are not.
        folders = {
            name: (await self.services.folders.create(self.caller, str(n))).id
            for n, name in enumerate(names)
        }
        for start in range(0, len(documents), AT_ONCE):
            records = [
                self._record(document, folders) for document in documents[start : start + AT_ONCE]
            ]
            advance(
                start + len(await self.services.bulk_import.put(self.caller, records)),
                len(documents),
            )
        return folders

    async def run(
        self, judged: RetrievalSet, folders: Mapping[str, str], advance: Advance
    ) -> dict[str, dict[str, float]]:
        """Return the metrics of each mode over all queries. Vectors must be complete."""
        app = self.services
        similarity = SimilarityScale(app.embedder)
        search = Search(app.store, app.access, _QueryCache(app.embedder), app.settings, similarity)
        totals = {mode: dict.fromkeys(METRICS, 0.0) for mode in Mode}
        for done, query in enumerate(judged.queries, 1):
            caller = (
                self.caller
                if query.group is None
                else replace(self.caller, folders=frozenset({folders[query.group]}))
            )
            for mode in Mode:
                for metric, value in measure(
                    await self._ranked(search, caller, query.text, mode),
                    judged.judgements[query.id],
                ).items():
                    totals[mode][metric] += value / len(judged.queries)
            advance(done, len(judged.queries))
        return {
            str(mode): {metric: round(value, 4) for metric, value in metrics.items()}
            for mode, metrics in totals.items()
        }

    async def _ranked(self, search: Search, caller: Caller, query: str, mode: Mode) -> list[str]:
        """Rank documents by their best section."""
        sections, degraded = await search.rank(caller, query, mode)
        if degraded:
            raise Invalid(f"The set cannot be evaluated: {degraded}")
        if unknown := [each.section_id for each in sections if each.section_id not in self._items]:
            passages = await self.services.store.sections.passages(caller.scope, unknown)
            self._items.update((passage.section_id, passage.item_id) for passage in passages)
        return list(
            dict.fromkeys(self._documents[self._items[found.section_id]] for found in sections)
        )

    def _record(self, document: Text, folders: Mapping[str, str]) -> Record:
        item = Item(
            id=str(uuid5(NAMESPACE_OID, document.id)),
            library_id=self.caller.library_id,
            public_id=new_public_id(),
            content_id="",
            entity_type="document",
            kind="text",
            title=document.title,
            folders=(folders[document.group],) if document.group is not None else (),
        )
        self._documents[item.id] = document.id
        # Every document is separate, even if two have the same text.
        return Record(item, document.text or document.title, once=False, describe=False)


class _QueryCache:
    """An embedder that caches the last query, since three modes ask for it."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.stamp, self.dimensions, self.quick = (
            embedder.stamp,
            embedder.dimensions,
            embedder.quick,
        )
        self._known: tuple[str, Vector] | None = None

    async def query(self, text: str) -> Vector:
        if self._known is None or self._known[0] != text:
            self._known = text, await self._embedder.query(text)
        return self._known[1]

    async def documents(self, texts: Sequence[Sequence[str]]) -> list[Vectors]:
        return await self._embedder.documents(texts)

    async def close(self) -> None:
        await self._embedder.close()
