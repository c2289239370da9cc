"""The gate: whether a packet keeps declared limits, and whether it is worse than a baseline beyond noise.

A value that a limit speaks of and that the packet does not have fails the gate: undefined never passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args, get_type_hints

from evidep.audit.compare import Change, Comparison, compare, effect
from evidep.audit.packet import AuditPacket, plain
from evidep.audit.shared_items import Quantity, Row, fit_number
from evidep.errors import SettingError
from evidep.types import Diagnosis

REGIONS: Final[tuple[str, ...]] = get_args(get_type_hints(Diagnosis)["region"])
COUPLED: Final = ("direct_coupling", "latent_coupling", "question_dominant")
"""Regions that say: the evidence is not needed."""
STRENGTHS: Final = ("baseline", "light", "middle", "strong")
SHUFFLES: Final = ("global", "within-label", "within-metadata", "near-miss")

Status = Literal["passed", "failed", "skipped"]


@dataclass(frozen=True, slots=True)
class Limits:
    """What a packet has to keep.

    Attributes:
        regions: The only regions allowed; empty: any.
        forbidden_regions: Regions that are not allowed.
        min_delta_evi: The lower end of ΔEvi's interval must not be below it.
        max_mpds: MPDS must not be above it.
        reader: Reader whose ΔEvi counts; None: the strongest that works.
        shuffle: Shuffle family whose ΔEvi counts; None: the global one where it was run.
    """

    regions: tuple[str, ...] = ()
    forbidden_regions: tuple[str, ...] = ()
    min_delta_evi: float | None = None
    max_mpds: float | None = None
    reader: str | None = None
    shuffle: str | None = None

    def __post_init__(self) -> None:
        for name in (*self.regions, *self.forbidden_regions):
            if name not in REGIONS:
                raise SettingError(f"region {name!r} is unknown; the regions are {', '.join(REGIONS)}")
        if both := set(self.regions) & set(self.forbidden_regions):
            raise SettingError(f"region {min(both)!r} is both allowed and forbidden; name it once")
        if self.min_delta_evi is not None and not -1.0 <= self.min_delta_evi <= 1.0:
            raise SettingError(f"min_delta_evi: expected a number from -1 to 1, got {self.min_delta_evi}")
        if self.max_mpds is not None and not (math.isfinite(self.max_mpds) and self.max_mpds >= 0.0):
            raise SettingError(f"max_mpds: expected a number of at least 0, got {self.max_mpds}")

    @property
    def empty(self) -> bool:
        """Whether nothing is declared."""
        return not (self.regions or self.forbidden_regions) and self.min_delta_evi is None and self.max_mpds is None


@dataclass(frozen=True, slots=True)
class Check:
    """One limit: a stable name, how it ended, and one sentence with the numbers."""

    name: str
    status: Status
    message: str


@dataclass(frozen=True, slots=True)
class GateResult:
    """Everything the gate looked at.

    Attributes:
        data: What the data is called.
        signature: Signature line of the packet.
        checks: One entry per declared limit.
        comparison: The packet against its baseline, where one was given.
    """

    data: str
    signature: str
    checks: tuple[Check, ...]
    comparison: Comparison | None = None

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return all(check.status != "failed" for check in self.checks)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain JSON values."""
        return {
            "passed": self.passed,
            "data": self.data,
            "signature": self.signature,
            "checks": [asdict(check) for check in self.checks],
            "comparison": None if self.comparison is None else plain(self.comparison.to_dict()),
        }


def check_packet(packet: AuditPacket, limits: Limits, baseline: AuditPacket | None = None) -> GateResult:
    """Hold a packet against limits and a baseline.

    Worse than the baseline is: ΔEvi of the baseline's strongest working reader is lower, or its MPDS higher, with the
    whole interval of the difference on that side (each at the packets' two-sided level); or evidence that the baseline
    showed to be needed is now shown not to be.

    Args:
        packet: The audit in question.
        limits: Declared limits.
        baseline: An earlier audit, or None.

    Raises:
        SettingError: Nothing to check, or a reader or shuffle family that the packet does not have.
    """
    if limits.empty and baseline is None:
        raise SettingError("nothing to check: declare a region, min_delta_evi, max_mpds or a baseline")
    checks = [*_regions(packet, limits)]
    if limits.min_delta_evi is not None:
        checks.append(_min_delta_evi(packet, limits))
    if limits.max_mpds is not None:
        checks.append(_max_mpds(packet, limits.max_mpds))
    comparison = None
    if baseline is not None:
        comparison = compare(baseline, packet)
        checks += _against(baseline, packet, comparison, limits)
    return GateResult(str(packet["data"]["name"]), packet.signature, tuple(checks), comparison)


def main_shuffle(packet: AuditPacket, wanted: str | None = None) -> str | None:
    """The family whose ΔEvi counts: the one asked for, else global, else the first that was run; None for none.

    Raises:
        SettingError: The family asked for was not run.
    """
    present = {row["shuffle"] for row in packet["delta_evi"]}
    if wanted is not None and wanted not in present:
        raise SettingError(f"shuffle {wanted!r} was not run; the packet has {', '.join(sorted(present)) or 'none'}")
    return wanted or next((name for name in SHUFFLES if name in present), None)


def strongest_reader(packet: AuditPacket, wanted: str | None = None) -> str | None:
    """The reader whose ΔEvi counts: the one asked for, else the strongest that beats the majority rate in every seed.

    Baselines that never see evidence do not count. Of several on the same rung the last one named is taken; never the
    one with the largest effect, since picking by the outcome would overstate it.

    Raises:
        SettingError: The reader asked for is not in the packet.
    """
    names = list(dict.fromkeys(row["reader"] for row in packet["readers"]))
    if wanted is not None:
        if wanted not in names:
            raise SettingError(f"reader {wanted!r} is not in the packet; it has {', '.join(names)}")
        return wanted
    rungs = {row["reader"]: STRENGTHS.index(row.get("strength", "light")) for row in packet["readers"]}
    working = [name for name in names if rungs[name] > 0 and _works(packet, name)]
    return max(reversed(working), key=lambda name: rungs[name], default=None)


def _works(packet: AuditPacket, reader: str) -> bool:
    return all(row["works"] for row in packet["readers"] if row["reader"] == reader)


def _regions(packet: AuditPacket, limits: Limits) -> Iterator[Check]:
    if limits.regions:
        allowed = packet.region in limits.regions
        text = f"region is {packet.region}; allowed: {', '.join(limits.regions)}"
        yield Check("region", "passed" if allowed else "failed", text)
    if limits.forbidden_regions:
        allowed = packet.region not in limits.forbidden_regions
        text = f"region is {packet.region}; forbidden: {', '.join(limits.forbidden_regions)}"
        yield Check("forbidden-region", "passed" if allowed else "failed", text)


def _min_delta_evi(packet: AuditPacket, limits: Limits) -> Check:
    name, least = "min-delta-evi", limits.min_delta_evi
    assert least is not None
    shuffle, reader = main_shuffle(packet, limits.shuffle), strongest_reader(packet, limits.reader)
    if reader is None:
        return Check(name, "failed", "ΔEvi says nothing: no reader beats the majority rate by more than noise")
    if not _works(packet, reader):
        return Check(name, "failed", f"ΔEvi says nothing: {reader} does not beat the majority rate by more than noise")
    rows = [row for row in packet["delta_evi"] if (row["reader"], row["shuffle"]) == (reader, shuffle)]
    undefined = next((row for row in rows if row["ci"] is None or effect(row) is None), None)
    if not rows or undefined is not None:
        return Check(name, "failed", f"ΔEvi of {reader} is undefined: {_reason(undefined)}")
    worst = min(rows, key=lambda row: float(row["ci"][0]))
    low, high = worst["ci"]
    seeds = f", the lowest of {len(rows)} seeds" if len(rows) > 1 else ""
    return Check(
        name,
        "passed" if low >= least else "failed",
        f"ΔEvi of {reader} ({shuffle} shuffle{seeds}) is {effect(worst):.4f}, interval [{low:.4f}, {high:.4f}]; "
        f"its lower end must be at least {least:g}",
    )


def _max_mpds(packet: AuditPacket, most: float) -> Check:
    metadata = packet["metadata"]
    if metadata["mpds"] is None:
        return Check("max-mpds", "failed", f"MPDS is undefined: {_reason(metadata)}")
    ci = "undefined" if metadata["ci"] is None else "[{:.4f}, {:.4f}]".format(*metadata["ci"])
    return Check(
        "max-mpds",
        "passed" if metadata["mpds"] <= most else "failed",
        f"MPDS is {metadata['mpds']:.4f}, interval {ci}; it must be at most {most:g}",
    )


def _against(old: AuditPacket, new: AuditPacket, comparison: Comparison, limits: Limits) -> Iterator[Check]:
    lost = old.region == "evidence_sensitive" and new.region in COUPLED
    yield Check("baseline-region", "failed" if lost else "passed", f"region was {old.region} and is {new.region}")
    reader, shuffle = strongest_reader(old, limits.reader), main_shuffle(old, limits.shuffle)
    if reader is None or shuffle is None:
        why = "no reader of the baseline beats the majority rate" if reader is None else "the baseline has no shuffle"
        yield Check("baseline-delta-evi", "failed", f"ΔEvi cannot be compared: {why}")
    elif any(row["reader"] == reader for row in new["readers"]) and not _works(new, reader):
        text = f"ΔEvi cannot be compared: {reader} no longer beats the majority rate by more than noise"
        yield Check("baseline-delta-evi", "failed", text)
    else:
        fits = [fit_number(old, row) for row in old["readers"] if row["reader"] == reader]
        yield _worse("baseline-delta-evi", comparison, "delta_evi", reader, fits, shuffle)
    if old["metadata"]["mpds"] is None and new["metadata"]["mpds"] is None:
        yield Check("baseline-mpds", "skipped", f"neither packet has an MPDS: {_reason(old['metadata'])}")
        return
    against = old["metadata"]["reader"] or new["metadata"]["reader"]
    fits = [fit_number(old, row) for row in old["metadata"].get("by_reader", ()) if row["reader"] == against]
    yield _worse("baseline-mpds", comparison, "mpds", against, fits, None)


def _worse(
    name: str, comparison: Comparison, quantity: Quantity, reader: str, fits: list[int], shuffle: str | None
) -> Check:
    """Failed where any fit is worse or cannot be compared."""
    title = {"delta_evi": "ΔEvi", "mpds": "MPDS", "accuracy": "accuracy"}[quantity]
    bad = "higher" if quantity == "mpds" else "lower"
    changes = [comparison.find(quantity, reader, fit, shuffle) for fit in fits]
    found = [change for change in changes if change is not None]
    if not found or len(found) < len(changes):
        return Check(name, "failed", f"{title} of {reader} cannot be compared: not both packets have it")
    undefined = next((change for change in found if change.outcome == "undefined"), None)
    if undefined is not None:
        return Check(name, "failed", f"{title} of {reader} cannot be compared: {undefined.reason}")
    worse = [change for change in found if change.outcome == bad]
    shown = worse[0] if worse else found[0]
    return Check(name, "failed" if worse else "passed", f"{title} of {reader} {_moved(shown, comparison)}")


def _moved(change: Change, comparison: Comparison) -> str:
    shared = comparison.items
    how = f"{shared.matched} items matched" if shared.matched else f"no items matched ({shared.reason})"
    beyond = change.outcome if change.outcome in ("higher", "lower") else "no difference beyond noise"
    return (
        f"was {change.old:.4f} and is {change.new:.4f}: difference {change.difference:+.4f}, interval "
        f"[{change.ci[0]:+.4f}, {change.ci[1]:+.4f}], {beyond}; {how}"
    )


def _reason(row: Row | None) -> str:
    return str((row or {}).get("reason") or "the packet gives no reason")
