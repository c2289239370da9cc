"""A short way to write score tables in tests."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from evidep.stats.aggregate import ScoreTable, Task, score_table


def make_table(scores, *, low=0.0, high=1.0, chance=math.nan, n_items=math.nan, up=True, **more) -> ScoreTable:
    """Systems A, B, .. on tasks t0, t1, .. with one kind of metric."""
    matrix = np.asarray(scores, dtype=float)
    names = [chr(65 + s) if len(matrix) <= 26 else f"s{s}" for s in range(len(matrix))]
    tasks = [Task(f"t{t}", up, low, high, chance, n_items) for t in range(matrix.shape[1])]
    return score_table(matrix, names, tasks, **more)


@pytest.fixture
def table() -> Callable[..., ScoreTable]:
    return make_table


def sampled(cubes, unit, **more) -> ScoreTable:
    """A table from per-task samples [S, K, N]."""
    from evidep.stats.aggregate.table import means

    cubes = [np.asarray(cube, dtype=float) for cube in cubes]
    scores = np.stack([means(cube) for cube in cubes], axis=1)
    return make_table(scores, samples=cubes, units=[unit] * len(cubes), **more)


@pytest.fixture
def sampled_table() -> Callable[..., ScoreTable]:
    return sampled
