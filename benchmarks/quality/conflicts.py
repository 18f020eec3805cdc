"""What `add` and `remember` tell of known statements: conflicts, and the closest others.

Pairs: the older statements are a library, and each newer one is compared with it; right is what is
told of its own partner. "Beside each other": the newer ones stay in the library. The weights are
fitted on these pairs, so the rows of cross-validation judge each pair by weights fitted without it.
Libraries: items are added one after another; `conflicts.jsonl` says which of the
contradictions told are right; one reader judged them, who wrote the rules. `python -m benchmarks.quality.conflicts` prints fitted weights.
"""

import ast
import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.quality.retrieval import data, remembering_app
from commonplace.core.entities import conflicts, judgement
from commonplace.core.entities.candidates import Draft, Part
from commonplace.core.entities.validation import NewEntity
from commonplace.core.services import Services
from commonplace.model import Caller, Section
from commonplace.text.chunking import embedding_text

OWN = Path(__file__).parent
EMBEDDERS = ("local", "static")
REAL = ("contradiction", "update")
NAMES = list(judgement.WEIGHTS)
Rows = dict[str, NDArray[Any]]


class Pair(NamedTuple):
    old: str
    new: str
    kind: str


def pairs(name: str) -> list[Pair]:
    if name == "memory":
        lines = (data() / "memory" / "pairs.jsonl").read_text().splitlines()
        return [Pair(each["a"], each["b"], each["kind"]) for each in map(json.loads, lines)]
    if name == "tests":
        found = []
        for file in ("pairs", "pairs_held_out"):
            text = (Path(__file__).parents[2] / "tests" / "data" / f"{file}.jsonl").read_text()
            for each in map(json.loads, text.splitlines()):
                if each["kind"] in ("contradiction", "different"):
                    found.append(Pair(". ".join(each["a"]), ". ".join(each["b"]), each["kind"]))
        return found
    lines = (OWN / f"{name}.jsonl").read_text().splitlines()
    return [Pair(each["old"], each["new"], each["kind"]) for each in map(json.loads, lines)]


def entity(text: str) -> NewEntity:
    return NewEntity(text[:80].rsplit(" ", 1)[0] if len(text) > 80 else text, text, "claim")


async def draft(services: Services, text: str) -> Draft:
    new = entity(text)
    [vectors] = await services.embedder.documents([[embedding_text(new.title, Section(0, text))]])
    return Draft(new.title, text, [Part(text, vectors[0])], "claim")


@dataclass
class Told:
    """What was told of pairs."""

    wanted: int = 0
    told: int = 0
    right: int = 0
    shown: int = 0  # partners among conflicts and similar

    def row(self) -> str:
        return (
            f"precision {self.right / max(1, self.told):.3f}, recall {self.right / self.wanted:.3f}"
            f" ({self.told} told), partner shown {self.shown / self.wanted:.3f}"
        )


async def compare(
    name: str, embedder: str, *, beside: Sequence[str] = (), keep: bool = False
) -> tuple[Told, Rows]:
    """Compare the newer statements with the older ones. `keep`: they stay in the library, too."""
    found, rows = Told(), list[tuple[int, bool, bool, int, list[float]]]()
    given = pairs(name)
    async with remembering_app(embedder) as (services, caller):
        texts = list(dict.fromkeys([*(pair.old for pair in given), *beside]))
        ids = {text: await _added(services, caller, text) for text in texts}
        check = services.entities._conflicts
        for n, pair in enumerate(given):
            new, partner, real = await draft(services, pair.new), ids[pair.old], pair.kind in REAL
            result = await check.find(caller.scope, new)
            told = [each for each in result.conflicts if each.kind in REAL]
            found.wanted += real
            found.told += len(told)
            found.right += real and partner in [each.item_id for each in told]
            known = [each.item_id for each in (*result.conflicts, *result.similar)]
            found.shown += real and partner in known
            for absent in (False, True) if real else (False,):
                compared = await check._candidates.compare(
                    caller.scope, new, [partner] if absent else [], None
                )
                for each in compared.candidates:
                    right = real and each.passage.item_id == partner
                    may = judgement.bar(each.new, each.old, 1.0, each.dice) is not None
                    signs = [each.signs[sign] for sign in NAMES]
                    rows.append((n, right, may, 2 * n + absent, signs))
            if keep:
                ids[pair.new] = await _added(services, caller, pair.new)
    return found, {
        "pair": np.array([row[0] for row in rows]),
        "right": np.array([row[1] for row in rows]),
        "may": np.array([row[2] for row in rows]),
        "query": np.array([row[3] for row in rows]),
        "signs": np.array([row[4] for row in rows]),
    }


async def _added(services: Services, caller: Caller, text: str) -> str:
    added = await services.entities.keep(caller, entity(text), sync=True, check_conflicts=False)
    return added.item.id


# -- weights


def fit(sets: Sequence[Rows]) -> tuple[NDArray[Any], float]:
    """Return weights and bias of a logistic regression with a little decay. Small sets count as
    much as large ones."""
    signs = np.vstack([each["signs"] for each in sets])
    right = np.concatenate([each["right"] for each in sets]).astype(float)
    worth = np.concatenate(
        [np.full(len(each["right"]), 1 / len(each["right"]) ** 0.5) for each in sets]
    )
    mean, spread = signs.mean(0), signs.std(0) + 1e-9
    scaled, weights, bias = (signs - mean) / spread, np.zeros(len(NAMES)), 0.0
    worth /= worth.sum()
    for _ in range(4_000):
        error = (1 / (1 + np.exp(-(scaled @ weights + bias))) - right) * worth
        weights -= 0.5 * (scaled.T @ error + 0.005 * weights)
        bias -= 0.5 * error.sum()
    return weights / spread, float(bias - (weights * mean / spread).sum())


def told_of(rows: Rows, sure: NDArray[Any], bar: float) -> NDArray[Any]:
    """Return which candidates are told: the surest of each statement, others if nearly certain."""
    told = np.zeros(len(sure), bool)
    for query in np.unique(rows["query"]):
        places = np.flatnonzero((rows["query"] == query) & rows["may"] & (sure >= bar))
        if len(places):
            told[places[np.argmax(sure[places])]] = True
            told[places[sure[places] >= conflicts.SURE]] = True
    return told


def cross_validated(sets: dict[str, Rows], bar: float) -> dict[str, str]:
    """Return precision and recall of each set, where every pair is judged by weights that were
    fitted without it."""
    folds = {  # the same of the same pairs, however they are measured
        name: np.random.default_rng(0).integers(0, 5, rows["pair"].max() + 1)
        for name, rows in sets.items()
    }
    sure = {name: np.zeros(len(rows["pair"])) for name, rows in sets.items()}
    for fold in range(5):
        known = [
            {key: rows[key][folds[name][rows["pair"]] != fold] for key in rows}
            for name, rows in sets.items()
        ]
        weights, bias = fit(known)
        for name, rows in sets.items():
            here = folds[name][rows["pair"]] == fold
            sure[name][here] = 1 / (1 + np.exp(-(rows["signs"][here] @ weights + bias)))
    result = {}
    for name, rows in sets.items():
        present = rows["query"] % 2 == 0
        told = told_of(rows, sure[name], bar)
        right = int((told & rows["right"]).sum())
        wanted = len(np.unique(rows["pair"][rows["query"] % 2 == 1]))
        alone = len(np.unique(rows["query"][told & ~present]))
        result[name] = (
            f"precision {right / max(1, int((told & present).sum())):.3f}, "
            f"recall {right / wanted:.3f}; told without the partner: {alone} of {wanted}"
        )
    return result


# -- libraries


def memory_items() -> Iterator[NewEntity]:
    for line in (data() / "memory" / "items.jsonl").read_text().splitlines():
        each = json.loads(line)
        kind = each["entity_type"] if each["entity_type"] != "document" else "pattern"
        yield NewEntity(
            each["title"][:200], each["content"][:50_000], kind, project=each.get("project")
        )


def packages() -> Iterator[NewEntity]:
    """Yield 240 texts of installed packages: READMEs, docstrings of modules and of functions."""
    found: dict[str, str] = {}
    for package in metadata.distributions():
        text = package.metadata.get_payload() or package.metadata.get("Description") or ""
        if len(str(text).split()) >= 40:
            found[package.metadata["Name"]] = str(text)
    readmes = [NewEntity(name, found[name][:40_000], "pattern") for name in sorted(found)]
    modules, functions = list[NewEntity](), list[NewEntity]()
    root = Path(np.__file__).parents[1]
    for file in sorted(root.glob("*/*.py")):
        try:
            tree = ast.parse(file.read_text())
        except (SyntaxError, UnicodeDecodeError):
            continue
        if len((said := ast.get_docstring(tree) or "").split()) >= 25:
            modules.append(NewEntity(".".join(file.relative_to(root).parts), said, "claim"))
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                said = ast.get_docstring(node) or ""
                if 12 <= len(said.split()) <= 55:
                    functions.append(NewEntity(node.name, said, "claim"))
    pick = random.Random(3)
    chosen = [
        *readmes[:100],
        *pick.sample(modules, min(40, len(modules))),
        *pick.sample(functions, 100),
    ]
    pick.shuffle(chosen)
    yield from chosen


async def told_in(items: Sequence[NewEntity], embedder: str) -> list[dict[str, Any]]:
    """Return what adding the items one after another tells."""
    projects: dict[str, str] = {}
    told = list[dict[str, Any]]()
    async with remembering_app(embedder) as (services, caller):
        for new in items:
            if new.project and new.project not in projects:
                within = NewEntity(new.project, f"Project {new.project}", "project")
                added = await services.entities.keep(caller, within, sync=True)
                projects[new.project] = added.item.id
            project = projects[new.project] if new.project else None
            added = await services.entities.add(caller, replace(new, project=project))
            told += [
                {"kind": each.kind, "statements": list(each.statements), "name": each.name}
                for each in added.conflicts
            ]
            told += [{"kind": "similar"} for _ in added.similar]
    return told


def library_row(name: str, told: Sequence[dict[str, Any]]) -> str:
    judged = {
        (each["library"], *each["statements"]): each["right"]
        for each in map(json.loads, (OWN / "conflicts.jsonl").read_text().splitlines())
    }
    kinds = Counter(each["kind"] for each in told)
    contradicted = [each for each in told if each["kind"] in REAL]
    verdicts = Counter(judged.get((name, *each["statements"])) for each in contradicted)
    return (
        f"{len(contradicted)} contradictions and updates ({verdicts[True]} right, "
        f"{verdicts[False]} wrong, {verdicts[None]} not judged), "
        f"{kinds['duplicate'] + kinds['near_duplicate']} duplicates, {kinds['similar']} similar"
    )


BEFORE = {
    "memory": "precision .984, recall .316 (63 told), partner shown .321",
    "statement_pairs": "precision .667, recall .867 (39 told), partner shown .867",
    "items": "83 contradictions (none right), 28 duplicates",
    "packages": "10 contradictions (not judged), 22 duplicates",
}


async def all_rows(embedder: str) -> tuple[list[tuple[str, str, str]], dict[str, Rows]]:
    rows, sets = list[tuple[str, str, str]](), dict[str, Rows]()
    for name, what, keep in (
        ("memory", "98 contradictions and 98 updates", False),
        ("memory", "the same, beside each other", True),
        ("statement_pairs", "60 pairs of another style, half compatible", False),
        ("tests", "older pairs of our own", False),
    ):
        told, sets[what] = await compare(name, embedder, keep=keep)
        before = BEFORE.get(name, "") if embedder == "local" and not keep else ""
        rows.append((f"{what}, {embedder}", before, told.row()))
    return rows, sets


async def figures() -> list[tuple[str, str, str]]:
    rows = list[tuple[str, str, str]]()
    for embedder in EMBEDDERS:
        found, sets = await all_rows(embedder)
        rows += found
        for what, said in cross_validated(sets, judgement.BETWEEN_SHORT).items():
            rows.append((f"{what}, {embedder}, cross-validated", "", said))
    for name, items in (("items", memory_items()), ("packages", packages())):
        listed = list(items)
        told = await told_in(listed, "local")
        what = f"library of {len(listed)} {'texts of installed packages' * (name == 'packages') or 'real items'}"
        rows.append((what, BEFORE[name], library_row(name, told)))
    return rows


async def main() -> None:
    sets = {}
    for embedder in EMBEDDERS:
        sets |= {
            f"{embedder} {what}": found for what, found in (await all_rows(embedder))[1].items()
        }
    weights, bias = fit(list(sets.values()))
    print(
        {name: round(float(each), 2) for name, each in zip(NAMES, weights, strict=True)},
        round(bias, 2),
    )


if __name__ == "__main__":
    asyncio.run(main())
