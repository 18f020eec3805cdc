"""Retrieval quality on judged sets: ours as `commonplace eval` has it, the engines' own search with the same vectors."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from commonplace.core.transfer.evaluation import (
    METRICS,
    RetrievalSet,
    measure as measured,
    read_set,
)

from .corpus import embed
from .peers import OURS, Peer
from .row import HERE, environment, python_for

TOO_SLOW = ("sibyl", "basic-memory")  # with thousands of documents and questions
PATIENCE = 400


def measure(
    data: Path, peers: list[Peer], cache: Path, embedding: str, found: dict, when: dict
) -> None:
    """Into `found`, where the rows of those who are not asked this time stay."""
    for folder in sorted(path for path in data.iterdir() if (path / "qrels.tsv").exists()):
        judged = read_set(folder)
        rows = found.setdefault(folder.name, {"rows": {}})
        rows |= {"documents": len(judged.documents), "queries": len(judged.queries)}
        if any(peer.kind == OURS for peer in peers):
            done = subprocess.run(
                [sys.executable, "-m", "commonplace", "eval", str(folder), "--json"],
                capture_output=True,
                text=True,
                check=True,
                env=os.environ | {"COMMONPLACE_EMBEDDER": "static"},
            )
            rows["rows"]["Commonplace"] = json.loads(done.stdout)["modes"] | {"measured": when}
        with tempfile.TemporaryDirectory(prefix="bench-") as scratch:
            write(judged, Path(scratch) / "work")
            for peer in peers:
                if peer.kind != OURS and peer.key not in TOO_SLOW:
                    rows["rows"][peer.name] = _peer(
                        peer, judged, Path(scratch), cache, embedding
                    ) | {"measured": when}


def write(judged: RetrievalSet, folder: Path) -> None:
    """A set as work: each group of documents is a group of notes."""
    folder.mkdir()
    texts = [
        f"{document.title}\n{document.text}" if document.title else document.text
        for document in judged.documents
    ]
    (folder / "notes.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    (folder / "groups.json").write_text(
        json.dumps([document.group or "all" for document in judged.documents])
    )
    (folder / "questions.json").write_text(json.dumps([query.text for query in judged.queries]))
    (folder / "question_groups.json").write_text(
        json.dumps([query.group for query in judged.queries])
    )
    np.save(folder / "vectors.npy", embed(texts))
    np.save(folder / "questions.npy", embed([query.text for query in judged.queries]))


def _peer(peer: Peer, judged: RetrievalSet, scratch: Path, cache: Path, embedding: str) -> dict:
    place = scratch / peer.driver
    place.mkdir()
    try:
        done = subprocess.run(
            [
                str(python_for(peer, cache)),
                str(HERE / "ranking.py"),
                peer.driver,
                str(scratch / "work"),
                str(place),
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            cwd=place,
            env=environment(peer, cache, embedding, None),
        )
    except subprocess.TimeoutExpired:
        return {"failed": f"not done within {PATIENCE} s"}
    line = next((line for line in done.stdout.splitlines() if line.startswith("RESULT ")), None)
    if line is None:
        return {"failed": done.stderr.strip()[-300:]}
    ranked = json.loads(line[7:])
    return {mode: _means(lists, judged) for mode, lists in ranked.items()}


def _means(lists: list[list[int]], judged: RetrievalSet) -> dict[str, float]:
    each = [
        measured([judged.documents[n].id for n in found], judged.judgements[query.id])
        for found, query in zip(lists, judged.queries, strict=True)
    ]
    return {metric: float(np.mean([values[metric] for values in each])) for metric in METRICS}
