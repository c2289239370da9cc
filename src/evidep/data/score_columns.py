"""Scores in memory as columns, checked value by value before anything is coerced."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evidep.data.scores import scores_from_rows
from evidep.errors import DataError
from evidep.stats.aggregate import ScoreTable


def scores_from_columns(
    systems: Any, tasks: Any, scores: Any, *, seeds: Any = None, items: Any = None, stderr: Any = None, **more: Any
) -> ScoreTable:
    """The same from columns of equal length, checked value by value before anything is coerced.

    Args:
        systems: [n] names (str).
        tasks: [n] names (str).
        scores: [n] numbers; nan is a gap.
        seeds: [n] names or numbers, or None.
        items: [n] names or numbers, or None.
        stderr: [n] numbers, or None.
        more: `tasks` declarations under the name `declared`, and missing, merge, only, as in `scores_from_rows`.

    Raises:
        DataError: If a column is not a list, differs in length, or holds a value of the wrong kind.
    """
    check_score_columns(systems, tasks, scores)
    columns: dict[str, list[Any]] = {"system": _plain(systems), "task": _plain(tasks), "score": _plain(scores)}
    for name, values in (("seed", seeds), ("item", items), ("stderr", stderr)):
        if values is not None:
            columns[name] = _plain(values, f"{name}s" if name != "stderr" else name)
    n = len(columns["system"])
    for name, column in columns.items():
        if len(column) != n:
            raise DataError(f"{name}: expected {n} values, one per score, got {len(column)}")
    rows = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    return scores_from_rows(rows, tasks=more.pop("declared", None), **more)


def check_score_columns(systems: Any, tasks: Any, scores: Any) -> None:
    """Refuse names that are no strings and scores that are no numbers.

    Raises:
        DataError: Names the argument and the first bad position.
    """
    for name, values in (("systems", systems), ("tasks", tasks)):
        for at, value in enumerate(_plain(values, name)):
            if not isinstance(value, str) or not value:
                raise DataError(f"{name}[{at}]: expected a name (str), got {value!r}")
    for at, value in enumerate(_plain(scores, "scores")):
        if not isinstance(value, (int, float)):
            raise DataError(f"scores[{at}]: expected a number (nan for a gap), got {value!r}")


def _plain(values: Any, name: str = "column") -> list[Any]:
    if isinstance(values, (str, Mapping)) or not hasattr(values, "__len__"):
        raise DataError(f"{name}: expected a list, got {type(values).__name__}")
    return list(values.tolist() if hasattr(values, "tolist") else values)
