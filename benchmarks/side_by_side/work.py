"""The work that everybody is given: notes of real text, their vectors, questions, and what the exact answer is.

Only the standard library and numpy: this is imported in the peers' own environments too.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

GROUPS = 200  # a narrow scope is one of these: 0.5 % of the notes


@dataclass(frozen=True)
class Work:
    texts: list[str]
    vectors: np.ndarray  # float32, rows of length one
    questions: list[str]
    question_vectors: np.ndarray

    @classmethod
    def load(cls, folder: Path, count: int) -> "Work":
        with (folder / "notes.jsonl").open() as lines:
            texts = [json.loads(line) for _, line in zip(range(count), lines, strict=False)]
        vectors = np.load(folder / "vectors.npy", mmap_mode="r")[:count]
        return cls(
            texts,
            np.ascontiguousarray(vectors),
            json.loads((folder / "questions.json").read_text()),
            np.load(folder / "questions.npy"),
        )

    @property
    def dimensions(self) -> int:
        return int(self.vectors.shape[1])

    @staticmethod
    def name(n: int) -> str:
        return f"note-{n:07d}"

    @staticmethod
    def group(n: int) -> str:
        return f"group-{n % GROUPS:03d}"

    def exact(
        self, q: int, among: "list[int] | None" = None, limit: int = 10
    ) -> tuple[set[int], float]:
        """The nearest, and how near the last of them is: twins beyond it are no miss."""
        scores = (self.vectors if among is None else self.vectors[among]) @ self.question_vectors[q]
        best = np.argsort(-scores, kind="stable")[:limit]
        return {int(b if among is None else among[b]) for b in best}, float(scores[best[-1]])
