"""Context packs, with the default embedder, 24 lines and 4,000 tokens.

*Needed*: the items that `memory/goals.jsonl` says a pack must hold. *Useful*: the lines of packs for
other goals, in the development library, in one of the descriptions of installed packages, and for a
project of four entries beside these; each line was judged by title and text. Who judged is in
`context.jsonl`. *Unrelated*: lines from outside of the project of four entries.

The floor of relevance was chosen on other sets. Of the relevant documents among the first 24, it
keeps .99 in docs_rag, xquad_en and cranfield and .88 in code_rag; of documents found for questions of
another set, at most .008 (static: .98 to 1 and .91; .04 to .11).
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.quality._libraries import (
    Known,
    Library,
    development,
    library,
    packages,
    small_project,
)
from benchmarks.quality.retrieval import data
from commonplace.core.memory.context import Goal
from commonplace.core.memory.token_budget import Line
from commonplace.core.search.search import EntityQuery

JUDGED = Path(__file__).with_name("context.jsonl")
EMBEDDER = "local"
LIMIT, SAME_TITLE = 24, 60
USEFUL, USELESS, NOT_JUDGED = "useful", "useless", "not judged"
# Lines of packs that were filled by sections, most of which were never judged.
BEFORE = {"development": "216 lines, 41 useful", "packages": "231 lines, 17 useful"}
LIBRARIES = {
    "development": development,
    "packages": lambda: [*packages(), *small_project()],
}


async def lines(made: Library, goal: str, intent: str, project: str | None) -> Sequence[Line]:
    wish = Goal(goal, intent, made.projects[project] if project else None, LIMIT)  # type: ignore[arg-type]
    return (await made.services.context.pack(made.caller, wish)).packed.lines


def _held(needed: Iterable[str], titles: Iterable[str]) -> int:
    starts = {title[:SAME_TITLE] for title in titles}
    return sum(title[:SAME_TITLE] in starts for title in needed)


async def _needed(made: Library) -> tuple[int, int, int]:
    """Return how many needed items there are, in packs, and in what search finds."""
    wanted = packed = found = 0
    for row in map(json.loads, (data() / "memory" / "goals.jsonl").read_text().splitlines()):
        shown = await lines(made, row["goal"], row["intent"], row["project"])
        found_by_search = await made.services.entity_search.search(
            made.caller,
            EntityQuery(row["goal"], made.projects[row["project"]] if row["project"] else None),
        )
        wanted += len(row["needed"])
        titles = [line.title for line in shown]
        titles += [other.title for line in shown for other in line.also]
        packed += _held(row["needed"], titles)
        found += _held(row["needed"], [hit.passage.title for hit in found_by_search.hits[:LIMIT]])
    return wanted, packed, found


async def figures() -> list[tuple[str, str, str]]:
    """Return counts of needed items and of verdicts on lines."""
    goals = [json.loads(line) for line in JUDGED.read_text().splitlines()]
    rows: list[tuple[str, str, str]] = []
    for name, read in LIBRARIES.items():
        known: list[Known] = read()
        async with library(known, EMBEDDER) as made:
            if name == "development":
                wanted, packed, found = await _needed(made)
                rows.append((f"needed items, of {wanted}", "14", str(packed)))
                rows.append(("needed items in the first 24 of search", "14", str(found)))
            verdicts, outside, asked = Counter[str](), 0, 0
            for goal in goals:
                if goal["library"] != name:
                    continue
                asked += 1
                for line in await lines(made, goal["goal"], goal["intent"], goal["project"]):
                    item = made.ids[line.item_id]
                    verdicts[goal["verdicts"].get(item, NOT_JUDGED)] += 1
                    outside += bool(goal["project"] == "Field notes") and "field-" not in item
            told = ", ".join(f"{verdicts[each]} {each}" for each in (USEFUL, USELESS, NOT_JUDGED))
            rows.append((f"{name}: lines for {asked} goals", BEFORE[name], told))
    rows.append(("unrelated lines for the project of four entries", "80", str(outside)))
    return rows
