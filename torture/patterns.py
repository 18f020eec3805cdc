"""Text of others in linear time, at larger sizes and on more texts than the suite tries.

`python -m torture.patterns READER SEED TEXTS`: one round, in a process that can be
ended when it hangs.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

from torture.harness import Broken, Part, Play, Round, Stage, require
from torture.server import ROOT

SIZE = 12_000  # characters; four times as many are tried as well
TEXTS = 40  # of a round
ROUND_SECONDS = 120.0


@contextmanager
def open_patterns(stage: Stage, texts: int = TEXTS) -> Iterator[Play]:
    from tests.test_patterns import READERS

    names = sorted(READERS)

    def play(round: Round) -> None:
        name = names[round.seed % len(names)]
        try:
            said = subprocess.run(
                [sys.executable, "-m", "torture.patterns", name, str(round.seed), str(texts)],
                cwd=ROOT,
                capture_output=True,
                text=True,
                timeout=ROUND_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise Broken(f"{name} did not end in {ROUND_SECONDS:.0f} s.") from None
        require(said.returncode == 0, f"{name}: {said.stdout[-1000:]}{said.stderr[-2000:]}")

    yield play


def read_texts(name: str, seed: int, count: int) -> list[str]:
    """Return texts that a reader takes too long for: a repeated run, between other pieces."""
    from tests import test_patterns

    test_patterns.SIZE = SIZE
    random, read = Random(seed), test_patterns.READERS[name]
    read("Some text.")
    slow = []
    for _ in range(count):
        begin, run, end = (
            "".join(random.choices(test_patterns.RUNS, k=random.randint(*bounds)))
            for bounds in ((0, 2), (1, 3), (0, 1))
        )
        if test_patterns.grows_too_fast(read, (begin, run, end)):
            slow.append(repr((begin, run, end)))
    return slow


PART = Part("patterns", rounds=30, long_rounds=20_000, share=1, open=open_patterns, at_once=2)

if __name__ == "__main__":
    found = read_texts(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
    print("\n".join(f"more than linear time on (begin, run, end) {each}" for each in found))
    sys.exit(1 if found else 0)
