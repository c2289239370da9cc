"""Random permutations within strata, repaired so that as few items as possible keep an equal text.

Everything here works on integer arrays. Random numbers are raw Philox words, whose stream numpy keeps stable, ordered
by sorting: the same (seed, arm, k) gives the same permutation under every version of numpy.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

import numpy as np

from evidep.errors import SettingError
from evidep.types import BoolArray, IntArray

ALGORITHM_VERSION: Final = 1
"""Raised when a change here makes (seed, arm, k) mean another permutation."""
_RANDOM_ROUNDS: Final = 16
_TO_UNIT: Final = 2.0**-53


class Draws:
    """The stream of random numbers of one shuffle. It depends on (seed, arm, k) and on nothing else."""

    def __init__(self, seed: int, arm: str, k: int) -> None:
        for name, value in (("seed", seed), ("k", k)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise SettingError(f"{name}: expected a whole number of at least 0, got {value!r}")
        of_arm = int.from_bytes(hashlib.sha256(arm.encode()).digest()[:8], "little")
        self._words = np.random.Philox(np.random.SeedSequence([int(seed), of_arm, int(k)]))

    def permutation(self, n: int) -> IntArray:
        """A uniform permutation of 0 .. n-1."""
        return np.argsort(self._words.random_raw(n), kind="stable").astype(np.int64, copy=False)

    def below(self, limits: IntArray) -> IntArray:
        """One uniform whole number in [0, limits[t]) for each t."""
        unit = (self._words.random_raw(len(limits)) >> np.uint64(11)) * _TO_UNIT
        return (unit * limits).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """Which items may trade evidence: those of one stratum.

    Attributes:
        of: [n] dense number of each item's stratum.
        order: [n] items sorted by stratum, ascending within each.
        start: [S] where each stratum begins in `order`.
        size: [S] items of each stratum.
    """

    of: IntArray
    order: IntArray
    start: IntArray
    size: IntArray

    @classmethod
    def from_codes(cls, codes: IntArray | None, n: int) -> Strata:
        """Strata from any integers, equal within a stratum; None is one stratum of all n items."""
        if codes is None:
            one = np.array([n] if n else [], dtype=np.int64)
            return cls(np.zeros(n, np.int64), np.arange(n), np.zeros(len(one), np.int64), one)
        order = np.argsort(codes, kind="stable").astype(np.int64, copy=False)
        ordered = codes[order]
        first = np.ones(n, dtype=np.bool_)
        first[1:] = ordered[1:] != ordered[:-1]
        of = np.empty(n, dtype=np.int64)
        of[order] = np.cumsum(first) - 1
        start = np.flatnonzero(first)
        return cls(of, order, start, np.diff(start, append=n))

    def movable(self, codes: IntArray) -> BoolArray:
        """[n] whether the item's stratum holds at least one code other than the item's own."""
        differs = codes != codes[self.order[self.start]][self.of]
        mixed: BoolArray = np.bincount(self.of[differs], minlength=len(self.size)) > 0
        return mixed[self.of]

    def permutation(self, draws: Draws) -> IntArray:
        """A uniform draw among the permutations that keep every item in its stratum."""
        drawn = draws.permutation(len(self.of))
        if len(self.size) <= 1:
            return drawn
        donors = np.empty_like(drawn)
        donors[self.order] = drawn[np.argsort(self.of[drawn], kind="stable")]
        return donors


def repair(donors: IntArray, codes: IntArray, strata: Strata, draws: Draws) -> IntArray:
    """Swap donors within strata until an item keeps a donor of its own code only where that is forced.

    A swap of the donors of i (whose donor has its own code c) and j is made where neither i nor j then has a donor
    of its own code, so no round undoes another. Random partners are tried first, all at once, for a bounded
    number of rounds; what is left is finished by matching, code by code.

    Optimal: in a stratum of S items, g of them with code c and x of these stuck, exactly S - 2g + x items j have
    neither code c nor a donor of code c. Each serves one stuck item. If 2g <= S these are at least x, and none
    stays; else x - (S - 2g + x) = 2g - S stay, which no permutation can avoid.

    Args:
        donors: [n] a permutation within the strata.
        codes: [n] equal exactly where two items' texts are equal.
        strata: Who may trade with whom.
        draws: Source of partners, continued after the permutation was drawn.

    Returns:
        [n] a permutation within the strata; max(0, 2g - S) items per stratum have donors of their own code.
    """
    donors = donors.copy()
    stuck = np.flatnonzero((codes[donors] == codes) & strata.movable(codes))
    for _ in range(_RANDOM_ROUNDS):
        if not len(stuck):
            return donors
        at = strata.of[stuck]
        partner = strata.order[strata.start[at] + draws.below(strata.size[at])]
        _swap_disjoint(donors, *_harmless(donors, codes, stuck, partner))
        stuck = stuck[codes[donors[stuck]] == codes[stuck]]
    while len(stuck):
        stuck = _finish_one_code(donors, codes, strata, draws, stuck)
    return donors


def _harmless(donors: IntArray, codes: IntArray, stuck: IntArray, partner: IntArray) -> tuple[IntArray, IntArray]:
    fits = (codes[partner] != codes[stuck]) & (codes[donors[partner]] != codes[stuck])
    return stuck[fits], partner[fits]


def _swap_disjoint(donors: IntArray, left: IntArray, right: IntArray) -> None:
    """Swap donors of left[t] and right[t] for a subset of the pairs in which no position occurs twice."""
    if not len(left):
        return
    claim = np.empty(len(donors), dtype=np.int64)
    mark = np.arange(len(left))
    claim[left] = mark
    claim[right] = mark
    owned = (claim[left] == mark) & (claim[right] == mark)
    left, right = left[owned], right[owned]
    donors[left], donors[right] = donors[right], donors[left]


def _finish_one_code(donors: IntArray, codes: IntArray, strata: Strata, draws: Draws, stuck: IntArray) -> IntArray:
    """Settle, in every stratum that has stuck items, one of their codes for good. Returns the items still open."""
    stuck = stuck[draws.permutation(len(stuck))]
    at, first = np.unique(strata.of[stuck], return_index=True)
    open_stratum = np.zeros(len(strata.size), dtype=np.bool_)
    open_stratum[at] = True
    chosen = np.zeros(len(strata.size), dtype=np.int64)
    chosen[at] = codes[stuck[first]]
    pool = np.flatnonzero(open_stratum[strata.of])
    pool = pool[draws.permutation(len(pool))]
    target = chosen[strata.of[pool]]
    helpers = pool[(codes[pool] != target) & (codes[donors[pool]] != target)]
    settled = codes[stuck] == chosen[strata.of[stuck]]
    left, right = _pair_within(stuck[settled], helpers, strata)
    donors[left], donors[right] = donors[right], donors[left]
    rest = stuck[~settled]
    return np.sort(rest[codes[donors[rest]] == codes[rest]])


def _pair_within(left: IntArray, right: IntArray, strata: Strata) -> tuple[IntArray, IntArray]:
    """Pair the t-th of `left` in each stratum with the t-th of `right` in that stratum, as far as both reach."""
    left, left_rank = _ranked(left, strata)
    right, right_rank = _ranked(right, strata)
    n = len(strata.of) + 1
    _, at_left, at_right = np.intersect1d(
        strata.of[left] * n + left_rank, strata.of[right] * n + right_rank, assume_unique=True, return_indices=True
    )
    return left[at_left], right[at_right]


def _ranked(items: IntArray, strata: Strata) -> tuple[IntArray, IntArray]:
    items = items[np.argsort(strata.of[items], kind="stable")]
    counts = np.bincount(strata.of[items], minlength=len(strata.size))
    return items, np.arange(len(items)) - (np.cumsum(counts) - counts)[strata.of[items]]
