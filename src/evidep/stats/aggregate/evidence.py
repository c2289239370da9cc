"""The leaderboard with and without the tasks that an audit found not to need their evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evidep.errors import SettingError
from evidep.stats.aggregate.methods import Method, all_methods
from evidep.stats.aggregate.stability import observed_values, ranks_of, winners
from evidep.stats.aggregate.table import ScoreTable

FAILED_REGIONS = ("direct_coupling", "latent_coupling", "question_dominant")
"""Regions in which a score says little about the use of evidence."""


@dataclass(frozen=True, slots=True)
class TaskAudit:
    """What an audit said of one task.

    Attributes:
        task: The task.
        region: Region of the audit's diagnosis.
        source: What was audited, as the packet names it.
        failed: Whether the region is one of `FAILED_REGIONS`.
    """

    task: str
    region: str
    source: str
    failed: bool


@dataclass(frozen=True, slots=True)
class Moved:
    """One system's rank under one aggregate, with all tasks and without the failed ones; nan where undefined."""

    system: str
    rank_all: float
    rank_kept: float


@dataclass(frozen=True, slots=True)
class MethodChange:
    """One aggregate with all tasks and without the failed ones.

    Attributes:
        method: Name of the aggregate.
        winners_all: Who is first with all tasks.
        winners_kept: Who is first without the failed tasks; empty where undefined.
        moved: Systems whose rank changed, largest change first.
        reason: Why it is undefined without the failed tasks, else None.
    """

    method: str
    winners_all: tuple[str, ...]
    winners_kept: tuple[str, ...]
    moved: tuple[Moved, ...]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class EvidenceLink:
    """The effect of leaving out failed tasks.

    Attributes:
        audits: The audited tasks, in the order of the table.
        dropped: Tasks that failed and are left out.
        unaudited: Tasks without an audit: kept, and nothing is known of them.
        changes: Per aggregate.
        reason: Why there is no comparison (no task failed, or none is left), else None.
    """

    audits: tuple[TaskAudit, ...]
    dropped: tuple[str, ...]
    unaudited: tuple[str, ...]
    changes: tuple[MethodChange, ...]
    reason: str | None = None


def evidence_link(
    table: ScoreTable,
    audits: Mapping[str, tuple[str, str]],
    methods: Sequence[Method],
    *,
    baseline: Sequence[str] = (),
    weights: Mapping[str, float] | None = None,
) -> EvidenceLink:
    """Recompute every aggregate without the failed tasks.

    Args:
        table: The table with all tasks.
        audits: Task name to (region, source) of its audit.
        methods: The aggregates on the whole table.
        baseline: As in `all_methods`.
        weights: As in `all_methods`; weights of dropped tasks fall away.

    Raises:
        SettingError: If an audited task is not in the table.
    """
    for name in audits:
        if name not in table.task_names:
            raise SettingError(
                f"audit: task {name!r} is not in the table; it has {', '.join(repr(t) for t in table.task_names[:8])}"
            )
    found = tuple(
        TaskAudit(name, *audits[name], failed=audits[name][0] in FAILED_REGIONS)
        for name in table.task_names
        if name in audits
    )
    dropped = tuple(audit.task for audit in found if audit.failed)
    unaudited = tuple(name for name in table.task_names if name not in audits)
    if not dropped:
        return EvidenceLink(found, (), unaudited, (), "no audited task failed: the table stands as it is")
    keep = np.array([t for t, name in enumerate(table.task_names) if name not in dropped], dtype=np.int64)
    if len(keep) == 0:
        return EvidenceLink(found, dropped, unaudited, (), "every task failed its audit: no table is left")
    kept = table.select(tasks=keep)
    if not kept.present.any(axis=1).all():
        kept = kept.select(systems=np.flatnonzero(kept.present.any(axis=1)))
    left = {name: value for name, value in (weights or {}).items() if name not in dropped}
    # Declared weights on dropped tasks alone leave equal weights, so the method stays in the comparison.
    declared = None if weights is None else left or dict.fromkeys(kept.task_names, 1.0)
    names = [name for name in baseline if name in kept.systems]
    reduced = {method.name: method for method in all_methods(kept, baseline=names, weights=declared)}
    changes = [
        _change(method, reduced.get(method.name), table, kept) for method in methods if method.values is not None
    ]
    return EvidenceLink(found, dropped, unaudited, tuple(changes))


def _change(method: Method, reduced: Method | None, table: ScoreTable, kept: ScoreTable) -> MethodChange:
    before = ranks_of(method, observed_values(method, table))
    first = winners(table, before)
    if reduced is None or reduced.values is None:
        return MethodChange(method.name, first, (), (), reduced.reason if reduced else "undefined")
    after = ranks_of(reduced, observed_values(reduced, kept))
    place = {name: float(rank) for name, rank in zip(kept.systems, after, strict=True)}
    pairs = [
        Moved(name, float(rank), place.get(name, np.nan)) for name, rank in zip(table.systems, before, strict=True)
    ]
    moved = [pair for pair in pairs if pair.rank_all != pair.rank_kept and not np.isnan(pair.rank_all)]
    moved.sort(key=lambda pair: -abs(np.nan_to_num(pair.rank_all - pair.rank_kept, nan=np.inf)))
    return MethodChange(method.name, first, winners(kept, after), tuple(moved))
