from __future__ import annotations

import gzip
import json
import math

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evidep.data.audit_regions import read_audit_regions
from evidep.data.score_metrics import known_metric
from evidep.data.scores import read_scores, scores_from_rows
from evidep.errors import DataError, PacketError, SettingError

ACC = {"*": "accuracy"}


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def rows(*values):
    return [dict(zip(("system", "task", "score"), value, strict=True)) for value in values]


LONG = "system,task,score\nA,x,0.5\nA,y,0.75\nB,x,0.25\nB,y,1\n"


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.json", "t.jsonl", "t.parquet", "t.csv.gz", "t.jsonl.gz"])
def test_every_format_gives_the_same_table(tmp_path, name):
    path = tmp_path / name
    records = rows(("A", "x", 0.5), ("A", "y", 0.75), ("B", "x", 0.25), ("B", "y", 1.0))
    if name == "t.csv":
        write(path, LONG)
    elif name == "t.tsv":
        write(path, LONG.replace(",", "\t"))
    elif name == "t.json":
        write(path, json.dumps(records))
    elif name == "t.jsonl":
        write(path, "\n".join(map(json.dumps, records)))
    elif name == "t.parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    elif name == "t.csv.gz":
        path.write_bytes(gzip.compress(LONG.encode()))
    else:
        path.write_bytes(gzip.compress("\n".join(map(json.dumps, records)).encode()))
    table = read_scores(path, tasks=ACC)
    assert table.systems == ("A", "B")
    assert table.task_names == ("x", "y")
    assert table.scores.tolist() == [[0.5, 0.75], [0.25, 1.0]]
    assert set(table.units) == {"single score"}


def test_nested_json_and_seed_lists(tmp_path):
    path = write(tmp_path / "t.json", json.dumps({"A": {"x": [0.5, 0.7]}, "B": {"x": [0.25, 0.35]}}))
    table = read_scores(path, tasks=ACC)
    assert table.units == ("seeds",)
    assert np.allclose(table.scores, [[0.6], [0.3]])


def test_usual_names_and_named_columns(tmp_path):
    path = write(tmp_path / "t.csv", "Model,Dataset,Value\nA,x,0.5\n")
    assert read_scores(path, tasks=ACC).systems == ("A",)
    path = write(tmp_path / "u.csv", "who,what,how\nA,x,0.5\n")
    columns = {"system": "who", "task": "what", "score": "how"}
    assert read_scores(path, tasks=ACC, columns=columns).scores.tolist() == [[0.5]]


def test_texts_that_look_like_nothing_stay_texts(tmp_path):
    path = write(tmp_path / "t.csv", "system,task,score\nnull,None,0.5\nNA,None,0.25\n1,None,0.75\n")
    table = read_scores(path, tasks=ACC)
    assert table.systems == ("null", "NA", "1")
    assert table.task_names == ("None",)


def test_items_are_joined_by_name_whatever_their_order():
    data = [
        {"system": s, "task": "x", "item": i, "score": v}
        for s, i, v in [("A", "q1", 1), ("A", "q2", 0), ("A", "q3", 1), ("B", "q3", 0), ("B", "q1", 1), ("B", "q2", 1)]
    ]
    table = scores_from_rows(data, tasks=ACC)
    assert table.units == ("items",)
    assert table.samples[0][:, 0].tolist() == [[1, 0, 1], [1, 1, 0]]
    assert table.tasks[0].n_items == 3


def test_items_that_one_system_lacks():
    data = [
        {"system": s, "task": "x", "item": i, "score": v}
        for s, i, v in [("A", 1, 1), ("A", 2, 0), ("A", 3, 1), ("B", 1, 0), ("B", 2, 1)]
    ]
    with pytest.raises(DataError, match="task 'x': 1 of 3 items are not scored for every system"):
        scores_from_rows(data, tasks=ACC)
    table = scores_from_rows(data, tasks=ACC, missing="drop-tasks")
    assert table.samples[0].shape == (2, 1, 2)
    assert table.scores.tolist() == [[0.5], [0.5]]
    assert "1 of 3 items" in table.notes[0]


def test_no_common_item():
    data = [{"system": s, "task": "x", "item": i, "score": 1} for s, i in [("A", 1), ("B", 2)]]
    with pytest.raises(DataError, match="share no item"):
        scores_from_rows(data, tasks=ACC, missing="rank")


def test_seeds_and_items():
    data = [
        {"system": s, "task": "x", "seed": k, "item": i, "score": (k + i) % 2}
        for s in "AB"
        for k in (7, 9)
        for i in range(3)
    ]
    table = scores_from_rows(data, tasks=ACC)
    assert table.units == ("items and seeds",)
    assert table.samples[0].shape == (2, 2, 3)


def test_seeds_of_different_names_and_numbers():
    data = [
        {"system": s, "task": "x", "seed": k, "score": v}
        for s, k, v in [("A", 1, 0.2), ("A", 2, 0.4), ("B", 10, 0.6), ("B", 11, 0.7), ("B", 12, 0.8)]
    ]
    table = scores_from_rows(data, tasks=ACC)
    assert table.samples[0].shape == (2, 3, 1)
    assert np.allclose(table.scores, [[0.3], [0.7]])


def test_one_seed_everywhere_is_a_single_score():
    data = [{"system": "A", "task": t, "seed": 0, "score": 0.5} for t in "xy"]
    assert scores_from_rows(data, tasks=ACC).units == ("single score", "single score")


def test_metrics_give_direction_range_and_chance():
    data = [
        {"system": "A", "task": t, "score": v, "metric": m}
        for t, v, m in [("a", 88.0, "accuracy%"), ("m", 0.5, "Matthews"), ("r", 1.2, "RMSE"), ("c", 0.8, "ROC AUC")]
    ]
    tasks = {task.name: task for task in scores_from_rows(data).tasks}
    assert (tasks["a"].higher_is_better, tasks["a"].low, tasks["a"].high) == (True, 0.0, 100.0)
    assert (tasks["m"].low, tasks["m"].high, tasks["m"].chance) == (-1.0, 1.0, 0.0)
    assert (tasks["r"].higher_is_better, tasks["r"].best, tasks["r"].high) == (False, 0.0, math.inf)
    assert tasks["c"].chance == 0.5
    assert known_metric("nonsense") is None


def test_declarations_win_over_the_file_and_over_what_is_known():
    data = [{"system": "A", "task": "x", "score": 3.0, "metric": "rmse"}]
    declared = {"x": {"direction": "higher", "low": 1, "high": 5, "chance": 2, "n_items": 40}}
    task = scores_from_rows(data, tasks=declared).tasks[0]
    assert (task.higher_is_better, task.low, task.high, task.chance, task.n_items) == (True, 1, 5, 2, 40)


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ({}, "task 'x': unknown whether a higher or a lower score is better"),
        ({"x": "homemade"}, "unknown whether"),
        ({"y": "accuracy"}, "task 'y' is declared but not in rows"),
        ({"x": {"chanse": 0.5}}, "unknown key 'chanse'"),
        ({"x": {"direction": "up"}}, "expected 'higher' or 'lower'"),
        ({"x": {"low": "zero"}}, "expected a number, got 'zero'"),
        ({"x": {"higher_is_better": 1}}, "expected true or false"),
        ({"x": 5}, "expected a metric name or an object"),
    ],
)
def test_bad_declarations(declared, words):
    with pytest.raises(SettingError, match=words):
        scores_from_rows(rows(("A", "x", 0.5)), tasks=declared)


def test_duplicates_name_both_rows(tmp_path):
    path = write(tmp_path / "t.csv", "system,task,score\nA,x,0.5\nB,x,0.5\nA,x,0.6\n")
    with pytest.raises(DataError, match=r"row 4: 'A' on 'x' is there twice \(first in row 2\)"):
        read_scores(path, tasks=ACC)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("system,task,score\nA,x,high\n", "column 'score', row 2: expected a number, got 'high'"),
        ("system,task,score\n,x,1\n", "column 'system' is empty in row 2"),
        ("system,task,score\n", "no rows"),
        ("a,b,c\nA,x,1\n", "no column for the system"),
        ("system,task,points\nA,x,1\n", "no column for the score"),
        ("system,note\nA,good\n", "nor any column of numbers"),
        ("system,task,score\nA,x\n", "cannot be read"),
        ("system,task,score\nA,x,0.5\nA,y,inf\n", "expected a finite score"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path, text, words):
    with pytest.raises(DataError, match=words) as caught:
        read_scores(write(tmp_path / "t.csv", text), tasks=ACC)
    assert "\n" not in str(caught.value)


def test_other_bad_files(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read_scores(tmp_path / "none.csv")
    with pytest.raises(DataError, match=r"expected \.csv"):
        read_scores(write(tmp_path / "t.xlsx", "x"))
    with pytest.raises(DataError, match="not valid JSON"):
        read_scores(write(tmp_path / "t.json", "{"))
    with pytest.raises(DataError, match="expected a list of objects"):
        read_scores(write(tmp_path / "t.json", "[1, 2]"))
    with pytest.raises(DataError, match="not a parquet file"):
        read_scores(write(tmp_path / "t.parquet", "x"))
    with pytest.raises(DataError, match="no column 'who' for the system"):
        read_scores(write(tmp_path / "t.csv", LONG), columns={"system": "who"})
    with pytest.raises(DataError, match="unknown role 'sytem'"):
        read_scores(write(tmp_path / "t.csv", LONG), columns={"sytem": "system"})
    with pytest.raises(DataError, match="no score file given"):
        read_scores([])
    with pytest.raises(DataError, match="at least one score"):
        scores_from_rows([])
    with pytest.raises(DataError, match="mixes kinds"):
        scores_from_rows([*rows(("A", "x", 0.5)), *rows(("B", "x", "high"))])


@pytest.mark.parametrize("blank", ["", "nan", "NaN", "-", "n/a"])
def test_blank_scores_are_gaps_never_zero(tmp_path, blank):
    path = write(tmp_path / "t.csv", f"system,task,score\nA,x,0.5\nA,y,{blank}\nB,x,0.2\nB,y,0.1\n")
    with pytest.raises(DataError, match="1 of 4 cells have no score"):
        read_scores(path, tasks=ACC)
    table = read_scores(path, tasks=ACC, missing="rank")
    assert np.isnan(table.scores[0, 1])


def test_blank_seed_score_is_refused_or_left_out(tmp_path):
    text = "system,task,seed,score\nA,x,0,0.5\nA,x,1,\nA,x,2,0.7\n"
    with pytest.raises(DataError, match="row 3: no score"):
        read_scores(write(tmp_path / "t.csv", text), tasks=ACC)
    table = read_scores(tmp_path / "t.csv", tasks=ACC, missing="rank")
    assert table.scores.tolist() == [[0.6]]
    assert "1 row(s) without a score" in table.notes[0]


def test_wide_table_like_helm(tmp_path):
    text = (
        "Model,Mean win rate,NarrativeQA - F1,OpenbookQA - EM,WMT 2014 - BLEU ↑,MATH - ECE ↓,Licence\n"
        "GPT,0.9,0.78,0.94,0.2,0.1,closed\nLLaMA,0.3,0.55,-,0.1,0.3,open\n"
    )
    table = read_scores(write(tmp_path / "helm.csv", text), missing="rank")
    assert table.task_names == ("NarrativeQA", "OpenbookQA", "WMT 2014", "MATH")
    assert [task.higher_is_better for task in table.tasks] == [True, True, True, False]
    assert [task.metric for task in table.tasks] == ["F1", "EM", "BLEU", "ECE"]
    assert np.isnan(table.scores[1, 1])
    assert any("'Mean win rate' sums up" in note for note in table.notes)
    assert any("'Licence' holds no numbers" in note for note in table.notes)
    with pytest.raises(DataError, match="column 'x', row 3: expected a number, got 'bad'"):
        read_scores(write(tmp_path / "w.csv", "model,x\nA,1\nB,bad\n"), tasks=ACC)


def test_standard_errors_are_read():
    data = [{"system": s, "task": "x", "score": 0.5, "stderr": e} for s, e in (("A", 0.01), ("B", None))]
    table = scores_from_rows(data, tasks=ACC)
    assert table.units == ("standard error",)
    assert np.array_equal(table.standard_errors, [[0.01], [np.nan]], equal_nan=True)


def test_patterns_keep_tasks_and_leave_out_systems_without_any(tmp_path):
    text = "system,task,score\nA,dmc/a,1\nA,dmc/b,2\nB,atari/c,3\n"
    path = write(tmp_path / "t.csv", text)
    table = read_scores(path, tasks={"*": "return"}, only=["dmc/*"])
    assert (table.systems, table.task_names) == (("A",), ("dmc/a", "dmc/b"))
    assert "left out: B" in table.notes[0]
    with pytest.raises(SettingError, match="no task 'nes"):
        read_scores(path, tasks={"*": "return"}, only=["nes/*"])


def test_several_files_are_one_table(tmp_path):
    one = write(tmp_path / "a.csv", "system,task,score\nA,x,0.5\n")
    two = write(tmp_path / "b.csv", "system,task,score\nB,x,0.6\n")
    assert read_scores([one, two], tasks=ACC).systems == ("A", "B")
    three = write(tmp_path / "c.csv", "system,task,seed,score\nC,x,0,0.6\n")
    with pytest.raises(DataError, match="only one of them has a column for the seed"):
        read_scores([one, three], tasks=ACC)


def harness(folder, model, results, *, when="2025-01-01T00-00-00", **more):
    folder = folder / model.replace("/", "__")
    folder.mkdir(parents=True, exist_ok=True)
    content = {
        "results": results,
        "model_name": model,
        "config": {"model_args": f"pretrained={model}", "random_seed": 0, "fewshot_seed": 1234},
        "higher_is_better": {"hellaswag": {"acc": True, "acc_norm": True}, "wiki": {"word_perplexity": False}},
        "n-samples": {"hellaswag": {"original": 10042, "effective": 10042}},
        **more,
    }
    (folder / f"results_{when}.json").write_text(json.dumps(content), encoding="utf-8")


def entry(acc, norm, ppl):
    return {
        "hellaswag": {"alias": "hs", "acc,none": acc, "acc_stderr,none": 0.005, "acc_norm,none": norm,
                      "acc_norm_stderr,none": 0.004},
        "wiki": {"alias": "wiki", "word_perplexity,none": ppl, "word_perplexity_stderr,none": "N/A"},
    }  # fmt: skip


def test_harness_folder(tmp_path):
    harness(tmp_path, "org/one", entry(0.5, 0.7, 12.0))
    harness(tmp_path, "org/two", entry(0.4, 0.6, 15.0))
    table = read_scores(tmp_path)
    assert table.systems == ("org/one", "org/two")
    assert table.scores.tolist() == [[0.5, 12.0], [0.4, 15.0]]
    assert table.units == ("standard error", "single score")
    assert [task.higher_is_better for task in table.tasks] == [True, False]
    assert table.tasks[0].n_items == 10042
    assert any("acc is used (also there: acc_norm,none)" in note for note in table.notes)
    chosen = read_scores(tmp_path, tasks={"hellaswag": "acc_norm"})
    assert chosen.scores[:, 0].tolist() == [0.7, 0.6]
    assert chosen.standard_errors[:, 0].tolist() == [0.004, 0.004]
    with pytest.raises(DataError, match="has no metric 'f1'"):
        read_scores(tmp_path, tasks={"hellaswag": "f1"})


def test_harness_model_names_without_a_recorded_one(tmp_path):
    harness(tmp_path, "a", entry(0.5, 0.7, 12.0), model_name="", config={"model_args": {"pretrained": "Qwen/Q"}})
    harness(tmp_path, "b", entry(0.5, 0.7, 12.0), model_name="", config={"model_args": "dtype=auto,pretrained=P/p"})
    harness(tmp_path, "c", entry(0.5, 0.7, 12.0), model_name=None, config={})
    assert set(read_scores(tmp_path).systems) == {"Qwen/Q", "P/p", "c"}


def test_harness_groups_do_not_count_twice(tmp_path):
    results = {"mmlu": {"acc,none": 0.5}, "mmlu_law": {"acc,none": 0.4}, "mmlu_art": {"acc,none": 0.6}}
    harness(tmp_path, "m", results, group_subtasks={"mmlu": ["mmlu_law", "mmlu_art"]})
    table = read_scores(tmp_path)
    assert table.task_names == ("mmlu_law", "mmlu_art")
    assert any("mmlu is the average of its subtasks" in note for note in table.notes)


def test_harness_twice_or_with_other_seeds(tmp_path):
    harness(tmp_path, "m", entry(0.5, 0.7, 12.0))
    harness(tmp_path, "m", entry(0.6, 0.8, 11.0), when="2025-02-01T00-00-00")
    with pytest.raises(DataError, match="with the same seeds; remove one"):
        read_scores(tmp_path)
    harness(tmp_path, "m", entry(0.6, 0.8, 11.0), when="2025-02-01T00-00-00", config={"random_seed": 1})
    table = read_scores(tmp_path)
    assert set(table.units) == {"seeds"}
    assert table.scores[0, 0] == pytest.approx(0.55)


def test_harness_folder_without_results(tmp_path):
    with pytest.raises(DataError, match="no results_"):
        read_scores(tmp_path)
    write(tmp_path / "results_x.json", "{}")
    with pytest.raises(DataError, match="no 'results' object"):
        read_scores(tmp_path)


def test_audit_packets(tmp_path):
    packet = {"diagnosis": {"region": "latent_coupling"}, "data": {"name": "hotpot", "fingerprint": "ab"}}
    path = write(tmp_path / "packet.json", json.dumps(packet))
    assert read_audit_regions({"QA": path}) == {"QA": ("latent_coupling", "hotpot")}
    for wrong in ({}, {"diagnosis": {"region": "fine"}, "data": {}}, {"diagnosis": packet["diagnosis"]}, [1]):
        with pytest.raises(PacketError):
            read_audit_regions({"QA": write(tmp_path / "bad.json", json.dumps(wrong))})
    with pytest.raises(PacketError, match="cannot be read"):
        read_audit_regions({"QA": tmp_path / "none.json"})


def test_a_million_rows(tmp_path):
    import time

    n = 1_000_000
    rng = np.random.default_rng(0)
    index = np.arange(n)
    table = pa.table(
        {
            "system": pa.array(np.array([f"s{k}" for k in range(10)])[index // 100_000]),
            "task": pa.array(np.array([f"t{k}" for k in range(20)])[index % 100_000 // 5000]),
            "item": index % 5000,
            "score": rng.integers(0, 2, n),
        }
    )
    pq.write_table(table, tmp_path / "big.parquet")
    start = time.perf_counter()
    read = read_scores(tmp_path / "big.parquet", tasks=ACC)
    assert time.perf_counter() - start < 10
    assert read.scores.shape == (10, 20)
    assert set(read.units) == {"items"}
