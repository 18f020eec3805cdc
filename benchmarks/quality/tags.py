"""Right ones among the automatic tags of real texts, as judged in `tags.jsonl`.

Documents are READMEs of installed packages and longer texts of the memory set; tasks are the tasks
and episodes of that set, tagged by the domains' keywords. A tag is right if somebody who files
the text would accept it. Tags without a judgement are counted and listed. The first reader saw old
and new tags side by side; the second judged those of now among 60 others, without knowing which.
"""

import json
import os
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from commonplace.adapters.summarize.extractive import summarize
from commonplace.text import chunking, keyword_tags

DATA = Path(os.environ.get("COMMONPLACE_DATA", "../shared/data"))
JUDGED = Path(__file__).with_suffix(".jsonl")
BEFORE = {
    "packages": "32 of 95",
    "memory": "44 of 94",
    "tasks": "27 of 72",
}
Told = Iterator[tuple[str, str, str]]  # set, item, tag


def tags_of_document(title: str, text: str) -> tuple[str, ...]:
    return summarize(title, [section.text for section in chunking.cut(text, title)]).tags


def told(items: set[tuple[str, str]]) -> Told:
    """Yield the tags of the judged items."""
    for name in sorted(item for where, item in items if where == "packages"):
        try:
            about = metadata(name)
        except PackageNotFoundError:
            continue
        text = about["Description"] or str(about.get_payload())
        yield from (("packages", name, tag) for tag in tags_of_document(name, text))
    file = DATA / "memory" / "items.jsonl"
    for line in file.read_text().splitlines() if file.exists() else ():
        item = json.loads(line)
        title, text = item["title"], item["content"]
        if ("memory", item["_id"]) in items:
            yield from (("memory", item["_id"], tag) for tag in tags_of_document(title, text))
        if item["entity_type"] in ("task", "episode"):
            yield from (
                ("tasks", item["_id"], tag) for tag in keyword_tags.tags(title, text, [], [])
            )


async def figures() -> list[tuple[str, str, str]]:
    judged = [json.loads(line) for line in JUDGED.read_text().splitlines()]
    right, second = (
        {(e["set"], e["item"], e["tag"]): e[reader] for e in judged if reader in e}
        for reader in ("right", "second")
    )
    found = list(told({(each["set"], each["item"]) for each in judged}))
    rows = []
    for name, before in BEFORE.items():
        own = [key for key in found if key[0] == name]
        known = [right[key] for key in own if key in right]
        told_of = f"{sum(known)} of {len(known)}"
        rows.append((f"{name}: right of those told", before, told_of))
        by_second = [second[key] for key in own if key in second]
        told_of = f"{sum(by_second)} of {len(by_second)}"
        rows.append((f"{name}: right by the second reader", "", told_of))
        if len(known) < len(own):
            unknown = ", ".join(
                f"{item} {tag}" for _, item, tag in own if (name, item, tag) not in right
            )
            rows.append((f"{name}: without a judgement", "", unknown))
    return rows
