"""ΔEvi from logs: one run with the true evidence, others of the same items with shuffled evidence, matched by id."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np

from evidep.data.inspect_log import read_inspect
from evidep.data.lm_eval_samples import read_samples
from evidep.data.logged_run import LoggedRun
from evidep.errors import DataError, SettingError
from evidep.stats.delta_evi import delta_evi
from evidep.types import BoolArray, DeltaEvi

__all__ = ["LoggedRun", "MatchedRuns", "delta_evi_from_logs", "match_runs", "read_log"]

RIGHT: Final = "right"
WRONG: Final = "wrong"


def read_log(
    path: str | os.PathLike[str],
    *,
    filter: str | None = None,
    metric: str | None = None,
    scorer: str | None = None,
    epoch: int | None = None,
) -> LoggedRun:
    """Per-item answers of a finished run of the lm-evaluation-harness or of Inspect.

    Args:
        path: samples_*.jsonl (also .gz) of the harness, or a folder that holds exactly one; .eval or .json of Inspect.
        filter: Harness: which filter of the answers, where there are several.
        metric: Harness: which metric says right or wrong.
        scorer: Inspect: which scorer says right or wrong; SCORER.KEY for one of several values.
        epoch: Inspect: which epoch, where samples were run several times.

    Raises:
        DataError: No such log, an unfinished run, or a choice that is open; the message names the options.
        SettingError: An option that belongs to the other kind of log.
    """
    file = _single_file(Path(path).expanduser())
    inspect = file.suffix in (".eval", ".json")
    harness, other = {"filter": filter, "metric": metric}, {"scorer": scorer, "epoch": epoch}
    if wrong := [name for name, value in (harness if inspect else other).items() if value is not None]:
        kind = "Inspect" if inspect else "the lm-evaluation-harness"
        raise SettingError(f"{wrong[0]}: no option for a log of {kind}, {file}")
    if inspect:
        return read_inspect(file, scorer=scorer, epoch=epoch)
    return read_samples(file, filter=filter, metric=metric)


@dataclass(frozen=True, slots=True)
class MatchedRuns:
    """The items that all runs share, in the order of the first.

    Attributes:
        ids: [n] their ids.
        predictions: [n] answers with the true evidence.
        references: [n] gold answers.
        shuffled_predictions: K lists of n answers with shuffled evidence.
        left_out: Items that not every run has.
    """

    ids: tuple[str, ...]
    predictions: list[str]
    references: list[str]
    shuffled_predictions: list[list[str]]
    left_out: int

    def arguments(self) -> dict[str, Any]:
        """Keyword arguments for `evaluate.load("delta_evi").compute`."""
        return {
            "predictions": self.predictions,
            "references": self.references,
            "shuffled_predictions": self.shuffled_predictions,
        }


def match_runs(
    full: LoggedRun,
    shuffled: Sequence[LoggedRun],
    *,
    by: Literal["answers", "scores"] | None = None,
    missing: Literal["refuse", "drop"] = "refuse",
) -> MatchedRuns:
    """Put the items of several runs in one order.

    Args:
        full: The run with the true evidence.
        shuffled: Runs of the same items with shuffled evidence, one per shuffle.
        by: "answers" keeps the answers, to be compared with the references as they are; "scores" replaces them by
            "right" and "wrong" by the harness's own score. None: answers where all runs are of choices, else scores.
        missing: What to do with items that not every run has: "refuse", or "drop" them.

    Raises:
        DataError: No shuffled run, items that differ between runs, or no score where one is needed.
        SettingError: An unknown option.
    """
    if by not in (None, "answers", "scores"):
        raise SettingError(f"by: expected 'answers', 'scores' or None, got {by!r}")
    if missing not in ("refuse", "drop"):
        raise SettingError(f"missing: expected 'refuse' or 'drop', got {missing!r}")
    if not shuffled:
        raise DataError("shuffled: expected at least one run with shuffled evidence, got none")
    runs = [full, *shuffled]
    by = by or ("answers" if all(run.choice for run in runs) else "scores")
    places = [{name: at for at, name in enumerate(run.ids)} for run in runs]
    everywhere = set(full.ids).intersection(*places[1:])
    anywhere = set().union(*(run.ids for run in runs), *(run.dropped for run in runs))
    if missing == "refuse" and len(anywhere) > len(everywhere):
        _refuse_missing(runs, min(anywhere - everywhere))
    ids = tuple(name for name in full.ids if name in everywhere)
    if not ids:
        raise DataError(f"{full.source} and the runs with shuffled evidence share no item")
    for run, place in zip(runs[1:], places[1:], strict=True):
        for name in ids:
            first, second = full.references[places[0][name]], run.references[place[name]]
            if first != second:
                raise DataError(
                    f"item {name!r}: the gold answer is {first!r} in {full.source} and {second!r} in {run.source}; "
                    "only the evidence may differ between runs, and items must keep their order or ids"
                )
    columns = [_column(run, [place[name] for name in ids], by) for run, place in zip(runs, places, strict=True)]
    references = [full.references[places[0][name]] for name in ids] if by == "answers" else [RIGHT] * len(ids)
    return MatchedRuns(ids, columns[0], references, columns[1:], len(anywhere) - len(ids))


def delta_evi_from_logs(
    full: LoggedRun,
    shuffled: Sequence[LoggedRun],
    *,
    by: Literal["answers", "scores"] | None = None,
    missing: Literal["refuse", "drop"] = "refuse",
    groups: Any = None,
    alpha: float = 0.05,
    margin: float = 0.02,
) -> DeltaEvi:
    """ΔEvi of a logged system. One shuffled run is enough: the p-value is that of the sign-flip test over items.

    (A permutation test needs 19 shuffled runs to reach p = 0.05, and uniform permutations; see `evaluate.load`.)

    Args:
        full: The run with the true evidence.
        shuffled: Runs with shuffled evidence.
        by: See `match_runs`.
        missing: See `match_runs`.
        groups: [n] names of groups whose items are not independent, in the order of `match_runs(...).ids`.
        alpha: Level of the test; the interval has level 1 - alpha.
        margin: Largest ΔEvi that counts as none.

    Raises:
        DataError: Runs that do not fit together, or groups that do not fit them.
        SettingError: An option out of its range.
    """
    matched = match_runs(full, shuffled, by=by, missing=missing)
    gold = np.asarray(matched.references)
    correct: BoolArray = np.asarray(matched.predictions) == gold
    correct_shuffled: BoolArray = np.asarray(matched.shuffled_predictions) == gold
    codes = None
    if groups is not None:
        if len(groups) != len(gold):
            raise DataError(f"groups: expected {len(gold)} names, one per shared item, got {len(groups)}")
        if (without := next((at for at, name in enumerate(groups) if name is None or name != name), None)) is not None:
            raise DataError(f"groups[{without}]: is missing; give every item a group, a single item one of its own")
        codes = np.unique(np.asarray([str(name) for name in groups]), return_inverse=True)[1].astype(np.int64)
    return delta_evi(correct, correct_shuffled, None, groups=codes, unchanged_rate=math.nan, alpha=alpha, margin=margin)


def _column(run: LoggedRun, rows: list[int], by: str) -> list[str]:
    if by == "answers":
        return [run.answers[row] for row in rows]
    if run.correct is None:
        raise DataError(
            f"{run.source}: no score says right or wrong for every item; name one (metric= or scorer=), or compare the "
            "answers themselves (by='answers')"
        )
    return [RIGHT if run.correct[row] else WRONG for row in rows]


def _refuse_missing(runs: list[LoggedRun], name: str) -> None:
    lacking = next(run for run in runs if name not in run.ids)
    why = f" (it {lacking.dropped[name]})" if name in lacking.dropped else ""
    raise DataError(
        f"item {name!r} is not in {lacking.source}{why}; all runs need the same items, or say missing='drop'"
    )


def _single_file(path: Path) -> Path:
    if not path.is_dir():
        if not path.exists():
            raise DataError(f"{path}: no such log")
        return path
    files = sorted(file for pattern in ("samples_*.jsonl", "samples_*.jsonl.gz") for file in path.rglob(pattern))
    if len(files) != 1:
        found = ", ".join(file.name for file in files[:5]) or "none"
        raise DataError(f"{path}: expected one samples_*.jsonl in this folder, found {found}; name the file")
    return files[0]
