"""How the cost of work grows with its size: a ratio within one run, so that no machine is too slow for it."""

import time
from collections.abc import Callable


def growth(work: Callable[[int], object], small: int, large: int, turns: int = 3) -> float:
    """How many times the processor time of `small` it takes to do `large`; the least of several turns."""
    least = {small: float("inf"), large: float("inf")}
    for _ in range(turns):
        for size in least:
            began = time.process_time()
            work(size)
            least[size] = min(least[size], time.process_time() - began)
    return least[large] / least[small]
