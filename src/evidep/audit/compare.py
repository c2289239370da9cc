"""Two audits side by side: which of their values differ by more than noise, with items matched by id where they can be.

Every value keeps the estimate and interval that its own packet prints. The interval of a difference is built from
these by MOVER (Zou & Donner 2008, Statistics in Medicine 27), with the correlation that shared items give the two
estimates: for lower and upper distances l and u of each interval, old o and new n,

    low = d - sqrt(l_n² - 2 rho l_n u_o + u_o²),  high = d + sqrt(u_n² - 2 rho u_n l_o + l_o²),  d = n - o.

Without shared items it is 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from evidep.audit.packet import AuditPacket, plain
from evidep.audit.shared_items import ItemMatch, Key, Quantity, Row, SharedItems, fit_number

Outcome = Literal["lower", "higher", "no difference shown", "undefined"]


@dataclass(frozen=True, slots=True)
class Change:
    """One value in both audits.

    Attributes:
        quantity: What is compared.
        reader: Reader that the value belongs to.
        fit: Number of the fit, 0 for the one with the first seed of its packet (the seeds themselves may differ).
        shuffle: Shuffle family of a ΔEvi, else None.
        old: Value in the old packet; nan where undefined.
        new: Value in the new packet; nan where undefined.
        difference: new - old.
        ci: Interval of the difference, [low, high] at the level of the packets; nan where undefined.
        correlation: Of the two estimates, through shared items; 0 where none are.
        outcome: Where the interval lies: below 0, above 0, across it, or nowhere.
        reason: Why the comparison is undefined, else None.
    """

    quantity: Quantity
    reader: str
    fit: int
    shuffle: str | None
    old: float
    new: float
    difference: float
    ci: tuple[float, float]
    correlation: float
    outcome: Outcome
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two audits compared.

    Attributes:
        names: What the data is called in the old and in the new packet.
        signatures: Their signature lines.
        regions: The regions that they end in.
        items: Which items they share.
        changes: One entry for each value that both packets have, in the order of the new one.
        notes: What differs besides: settings, readers that only one of them has.
    """

    names: tuple[str, str]
    signatures: tuple[str, str]
    regions: tuple[str, str]
    items: ItemMatch
    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    def find(self, quantity: Quantity, reader: str, fit: int, shuffle: str | None = None) -> Change | None:
        """The change of one value, or None where not both packets have it."""
        wanted = (quantity, reader, fit, shuffle)
        return next((c for c in self.changes if (c.quantity, c.reader, c.fit, c.shuffle) == wanted), None)

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain JSON values, undefined numbers None."""
        values: dict[str, Any] = plain(asdict(self))
        return values


def compare(old: AuditPacket, new: AuditPacket) -> Comparison:
    """Compare every ΔEvi, MPDS and accuracy that two packets have in common.

    The intervals are not adjusted for how many values are compared. A difference of less than one item is never beyond
    noise: where nearly all items are shared, their answers decide it, and these come in steps of one item.

    Args:
        old: The audit to compare with.
        new: The audit in question.
    """
    shared, incomparable = SharedItems(old, new), _incomparable(old, new)
    changes = [
        _change(key, first, second, shared, incomparable)
        for key, second in _values(new)
        if (first := dict(_values(old)).get(key)) is not None
    ]
    return Comparison(
        names=(str(old["data"]["name"]), str(new["data"]["name"])),
        signatures=(old.signature, new.signature),
        regions=(old.region, new.region),
        items=shared.match,
        changes=tuple(changes),
        notes=tuple(_notes(old, new)),
    )


def effect(row: Row) -> float | None:
    """ΔEvi of a row: the expectation over all allowed donors where the reader gives it, else the mean over K."""
    value = row["exact"] if row["exact"] is not None else row["mean"]
    return None if value is None else float(value)


@dataclass(frozen=True, slots=True)
class _Value:
    estimate: float | None
    ci: tuple[float, float] | None
    reason: str | None


def _values(packet: AuditPacket) -> Iterator[tuple[Key, _Value]]:
    for row in packet["delta_evi"]:
        yield ("delta_evi", row["reader"], fit_number(packet, row), row["shuffle"]), _value(effect(row), row)
    for row in packet["metadata"].get("by_reader", ()):
        yield ("mpds", row["reader"], fit_number(packet, row), None), _value(row["mpds"], row)
    for row in packet["readers"]:
        yield ("accuracy", row["reader"], fit_number(packet, row), None), _value(row["accuracy_full"], row)


def _value(estimate: float | None, row: Row) -> _Value:
    ci = row["ci"]
    return _Value(estimate, None if ci is None else (float(ci[0]), float(ci[1])), row.get("reason"))


def _change(key: Key, old: _Value, new: _Value, shared: SharedItems, incomparable: str | None) -> Change:
    quantity, reader, fit, shuffle = key
    first = math.nan if old.estimate is None else float(old.estimate)
    second = math.nan if new.estimate is None else float(new.estimate)
    reason = incomparable or _undefined("old", old) or _undefined("new", new)
    rho = 0.0 if reason else shared.correlation(key)
    low = high = math.nan
    outcome: Outcome = "undefined"
    if not reason and old.ci is not None and new.ci is not None:
        low, high = mover_difference(first, old.ci, second, new.ci, rho)
        outcome = "higher" if low > 0 else "lower" if high < 0 else "no difference shown"
        if abs(second - first) < shared.resolution:
            outcome = "no difference shown"
    return Change(quantity, reader, fit, shuffle, first, second, second - first, (low, high), rho, outcome, reason)


def _undefined(which: str, value: _Value) -> str | None:
    if value.estimate is not None and value.ci is not None:
        return None
    what = "value" if value.estimate is None else "interval"
    return f"the {which} packet has no {what}: {value.reason or 'no reason given'}"


def mover_difference(
    old: float, old_ci: tuple[float, float], new: float, new_ci: tuple[float, float], correlation: float
) -> tuple[float, float]:
    """Interval of new - old from the interval of each (MOVER), at their common level.

    Args:
        old: Estimate.
        old_ci: Its interval.
        new: Estimate.
        new_ci: Its interval.
        correlation: Of the two estimates, in [-1, 1].
    """
    below_old, above_old = max(old - old_ci[0], 0.0), max(old_ci[1] - old, 0.0)
    below_new, above_new = max(new - new_ci[0], 0.0), max(new_ci[1] - new, 0.0)
    difference = new - old
    return (
        difference - _side(below_new, above_old, correlation),
        difference + _side(above_new, below_old, correlation),
    )


def _side(first: float, second: float, correlation: float) -> float:
    return math.sqrt(max(first**2 - 2.0 * correlation * first * second + second**2, 0.0))


def _incomparable(old: AuditPacket, new: AuditPacket) -> str | None:
    first, second = old["settings"]["alpha"], new["settings"]["alpha"]
    if first == second:
        return None
    return f"the packets' intervals have different levels (alpha {first:g} and {second:g}): audit with the same alpha"


def _notes(old: AuditPacket, new: AuditPacket) -> Iterator[str]:
    for name in ("k", "seed", "margin", "shuffles", "n_folds"):
        first, second = old["settings"].get(name), new["settings"].get(name)
        if first != second:
            yield f"{name} differs: {_text(first)} in the old packet, {_text(second)} in the new one."
    if old["metadata"]["schema"] != new["metadata"]["schema"]:
        yield (
            f"The metadata columns differ: {_text(old['metadata']['schema'])} in the old packet, "
            f"{_text(new['metadata']['schema'])} in the new one."
        )
    if set(old["data"]["labels"]) != set(new["data"]["labels"]):
        yield f"The labels differ: {_text(old['data']['labels'])} and {_text(new['data']['labels'])}."
    rows = [{(row["reader"], fit_number(packet, row)): row for row in packet["readers"]} for packet in (old, new)]
    for reader, fit in sorted(rows[0].keys() & rows[1].keys()):
        first, second = (side[reader, fit].get("fingerprint") for side in rows)
        if first != second and fit == 0:
            yield f"{reader} has other settings in the new packet."
    for which, only in (("old", rows[0].keys() - rows[1].keys()), ("new", rows[1].keys() - rows[0].keys())):
        if only:
            yield f"Only in the {which} packet: {', '.join(_fit_text(*key) for key in sorted(only))}."


def _fit_text(reader: str, fit: int) -> str:
    return reader if fit == 0 else f"{reader} (fit {fit + 1})"


def _text(value: Any) -> str:
    if value is None or value == []:
        return "none"
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else f"{value}"
