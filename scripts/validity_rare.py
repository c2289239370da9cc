"""What else the validity study measures: rare differences, small sides, few groups, few seeds."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from validity_checks import ALPHA, MARGIN, count_interval
from validity_designs import ONE_LARGE_GROUP

from evidep.stats.accuracy import accuracy_interval
from evidep.stats.calibration import seed_spread
from evidep.stats.diagnostics import side_difference
from evidep.stats.mpds import mpds
from evidep.stats.paired import paired_difference
from evidep.types import BoolArray, IntArray

RARE = {
    "query_gap": "accuracy minus query-only, one item in 50 differs",
    "gap": "gap to a tenth of the groups, 0.98 and 0.95 right",
    "loss": "loss on a tenth of the groups, one item in 20 differs",
    "rare_mpds": "MPDS 0.97 of a reader that is always right",
    "flips": "share of changed answers, 0.02",
}
SEEDS = (2, 3, 5, 10)


def rare_intervals(n: int, repeats: int, seed: int, grouping: tuple[int, bool]) -> dict[str, Any]:
    """Coverage where few items differ, and all of them in one direction. The items of a group are right together.

    "below" counts how often accuracy minus query-only is said to be below the margin, at which it is.
    """
    counts: Counter[str] = Counter()
    for number in range(repeats):
        rng = np.random.default_rng([seed, n, number])
        group = _groups(n, grouping[0])
        shifted = (rng.permutation(group.max() + 1) < (group.max() + 1) / 10)[group]

        lost = _drawn(rng, group, MARGIN)
        ci = paired_difference(np.ones(n), ~lost, group, ALPHA).ci
        count_interval(counts, "query_gap", ci, MARGIN)
        counts["below"] += ci.high < MARGIN and ci.low < ci.high
        right = np.where(shifted, _drawn(rng, group, 0.95), _drawn(rng, group, 0.98))
        count_interval(counts, "gap", side_difference(right, ~shifted, group, ALPHA).ci, 0.98 - 0.95)
        lost = _drawn(rng, group, 0.05)[shifted]
        loss = paired_difference(np.ones(len(lost)), ~lost, group[shifted], ALPHA)
        count_interval(counts, "loss", loss.ci, 0.05)
        score = mpds(_drawn(rng, group, 0.97), np.ones(n), 0.5, groups=group, seed=number, n_resamples=500)
        count_interval(counts, "rare_mpds", score.ci, 0.97)
        count_interval(counts, "flips", accuracy_interval(_drawn(rng, group, 0.02), group, ALPHA), 0.02)
    return {"n": n, "repeats": repeats, **counts}


def seed_coverage(repeats: int, seed: int) -> list[dict[str, Any]]:
    """How often the interval of the SD over seeds holds the true SD: normal values, and where one fit in five fails.

    "spread" is the 5 % and the 95 % quantile of the printed SD over the true one.
    """
    rows = []
    for n_seeds in SEEDS:
        for world, failing in (("normal", 0.0), ("one fit in five loses 0.2", 0.2)):
            rng = np.random.default_rng([seed, n_seeds])
            truth = float(np.sqrt(0.01**2 + failing * (1 - failing) * 0.2**2))
            counts: Counter[str] = Counter()
            found = []
            for _ in range(repeats):
                values = 0.3 + 0.01 * rng.normal(size=n_seeds) - 0.2 * (rng.random(n_seeds) < failing)
                spread = seed_spread(values)
                count_interval(counts, "sd", spread.sd_ci, truth)
                counts["warned"] += spread.reason is not None
                found.append(spread.sd / truth)
            low, high = np.quantile(found, [0.05, 0.95]).tolist()
            rows.append({"seeds": n_seeds, "world": world, "repeats": repeats, "spread": [low, high], **counts})
    return rows


def _groups(n: int, size: int) -> IntArray:
    if size == ONE_LARGE_GROUP:
        return np.maximum(np.arange(n) - n // 5 + 1, 0)
    return np.arange(n) // size


def _drawn(rng: np.random.Generator, group: IntArray, share: float) -> BoolArray:
    return (rng.random(int(group.max()) + 1) < share)[group]
