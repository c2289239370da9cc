"""Exact ΔEvi and permutation SD of an additive reader: time, and memory beyond the scores themselves."""

from __future__ import annotations

import statistics
import subprocess
import sys

import numpy as np
from bench_common import Row, at_most, interleaved, peak_memory

SIZES = ((10_000, 3, 0.3), (100_000, 3, 3.0), (1_000_000, 2, 5.0))


def exact(quick: bool) -> list[Row]:
    """`stats.exact.additive_pair_sums` on random scores, every evidence text distinct."""
    from evidep.stats.exact import additive_pair_sums

    rows = []
    for n, c, most in SIZES[:2] if quick else SIZES:
        arguments = _scores(n, c)
        seconds = interleaved({"exact": lambda arguments=arguments: additive_pair_sums(*arguments)}, 1 if quick else 3)
        rows.append(at_most(f"all {n:,} x {n:,} pairs, {c} classes", statistics.median(seconds["exact"]), "s", most))
    n, c, _ = SIZES[1 if quick else 2]
    extra = float(subprocess.run([sys.executable, __file__, str(n), str(c)], capture_output=True, check=True).stdout)
    rows.append(at_most(f"extra memory, {n:,} items, {c} classes", extra, "GiB", 1.0))
    return rows


def _scores(n: int, c: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(n)
    return rng.normal(size=(n, c)), rng.normal(size=(n, c)), rng.integers(c, size=n), np.arange(n)


def _extra_gib(n: int, c: int) -> float:
    """Growth of the peak resident memory over the call, in this fresh process."""
    from evidep.stats.exact import additive_pair_sums

    additive_pair_sums(*_scores(100, c))  # imports and small buffers are not counted
    arguments = _scores(n, c)
    before = peak_memory()
    additive_pair_sums(*arguments)
    return (peak_memory() - before) / 2**30


if __name__ == "__main__":
    sys.stdout.write(str(_extra_gib(int(sys.argv[1]), int(sys.argv[2]))))
