"""What is known of metrics: direction, range, chance level. And how a caller declares the rest."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from evidep.errors import SettingError
from evidep.stats.aggregate import Task


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What is declared of a task; None where nothing is.

    Attributes:
        metric: Name of a known metric (see `KNOWN`), with a trailing % where scores are per cent; or any other name.
        higher_is_better: Direction.
        low: Least possible score.
        high: Greatest possible score.
        chance: Score of guessing.
        n_items: Number of evaluation items.
    """

    metric: str | None = None
    higher_is_better: bool | None = None
    low: float | None = None
    high: float | None = None
    chance: float | None = None
    n_items: float | None = None

    def over(self, other: TaskSpec) -> TaskSpec:
        """This declaration, filled up from another one."""
        return replace(other, **{f.name: value for f in fields(self) if (value := getattr(self, f.name)) is not None})


_UP = (True, 0.0, 1.0, math.nan)
_CORRELATION = (True, -1.0, 1.0, 0.0)
_SHARE_DOWN = (False, 0.0, 1.0, math.nan)
_ERROR = (False, 0.0, math.inf, math.nan)
_SCORE = (True, math.nan, math.nan, math.nan)

KNOWN: Mapping[str, tuple[bool, float, float, float]] = {
    **dict.fromkeys(("accuracy", "acc", "accnorm", "balancedaccuracy", "exactmatch", "em", "quasiexactmatch"), _UP),
    **dict.fromkeys(("f1", "f1macro", "f1micro", "macrof1", "microf1", "precision", "recall", "mc1", "mc2"), _UP),
    **dict.fromkeys(("passat1", "winrate", "map", "ndcg", "ndcgat10", "mrr", "recallat10", "vmeasure"), _UP),
    **dict.fromkeys(("matthews", "matthewscorrcoef", "mcc", "cohenkappa", "kappa"), _CORRELATION),
    **dict.fromkeys(("pearson", "pearsonr", "spearman", "spearmanr", "kendall", "kendalltau"), _CORRELATION),
    **dict.fromkeys(("auroc", "rocauc", "auc"), (True, 0.0, 1.0, 0.5)),
    **dict.fromkeys(("r2", "rsquared"), (True, -math.inf, 1.0, 0.0)),
    **dict.fromkeys(("rmse", "mse", "mae", "logloss", "nll", "loss", "perplexity", "ppl"), _ERROR),
    **dict.fromkeys(("wordperplexity", "byteperplexity", "bitsperbyte", "wer", "cer", "ter"), _ERROR),
    **dict.fromkeys(("brierscore", "brier", "ece", "errorrate"), _SHARE_DOWN),
    # Some libraries give these as shares, others per cent: the direction is known, the range is not.
    **dict.fromkeys(("bleu", "bleu1", "bleu4", "rouge1", "rouge2", "rougel", "rougelsum", "chrf", "meteor"), _SCORE),
    **dict.fromkeys(("score", "return", "reward", "elo"), _SCORE),
}
"""Normalised name to (higher is better, least score, greatest score, chance level)."""


def known_metric(name: str) -> TaskSpec | None:
    """What is known of a metric by its name, or None. A trailing % stands for scores per cent.

    Capitals, blanks, hyphens and underscores do not matter; "@" reads "at".
    """
    per_cent = name.rstrip().endswith("%")
    key = re.sub(r"[^a-z0-9]", "", name.lower().replace("@", "at"))
    if key not in KNOWN:
        return None
    up, low, high, chance = KNOWN[key]
    scale = 100.0 if per_cent else 1.0
    return TaskSpec(name, up, low * scale, high * scale, chance * scale)


def resolve_task(name: str, declared: TaskSpec, found: TaskSpec) -> Task:
    """The task as declared by the caller, else as the file says, else as the metric is known.

    Args:
        name: Name of the task.
        declared: What the caller declares.
        found: What the file says of it.
    """
    spec = declared.over(found)
    known = known_metric(spec.metric) if spec.metric else None
    if known is not None:
        spec = spec.over(known)

    def number(value: float | None) -> float:
        return math.nan if value is None else float(value)

    return Task(
        name,
        spec.higher_is_better,
        number(spec.low),
        number(spec.high),
        number(spec.chance),
        number(spec.n_items),
        spec.metric or "",
    )


def spec_from(name: str, value: Any) -> TaskSpec:
    """A declaration as written in a file or a call: a metric's name, or a mapping with the keys of `TaskSpec`.

    "direction": "higher" or "lower" may stand for higher_is_better.

    Raises:
        SettingError: If a key or a value is not understood.
    """
    if isinstance(value, TaskSpec):
        return value
    if isinstance(value, str):
        return TaskSpec(metric=value)
    if not isinstance(value, Mapping):
        raise SettingError(f"task {name!r}: expected a metric name or an object, got {type(value).__name__}")
    known = {item.name for item in fields(TaskSpec)} | {"direction"}
    out: dict[str, Any] = {}
    for key, item in value.items():
        if key not in known:
            raise SettingError(f"task {name!r}: unknown key {key!r}; known are {', '.join(sorted(known))}")
        if key == "direction":
            out["higher_is_better"] = direction(name, item)
        elif key == "metric":
            out[key] = str(item)
        elif key == "higher_is_better":
            if not isinstance(item, bool):
                raise SettingError(f"task {name!r}: higher_is_better: expected true or false, got {item!r}")
            out[key] = item
        else:
            out[key] = number_setting(f"task {name!r}: {key}", item)
    return TaskSpec(**out)


def direction(name: str, value: Any) -> bool:
    """True for "higher", False for "lower".

    Raises:
        SettingError: For anything else.
    """
    if value in ("higher", "lower"):
        return bool(value == "higher")
    raise SettingError(f"direction of task {name!r}: expected 'higher' or 'lower' (is better), got {value!r}")


def number_setting(what: str, value: Any) -> float:
    """The value as a number.

    Raises:
        SettingError: If it is none.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise SettingError(f"{what}: expected a number, got {value!r}") from None
    if math.isnan(number) or isinstance(value, bool):
        raise SettingError(f"{what}: expected a number, got {value!r}")
    return number
