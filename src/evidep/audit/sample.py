"""Auditing a part of a large dataset: costly readers need not learn from, or answer, every item."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evidep.data.table import AuditData
from evidep.errors import SettingError
from evidep.types import PairTable


def limit_items(data: AuditData, *, max_items: int | None, max_train_items: int | None, seed: int) -> AuditData:
    """The audit's data with at most so many evaluation and train items.

    The items kept are uniform samples that depend on the seed and the number of items alone, whatever the items hold;
    notes in the report say so.

    Raises:
        SettingError: Fewer than two items, or a sample with one class only.
    """
    evaluation, note = _sample(data.evaluation, max_items, seed, "max_items", "evaluation items audited")
    train, train_note = data.train, None
    if train is not None:
        train, train_note = _sample(train, max_train_items, seed, "max_train_items", "train items fitted on")
    notes = (*data.report.notes, *(sentence for sentence in (note, train_note) if sentence))
    return replace(data, evaluation=evaluation, train=train, report=replace(data.report, notes=notes))


def _sample(table: PairTable, limit: int | None, seed: int, argument: str, what: str) -> tuple[PairTable, str | None]:
    if limit is None:
        return table, None
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 2:
        raise SettingError(f"{argument} must be a whole number of at least 2, got {limit!r}")
    n = len(table)
    if limit >= n:
        return table, None
    kept = np.sort(np.random.default_rng([seed, n]).permutation(n)[:limit])
    part = table.select(kept)
    if len(np.unique(part.labels)) < 2:
        raise SettingError(f"{argument}={limit} leaves items of one class only; raise it")
    return part, f"{limit:,} of {n:,} {what}: a uniform sample (seed {seed})"
