"""The result as plain values: in full for JSON, and in short."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from evidep.stats.aggregate.results import AggregateResult, Standing

SCHEMA_VERSION = 1


def to_dict(result: AggregateResult) -> dict[str, Any]:
    """The result as plain values for JSON: nan becomes null (its reason stands beside it), inf becomes a string."""
    table = result.table
    plain = {
        item.name: _plain(getattr(result, item.name))
        for item in dataclasses.fields(result)
        if item.name not in ("table", "wilcoxon", "nemenyi", "score_profiles")
    }
    names = table.systems
    head = {
        "schema_version": SCHEMA_VERSION,
        "signature": plain.pop("signature"),
        "systems": list(names),
        "tasks": [{**_plain(task), "resampled": unit} for task, unit in zip(table.tasks, table.units, strict=True)],
        "scores": _plain(table.scores),
        "pareto": list(result.pareto),
    }
    pairs = result.wilcoxon
    tests = {
        "wilcoxon": {
            "effect_name": pairs.effect_name,
            "smallest_p": _plain(pairs.smallest_p),
            "reason": pairs.reason,
            "a": [names[a] for a in pairs.pairs[:, 0]],
            "b": [names[b] for b in pairs.pairs[:, 1]],
            "effect": _plain(pairs.effect),
            "p_value": _plain(pairs.p_value),
            "p_holm": _plain(pairs.p_holm),
            "p_bh": _plain(pairs.p_bh),
        },
        "nemenyi": {
            **_plain(dataclasses.replace(result.nemenyi, groups=())),
            "groups": [[names[s] for s in group] for group in result.nemenyi.groups],
        },
    }
    plain["wilcoxon_groups"] = [[names[s] for s in group] for group in result.wilcoxon_groups]
    plain["agreement"]["pareto"] = list(result.pareto)
    return head | plain | tests


def summary(result: AggregateResult) -> dict[str, Any]:
    """The short form: verdict, and per aggregate and system value, interval, rank and chance of being first."""

    def row(standing: Standing) -> dict[str, Any]:
        ci, ranks = standing.ci, standing.rank_ci
        return {
            "value": standing.value,
            "ci": [ci.low, ci.high],
            "rank": standing.rank,
            "rank_ci": [ranks.low, ranks.high],
            "p_first": standing.p_first,
        }

    defined = [aggregate for aggregate in result.aggregates if aggregate.standings]
    return {
        "verdict": list(result.verdict),
        "single_order": result.single_order,
        "covers": result.covers,
        "aggregates": {
            aggregate.name: {standing.system: row(standing) for standing in aggregate.standings}
            for aggregate in defined
        },
        "winners": {aggregate.name: list(aggregate.winners) for aggregate in defined},
        "undefined": {aggregate.name: aggregate.reason for aggregate in result.aggregates if not aggregate.standings},
        "pareto": list(result.pareto),
        "friedman_p": result.friedman.p_value,
        "critical_difference": result.nemenyi.critical_difference,
        "opposed_tasks": [list(pair.tasks) for pair in result.agreement.opposed],
        "redundant_tasks": [list(pair.tasks) for pair in result.agreement.redundant],
        "notes": list(result.notes),
        "signature": result.signature,
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: _plain(getattr(value, item.name)) for item in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return None if math.isnan(value) else str(value) if math.isinf(value) else value
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    return value
