"""From rows to tables: states of evidence, groups, what is dropped, fingerprints, metadata codes and memory."""

import subprocess
import sys

import datasets
import numpy as np
import pyarrow as pa
import pytest
from data.table_rows import build, make
from hypothesis import given, settings
from hypothesis import strategies as st

from evidep.data.identity import normalise
from evidep.data.sources import as_source
from evidep.data.table import aligned_codes
from evidep.errors import DataError
from evidep.types import BLANK, MISSING, NULL, PRESENT, ColumnRoles, StringColumn


def test_a_plain_table():
    table = build(
        make(["a", "b", "a"], speaker=["x", None, ""]), roles=ColumnRoles("query", "evidence", "label", ("speaker",))
    ).evaluation
    assert table.queries.to_list() == ["q0", "q1", "q2"]
    assert table.evidence.to_list() == ["a", "b", "a"]
    assert len(table.evidence.texts) == 2
    assert table.labels.tolist() == [0, 1, 0]
    assert table.metadata["speaker"].to_list() == ["x", None, ""]
    assert table.ids.to_pylist() == ["data:0", "data:1", "data:2"]
    assert table.evidence_codes.tolist() == [0, 1, 0]


def test_three_states_of_evidence():
    """Missing, intentionally empty and present are kept apart (RAGChecker PR 39); none is dropped (scifact#1)."""
    data = build(make(["a", "", None, " \n\u3000", "A"]))
    table = data.evaluation
    assert table.evidence_state.tolist() == [PRESENT, BLANK, MISSING, BLANK, PRESENT]
    assert table.evidence.to_list() == ["a", "", "", "", "A"]
    assert table.evidence_codes.tolist() == [0, 1, 1, 1, 0]
    assert data.report.evaluation.evidence_states == {"present": 2, "blank": 2, "missing": 1}
    assert (
        "3 of 5 items of the evaluation have no evidence text (2 blank, 1 missing); they were kept."
        in data.report.notes
    )


def test_blank_evidence_ties_nothing_together():
    table = build(make(["", None, "", "a", "a"])).evaluation
    assert table.groups.tolist() == [0, 1, 2, 3, 3]
    assert table.components.tolist() == [0, 1, 2, 3, 3]
    shared_query = build(make(["", None, "x"], queries=["Q", "q ", "r"])).evaluation
    assert shared_query.groups.tolist() == [0, 1, 2]
    assert shared_query.components.tolist() == [0, 0, 1]


def test_one_evidence_for_all_ties_nothing_together():
    """It tells items apart as little as a blank one does; the shuffle is not applicable then, folds still are."""
    table = build(make(["a", "A", "a"], queries=["p", "q", "P"])).evaluation
    assert table.evidence_codes.tolist() == [0, 0, 0]
    assert table.groups.tolist() == [0, 1, 2]
    assert table.components.tolist() == [0, 1, 0]


def test_groups_and_components_by_hand():
    # Evidence ties 0-1, the group column 1-2, the query 2-3.
    rows = make(["a", "A", "b", "c", "d"], ["p", "q", "r", "R", "s"], g=["u", "v", "v", "w", "x"])
    table = build(rows).evaluation
    assert table.groups.tolist() == [0, 0, 1, 2, 3]
    assert table.components.tolist() == [0, 0, 1, 1, 2]
    table = build(rows, roles=ColumnRoles("query", "evidence", "label", (), "g")).evaluation
    assert table.groups.tolist() == [0, 0, 0, 1, 2]
    assert table.components.tolist() == [0, 0, 0, 0, 1]


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_a_missing_group_is_refused(missing):
    """inspect_ai PR 4714: items without a cluster were silently one cluster."""
    rows = make(["a", "b", "c", "d"], g=[1.0, missing, 2.0, missing])
    with pytest.raises(DataError, match=r"group column 'g', row 1: no value \(2 such rows\); give every item a group"):
        build(rows, roles=ColumnRoles("query", "evidence", "label", (), "g"))


def test_rows_without_label_or_query_are_dropped_and_counted():
    rows = make(["a", "b", "c", "d", "e", "f"], ["p", None, " ", "s", "", "u"], ["x", "y", "x", "-", None, "y"])
    data = build(rows)
    assert data.evaluation.queries.to_list() == ["p", "u"]
    assert data.evaluation.ids.to_pylist() == ["data:0", "data:5"]
    report = data.report.evaluation
    assert (report.rows_read, report.rows_kept) == (6, 2)
    assert report.dropped == {"label '-'": 1, "label missing": 1, "query missing": 1, "query blank": 1}
    assert report.rows_read - report.rows_kept == sum(report.dropped.values())
    assert "1 of 6 rows of the evaluation were dropped: query blank." in data.report.notes


def test_ids():
    rows = make(["a", "b"], id=["x", "y"])
    assert build(rows, evaluation_name="test").evaluation.ids.to_pylist() == ["x", "y"]
    assert build(make(["a", "b"], id=[7, 8])).evaluation.ids.to_pylist() == ["7", "8"]
    for ids in (["x", "x"], ["x", None]):
        data = build(make(["a", "b"], id=ids), evaluation_name="test")
        assert data.evaluation.ids.to_pylist() == ["test:0", "test:1"]
        assert any("'id' does not name every item differently" in note for note in data.report.notes)


def test_too_little_data():
    with pytest.raises(DataError, match="the data has no rows"):
        build([])
    with pytest.raises(DataError, match="the evaluation split has one row"):
        build(make(["a"]))
    with pytest.raises(DataError, match="the evaluation split 'test' has the one label 'no'"):
        build(make(["a", "b"], labels=["no", "no"]), evaluation_name="test")
    with pytest.raises(DataError, match="no labelled row"):
        build(make(["a", "b"], queries=["", " "]))


def test_alignment_reaches_the_tables():
    feature = datasets.Features(
        {
            "query": datasets.Value("string"),
            "evidence": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["yes", "no"]),
        }
    )
    train = datasets.Dataset.from_list(make(["a", "b"], labels=[0, 1]), features=feature)
    data = build(make(["c", "d"], labels=["no", "yes"]), train)
    assert data.evaluation.label_names == data.train.label_names == ("yes", "no")
    assert data.evaluation.labels.tolist() == [1, 0]


rows_strategy = st.lists(
    st.tuples(
        st.sampled_from(["p", "P ", "q", "r", "", None]),
        st.sampled_from(["a", "A", " ", None, "b", "c"]),
        st.sampled_from(["x", "y", "-"]),
        st.sampled_from(["g", "h"]),
    ),
    max_size=25,
)


@settings(max_examples=60, deadline=None)
@given(rows_strategy)
def test_laws_of_the_table(drawn):
    rows = [dict(zip(("query", "evidence", "label", "m"), row, strict=True)) for row in drawn]
    kept = [row for row in rows if (row["query"] or "").strip() and row["label"] != "-"]
    if len({row["label"] for row in kept}) < 2:
        return
    roles = ColumnRoles("query", "evidence", "label", ("m",))
    data = build(rows, roles=roles)
    table = data.evaluation
    assert table.queries.to_list() == [row["query"] for row in kept]
    assert table.evidence.to_list() == [row["evidence"] if (row["evidence"] or "").strip() else "" for row in kept]
    assert [table.label_names[label] for label in table.labels] == [row["label"] for row in kept]
    assert table.metadata["m"].to_list() == [row["m"] for row in kept]
    same = np.array([[normalise(a["evidence"] or "") == normalise(b["evidence"] or "") for b in kept] for a in kept])
    np.testing.assert_array_equal(table.evidence_codes[:, None] == table.evidence_codes[None, :], same)
    # Groups are within components.
    assert len(set(zip(table.groups.tolist(), table.components.tolist(), strict=True))) == len(
        set(table.groups.tolist())
    )
    # How the rows were stored has no part in the fingerprint; what was dropped has none either.
    schema = pa.schema([(name, pa.string()) for name in ("query", "evidence", "label", "m")])
    chunked = pa.Table.from_batches([pa.RecordBatch.from_pylist([row], schema=schema) for row in rows])
    assert build(chunked, roles=roles).evaluation.fingerprint == table.fingerprint
    assert build(kept, roles=roles).evaluation.fingerprint == table.fingerprint


def test_fingerprint_changes_with_content_alone():
    roles = ColumnRoles("query", "evidence", "label", ("m",), "g")
    rows = make(["a", "b", "", "c"], m=["x", "y", None, "x"], g=["1", "2", "3", "3"], id=["i", "j", "k", "l"])
    first = build(rows, roles=roles).evaluation.fingerprint
    assert build(rows, roles=roles, evaluation_name="other").evaluation.fingerprint == first
    assert build([{**row, "id": row["id"] + "!"} for row in rows], roles=roles).evaluation.fingerprint == first
    changes = [
        ("query", "other"), ("evidence", "other"), ("evidence", None), ("label", "yes"), ("m", ""), ("g", "1"),
    ]  # fmt: skip
    for column, value in changes:
        changed = [dict(row) for row in rows]
        changed[2][column] = value
        assert build(changed, roles=roles).evaluation.fingerprint != first, column
    renamed = [{("m2" if key == "m" else key): value for key, value in row.items()} for row in rows]
    named = ColumnRoles("query", "evidence", "label", ("m2",), "g")
    assert build(renamed, roles=named).evaluation.fingerprint != first
    relabelled = [{**row, "label": row["label"].upper()} for row in rows]
    assert build(relabelled, roles=roles).evaluation.fingerprint != first


def test_aligned_codes():
    evaluation = {"m": StringColumn.from_list(["b", None, "a", "new"]), "k": StringColumn.from_list(["x"] * 4)}
    train = {"k": StringColumn.from_list(["y", None]), "m": StringColumn.from_list(["a", "b"])}
    fitted, scored = aligned_codes(train, evaluation)
    assert [codes.tolist() for codes in scored] == [[0, NULL, 1, 2], [0, 0, 0, 0]]
    assert [codes.tolist() for codes in fitted] == [[1, 0], [1, NULL]]
    fitted, scored = aligned_codes(None, evaluation)
    assert fitted is None
    assert scored[0].tolist() == [0, NULL, 1, 2]
    with pytest.raises(DataError, match="the train split lacks the metadata column 'm'; it has k"):
        aligned_codes({"k": train["k"]}, evaluation)


def test_aligned_codes_of_a_selection_have_no_gaps():
    column = StringColumn.from_list(["a", "b", "c", "d"]).take(np.array([3, 1]))
    _, (codes,) = aligned_codes(None, {"m": column})
    assert sorted(codes.tolist()) == [0, 1]
    empty = StringColumn.from_list([])
    fitted, scored = aligned_codes({"m": empty}, {"m": column})
    assert (fitted[0].tolist(), sorted(scored[0].tolist())) == ([], [0, 1])
    _, (codes,) = aligned_codes(None, {"m": StringColumn.from_list([None, None])})
    assert codes.tolist() == [NULL, NULL]


MEMORY = """
import pandas, pyarrow as pa
from evidep.data.table import build_audit_data
from evidep.types import ColumnRoles
import scipy.sparse.csgraph
n = 60_000
filler = "the quick brown fox jumps over the lazy dog " * 20
table = pa.table({
    "query": pa.array(f"query {i} {filler[:100]}" for i in range(n)),
    "evidence": pa.array(f"evidence {i} {filler[:700]}" for i in range(n)),
    "label": pa.array(["a", "b"] * (n // 2)),
})
text = (table["query"].nbytes + table["evidence"].nbytes) / 2**20
pa.default_memory_pool().release_unused()
def status(key):
    return int(next(line for line in open("/proc/self/status") if line.startswith(key)).split()[1]) / 1024
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
data = build_audit_data(table, None, ColumnRoles("query", "evidence", "label"))
assert len(data.evaluation.evidence.texts) == n
print((status("VmHWM") - before) / text)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="peak memory is read from /proc")
def test_peak_memory_is_little_above_one_copy_of_the_text():
    done = subprocess.run([sys.executable, "-c", MEMORY], capture_output=True, text=True, check=True)
    peak = float(done.stdout)
    assert peak > 1.0  # the texts are copied once
    assert peak < 2.0  # and never held twice (3.3 with dictionary_encode and to_pylist of the whole column)


def test_reading_needs_no_heavy_import():
    code = (
        "import sys; from evidep.data.loading import load_audit_data; "
        "load_audit_data([{'query': 'q', 'evidence': 'e', 'label': l} for l in 'ab']); "
        "print(sorted({'datasets', 'torch', 'sklearn', 'transformers'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_a_source_names_its_rows_within_the_split():
    source = as_source(make(["a", ["b"], "c", {"x": 1}]), "all").part("test", np.array([False, True, False, True]))
    with pytest.raises(DataError, match=r"row 1 of split 'test': evidence is a record"):
        build(source)
