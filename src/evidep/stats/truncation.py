"""What a reader that cuts long texts may still say: a swap that it could not see proves nothing."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

from evidep.types import DeltaEvi

BLIND_ABOVE: Final = 0.5
"""Share of swapped pairs that read like the true ones, above which no ΔEvi counts as the absence of an effect."""
CAVEAT_FROM: Final = 0.1
"""The share from which a ΔEvi is said to be held down by truncation."""
CUT_CAVEAT_FROM: Final = 0.5
"""Share of pairs with a cut text, from which a ΔEvi of zero is said to be about the beginnings of texts."""


def with_truncation(delta: DeltaEvi, truncated_share: float, unchanged: float) -> DeltaEvi:
    """The same ΔEvi with what truncation did to its pairs, and the verdict that is left.

    Where the input of a swapped pair is, after truncation, the one with the own evidence, the answer cannot change:
    ΔEvi cannot exceed the share of pairs that did change. Where more than half did not, "equivalent" becomes
    "inconclusive".

    Args:
        delta: ΔEvi, judged as if every swap had been seen.
        truncated_share: Share of the pairs in which a text is cut; nan where the reader does not say.
        unchanged: Share of the pairs with another text than the own that nevertheless read like it; nan likewise.
    """
    found = replace(delta, truncated_share=truncated_share, unchanged_after_truncation=unchanged)
    if not unchanged >= CAVEAT_FROM:
        return found
    reason = f"after truncation {unchanged:.1%} of the swapped pairs read like the pairs with their own evidence"
    if delta.verdict == "equivalent" and unchanged > BLIND_ABOVE:
        reason += ", so a ΔEvi near zero says nothing: raise max_length"
        found = replace(found, verdict="inconclusive", negligible=False)
    return replace(found, reason=reason if delta.reason is None else f"{delta.reason}; {reason}")


def blind(delta: DeltaEvi) -> bool:
    """Whether the reader could not see most swaps and so cannot say that there is no effect."""
    return delta.verdict == "inconclusive" and delta.unchanged_after_truncation > BLIND_ABOVE


def caveat(delta: DeltaEvi) -> str | None:
    """What truncation did, in words, where it holds ΔEvi down; else None."""
    if math.isnan(delta.unchanged_after_truncation):
        return None
    unchanged, cut = delta.unchanged_after_truncation, delta.truncated_share
    if unchanged >= CAVEAT_FROM:
        return (
            f"{unchanged:.1%} of its swapped pairs read, after truncation, like the pairs with their own evidence, so"
            f" its ΔEvi cannot exceed {1.0 - unchanged:.3f}"
        )
    if cut >= CUT_CAVEAT_FROM and delta.verdict == "equivalent":
        return f"a text is cut in {cut:.1%} of its pairs, so its ΔEvi says nothing of what stands further on"
    return None
