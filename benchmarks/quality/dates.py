"""Questions about a time, over sixty dated notes: nDCG@10 and the share of right first answers.

Thirty questions name a time, thirty do not; these must be answered as without a preference for
dates, so *before* is the same search with every question taken for one without a time. Notes and
judgements are in benchmarks/quality/time_notes.jsonl, written and judged by the same hand. The
clock stands at 2026-11-18. The last row is the cost of reading a question.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.quality.retrieval import data
from commonplace import app
from commonplace.core.entities.validation import NewEntity
from commonplace.core.search import search as search_module
from commonplace.core.transfer.evaluation import measure, read_set
from commonplace.model import ItemFilter, Mode
from commonplace.settings import Settings
from commonplace.text.time_expressions import Times, find_times

NOTES = Path(__file__).with_name("time_notes.jsonl")
NOW = datetime(2026, 11, 18, 15, tzinfo=UTC)
SETS = ("docs_rag", "code_rag", "xquad_en", "cranfield", "chats")


async def figures() -> list[tuple[str, str, str]]:
    lines = [json.loads(line) for line in NOTES.read_text().splitlines()]
    notes = [line["note"] for line in lines if "note" in line]
    questions = [line["question"] for line in lines if "question" in line]
    found: dict[str, dict[str, list[str]]] = {}
    async with app.scratch_app(Settings(embedder="local")) as services:
        await services.people.ensure_owner()
        caller = await services.access.owner()
        assert caller is not None
        names = {}
        for note in notes:
            at = datetime.fromisoformat(f"{note['at']}T10:00:00+00:00")
            entity = NewEntity(note["title"], note["text"], note["kind"], created_at=at)
            added = await services.entities.add(caller, entity, check_conflicts=False, sync=True)
            names[added.item.id] = note["id"]
        search = services.search
        search.clock = lambda: NOW
        for label, read in (("before", lambda *_: Times()), ("now", find_times)):
            search_module.find_times = read  # type: ignore[assignment]
            for mode in Mode:
                for question in questions:
                    ranked = await search.find(caller, question["text"], 200, mode, ItemFilter())
                    ids = dict.fromkeys(names[hit.passage.item_id] for hit in ranked.hits)
                    found.setdefault(f"{label} {mode}", {})[question["id"]] = list(ids)
    rows = []
    for mode in Mode:
        for timed, name in ((True, "with a time"), (False, "without")):
            asked = [question for question in questions if question["timed"] is timed]
            cells = [_told(asked, found[f"{label} {mode}"]) for label in ("before", "now")]
            rows.append((f"{mode}, questions {name} (nDCG@10, first right)", *cells))
    asked = [question["id"] for question in questions if not question["timed"]]
    same = sum(found["before hybrid"][each] == found["now hybrid"][each] for each in asked)
    rows.append(("questions without a time whose hits stay as they were", "30", str(same)))
    return [*rows, *_triggers(), ("a question of ten words, microseconds", "", _cost())]


def _told(asked: list[dict[str, Any]], found: dict[str, list[str]]) -> str:
    scores = [
        measure(found[each["id"]], dict.fromkeys(each["relevant"], 1))["ndcg@10"] for each in asked
    ]
    first = sum(bool({*found[each["id"]][:1]} & {*each["relevant"]}) for each in asked)
    return f"{sum(scores) / len(scores):.3f}, {first} of {len(asked)}"


def _triggers() -> list[tuple[str, str, str]]:
    """Count the questions of the retrieval sets that are taken for questions about a time."""
    rows = []
    for name in SETS:
        if (data() / name).is_dir():
            queries = read_set(data() / name).queries
            taken = sum(find_times(query.text, NOW) != Times() for query in queries)
            rows.append(
                (f"{name}, questions read as naming a time", "0", f"{taken} of {len(queries)}")
            )
    return rows


def _cost(read: Callable[[str, datetime], Times] = find_times, times: int = 2_000) -> str:
    began = time.process_time()
    for _ in range(times):
        read("what did we decide about billing in the last two weeks", NOW)
    return f"{(time.process_time() - began) / times * 1e6:.0f}"
