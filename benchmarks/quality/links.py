"""Links in two libraries of real items, with the default embedder.

*Development* are the items of `memory`; *packages* are the descriptions of installed packages, added
as patterns; no threshold was chosen on those. Pairs were judged by their titles and first words, in
random order, among pairs that are not linked, without knowing which were. `links.jsonl` has the verdicts of
the first reader, and of a second who judged 120 of the pairs without knowing those of the first.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from benchmarks.quality._libraries import Known, development, library, packages
from commonplace.model import EntityType, Kind

JUDGED = Path(__file__).with_name("links.jsonl")
Pair = frozenset[str]
EMBEDDER = "local"
VERDICTS = ("useful", "so-so", "wrong", "not judged")
# Measured on the version that linked sections with a cosine above the calibrated bar; 25 links of
# each library were judged among the others.
BEFORE = {
    "development": ("582", "38", "7 useful, 12 so-so, 6 wrong"),
    "packages": ("1,079", "52", "4 useful, 4 so-so, 17 wrong"),
}


async def links(known: Sequence[Known], embedder: str = EMBEDDER) -> list[Pair]:
    """Return the pairs that are linked, the heaviest first."""
    async with library(known, embedder) as made:
        store = made.services.store
        await store.jobs.enqueue_linking()
        while await made.services.worker.run_once():
            pass
        found = await store.relations.of_items(made.caller.scope, list(made.ids), [Kind.RELATED_TO])
        found.sort(key=lambda relation: -relation.weight)
        return [frozenset((made.ids[each.from_id], made.ids[each.to_id])) for each in found]


def judgements(reader: str) -> dict[tuple[str, Pair], str]:
    rows = map(json.loads, JUDGED.read_text().splitlines())
    return {(row["library"], frozenset(row["pair"])): row[reader] for row in rows if reader in row}


def degree(found: Sequence[Pair]) -> int:
    return max(Counter(end for pair in found for end in pair).values(), default=0)


async def figures() -> list[tuple[str, str, str]]:
    """Return counts of links and of their verdicts."""
    judged, second, rows = judgements("verdict"), judgements("second"), []
    for name, known in (
        ("development", development()),
        ("packages", packages(EntityType.PATTERN)),
    ):
        found = await links(known)
        before = BEFORE[name]
        told, by_second = (
            ", ".join(
                f"{sum(said.get((name, pair), VERDICTS[-1]) == verdict for pair in found)} {verdict}"
                for verdict in VERDICTS
            )
            for said in (judged, second)
        )
        rows += [
            (f"{name}: links of {len(known)} items", before[0], str(len(found))),
            (f"{name}: most links of one item", before[1], str(degree(found))),
            (f"{name}: judged", before[2], told),
            (f"{name}: judged by the second reader", "", by_second),
        ]
    return rows
