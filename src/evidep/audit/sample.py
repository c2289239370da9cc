"""Auditing a part of a large evaluation set: costly readers need not answer every item twenty times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evidep.data.table import AuditData
from evidep.errors import SettingError


def limit_items(data: AuditData, max_items: int | None, seed: int) -> AuditData:
    """The audit's data with at most `max_items` evaluation items, drawn without regard to their content.

    The items kept are a uniform sample that depends on the seed and the number of items alone; a note in the report
    says so. Train items stay as they are.

    Raises:
        SettingError: Fewer than two items, or a sample with one class only.
    """
    n = len(data.evaluation)
    if max_items is None or max_items >= n:
        return data
    if isinstance(max_items, bool) or not isinstance(max_items, int) or max_items < 2:
        raise SettingError(f"max_items must be a whole number of at least 2, got {max_items!r}")
    kept = np.sort(np.random.default_rng([seed, n]).permutation(n)[:max_items])
    evaluation = data.evaluation.select(kept)
    if len(np.unique(evaluation.labels)) < 2:
        raise SettingError(f"max_items={max_items} leaves items of one class only; raise it")
    note = f"audited {max_items:,} of {n:,} evaluation items, a uniform sample (seed {seed})"
    return replace(data, evaluation=evaluation, report=replace(data.report, notes=(*data.report.notes, note)))
