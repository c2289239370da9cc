"""Values of every kind become text, or one clear line: lists, records, numbers, dates, Arrow types."""

from datetime import date
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from data.table_rows import build, make
from hypothesis import given, settings
from hypothesis import strategies as st

from evidep.errors import DataError
from evidep.types import BLANK, MISSING, PRESENT, ColumnRoles


def test_lists_of_evidence_are_joined_and_counted():
    data = build(make([["one", "two"], ["null"], [], None, [None, "x"], [""]]))
    table = data.evaluation
    assert table.evidence.to_list() == ["one\ntwo", "null", "", "", "x", ""]
    assert table.evidence_state.tolist() == [PRESENT, PRESENT, BLANK, MISSING, PRESENT, BLANK]
    assert table.metadata["evidence_count"].to_list() == ["2", "1", "0", None, "1", "1"]
    assert data.roles.metadata == ()


def test_lists_and_strings_mixed():
    table = build(make(["one", ["two", "three"], 4, None])).evaluation
    assert table.evidence.to_list() == ["one", "two\nthree", "4", ""]
    assert table.metadata["evidence_count"].to_list() == [None, "2", None, None]


def test_evidence_count_is_in_both_tables_or_none():
    data = build(make([["a"], ["b", "c"]]), make(["a", "b"]))
    assert data.train.metadata["evidence_count"].to_list() == [None, None]
    chosen = ColumnRoles("query", "evidence", "label", ("evidence_count",))
    assert list(build(make([["a"], ["b"]]), roles=chosen).evaluation.metadata) == ["evidence_count"]
    with pytest.raises(DataError, match="'evidence_count' exists only where evidence values are lists"):
        build(make(["a", "b"]), roles=chosen)


def test_nested_evidence_of_known_shapes():
    hotpot = {"title": ["A", "B"], "sentences": [["a1.", " a2."], ["b1."]]}
    squad = {"text": ["x", "y"], "answer_start": [1, 2]}
    data = build(make([hotpot, hotpot, {"title": [], "sentences": []}]))
    assert data.evaluation.evidence.to_list() == ["a1.\n a2.\nb1."] * 2 + [""]
    assert data.evaluation.metadata["evidence_count"].to_list() == ["3", "3", "0"]
    assert "Evidence values are nested: the text was taken from the key sentences." in data.report.notes
    assert build(make([squad, [squad, "z"]])).evaluation.evidence.to_list() == ["x\ny", "x\ny\nz"]
    assert build(make([{"text": None}, {"text": "a"}])).evaluation.evidence_state.tolist() == [BLANK, PRESENT]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"url": "u", "score": 1}, r"row 1: evidence is a record with keys \['score', 'url'\], of which none may hold"),
        ({"text": "a", "content": "b"}, r"of which text and content may hold the text"),
        ([["Page", 3]], r"row 1: evidence lists must hold strings, got int \(3\)"),
        (b"bytes", r"row 1: expected text, got bytes; turn the column into text first"),
        (1j, r"row 1: expected text, got complex"),
        ("half \udc00", r"row 1: the text holds half of a surrogate pair \('\\udc00' at position 5\)"),
    ],
)
def test_other_nested_evidence_is_refused(value, message):
    with pytest.raises(DataError, match=message):
        build(make([["ok"], value]))


def test_evidence_nested_too_deeply():
    value = "x"
    for _ in range(20):
        value = [value]
    with pytest.raises(DataError, match="nested more than 16 levels deep"):
        build(make([value, value]))


def test_a_query_must_be_one_text():
    with pytest.raises(DataError, match=r"column 'query', row 1: expected one text, got a list of 2"):
        build(make(["a", "b"], queries=["q", ["q", "r"]]))


def test_numbers_become_text_in_one_form():
    rows = make([1, 2.0, 2.5, True], queries=[10**20, 1, 1.0, -0.0], m=[1, 1.0, None, False])
    table = build(rows, roles=ColumnRoles("query", "evidence", "label", ("m",))).evaluation
    assert table.evidence.to_list() == ["1", "2", "2.5", "true"]
    assert table.queries.to_list() == ["100000000000000000000", "1", "1", "0"]
    assert table.metadata["m"].to_list() == ["1", "1", None, "false"]
    arrow = pa.table({"query": [1.0, 2.5], "evidence": [1, 2], "label": [True, False]})
    table = build(arrow).evaluation
    assert table.queries.to_list() == ["1", "2.5"]
    assert table.evidence.to_list() == ["1", "2"]


def test_arrow_types_of_text():
    for kind in (pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())):
        columns = {name: pa.array([name, None, "x"]).cast(kind) for name in ("query", "evidence")}
        columns["label"] = pa.array(["a", "a", "b"]).cast(kind)
        table = build(pa.table(columns)).evaluation
        assert table.queries.to_list() == ["query", "x"]
        assert table.evidence.to_list() == ["evidence", "x"]
        assert table.label_names == ("a", "b")


def test_dates_and_decimals_become_text():
    when, missing = pd.Timestamp("2020-01-02"), pd.NaT
    rows = make(["a", "b", "c"], m=[when, missing, None], d=[date(2020, 1, 2), None, Decimal("1.50")])
    table = build(rows, roles=ColumnRoles("query", "evidence", "label", ("m", "d"))).evaluation
    assert table.metadata["m"].to_list() == ["2020-01-02 00:00:00", None, None]
    assert table.metadata["d"].to_list() == ["2020-01-02", None, "1.50"]


values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(),
        st.text(max_size=3),
        st.binary(max_size=2),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["text", "url", "sentences"]), inner, max_size=2)
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(
    st.lists(st.fixed_dictionaries(dict.fromkeys(["query", "evidence", "label", "m", "g", "id"], values)), max_size=4)
)
def test_any_values_give_a_table_or_one_clear_line(rows):
    try:
        table = build(rows, roles=ColumnRoles("query", "evidence", "label", ("m",), "g")).evaluation
    except DataError as error:
        message = str(error)
    else:
        message = "one line"
        assert 2 <= len(table) <= len(rows)
        assert len(table.label_names) == len(set(table.labels.tolist())) >= 2
    assert len(message.splitlines()) == 1


def test_metadata_of_every_kind():
    rows = make(
        ["a", "b", "c"],
        lists=[["x", "y"], [], None],
        records=[{"b": 1, "a": [True]}, None, {"a": None, "b": 2}],
        mixed=["x", 1, ["y", 2]],
    )
    table = build(rows, roles=ColumnRoles("query", "evidence", "label", ("lists", "records", "mixed"))).evaluation
    assert table.metadata["lists"].to_list() == ["x | y", "", None]
    assert table.metadata["records"].to_list() == ['{"a": [true], "b": 1}', None, '{"a": null, "b": 2}']
    assert table.metadata["mixed"].to_list() == ["x", "1", "y | 2"]
