"""Files, folders, Hub ids and data in memory; splits and which of them is taken."""

import gzip
import json

import datasets
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evidep.data.files import read_file
from evidep.data.loading import load_audit_data, open_splits
from evidep.errors import DataError

ROWS = [
    {"query": f"q{i}", "evidence": f"e{i}", "label": ["no", "yes"][i % 2], "speaker": ["ann", "bob"][i % 2]}
    for i in range(6)
]


def write(path, text):
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8", newline="")
    return path


def as_lines(rows):
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def with_splits(**sizes):
    return [dict(ROWS[i % 6], split=name, query=f"{name} {i}") for name, size in sizes.items() for i in range(size)]


def column(source, name):
    return [v for cells in source.chunks(name) for v in (cells if isinstance(cells, list) else cells.to_pylist())]


def same_content(data):
    """Whatever held the rows, the table is the same."""
    expected = load_audit_data(ROWS)
    assert data.evaluation.fingerprint == expected.evaluation.fingerprint
    assert data.evaluation.queries.to_list() == [row["query"] for row in ROWS]
    assert data.evaluation.evidence.to_list() == [row["evidence"] for row in ROWS]
    assert data.evaluation.label_names == ("no", "yes")
    assert data.evaluation.labels.tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("kind", ["jsonl", "ndjson", "json", "array.json", "wrapped.json", "csv", "tsv"])
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_text_files(tmp_path, kind, packed):
    frame = pd.DataFrame(ROWS)
    text = {
        "array.json": json.dumps(ROWS, indent=2),
        "wrapped.json": json.dumps({"version": "1.0", "data": ROWS}),
        "csv": frame.to_csv(index=False),
        "tsv": frame.to_csv(index=False, sep="\t"),
    }.get(kind, as_lines(ROWS))
    same_content(load_audit_data(write(tmp_path / f"x.{kind}{packed}", text)))
    same_content(load_audit_data(str(tmp_path / f"x.{kind}{packed}")))


def test_parquet_keeps_class_names(tmp_path):
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "x.parquet", row_group_size=4)
    same_content(load_audit_data(tmp_path / "x.parquet"))
    features = datasets.Features(
        {name: datasets.Value("string") for name in ("query", "evidence", "speaker")}
        | {"label": datasets.ClassLabel(names=["no", "yes"])}
    )
    datasets.Dataset.from_list(ROWS, features=features).to_parquet(tmp_path / "classes.parquet")
    same_content(load_audit_data(tmp_path / "classes.parquet"))


def test_a_dot_in_a_parquet_column(tmp_path):
    pq.write_table(pa.table({"a.b": ["x", "y"], "a": ["u", "v"]}), tmp_path / "x.parquet")
    source = read_file(tmp_path / "x.parquet")
    assert column(source, "a.b") == ["x", "y"]
    assert column(source, "a") == ["u", "v"]


def test_data_in_memory(tmp_path):
    dataset = datasets.Dataset.from_list(ROWS)
    same_content(load_audit_data(dataset))
    same_content(load_audit_data(datasets.Dataset.from_list(ROWS[::-1]).select(range(5, -1, -1))))
    same_content(load_audit_data(datasets.concatenate_datasets([dataset.select(range(3)), dataset.select([3, 4, 5])])))
    same_content(load_audit_data(pd.DataFrame(ROWS, index=[7] * 6)))
    same_content(load_audit_data(pa.Table.from_pylist(ROWS)))
    same_content(load_audit_data(tuple(ROWS)))
    dataset.save_to_disk(tmp_path / "saved")
    same_content(load_audit_data(tmp_path / "saved"))
    datasets.DatasetDict({"test": dataset}).save_to_disk(tmp_path / "several")
    same_content(load_audit_data(str(tmp_path / "several")))


def test_a_shuffled_dataset_is_read_in_its_own_order():
    rows = [dict(ROWS[i % 6], query=f"q{i}") for i in range(40_000)]  # more than one gathered piece
    shuffled = datasets.Dataset.from_list(rows).shuffle(seed=1)
    assert load_audit_data(shuffled).evaluation.queries.to_list() == shuffled["query"][:]


def test_text_that_looks_like_nothing_stays_text(tmp_path):
    # datasets#4467: the csv loader makes None of "null", "NA", "None" and "".
    path = write(
        tmp_path / "x.csv",
        'query,evidence,label\nnull,"",None\nNA,nan,none\nNone,  ,None\n"a ""b""\nc",None,none\n2020-01-01,1,None\n',
    )
    data = load_audit_data(path)
    assert data.evaluation.queries.to_list() == ["null", "NA", "None", 'a "b"\nc', "2020-01-01"]
    assert data.evaluation.evidence.to_list() == ["", "nan", "", "None", "1"]
    assert data.evaluation.evidence_state.tolist() == [1, 0, 1, 0, 0]
    assert data.evaluation.label_names == ("None", "none")
    path = write(tmp_path / "y.jsonl", as_lines([dict(ROWS[0], evidence="null"), dict(ROWS[1], evidence=None)]))
    data = load_audit_data(path)
    assert data.evaluation.evidence.to_list() == ["null", ""]
    assert data.evaluation.evidence_state.tolist() == [0, 2]


def test_json_keeps_dates_and_line_separators(tmp_path):
    rows = [dict(ROWS[0], query="2020-01-01 10:00:00", evidence="a\u2028b\x85c"), ROWS[1]]
    data = load_audit_data(write(tmp_path / "x.jsonl", as_lines(rows)))
    assert data.evaluation.queries[0] == "2020-01-01 10:00:00"
    assert data.evaluation.evidence[0] == "a\u2028b\x85c"


def test_unquoted_tsv(tmp_path):
    """GLUE's TSV files are not quoted: a quotation mark opens nothing."""
    path = write(tmp_path / "x.tsv", 'query\tevidence\tlabel\n"Open\te1\tyes\nsays "b" too\te2\tno\n')
    data = load_audit_data(path)
    assert data.evaluation.queries.to_list() == ['"Open', 'says "b" too']


def test_very_large_cells(tmp_path):
    rows = [dict(ROWS[0], evidence="x" * 300_000), dict(ROWS[1], evidence="y " * 150_000)]
    expected = [len(row["evidence"]) for row in rows]
    for path in (
        write(tmp_path / "x.csv", pd.DataFrame(rows).to_csv(index=False)),
        write(tmp_path / "x.jsonl", as_lines(rows)),
    ):
        assert [len(text) for text in load_audit_data(path).evaluation.evidence.to_list()] == expected


def test_windows_files(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes("\ufeffquery,evidence,label\r\nq1,e1,yes\r\n\r\nq2,e2,no\r\n".encode())
    assert load_audit_data(path).evaluation.queries.to_list() == ["q1", "q2"]
    path = tmp_path / "x.jsonl"
    path.write_bytes(("\ufeff" + as_lines(ROWS).replace("\n", "\r\n")).encode())
    same_content(load_audit_data(path))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.jsonl", '{"a": 1}\n{"a": \n', r"x\.jsonl, line 2: not JSON"),
        ("x.jsonl", '{"a": 1}\n\n[1]\n', r"line 3: expected one JSON object per line, got list"),
        ("x.json", '[{"a": 1},\n {"a" 2}]', r"x\.json, line 2: not JSON"),
        ("x.json", '[{"a": 1}, 2]', r"element 1 of the array must be an object, got int"),
        ("x.json", '{"train": [{"a": 1}], "test": [{"a": 1}]}', r"keys 'train', 'test', 2 of which hold rows"),
        ("x.json", '"text"', r"expected a JSON array of objects, got str"),
        ("x.jsonl", "[" * 100_000, r"line 1: JSON nested too deeply"),
        ("x.csv", "a,b\n1,2\n1,2,3\n", r"x\.csv, line 3: expected 2 cells as in the header, got 3"),
        ("x.csv", 'a,b\n1,"2\n', r"x\.csv, line 2: broken quoting"),
        ("x.csv", "a,a\n1,2\n", r"column names in the header must be unique, got a, a"),
        ("x.csv", "a,b\n", r"the file has no rows"),
        ("x.jsonl", "\n \n", r"the file has no rows"),
        ("x.json", "[]", r"the file has no rows"),
        ("x.jsonl", "", r"the file is empty \(0 bytes\)"),
        ("x.parquet", "", r"the file is empty \(0 bytes\)"),
        ("x.parquet", "no parquet at all", r"broken Parquet file"),
        ("x.jsonl.gz", None, r"broken gzip file"),
        ("x.txt", "a", r"expected a file ending in \.jsonl, .*\.parquet \(or \.gz"),
    ],
)
def test_broken_files_say_where(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_bytes(b"\x1f\x8b\x08\x00 truncated" if content is None else content.encode())
    with pytest.raises(DataError, match=message) as caught:
        load_audit_data(path)
    assert "\n" not in str(caught.value)


def test_truncated_gzip(tmp_path):
    path = tmp_path / "x.jsonl.gz"
    path.write_bytes(gzip.compress(as_lines(ROWS).encode())[:-12])
    with pytest.raises(DataError, match="broken gzip file"):
        load_audit_data(path)


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv"])
def test_not_utf8(tmp_path, name):
    path = tmp_path / name
    head = b"query,evidence,label\n" if name == "x.csv" else as_lines(ROWS[:1]).encode()
    path.write_bytes(head + "caf\xe9".encode("latin-1") + b"\n")
    with pytest.raises(DataError, match=r"line 2: not UTF-8 \(byte 0xe9 at position 3\); convert the file"):
        load_audit_data(path)


def test_half_a_surrogate_pair(tmp_path):
    path = write(tmp_path / "x.jsonl", as_lines(ROWS[:1]) + '{"query": "a\\ud800b", "evidence": "e", "label": "yes"}\n')
    with pytest.raises(DataError, match=r"column 'query', row 1: the text holds half of a surrogate pair"):
        load_audit_data(path)


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.jsonl: no such file"):
        load_audit_data(tmp_path / "nowhere.jsonl")
    with pytest.raises(DataError, match=r"nowhere\.csv: no such file"):
        load_audit_data("nowhere.csv")
    with pytest.raises(DataError, match="was not written by save_to_disk"):
        load_audit_data(tmp_path)
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(DataError, match="broken save_to_disk folder"):
        load_audit_data(tmp_path)
    with pytest.raises(DataError, match="neither a file or folder here nor a Hub id"):
        load_audit_data("what is this?")
    with pytest.raises(DataError, match="config and revision belong to a Hub data set"):
        load_audit_data(write(tmp_path / "x.jsonl", as_lines(ROWS)), config="plain")
    with pytest.raises(DataError, match="config and revision belong to a Hub data set"):
        load_audit_data(ROWS, revision="main")


def test_other_objects_are_refused():
    with pytest.raises(DataError, match="got int"):
        load_audit_data(3)
    with pytest.raises(DataError, match="row 1: expected a dict of column to value, got list"):
        load_audit_data([ROWS[0], ["q"]])
    for empty in ([], pd.DataFrame(), datasets.Dataset.from_list([])):
        with pytest.raises(DataError, match="the data has no rows"):
            load_audit_data(empty)
    with pytest.raises(DataError, match="the data has no splits"):
        load_audit_data({})
    with pytest.raises(DataError, match="these occur more than once: query"):
        load_audit_data(pd.DataFrame([["a", "b"]], columns=["query", "query"]))
    with pytest.raises(DataError, match="set_transform"):
        load_audit_data(datasets.Dataset.from_list(ROWS).with_transform(lambda batch: batch))
    stream = datasets.IterableDataset.from_generator(lambda: iter(ROWS))
    with pytest.raises(DataError, match=r"load it without streaming=True, or use datasets\.Dataset\.from_list"):
        load_audit_data(stream)
    with pytest.raises(DataError, match="streaming"):
        load_audit_data(datasets.IterableDatasetDict({"test": stream}))


def test_hub_ids(monkeypatch):
    with pytest.raises(DataError) as caught:
        load_audit_data("nobody/nothing-of-that-name")
    message = str(caught.value)
    assert "the Hub data set 'nobody/nothing-of-that-name' could not be loaded" in message
    assert "check the id and the network, or give a local file" in message
    assert "\n" not in message

    asked = []

    def load_dataset(name, config, *, revision):
        asked.append((name, config, revision))
        return datasets.DatasetDict({"test": datasets.Dataset.from_list(ROWS)})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    same_content(load_audit_data("org/name", config="plain", revision="abc"))
    same_content(load_audit_data("org/name", train=ROWS))
    assert asked == [("org/name", "plain", "abc"), ("org/name", None, None)]


def dataset_dict(**sizes):
    return datasets.DatasetDict(
        {name: datasets.Dataset.from_list(with_splits(**{name: size})) for name, size in sizes.items()}
    )


@pytest.mark.parametrize("make", [with_splits, dataset_dict, lambda **sizes: pd.DataFrame(with_splits(**sizes))])
def test_which_split_is_evaluated(make):
    data = load_audit_data(make(train=6, validation=4, test=2))
    assert (len(data.evaluation), len(data.train)) == (2, 6)
    assert data.report.evaluation.name == "test"
    assert data.report.notes[1:3] == (
        "Evaluated on the split 'test'; others: train, validation (--split NAME).",
        "Readers are fitted on the data's split 'train' (--train-split NAME, or none).",
    )
    data = load_audit_data(make(train=6, validation=4))
    assert (data.report.evaluation.name, data.report.train.name) == ("validation", "train")
    data = load_audit_data(make(train=6))
    assert (data.report.evaluation.name, data.train) == ("train", None)
    assert "Evaluated on 'train', the only split there is." in data.report.notes
    data = load_audit_data(make(test_mismatched=4, test_matched=2))
    assert data.report.evaluation.name == "test_matched"


def test_named_splits():
    rows = with_splits(train=6, validation=4, test=2)
    data = load_audit_data(rows, split="validation", train_split="test")
    assert (data.report.evaluation.name, data.report.train.name) == ("validation", "test")
    assert load_audit_data(rows, train_split="none").train is None
    data = load_audit_data(rows, split="train")
    assert data.train is None
    data = load_audit_data(rows, split="test", train=with_splits(dev=4, training=2))
    assert data.report.train.name == "training"
    data = load_audit_data(rows, split="test", train=with_splits(dev=4, training=2), train_split="dev")
    assert len(data.train) == 4
    with pytest.raises(DataError, match="split='tset' is none of the data's splits: train, validation, test; did you"):
        load_audit_data(rows, split="tset")
    with pytest.raises(DataError, match="split='test' was asked for, but the data has no splits"):
        load_audit_data(ROWS, split="test")
    with pytest.raises(DataError, match="train_split='dev' is none of the data's splits"):
        load_audit_data(rows, train_split="dev")
    with pytest.raises(DataError, match=r"train_split='test' names the rows of the evaluation \(test\)"):
        load_audit_data(rows, train_split="test")
    with pytest.raises(DataError, match=r"the train data has several splits \(dev, test\); name one"):
        load_audit_data(rows, split="test", train=with_splits(dev=4, test=2))


def test_a_file_cannot_be_its_own_train_data(tmp_path):
    path = write(tmp_path / "x.jsonl", as_lines(ROWS))
    with pytest.raises(DataError, match="names the rows of the evaluation"):
        load_audit_data(path, train=str(path))
    path = write(tmp_path / "y.jsonl", as_lines(with_splits(train=4, test=2)))
    assert len(load_audit_data(path, train=path).train) == 4


def test_a_split_without_labels_is_passed_over():
    """Many test sets on the Hub are published without their labels."""
    rows = [dict(row, label="-") for row in with_splits(test=3)] + with_splits(validation=4)
    data = load_audit_data(rows)
    assert data.report.evaluation.name == "validation"
    assert data.report.notes[1].startswith("Evaluated on the split 'validation' (test has no labels)")
    with pytest.raises(DataError, match=r"evaluation split 'test' has no labelled row \(label '-': 3\)"):
        load_audit_data(rows, split="test")


def test_a_split_column_that_names_no_splits():
    rows = [dict(row, split=["matched", "mismatched"][i % 2]) for i, row in enumerate(with_splits(x=8))]
    assert len(load_audit_data(rows).evaluation) == 8
    rows = [dict(row, split=["left", "right"][i // 4]) for i, row in enumerate(rows)]
    assert len(load_audit_data(rows, split="left").evaluation) == 4
    assert len(load_audit_data([dict(row, split=None) for row in ROWS]).evaluation) == 6


def test_rows_without_a_split_are_left_out_and_told():
    data = load_audit_data([*with_splits(test=4), dict(ROWS[0], split=None)])
    assert len(data.evaluation) == 4
    assert "1 rows without a value in the column 'split' were left out." in data.report.notes


def test_roles_may_be_given_in_part():
    rows = [{"a": row["query"], "b": row["evidence"], "label": row["label"], "c": "x"} for row in ROWS]
    with pytest.raises(DataError, match="add --evidence COLUMN"):
        load_audit_data(rows)
    data = load_audit_data(rows, roles={"query": "a", "evidence": "b", "metadata": ["c"]})
    assert data.evaluation.metadata["c"].to_list() == ["x"] * 6
    assert data.report.notes[0] == "Columns were chosen by their names: label = 'label'."


def test_train_data_with_other_columns_is_named():
    with pytest.raises(DataError, match="split 'train': no column 'query' for --query"):
        load_audit_data(ROWS, train=datasets.DatasetDict({"train": datasets.Dataset.from_list([{"a": 1}])}))


def test_open_splits_reads_a_mapping_of_data():
    splits = open_splits({"test": ROWS, "dev": pd.DataFrame(ROWS)})
    assert {name: len(source) for name, source in splits.items()} == {"test": 6, "dev": 6}


def test_keys_may_be_missing_in_json_rows(tmp_path):
    rows = [dict(ROWS[0], extra="late"), ROWS[1], {"label": "no", "query": "q"}]
    source = read_file(write(tmp_path / "x.jsonl", as_lines(rows[1:] + rows[:1])))
    assert column(source, "extra") == [None, None, "late"]
    assert column(source, "evidence") == ["e1", None, "e0"]
