"""Candidate memories by rules, against a key of what is worth remembering in real minutes and
conversations. Precision counts candidates that rest on a keyed sentence and have one of its kinds;
recall counts the sentences that must not be missed (others are right, but optional). The key holds
every sentence that informs, opinions in debates too: up to 34 in a text, so that 12 candidates
cannot reach them all. It refers to texts by set, id and position. One reader judged it and then
wrote the rules, which were tuned on the development half and on texts without a key; no second
reader has judged it. A conversation is its first 40 turns, cut at 900 characters."""

import json
import os
from collections import defaultdict
from pathlib import Path
from typing import Any

from commonplace.adapters.reflect.rules import reflect

DATA = Path(os.environ.get("COMMONPLACE_DATA", "../shared/data"))
KEY = Path(__file__).with_suffix(".jsonl")
TURNS, TURN_CHARS = 40, 900
LIMITS = (12, 50)
# What the rules before these did with the same key.
BEFORE = {
    ("minutes", "development", 12): ".51 (25/49), .29 (19/65)",
    ("minutes", "development", 50): ".51 (27/53), .32 (21/65)",
    ("minutes", "held out", 12): ".63 (34/54), .20 (25/127)",
    ("minutes", "held out", 50): ".66 (42/64), .26 (33/127)",
    ("chats", "development", 12): ".15 (7/48), .10 (6/63)",
    ("chats", "development", 50): ".13 (18/139), .17 (11/63)",
    ("chats", "held out", 12): ".06 (3/48), .06 (3/54)",
    ("chats", "held out", 50): ".11 (12/108), .19 (10/54)",
}


async def figures() -> list[tuple[str, str, str]]:
    texts = _texts()
    rows = [row for row in map(json.loads, KEY.read_text().splitlines()) if row["id"] in texts]
    found = []
    for kind, half in dict.fromkeys((row["kind"], row["half"]) for row in rows):
        same = [row for row in rows if (row["kind"], row["half"]) == (kind, half)]
        for limit in LIMITS:
            what = f"{kind}, {half} ({len(same)} texts), limit {limit}: precision, recall"
            found.append((what, BEFORE.get((kind, half, limit), ""), _measure(same, texts, limit)))
    return found


def _texts() -> dict[str, str]:
    items, turns = DATA / "memory" / "items.jsonl", DATA / "chats" / "corpus.jsonl"
    if not (items.exists() and turns.exists()):
        return {}
    chats = defaultdict(list)
    for turn in map(json.loads, turns.read_text().splitlines()):
        chats[turn["group"]].append(turn["text"][:TURN_CHARS])
    found = {each["_id"]: each["content"] for each in map(json.loads, items.open())}
    return found | {name: "\n\n".join(said[:TURNS]) for name, said in chats.items()}


def _measure(rows: list[dict[str, Any]], texts: dict[str, str], limit: int) -> str:
    right = told = hit = needed = 0
    for row in rows:
        keyed = row["memories"]
        seen = set()
        proposals = reflect(texts[row["id"]], limit)
        for one in proposals:
            same = {
                n
                for n, memory in enumerate(keyed)
                if one.kind in memory["kinds"]
                and any(quote.start <= memory["at"] < quote.end for quote in one.quotes)
            }
            right += bool(same)
            seen |= same
        told += len(proposals)
        must = {n for n, memory in enumerate(keyed) if not memory.get("optional")}
        hit += len(seen & must)
        needed += len(must)
    return f"{right / max(told, 1):.2f} ({right}/{told}), {hit / needed:.2f} ({hit}/{needed})"
