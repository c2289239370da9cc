"""How long multi-task aggregation takes: leaderboard shapes with 10,000 replicates, seeds, items, a million rows.

CPU seconds of this process, so that other work on the machine does not decide. Run alone, or import `rows`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from evidep.data.scores import read_scores
from evidep.stats.aggregate import ScoreTable, Settings, Task, analyse, score_table
from evidep.stats.aggregate.methods import all_methods
from evidep.stats.aggregate.resample import plan
from evidep.stats.aggregate.stability import replicate

Row = tuple[str, float, str, float, bool]
"""Name, value, unit, limit, whether the value is within the limit."""


def leaderboard(n_systems: int, n_tasks: int) -> ScoreTable:
    """Single scores that rise with a system's strength, as leaderboards have them."""
    rng = np.random.default_rng(0)
    strength = rng.normal(size=(n_systems, 1))
    scores = 1.0 / (1.0 + np.exp(-strength - rng.normal(size=(n_systems, n_tasks))))
    tasks = [Task(f"t{t}", True, 0.0, 1.0, 0.1, 1000.0) for t in range(n_tasks)]
    return score_table(scores, [f"s{s}" for s in range(n_systems)], tasks)


def sampled(n_systems: int, n_tasks: int, n_seeds: int, n_items: int) -> ScoreTable:
    """Right/wrong items (n_seeds 1) or seed scores (n_items 1)."""
    rng = np.random.default_rng(0)
    skill = rng.uniform(0.3, 0.9, size=(n_systems, 1, 1))
    draws = [rng.uniform(size=(n_systems, n_seeds, n_items)) for _ in range(n_tasks)]
    cubes = [(draw < skill).astype(float) if n_items > 1 else 0.1 * draw + skill * 0.9 for draw in draws]
    scores = np.stack([cube.mean(axis=(1, 2)) for cube in cubes], axis=1)
    tasks = [Task(f"t{t}", True, 0.0, 1.0, 0.1, float(n_items)) for t in range(n_tasks)]
    unit = "items" if n_items > 1 else "seeds"
    return score_table(scores, [f"s{s}" for s in range(n_systems)], tasks, samples=cubes, units=[unit] * n_tasks)


def rows() -> Iterator[Row]:
    """Every measurement, one at a time."""
    cases: list[tuple[str, Callable[[], object], float]] = []
    for shape in ((459, 6), (125, 132)):
        table = leaderboard(*shape)
        name = f"{shape[0]} x {shape[1]}, 10,000 replicates"
        cases.append((f"aggregate bootstrap, {name}", lambda table=table: _bootstrap(table), 8.0))
        cases.append((f"aggregate everything, {name}", lambda table=table: analyse(table), 12.0))
    seeds, items = sampled(6, 20, 10, 1), sampled(10, 10, 1, 2000)
    cases.append(("aggregate everything, 6 x 20 x 10 seeds, 10,000 replicates", lambda: analyse(seeds), 10.0))
    cases.append(
        ("aggregate everything, 10 x 10 x 2,000 items, 2,000 replicates", lambda: analyse(items, Settings(2000)), 10.0)
    )
    for name, work, limit in cases:
        seconds = _seconds(work)
        yield name, seconds, "CPU s", limit, seconds <= limit
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.csv"
        _million(path)
        seconds = _seconds(lambda: read_scores(path, tasks={"*": "accuracy"}))
    yield "aggregate read, 1,000,000 rows of csv", seconds, "CPU s", 10.0, seconds <= 10.0


def _bootstrap(table: ScoreTable) -> object:
    return replicate(table, all_methods(table), plan(table), 10_000, 0)


def _million(path: Path) -> None:
    rng = np.random.default_rng(0)
    right = rng.integers(0, 2, size=1_000_000)
    with path.open("w", encoding="utf-8") as file:
        file.write("system,task,item,score\n")
        file.writelines(
            f"s{at // 100_000},t{at % 100_000 // 5000},{at % 5000},{value}\n" for at, value in enumerate(right.tolist())
        )


def _seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


if __name__ == "__main__":
    failed = False
    for name, value, unit, limit, ok in rows():
        print(f"{'ok  ' if ok else 'SLOW'}  {value:8.2f} {unit} (limit {limit:g})  {name}")
        failed |= not ok
    sys.exit(failed)
