"""Two libraries that differ only outside a scope answer its token alike, scores included."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from torture.harness import Part, Play, Round, Stage, require

CALLS = 250  # of a round


@contextmanager
def open_scope_twins(stage: Stage, calls: int = CALLS) -> Iterator[Play]:
    from tests.interfaces.twins import SCOPES, compare, open_twins

    kinds = sorted(set(SCOPES.values()))

    def play(round: Round) -> None:
        async def run() -> str:
            async with open_twins(
                round.folder, kinds[round.seed % len(kinds)], round.seed
            ) as twins:
                return await compare(twins, calls, round.seed) or ""

        difference = asyncio.run(run())
        require(not difference, f"The answers differ:\n{difference[:4000]}")

    yield play


PART = Part("twins", rounds=8, long_rounds=100_000, share=2, open=open_scope_twins)
