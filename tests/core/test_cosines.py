"""Cosines are the same on every machine."""

import subprocess
import sys

import numpy as np

from commonplace.search_index.vectors import cosines


def test_cosines_are_summed_in_more_than_16_bits() -> None:
    dice = np.random.default_rng(3)
    for dimensions in (16, 256, 384, 1_000):
        vectors = dice.normal(size=(200, dimensions))
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        halves = vectors.astype(np.float16)
        exact = halves.astype(np.float64) @ halves[0].astype(np.float64)
        found = cosines(halves, np.arange(200), vectors[0].astype(np.float32))
        assert np.abs(found - exact).max() < 1e-5


def test_no_machine_sums_in_16_bits() -> None:
    # As on a processor that could: such a kernel moves one answer in a hundred.
    code = """
import simsimd
simsimd.enable_capability("sapphire")
simsimd.enable_capability("sve_f16")
import commonplace.search_index.vectors
able = simsimd.get_capabilities()
assert not able["sapphire"] and not able["sve_f16"]
"""
    subprocess.run([sys.executable, "-c", code], check=True)
