"""Interventions on datasets: the audit's donors, whatever the cache and the number of processes."""

from __future__ import annotations

from collections import Counter

import datasets
import numpy as np
import pyarrow as pa
import pytest

from evidep.data import conditions
from evidep.data.intervene import drop_evidence, permute_evidence
from evidep.data.table import build_audit_data
from evidep.errors import DataError, SettingError
from evidep.types import ColumnRoles

datasets.disable_progress_bars()

ROLES = ColumnRoles("claim", "passage", "verdict", ("source", "year"))


def rows(n=60, *, lists=False):
    """Rows with repeated, blank and missing evidence, and texts that differ in case and spaces only."""
    made = []
    for i in range(n):
        text = f"Report {i % 23} on the {['harbour', 'mill', 'school'][i % 3]}"
        text = {4: "", 5: None, 6: "  ", 7: "the SAME  note", 8: "The same note"}.get(i % 17, text)
        made.append(
            {
                "claim": f"claim number {i}",
                "passage": [part for part in (text or "").split(" on ") if part] if lists else text,
                "verdict": ["yes", "no", "maybe"][i % 7 % 3],
                "source": [None, "desk", "field"][i % 3],
                "year": 1990 + i % 2,
            }
        )
    return made


@pytest.fixture
def on_disk(tmp_path):
    datasets.Dataset.from_list(rows()).save_to_disk(tmp_path / "data")
    return lambda: datasets.load_from_disk(tmp_path / "data")


@pytest.mark.parametrize("lists", [False, True], ids=["strings", "lists"])
@pytest.mark.parametrize("arm", conditions.SHUFFLE_ARMS)
def test_donors_are_those_of_the_audit(arm, lists):
    data = rows(lists=lists)
    table = build_audit_data(data, None, ROLES).evaluation
    for k in (0, 3):
        expected = conditions.shuffle(table, arm, k, seed=4).donors
        result = permute_evidence(
            datasets.Dataset.from_list(data),
            evidence="passage",
            shuffle=arm,
            seed=4,
            k=k,
            label="verdict",
            metadata=ROLES.metadata,
        )
        assert result["passage"][:] == [data[donor]["passage"] for donor in expected]
        assert result.remove_columns("passage").to_list() == [
            {key: value for key, value in row.items() if key != "passage"} for row in data
        ]


def test_no_row_keeps_its_text_and_every_text_is_used_once():
    data = datasets.Dataset.from_list(rows())
    moved = permute_evidence(data, evidence="passage")["passage"][:]
    assert Counter(moved) == Counter(data["passage"][:])
    same = [
        " ".join((a or "").lower().split()) == " ".join((b or "").lower().split())
        for a, b in zip(moved, data["passage"], strict=True)
    ]
    assert sum(same) == 0


def test_cold_cache_warm_cache_and_any_number_of_processes_agree(on_disk):
    cold = permute_evidence(on_disk(), evidence="passage", k=2)
    warm = permute_evidence(on_disk(), evidence="passage", k=2)
    assert cold.cache_files == warm.cache_files != []
    parallel = permute_evidence(on_disk().select(range(60)), evidence="passage", k=2, num_proc=2)
    assert len(parallel.cache_files) == 2
    for other in (warm, parallel):
        assert other["passage"][:] == cold["passage"][:]


def test_k_permutations_stay_k_on_a_warm_cache(on_disk):
    passes = [
        [tuple(permute_evidence(on_disk(), evidence="passage", k=k)["passage"]) for k in range(6)] for _ in range(2)
    ]
    assert passes[0] == passes[1]
    assert len(set(passes[0])) == 6


def test_what_changes_the_donors_changes_the_cached_file(on_disk):
    settings = [
        {"seed": 0},
        {"seed": 1},
        {"k": 1},
        {"shuffle": "within-label", "label": "verdict"},
        {"shuffle": "within-metadata", "metadata": "source"},
        {"shuffle": "within-metadata", "metadata": ["source", "year"]},
        {"shuffle": "near-miss"},
    ]
    results = [permute_evidence(on_disk(), evidence="passage", **given) for given in settings]
    assert len({result._fingerprint for result in results}) == len(settings)
    assert len({result.cache_files[0]["filename"] for result in results}) == len(settings)


def test_features_format_and_order_survive():
    table = pa.table(
        {"passage": pa.array(["a", "b", "c", "d"], pa.large_string()), "x": [1, 2, 3, 4], "y": [0, 1, 0, 1]}
    )
    data = datasets.Dataset(table).cast_column("y", datasets.ClassLabel(names=["no", "yes"]))
    data = data.with_format("numpy", columns=["x", "passage"])
    result = permute_evidence(data, evidence="passage")
    assert result.features == data.features
    assert result.format == data.format
    assert isinstance(result["x"][:], np.ndarray)
    assert result.column_names == data.column_names
    assert result.with_format(None)["y"][:] == [0, 1, 0, 1]


def test_a_selected_and_reordered_dataset_is_shuffled_as_it_is_seen():
    data = datasets.Dataset.from_list(rows())
    picked = data.select([50, 3, 20, 11, 9, 40])
    flat = datasets.Dataset.from_list(picked.to_list(), features=data.features)
    assert (
        permute_evidence(picked, evidence="passage").to_list() == permute_evidence(flat, evidence="passage").to_list()
    )


def test_splits_are_shuffled_each_within_itself():
    data = datasets.DatasetDict(
        {"train": datasets.Dataset.from_list(rows(20)), "test": datasets.Dataset.from_list(rows(60)[20:])}
    )
    moved = permute_evidence(data, evidence="passage")
    assert list(moved) == ["train", "test"]
    for name, split in moved.items():
        assert Counter(split["passage"]) == Counter(data[name]["passage"])
        assert split["passage"][:] != data[name]["passage"][:]


def test_rows_without_a_label_trade_among_themselves():
    data = [{"e": f"text {i}", "y": None if i < 2 else i % 2} for i in range(10)]
    moved = permute_evidence(datasets.Dataset.from_list(data), evidence="e", shuffle="within-label", label="y")["e"]
    assert moved[:2] == ["text 1", "text 0"]
    assert all(int(text[-1]) % 2 == i % 2 for i, text in enumerate(moved) if i >= 2)


def test_drop_evidence_blanks_and_keeps_the_rest():
    data = datasets.Dataset.from_list(rows())
    assert set(drop_evidence(data, evidence="passage")["passage"]) == {""}
    assert set(drop_evidence(data, evidence="passage", value=None)["passage"]) == {None}
    dropped = drop_evidence(datasets.DatasetDict({"a": data}), evidence="passage")["a"]
    assert dropped.remove_columns("passage").to_list() == data.remove_columns("passage").to_list()
    assert dropped.features == data.features
    lists = datasets.Dataset.from_list(rows(lists=True))
    assert drop_evidence(lists, evidence="passage")["passage"][:] == [[]] * 60
    assert drop_evidence(lists, evidence="passage", value=None)["passage"][:] == [None] * 60


def test_what_cannot_be_done_is_refused_with_the_fix():
    data = datasets.Dataset.from_list(rows())
    with pytest.raises(DataError, match=r"streaming dataset .* without streaming=True"):
        permute_evidence(data.to_iterable_dataset(), evidence="passage")
    with pytest.raises(DataError, match=r"column 'context' is not in the dataset; it has claim, passage"):
        permute_evidence(data, evidence="context")
    with pytest.raises(DataError, match=r"column 'topic' is not in the dataset"):
        permute_evidence(data, evidence="passage", shuffle="within-metadata", metadata="topic")
    with pytest.raises(SettingError, match=r"'within-label' needs the label column: label="):
        permute_evidence(data, evidence="passage", shuffle="within-label")
    with pytest.raises(SettingError, match=r"'within-metadata' needs metadata columns"):
        permute_evidence(data, evidence="passage", shuffle="within-metadata")
    with pytest.raises(SettingError, match=r"shuffle: 'everything' is unknown; choose from global"):
        permute_evidence(data, evidence="passage", shuffle="everything")
    with pytest.raises(SettingError, match=r"k: expected a whole number of at least 0, got -1"):
        permute_evidence(data, evidence="passage", k=-1)
    with pytest.raises(DataError, match=r"no rows"):
        permute_evidence(data.select([]), evidence="passage")
    with pytest.raises(
        DataError, match=r"expected a datasets.Dataset or DatasetDict, got list; datasets.Dataset.from_list"
    ):
        permute_evidence(rows(), evidence="passage")
    with pytest.raises(DataError, match=r"on-the-fly transform"):
        permute_evidence(data.with_transform(dict), evidence="passage")
    with pytest.raises(SettingError, match=r"value: expected \"\" or None, got 'none'"):
        drop_evidence(data, evidence="passage", value="none")
    with pytest.raises(SettingError, match=r"column 'year' holds int64, which has no empty text: pass value=None"):
        drop_evidence(data, evidence="year")


@pytest.mark.slow
def test_more_than_two_gibibytes_of_text(tmp_path):
    n, filler = 2400, "x" * 1_000_000
    made = datasets.Dataset.from_generator(
        lambda: ({"e": f"{i:05d}{filler}"} for i in range(n)), cache_dir=str(tmp_path), writer_batch_size=50
    )
    assert made.data.nbytes > 2**31
    moved = permute_evidence(made, evidence="e")
    first = [row["e"][:5] for row in moved.select(range(0, n, 50))]
    assert sorted(row["e"][:5] for row in moved) == [f"{i:05d}" for i in range(n)]
    assert all(int(at) != 50 * t for t, at in enumerate(first))
