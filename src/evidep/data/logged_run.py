"""Answers of one finished evaluation run, item by item, whichever harness logged them."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evidep.errors import DataError
from evidep.types import BoolArray


@dataclass(frozen=True, slots=True, eq=False)
class LoggedRun:
    """What one run answered.

    Attributes:
        source: The file that it was read from.
        ids: [n] document or sample id, as text; each once.
        answers: [n] the answer: the chosen option for a choice task, else the (filtered) text.
        references: [n] the gold answer, in the same form; alternatives joined by " | ".
        correct: [n] right by the harness's own score, or None where the log has no score that is right or wrong.
        scored_by: Metric or scorer that `correct` comes from, or None.
        choice: Whether answers are options of a choice task, so that answers and references can be compared.
        dropped: Id to reason, for items that the run did not finish.
    """

    source: str
    ids: tuple[str, ...]
    answers: tuple[str, ...]
    references: tuple[str, ...]
    correct: BoolArray | None
    scored_by: str | None
    choice: bool
    dropped: Mapping[str, str]

    def __len__(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Answer:
    """One item of a log, before a score is chosen: every score by its name."""

    id: str
    answer: str
    reference: str
    choice: bool
    scores: Mapping[str, Any]


def make_run(
    path: Path, answers: Iterable[Answer], dropped: Mapping[str, str], score: str | None, option: str
) -> LoggedRun:
    """Choose a score and put the items together.

    Args:
        path: The log.
        answers: Its items.
        dropped: Items that were not finished.
        score: Name of the score to use; None takes the only one, or the first that is right or wrong everywhere.
        option: What the caller's argument for `score` is called, for messages.

    Raises:
        DataError: No items, an id twice, or a score that is missing or is not right or wrong.
    """
    items = list(answers)
    if not items:
        raise DataError(f"{path}: no finished items in this log")
    ids = [item.id for item in items]
    twice, count = Counter(ids).most_common(1)[0]
    if count > 1:
        raise DataError(f"{path}: item {twice!r} is there {count} times; name one filter or epoch")
    chosen, correct = _score(path, items, score, option)
    return LoggedRun(
        source=str(path),
        ids=tuple(ids),
        answers=tuple(item.answer for item in items),
        references=tuple(item.reference for item in items),
        correct=correct,
        scored_by=chosen,
        choice=all(item.choice for item in items),
        dropped=dict(dropped),
    )


def right_or_wrong(value: Any) -> bool | None:
    """A score as right or wrong; None where it is neither (a part, a number in between, nothing)."""
    if value in ("C", "I", "N"):
        return bool(value == "C")
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float) and value in (0, 1):
        return bool(value)
    return None


def load_json(text: str | bytes, where: str) -> Any:
    """A JSON value.

    Raises:
        DataError: It is none.
    """
    try:
        return json.loads(text)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{where}: no JSON ({error})") from error


def field(values: Any, name: str, where: str) -> Any:
    """A field that every item must have.

    Raises:
        DataError: It is not there.
    """
    if not isinstance(values, dict) or name not in values:
        raise DataError(f"{where}: no {name!r}; is this a log of single items?")
    return values[name]


def _score(
    path: Path, items: list[Answer], wanted: str | None, option: str
) -> tuple[str, BoolArray] | tuple[None, None]:
    names = list(dict.fromkeys(name for item in items for name in item.scores))
    if wanted is not None:
        if wanted not in names:
            raise DataError(
                f"{path}: no score {wanted!r}; {option} may be {', '.join(names) or 'left out: there is none'}"
            )
        names = [wanted]
    for name in names:
        values = [right_or_wrong(item.scores.get(name)) for item in items]
        if None not in values:
            return name, np.array(values, dtype=bool)
    if wanted is not None:
        item = next(item for item in items if right_or_wrong(item.scores.get(wanted)) is None)
        value = item.scores.get(wanted)
        shown = "no number" if isinstance(value, float) and math.isnan(value) else repr(value)[:40]
        raise DataError(
            f"{path}: score {wanted!r} of item {item.id!r} is {shown}, neither right (1, C) nor wrong (0, I)"
        )
    return None, None
