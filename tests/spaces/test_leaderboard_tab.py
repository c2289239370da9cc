"""Scores in, the package's aggregation out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from evidence_space import leaderboard

from evidep.errors import DataError, SettingError

UP = "higher is better"


def scores_file(folder: Path, *, systems: int = 4, tasks: int = 5, name: str = "s.csv") -> Path:
    """Long scores with three seeds; system i is better by 0.05 i on every task."""
    rng = np.random.default_rng(0)
    lines = ["system,task,seed,score"]
    for system in range(systems):
        for task in range(tasks):
            for seed in range(3):
                score = 0.5 + 0.05 * system + 0.02 * task + rng.normal(0, 0.005)
                lines.append(f"sys{system},task{task},{seed},{score:.4f}")
    path = folder / name
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_aggregates_figures_and_report(tmp_path: Path) -> None:
    board = leaderboard.from_file(scores_file(tmp_path), UP, "accuracy")
    assert "4 systems, 5 tasks" in board.verdict
    assert board.figures.count('<img class="ev-figure" src="data:image/png;base64,') == 4
    assert board.figures.count('alt="') == 4
    macro = next(a for a in board.document["aggregates"] if a["name"] == "macro")
    first = min(macro["standings"], key=lambda s: s["rank"])
    assert first["system"] == "sys3"
    assert "sys3" in board.markdown


def test_rows_give_the_same_as_the_file(tmp_path: Path) -> None:
    path = scores_file(tmp_path)
    lines = [line.split(",") for line in path.read_text().splitlines()]
    rows = [dict(zip(lines[0], cells, strict=True)) for cells in lines[1:]]
    for row in rows:
        row["score"] = float(row["score"])  # type: ignore[assignment]
    assert leaderboard.from_rows(rows, UP, "accuracy").document == leaderboard.from_file(path, UP, "accuracy").document


def test_bad_scores_in_words(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no scores yet"):
        leaderboard.from_file(None, UP)
    path = tmp_path / "s.csv"
    path.write_text("system,task,score\na,t,high\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"s\.csv") as caught:
        leaderboard.from_file(path, UP)
    assert "evidep-space-" not in str(caught.value)
    assert "--" not in str(caught.value)
    with pytest.raises(SettingError, match="direction"):
        leaderboard.from_file(scores_file(tmp_path), "sideways")


def test_too_many_systems_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="61 systems on 2 tasks are more than"):
        leaderboard.from_file(scores_file(tmp_path, systems=61, tasks=2), UP)


def test_names_of_systems_are_no_markup(tmp_path: Path) -> None:
    path = scores_file(tmp_path)
    path.write_text(path.read_text().replace("sys0", "<script>alert(1)</script>"), encoding="utf-8")
    board = leaderboard.from_file(path, UP)
    assert "<script" not in board.verdict + board.figures
    assert "`<script>" in board.markdown.replace("``", "`")
