"""The items that two audits share, and what they make of the correlation of the audits' estimates.

The correlation comes from each item's influence on either estimate, summed over clusters that may not be torn apart:
the groups of both packets, joined through items that are in both.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from evidep.audit.packet import AuditPacket
from evidep.data.identity import connected
from evidep.errors import PacketError
from evidep.types import NULL, FloatArray, IntArray

Quantity = Literal["delta_evi", "mpds", "accuracy"]
Row = Mapping[str, Any]
Key = tuple[Quantity, str, int, str | None]
"""A value of a packet: quantity, reader, number of the fit, shuffle family (of a ΔEvi)."""

_COLUMNS: Final = ("id", "reader", "seed", "group", "label", "prediction")
_ROW_NUMBER: Final = re.compile(r"(.*:)\d+", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ItemMatch:
    """Which items the two audits share.

    Attributes:
        old: Items of the old audit.
        new: Items of the new audit.
        matched: Items found in both by id.
        relabelled: Matched items whose gold label differs.
        reason: Why no items were matched, or None.
    """

    old: int
    new: int
    matched: int
    relabelled: int
    reason: str | None = None


def fit_number(packet: AuditPacket, row: Row) -> int:
    """Which of its reader's fits a row belongs to: 0 for the packet's first seed."""
    return int(row["seed"]) - int(packet["settings"]["seed"])


class SharedItems:
    """The items that both packets hold, and what they make of the estimates' correlation.

    Attributes:
        match: How many items are shared, or why none are.
        resolution: One item of the larger audit, as a share: answers move in steps of it.
    """

    def __init__(self, old: AuditPacket, new: AuditPacket) -> None:
        self._tables = (_by_reader(old), _by_reader(new))
        self._clusters: tuple[IntArray, IntArray] | None = None
        sizes = int(old["data"]["rows"]), int(new["data"]["rows"])
        self.resolution = 1.0 / max(sizes)
        reason = self._why_unmatched(old, new)
        if reason is not None:
            self.match = ItemMatch(*sizes, 0, 0, reason)
            return
        first, second = (next(iter(tables.values())) for tables in self._tables)
        place = pc.index_in(second["id"].combine_chunks(), value_set=first["id"].combine_chunks())
        position = place.fill_null(NULL).to_numpy(zero_copy_only=False).astype(np.int64)
        found = np.flatnonzero(position >= 0)
        same = (
            np.asarray(first["label"].to_pylist(), dtype=object)[position[found]]
            == np.asarray(second["label"].to_pylist(), dtype=object)[found]
        )
        reason = None if len(found) else "no item of the one audit has the id of an item of the other"
        self.match = ItemMatch(*sizes, len(found), int(np.sum(~same.astype(bool))), reason)
        if len(found):
            self._clusters = _clusters(first, second, position)

    def _why_unmatched(self, old: AuditPacket, new: AuditPacket) -> str | None:
        for which, tables in zip(("old", "new"), self._tables, strict=True):
            if not tables:
                return f"the {which} packet was read without its items.parquet"
        if old["data"]["fingerprint"] == new["data"]["fingerprint"]:
            return None
        for which, tables in zip(("old", "new"), self._tables, strict=True):
            if _are_row_numbers(next(iter(tables.values()))["id"]):
                return (
                    f"the items of the {which} audit are named by row number and the data differs: row numbers may "
                    'have moved; give the data a column "id"'
                )
        return None

    def correlation(self, key: Key) -> float:
        """Correlation of the old and the new estimate of a value; 0 where no items are shared."""
        quantity, reader, fit, shuffle = key
        if self._clusters is None:
            return 0.0
        sums = []
        total = int(max(cluster.max(initial=NULL) for cluster in self._clusters)) + 1
        for tables, cluster in zip(self._tables, self._clusters, strict=True):
            table = tables.get((reader, fit))
            influence = None if table is None else _influence(table, quantity, shuffle)
            if influence is None or len(influence) != len(cluster):
                return 0.0
            sums.append(np.bincount(cluster, weights=influence, minlength=total))
        size = math.sqrt(float(sums[0] @ sums[0]) * float(sums[1] @ sums[1]))
        return 0.0 if size == 0.0 else min(1.0, max(-1.0, float(sums[0] @ sums[1]) / size))


def _by_reader(packet: AuditPacket) -> dict[tuple[str, int], pa.Table]:
    items = packet.items
    if items is None:
        return {}
    if missing := [name for name in _COLUMNS if name not in items.column_names]:
        raise PacketError(f"items.parquet of {packet['data']['name']} has no column {missing[0]!r}: audit again")
    return {
        (row["reader"], fit_number(packet, row)): items.filter(
            pc.and_(pc.equal(items["reader"], row["reader"]), pc.equal(items["seed"], row["seed"]))
        )
        for row in packet["readers"]
    }


def _are_row_numbers(ids: pa.ChunkedArray) -> bool:
    """Whether the ids are those given to items without a name: one prefix, a colon and the row."""
    prefixes = set()
    for text in ids.to_pylist():
        found = _ROW_NUMBER.fullmatch(text)
        if found is None:
            return False
        prefixes.add(found[1])
    return len(prefixes) == 1


def _clusters(old: pa.Table, new: pa.Table, position: IntArray) -> tuple[IntArray, IntArray]:
    """Clusters of the old and the new items: groups of either packet, joined where an item is in both."""
    first, second = (np.asarray(table["group"], dtype=np.int64) for table in (old, new))
    groups = np.concatenate([first, second + int(first.max(initial=NULL)) + 1])
    same = np.concatenate([np.arange(len(first)), position])
    cluster = connected(len(groups), groups, same)
    return cluster[: len(first)], cluster[len(first) :]


def _influence(table: pa.Table, quantity: Quantity, shuffle: str | None) -> FloatArray | None:
    """Each item's share in the error of the estimate, or None where the items do not tell."""
    label = np.asarray(table["label"].to_pylist(), dtype=object)
    right = (np.asarray(table["prediction"].to_pylist(), dtype=object) == label).astype(np.float64)
    if quantity == "accuracy":
        values = right
    elif quantity == "delta_evi":
        column = f"right_share_{shuffle}"
        if column not in table.column_names:
            return None
        values = right - np.asarray(table[column], dtype=np.float64)
    else:
        if "metadata_prediction" not in table.column_names or not right.any():
            return None
        guessed = (np.asarray(table["metadata_prediction"].to_pylist(), dtype=object) == label).astype(np.float64)
        # A ratio's influence: numerator minus ratio times denominator.
        values = guessed - guessed.mean() / right.mean() * right
    centred: FloatArray = values - values.mean()
    return centred if np.isfinite(centred).all() else None
