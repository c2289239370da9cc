"""What the reader is shown: full input, ablations and evidence shuffles, as index arrays. No text is copied."""

from __future__ import annotations

from typing import Final, Literal, cast, get_args

import numpy as np

from evidep.data.derange import Draws, Strata, repair
from evidep.errors import DataError, SettingError
from evidep.stats import checks
from evidep.types import EMPTY, NULL, Arm, BoolArray, Condition, IntArray, PairTable

ShuffleArm = Literal["global", "within-label", "within-metadata", "near-miss"]
SHUFFLE_ARMS: Final[tuple[str, ...]] = get_args(ShuffleArm)


def full(n: int) -> Condition:
    """Every item as it is."""
    own = np.arange(n)
    return _fixed("full", own, own, unchanged_rate=1.0)


def query_only(n: int) -> Condition:
    """Every query with no evidence segment at all."""
    return _fixed("query-only", np.arange(n), np.full(n, NULL))


def evidence_only(n: int) -> Condition:
    """Every evidence with no query segment at all; the evidence is the item's own."""
    return _fixed("evidence-only", np.full(n, NULL), np.arange(n), unchanged_rate=1.0)


def empty_evidence(n: int) -> Condition:
    """Every query with the empty string as its evidence."""
    return _fixed("empty", np.arange(n), np.full(n, EMPTY))


def _fixed(arm: Arm, rows: IntArray, donors: IntArray, *, unchanged_rate: float = 0.0) -> Condition:
    movable = np.full(len(rows), unchanged_rate == 0.0)
    return Condition(arm, None, rows.astype(np.int64), donors.astype(np.int64), movable, unchanged_rate=unchanged_rate)


def arm_strata(table: PairTable, arm: str, strata: IntArray | None = None) -> IntArray | None:
    """The strata within which an arm draws donors: those of the arm crossed with `strata`.

    Args:
        table: The items.
        arm: `global` and `near-miss` have no strata of their own; `within-label` has one per label;
            `within-metadata` one per combination of the metadata columns' values, a missing value being a value.
        strata: [n] further strata, such as cross-fitting folds, or None.

    Returns:
        [n] equal exactly within a stratum, or None where all items may trade with each other.

    Raises:
        SettingError: If the arm is no shuffle, or is within-metadata and the table has no metadata.
        DataError: If `strata` is not one whole number per item.
    """
    if strata is not None:
        strata = checks.codes(strata, "strata", length=len(table))
    if arm in ("global", "near-miss"):
        return strata
    if arm == "within-label":
        own = [table.labels]
    elif arm == "within-metadata":
        if not table.metadata:
            raise SettingError(
                "shuffle within-metadata needs metadata columns and the data has none; name some or use another shuffle"
            )
        own = [table.metadata[name].index for name in sorted(table.metadata)]
    else:
        raise SettingError(f"shuffle: {arm!r} is unknown; choose from {', '.join(SHUFFLE_ARMS)}")
    return cross([*own, *([] if strata is None else [strata])])


def cross(columns: list[IntArray]) -> IntArray:
    """Dense codes of the combinations of several integer columns of equal length."""
    combined = np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        distinct, dense = np.unique(column, return_inverse=True)
        combined = np.unique(combined * max(len(distinct), 1) + dense, return_inverse=True)[1]
    return combined.astype(np.int64, copy=False)


def shuffle(
    table: PairTable,
    arm: str,
    k: int,
    *,
    seed: int,
    strata: IntArray | None = None,
    neighbours: IntArray | None = None,
) -> Condition:
    """Shuffle k of an arm: every query meets another item's evidence.

    It depends on (seed, arm, k) and the items alone, so raising the number of shuffles keeps the first ones.

    global, within-label and within-metadata permute the evidence within their strata. `uniform_donors` is a
    uniform permutation; `donors` is the same one after a bounded repair of the items that met a text equal to their
    own. The repair is optimal: such items remain only where one text fills more than half of a stratum (a stratum
    of S items, g of them with one text, keeps exactly max(0, 2g - S)). Without repeated texts every other item of
    the stratum is equally likely as donor. With repeated ones the donors of a permutation cannot be uniform over
    the allowed texts (every evidence is used exactly once), so the mean over shuffles may then differ from the
    exact expectation over uniform donors.

    near-miss is no permutation: every item draws uniformly among its most similar other evidence texts. An item
    without any (a blank evidence, or one that shares no feature with another) is not movable in this arm.

    Args:
        table: The items.
        arm: One of `SHUFFLE_ARMS`.
        k: Number of the shuffle, from 0.
        seed: Any whole number from 0; 0 is a seed like any other.
        strata: [n] donors come from the same stratum only (cross-fitting folds), or None.
        neighbours: near-miss only: [n, m] from `near_miss.nearest_other_evidence` with the same strata.
            Computed here where None, which is slow if done for every k.

    Returns:
        A condition with `movable` False where the stratum holds no text other than the item's own.

    Raises:
        SettingError: For an unknown arm, a negative k or seed, or neighbours with another arm.
        DataError: For a table without items, or strata or neighbours that do not belong to it.
    """
    n = len(table)
    if n == 0:
        raise DataError("the table has no items, so there is no evidence to shuffle")
    draws = Draws(seed, arm, k)
    codes = table.evidence_codes
    rows = np.arange(n, dtype=np.int64)
    allowed = arm_strata(table, arm, strata)
    if arm == "near-miss":
        if neighbours is None:
            from evidep.data.near_miss import nearest_other_evidence

            neighbours = nearest_other_evidence(table, strata=allowed)
        donors = draw_neighbours(neighbours, codes, draws, allowed)
        movable = np.max(neighbours, axis=1, initial=NULL) >= 0
        return Condition("near-miss", k, rows, donors, movable, None, unchanged_rate(donors, codes))
    if neighbours is not None:
        raise SettingError(f"neighbours belong to the near-miss shuffle; leave them out for {arm}")
    uniform, donors, movable = permute(codes, allowed, draws)
    return Condition(cast(Arm, arm), k, rows, donors, movable, uniform, unchanged_rate(donors, codes))


def permute(codes: IntArray, strata: IntArray | None, draws: Draws) -> tuple[IntArray, IntArray, BoolArray]:
    """Donors of one permutation shuffle: (uniform permutation, repaired permutation, movable), all [n]."""
    layout = Strata.from_codes(strata, len(codes))
    uniform = layout.permutation(draws)
    return uniform, repair(uniform, codes, layout, draws), layout.movable(codes)


def draw_neighbours(neighbours: IntArray, codes: IntArray, draws: Draws, strata: IntArray | None = None) -> IntArray:
    """One of each item's neighbours, uniformly; the item itself where it has none.

    Raises:
        DataError: If the neighbours are not of these items: wrong length, an equal text, another stratum.
    """
    n = len(codes)
    if neighbours.ndim != 2 or len(neighbours) != n:
        raise DataError(f"neighbours: expected shape ({n}, m), got {neighbours.shape}; compute them on the same table")
    there = neighbours >= 0
    safe = np.where(there, neighbours, 0)
    wrong = there & ((neighbours >= n) | (codes[np.minimum(safe, n - 1)] == codes[:, None]))
    if strata is not None:
        wrong |= there & (strata[np.minimum(safe, n - 1)] != strata[:, None])
    if wrong.any():
        at = int(np.argmax(wrong.any(axis=1)))
        raise DataError(
            f"neighbours: item {at} has a neighbour with its own text, in another stratum or outside the table; "
            "compute them on the same table with the same strata"
        )
    count = there.sum(axis=1)
    first = np.argsort(~there, axis=1, kind="stable")
    pick = first[np.arange(n), draws.below(np.maximum(count, 1))]
    return np.where(count > 0, neighbours[np.arange(n), pick], np.arange(n)).astype(np.int64, copy=False)


def unchanged_rate(donors: IntArray, codes: IntArray) -> float:
    """Share of all items whose donor has the same normalised text."""
    return float(np.mean(codes[donors] == codes))
