"""Template out, predictions in: the numbers are those of the package."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from evidence_space import predictions
from evidence_space.origins import Origin, world_origin
from evidence_space.uploads import read_upload

from evidep.data.loading import open_splits
from evidep.data.sources import as_source
from evidep.errors import DataError
from evidep.types import ColumnRoles


def template(
    folder: Path, name: str = "t.csv", *, k: int = 20, texts: bool = True
) -> tuple[Path, predictions.Template]:
    origin = world_origin("triviaqa", 100, 0)
    assert origin.roles is not None
    path = folder / name
    return path, predictions.write_template(origin, origin.roles, path, k=k, seed=0, with_texts=texts)


def rows_of(path: Path) -> list[dict[str, str]]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


def fill(path: Path, rows: list[dict[str, str]]) -> Path:
    if path.suffix == ".jsonl":
        path.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
        return path
    with path.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.mark.parametrize("name", ["t.csv", "t.jsonl"])
def test_a_reader_of_evidence_scores_as_counted_by_hand(tmp_path: Path, name: str) -> None:
    """A system that answers with the label of the item whose evidence it is shown: right with its own, and with swapped
    evidence right where the donor happens to have the same label."""
    path, made = template(tmp_path, name)
    rows = rows_of(path)
    assert (made.items, made.left_out, made.unchanged) == (100, 0, 0)
    labels = [row["label"] for row in rows]
    for row in rows:
        row["prediction"] = row["label"]
        for k in range(1, 21):
            donor = rows[int(row[f"donor_{k}"])]
            assert row[f"evidence_{k}"] == donor["evidence"] != row["evidence"]
            row[f"prediction_{k}"] = donor["label"]
    scores = predictions.score(predictions.read_filled(read_upload(fill(path, rows)), name))
    same = [
        np.mean([labels[int(row[f"donor_{k}"])] == label for row, label in zip(rows, labels, strict=True)])
        for k in range(1, 21)
    ]
    assert scores.delta.accuracy_full == 1
    assert scores.delta.accuracy_shuffled == pytest.approx(same)
    assert scores.delta.mean == pytest.approx(1 - np.mean(same))
    assert scores.delta.verdict == "sensitive"
    assert scores.mpds is not None
    assert "<h2>These predictions need the evidence</h2>" in predictions.verdict(scores)
    assert f"ΔEvi {1 - np.mean(same):.3f}" in predictions.verdict(scores)


def test_a_system_blind_to_evidence_has_exactly_zero(tmp_path: Path) -> None:
    path, _ = template(tmp_path, texts=False)
    rows = rows_of(path)
    assert "evidence_1" not in rows[0]
    for at, row in enumerate(rows):
        answer = row["label"] if at % 2 else "other"
        row.update({"prediction": answer} | {f"prediction_{k}": answer for k in range(1, 21)})
    scores = predictions.score(predictions.read_filled(read_upload(fill(path, rows)), "t"))
    assert scores.delta.mean == 0
    assert scores.delta.verdict != "sensitive"
    assert len(predictions.figure(scores).data[0].x) == 20


def test_unfilled_and_broken_templates(tmp_path: Path) -> None:
    path, _ = template(tmp_path)
    with pytest.raises(DataError, match=r"row 0: the column 'prediction_1' is empty \(100 of 100 rows\)"):
        predictions.read_filled(read_upload(path), "t")
    rows = rows_of(path)
    for row in rows:
        row.update({"prediction": "a"} | {f"prediction_{k}": "a" for k in range(1, 21)})
    rows[3]["donor_2"] = "100"
    with pytest.raises(DataError, match="row 3: donor_2 must be an item number from 0 to 99, got '100'"):
        predictions.read_filled(read_upload(fill(path, rows)), "t")
    rows[3]["donor_2"] = "0"
    with pytest.raises(DataError, match="not in the order of the template"):
        predictions.read_filled(read_upload(fill(path, rows[::-1])), "t")


def test_too_few_shuffles_and_missing_columns(tmp_path: Path) -> None:
    few = [{"label": "a", "prediction": "a", "prediction_1": "a"}] * 5
    with pytest.raises(DataError, match="has 1 columns of predictions with swapped evidence"):
        predictions.read_filled(as_source(few), "t")
    with pytest.raises(DataError, match="has no column 'prediction'"):
        predictions.read_filled(as_source([{"label": "a"}]), "t")


def test_equal_evidence_everywhere_is_refused(tmp_path: Path) -> None:
    rows = [{"query": f"q{i}", "evidence": "same", "label": "ab"[i % 2]} for i in range(40)]
    origin = Origin("same", open_splits(as_source(rows)))
    roles = ColumnRoles("query", "evidence", "label")
    with pytest.raises(DataError, match="all items have the same evidence"):
        predictions.write_template(origin, roles, tmp_path / "t.csv", k=20, seed=0, with_texts=True)


def test_more_shuffles_keep_the_first_ones(tmp_path: Path) -> None:
    few, many = template(tmp_path, "a.csv", k=20)[0], template(tmp_path, "b.csv", k=25)[0]
    for k in range(1, 21):
        assert [r[f"donor_{k}"] for r in rows_of(few)] == [r[f"donor_{k}"] for r in rows_of(many)]
