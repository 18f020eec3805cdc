"""ROUGE-2 (F) of summaries without a model: of READMEs of installed packages against the one line
with which their authors describe them, and of web pages against their `description`.
"""

import json
import os
import re
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import distributions
from itertools import pairwise
from pathlib import Path
from statistics import mean

from lxml import html

from commonplace.adapters.extract.html import convert
from commonplace.adapters.summarize.extractive import summarize
from commonplace.text import chunking

DATA = Path(os.environ.get("COMMONPLACE_DATA", "../shared/data"))
NODE = Path("/usr/lib/node_modules")
SHORTEST = 60  # words: below, a document has no summary
BEFORE = {"Python": "0.089", "Node": "0.058", "Pages": "0.137"}
_WORD = re.compile(r"[^\W_]+")
Texts = Iterator[tuple[str, str, str]]  # title, text, description


def python_packages() -> Texts:
    for found in sorted(distributions(), key=lambda one: one.name.lower()):
        about = found.metadata
        yield found.name, about["Description"] or str(about.get_payload()), about["Summary"] or ""


def node_packages() -> Texts:
    for file in sorted(NODE.rglob("package.json")):
        about = json.loads(file.read_text())
        readme = next((one for one in file.parent.iterdir() if one.stem == "README"), None)
        if readme and "name" in about:
            yield about["name"], readme.read_text(), about.get("description") or ""


def pages() -> Texts:
    for folder in sorted(DATA.glob("pages/*")):
        tree = html.fromstring((folder / "source.html").read_bytes())
        about = json.loads((folder / "expected-metadata.json").read_text())
        text = convert.convert_page((folder / "expected.html").read_text())
        wanted = "".join(tree.xpath("string(//meta[@name='description']/@content)"))
        yield about["title"] or "", text, wanted


def summary(title: str, text: str) -> str:
    return summarize(title, [section.text for section in chunking.cut(text, title)]).summary


def rouge_2(told: str, wanted: str) -> float:
    pairs = []
    for text in (told, wanted):
        words = _WORD.findall(text.lower())
        pairs.append(Counter(pairwise(words)))
    same = (pairs[0] & pairs[1]).total()
    return 2 * same / max(pairs[0].total() + pairs[1].total(), 1)


async def figures() -> list[tuple[str, str, str]]:
    rows = []
    for name, texts in (("Python", python_packages), ("Node", node_packages), ("Pages", pages)):
        scores = {
            (title, wanted): rouge_2(summary(title, text), wanted)
            for title, text, wanted in texts()
            if chunking.count(text) >= SHORTEST and len(wanted.split()) > 2
        }
        if scores:
            rows.append(
                (f"{name} ({len(scores)} texts)", BEFORE[name], f"{mean(scores.values()):.3f}")
            )
    return rows
