"""Makes the work: texts of installed packages and their `static` vectors, once, in the cache folder."""

import asyncio
import json
import random
import re
from pathlib import Path

import numpy as np

from benchmarks.engine_search import pieces
from commonplace.adapters.embed.wordllama import StaticEmbedder
from commonplace.settings import Settings

ASKED, FROM = (
    200,
    1_000,
)  # questions are taken out of the first notes, which are there however many there are


def make(folder: Path, count: int) -> None:
    if (folder / "questions.npy").exists() and np.load(folder / "vectors.npy", mmap_mode="r").shape[
        0
    ] >= count:
        return
    folder.mkdir(parents=True, exist_ok=True)
    texts, dice = list(pieces(count)), random.Random(1)
    if len(texts) < count:
        raise SystemExit(
            f"The packages that are installed have text for {len(texts)} notes only, {count} are asked for."
        )
    dice.shuffle(texts)
    asked = [_question(text, dice) for text in texts[:FROM]]
    questions = [question for question in asked if question][:ASKED]
    np.save(folder / "vectors.npy", embed(texts))
    (folder / "notes.jsonl").write_text("".join(json.dumps(text) + "\n" for text in texts))
    (folder / "questions.json").write_text(json.dumps(questions))
    np.save(folder / "questions.npy", embed(questions))


def embed(texts: list[str]) -> np.ndarray:
    async def vectors() -> np.ndarray:
        embedder = StaticEmbedder(Settings())
        return np.concatenate(
            [
                (await embedder.documents([texts[n : n + 1000]]))[0]
                for n in range(0, len(texts), 1000)
            ]
        )

    return asyncio.run(vectors())


def _question(text: str, dice: random.Random) -> str:
    """A run of six words."""
    words = re.findall(r"[A-Za-z][A-Za-z_.]+", text)
    start = dice.randrange(len(words) - 6) if len(words) > 20 else 0
    return " ".join(words[start : start + 6]) if len(words) > 20 else ""
