"""Per-item logs of the lm-evaluation-harness: samples_TASK_TIME.jsonl, written with --log_samples."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from evidep.data.logged_run import Answer, LoggedRun, field, load_json, make_run
from evidep.errors import DataError

_NO_SCORES = frozenset(
    ("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "doc_hash", "prompt_hash",
     "target_hash")
)  # fmt: skip


def read_samples(path: Path, *, filter: str | None = None, metric: str | None = None) -> LoggedRun:
    """One task's items.

    A choice task (several log-likelihoods per item) answers with the likeliest option, ties go to the first; other
    tasks answer with the first filtered response.

    Args:
        path: samples_*.jsonl, also .gz.
        filter: Which of the harness's filters, where there are several.
        metric: Which metric says right or wrong; None takes the first that is 0 or 1 for every item.

    Raises:
        DataError: No such log, several filters and none named, or a metric that is not right or wrong.
    """
    rows = list(_rows(path))
    filters = list(dict.fromkeys(str(row.get("filter", "none")) for _, row in rows))
    if filter is None and len(filters) > 1:
        raise DataError(f"{path}: the answers were filtered in several ways ({', '.join(filters)}); name one: filter=")
    if filter is not None and filter not in filters:
        raise DataError(f"{path}: no filter {filter!r}; there are {', '.join(filters)}")
    kept = [(where, row) for where, row in rows if filter is None or str(row.get("filter", "none")) == filter]
    return make_run(path, [_answer(row, where) for where, row in kept], {}, metric, "metric")


def _rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    where = f"{path}, line {number}"
                    row = load_json(line, where)
                    field(row, "doc_id", where)
                    yield where, row
    except (OSError, EOFError) as error:
        raise DataError(f"{path}: cannot be read ({error})") from error


def _answer(row: dict[str, Any], where: str) -> Answer:
    responses, target = field(row, "filtered_resps", where), row.get("target")
    names = row.get("metrics") or [name for name in row if name not in _NO_SCORES]
    scores = {name: row[name] for name in names if name in row}
    likelihoods = _log_likelihoods(responses)
    if likelihoods is not None:
        gold = _option(target, row, len(likelihoods))
        if np.isnan(likelihoods).any():
            raise DataError(f"{where}: a log-likelihood is nan")
        answer = str(int(np.argmax(likelihoods)))
        return Answer(str(row["doc_id"]), answer, str(target if gold is None else gold), gold is not None, scores)
    text = responses
    while isinstance(text, list) and text:
        text = text[0]
    return Answer(str(row["doc_id"]), str(text).strip(), str(target).strip(), False, scores)


def _log_likelihoods(responses: Any) -> list[float] | None:
    """The log-likelihood of each option, or None where the responses are no options."""
    if not isinstance(responses, list) or len(responses) < 2:
        return None
    values = []
    for response in responses:
        if not isinstance(response, list) or len(response) != 2 or str(response[1]) not in _GREEDY:
            return None
        try:
            values.append(float(response[0]))
        except (TypeError, ValueError):
            return None
    return values


_GREEDY = frozenset(("True", "False", "0", "1", "0.0", "1.0"))
"""How the harness writes whether an option is what the model would have said itself."""


def _option(target: Any, row: dict[str, Any], n: int) -> int | None:
    """Number of the gold option: logged as such, or as the option's text; None where neither fits."""
    text = str(target).strip()
    if text.isdigit() and int(text) < n:
        return int(text)
    arguments = row.get("arguments")
    options = list(arguments.values()) if isinstance(arguments, dict) else arguments or []
    texts = [_continuation(option) for option in options]
    return texts.index(text) if texts.count(text) == 1 else None


def _continuation(option: Any) -> str | None:
    value = option.get("arg_1") if isinstance(option, dict) else option[1] if len(option) > 1 else None
    return value.strip() if isinstance(value, str) else None
