"""Scores of systems on tasks, aggregated by the package."""

from __future__ import annotations

import base64
import importlib.util
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evidence_space import limits
from evidence_space.markup import image, page_words, text
from evidence_space.uploads import shown_name, text_file
from evidep.errors import DataError, EvidepError, SettingError
from evidep.report.escape import one_line

if TYPE_CHECKING:
    from evidep.stats.aggregate import AggregateResult, ScoreTable

DIRECTIONS: Final = {"as the file's metric says": None, "higher is better": "higher", "lower is better": "lower"}
ALTERNATIVES: Final = {
    "critical_difference": "Critical-difference diagram: systems by mean rank; joined ones are not told apart",
    "radar": "Radar chart: scores of the leading systems on every task",
    "rank_intervals": "Ranks of the systems with intervals",
    "score_profiles": "Score profiles: share of runs above each threshold",
}
DRAWS: Final = 2000


@dataclass(frozen=True, slots=True)
class Board:
    """What the page shows of an aggregation."""

    verdict: str
    figures: str
    markdown: str
    document: dict[str, Any]


def available() -> bool:
    """Whether this evidep has the aggregation."""
    return importlib.util.find_spec("evidep.stats.aggregate") is not None


def from_file(path: str | Path | None, direction: str, metric: str = "") -> Board:
    """Aggregate an uploaded file of scores.

    Raises:
        EvidepError: No file, or scores that cannot be used.
    """
    from evidep.data.scores import read_scores

    if not path:
        raise DataError("no scores yet: choose a file with the columns system, task, score and, if any, seed or item")
    name, declared = shown_name(path), _declared(direction, metric)
    with tempfile.TemporaryDirectory(prefix="evidep-space-") as folder:
        plain = text_file(path, folder)
        try:
            table = read_scores(plain, tasks=declared, missing="rank")
        except EvidepError as error:
            words = page_words(str(error).replace(str(plain), name))
            hint = " (choose the direction, or name the metric, above)" if "direction" in words else ""
            raise DataError(words + hint) from error
    return board(table)


def from_rows(rows: Sequence[dict[str, Any]], direction: str, metric: str = "") -> Board:
    """Aggregate scores that came through the API.

    Raises:
        EvidepError: Scores that cannot be used.
    """
    from evidep.data.scores import scores_from_rows

    if len(rows) > limits.MAX_SCORES:
        raise DataError(f"got {len(rows):,} scores, more than the {limits.MAX_SCORES:,} that this Space takes")
    if not all(isinstance(row, dict) for row in rows):
        raise DataError("scores: expected a list of objects with system, task, score and, if any, seed or item")
    return board(scores_from_rows(rows, tasks=_declared(direction, metric), missing="rank"))


def board(table: ScoreTable) -> Board:
    """The analysis of a table of scores.

    Raises:
        DataError: More systems or tasks than this Space takes.
    """
    from evidep.report.aggregate_text import markdown
    from evidep.stats.aggregate import Settings, analyse, to_dict

    systems, tasks = len(table.systems), len(table.task_names)
    if systems > limits.MAX_SYSTEMS or tasks > limits.MAX_TASKS:
        raise DataError(
            f"{systems:,} systems on {tasks:,} tasks are more than the {limits.MAX_SYSTEMS} on {limits.MAX_TASKS} that "
            "this Space takes: use `evidep aggregate` on your own machine"
        )
    result = analyse(table, Settings(n_draws=DRAWS))
    return Board(_verdict(result), _figures(result), markdown(result), to_dict(result))


def _declared(direction: str, metric: str) -> dict[str, Any] | None:
    if direction not in DIRECTIONS:
        raise SettingError(f"direction: choose from {', '.join(DIRECTIONS)}")
    declared = {}
    if DIRECTIONS[direction] is not None:
        declared["direction"] = DIRECTIONS[direction]
    if metric.strip():
        declared["metric"] = one_line(metric, 60)
    return {"*": declared} if declared else None


def _verdict(result: AggregateResult) -> str:
    kind = "good" if result.single_order else "bad"
    title = "One order can be told" if result.single_order else "No single order is the truth"
    if len(result.table.systems) < 2:
        title = "One system: nothing to compare"
    lines = "".join(f"<p>{text(sentence)}</p>" for sentence in result.verdict)
    return (
        f'<section class="ev-verdict ev-{kind}" role="status" aria-label="verdict"><p class="ev-small">'
        f"{len(result.table.systems)} systems, {len(result.table.task_names)} tasks</p><h2>{title}</h2>{lines}"
        "</section>"
    )


def _figures(result: AggregateResult) -> str:
    from evidep.report.aggregate_figures import FIGURES, unavailable
    from evidep.report.style import save

    parts = []
    with tempfile.TemporaryDirectory(prefix="evidep-space-") as folder:
        for name in ALTERNATIVES:
            if name not in FIGURES:
                continue
            reason = unavailable(result, name)
            if reason is not None:
                parts.append(f"<p>No {name.replace('_', ' ')} figure: {text(reason)}.</p>")
                continue
            file = save(FIGURES[name](result), Path(folder) / f"{name}.png")
            uri = "data:image/png;base64," + base64.b64encode(file.read_bytes()).decode()
            parts.append(image(uri, ALTERNATIVES[name]))
    return "".join(parts)
