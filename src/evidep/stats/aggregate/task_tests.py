"""One-sided tests of two systems on one task: over items, over seeds, or from standard errors."""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from evidep.stats.aggregate.table import ScoreTable
from evidep.stats.paired import sign_flip_p
from evidep.types import FloatArray

_PERMUTATIONS = 9999


def task_test(table: ScoreTable, t: int, a: int, b: int, seed: int) -> tuple[float, float, str, float, str, str | None]:
    """p-values (a better, b better), the test's name, effect size and its name, reason."""
    nan = np.nan
    sign = float(table.sign[t])
    if np.isnan(table.scores[[a, b], t]).any():
        return nan, nan, "none", nan, "none", "one of the systems has no score here"
    unit, cube = table.units[t], table.samples[t]
    if unit == "standard error":
        errors = table.standard_errors[[a, b], t]
        gain = sign * float(table.scores[a, t] - table.scores[b, t])
        spread = float(np.sqrt((errors**2).sum()))
        if np.isnan(spread):
            return nan, nan, "none", nan, "none", "one of the standard errors is not known"
        if spread == 0.0:
            same = gain == 0.0
            p = 1.0 if same else nan
            return p, p, "z", nan, "none", "identical" if same else "both standard errors are zero"
        z = gain / spread
        caution = "unpaired: the systems' answers to the same items are not known"
        return float(special.ndtr(-z)), float(special.ndtr(z)), "z test from standard errors", z, "z", caution
    if cube is None:
        return nan, nan, "none", nan, "none", "a single score per system: no test is possible"
    if unit == "seeds":
        return _seed_test(sign * _seen(cube[a, :, 0]), sign * _seen(cube[b, :, 0]), seed)
    gains = sign * (_seed_mean(cube[a]) - _seed_mean(cube[b]))
    p_a = sign_flip_p(gains, seed=seed)
    p_b = sign_flip_p(-gains, seed=seed)
    spread = float(gains.std(ddof=1)) if len(gains) > 1 else nan
    if not gains.any():
        return 1.0, 1.0, "sign-flip over items", 0.0, "standardised paired difference", "identical"
    effect = float(gains.mean()) / spread if spread > 0 else nan
    test = "sign-flip over items" + (" (seeds averaged)" if cube.shape[1] > 1 else "")
    return p_a, p_b, test, effect, "standardised paired difference", None


def _seed_test(a: FloatArray, b: FloatArray, seed: int) -> tuple[float, float, str, float, str, str | None]:
    """Permutation test of two sets of runs, and the probability that a run of a beats one of b."""
    higher = float((a[:, None] > b[None, :]).mean() + 0.5 * (a[:, None] == b[None, :]).mean())
    name = "probability of improvement"
    if len(a) < 2 or len(b) < 2:
        return np.nan, np.nan, "none", higher, name, "fewer than two seeds: no test is possible"
    if np.ptp(np.concatenate([a, b])) == 0.0:
        return 1.0, 1.0, "permutation of seeds", 0.5, name, "identical"
    found = stats.permutation_test(
        (a, b),
        lambda x, y, axis: np.mean(x, axis=axis) - np.mean(y, axis=axis),
        vectorized=True,
        n_resamples=_PERMUTATIONS,
        alternative="greater",
        random_state=np.random.default_rng(seed),
    )
    # The other direction from the same permutations; drawn ones count the observed value among them.
    drawn = int(special.comb(len(a) + len(b), len(a)) > _PERMUTATIONS)
    null = found.null_distribution
    tolerance = 1e-12 * float(np.abs(null).max())
    p_a = float(found.pvalue)
    p_b = (int((null <= found.statistic + tolerance).sum()) + drawn) / (len(null) + drawn)
    least = 1.0 / float(special.comb(len(a) + len(b), len(a)))
    reason = f"{len(a)} and {len(b)} seeds cannot give a p-value below {least:.2g}" if least > 0.01 else None
    return p_a, p_b, "permutation of seeds", higher, name, reason


def _seen(values: FloatArray) -> FloatArray:
    return values[~np.isnan(values)]


def _seed_mean(cube: FloatArray) -> FloatArray:
    """[N] mean over the seeds that were run."""
    rows = cube[~np.isnan(cube).any(axis=1)]
    mean: FloatArray = rows.mean(axis=0)
    return mean
