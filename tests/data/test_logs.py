"""Logs of the lm-evaluation-harness and of Inspect, written here as those tools write them, read as runs."""

from __future__ import annotations

import gzip
import json
import zipfile

import numpy as np
import pytest

from evidep.data.logs import delta_evi_from_logs, match_runs, read_log
from evidep.errors import DataError, SettingError

OPTIONS = [" no", " yes"]


def harness_choice(path, likelihoods, gold, *, order=None, target=str, **more):
    """A multiple-choice task: log-likelihoods as text beside "is greedy", the target as text (lm-eval 0.4)."""
    rows = []
    for number, (pair, label) in enumerate(zip(likelihoods, gold, strict=True)):
        arguments = {f"gen_args_{i}": {"arg_0": f"Claim {number}", "arg_1": option} for i, option in enumerate(OPTIONS)}
        rows.append(
            {
                "doc_id": number,
                "doc": {"claim": f"Claim {number}"},
                "target": target(label),
                "arguments": arguments,
                "resps": [[[str(value), "False"]] for value in pair],
                "filtered_resps": [[str(value), "False"] for value in pair],
                "filter": "none",
                "metrics": ["acc", "acc_norm"],
                "doc_hash": "0" * 64,
                "prompt_hash": "1" * 64,
                "target_hash": "2" * 64,
                "acc": float(int(np.argmax(pair)) == label),
                "acc_norm": 0.0,
            }
            | more
        )
    rows = rows if order is None else [rows[i] for i in order]
    text = "".join(json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def harness_text(path, answers, targets, filters=("strict", "flexible")):
    """A generating task: one row per document and filter."""
    rows = [
        {
            "doc_id": number, "doc": {}, "target": target, "arguments": {"gen_args_0": {"arg_0": "Q", "arg_1": {}}},
            "resps": [[f"I think {answer}"]], "filtered_resps": [answer if name == "strict" else f" {answer} "],
            "filter": name, "metrics": ["exact_match"], "exact_match": float(answer.lower() == target.lower()),
        }
        for name in filters
        for number, (answer, target) in enumerate(zip(answers, targets, strict=True))
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def inspect_samples(answers, targets, *, epochs=1, scorer="choice", choices=("no", "yes"), order=None):
    samples = [
        {
            "id": f"c{number}", "epoch": epoch, "input": f"Claim {number}", "choices": list(choices or ()),
            "target": target, "messages": [],
            "output": {"model": "m", "choices": [{"message": {"role": "assistant", "content": f"ANSWER: {answer}"}}]},
            "scores": {scorer: {"value": "C" if answer == target else "I", "answer": answer}},
        }
        for epoch in range(1, epochs + 1)
        for number, (answer, target) in enumerate(zip(answers, targets, strict=True))
    ]  # fmt: skip
    return samples if order is None else [samples[i] for i in order]


def inspect_eval(path, samples, status="success", header="header.json"):
    with zipfile.ZipFile(path, "w", compression=zipfile.ZIP_DEFLATED) as file:
        file.writestr("_journal/start.json", json.dumps({"version": 2, "eval": {}, "plan": {}}))
        for sample in samples:
            file.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        if header:
            file.writestr(header, json.dumps({"version": 2, "status": status, "eval": {}, "results": {}}))
    return path


def inspect_json(path, samples, status="success"):
    path.write_text(json.dumps({"version": 2, "status": status, "eval": {}, "samples": samples}), encoding="utf-8")
    return path


def test_choices_are_the_likeliest_option(tmp_path):
    run = read_log(
        harness_choice(tmp_path / "samples_nli.jsonl", [(-1.0, -2.0), (-3.0, -0.5), (-1.0, -1.0)], [0, 0, 1])
    )
    assert run.ids == ("0", "1", "2")
    assert run.answers == ("0", "1", "0")  # a tie goes to the first option
    assert run.references == ("0", "0", "1")
    assert run.correct.tolist() == [True, False, False]
    assert (run.scored_by, run.choice, dict(run.dropped)) == ("acc", True, {})


def test_the_gold_option_may_be_its_text_and_the_file_packed(tmp_path):
    path = harness_choice(tmp_path / "samples_nli.jsonl.gz", [(-1.0, -2.0)], [1], target=lambda i: OPTIONS[i].strip())
    run = read_log(path)
    assert (run.references, run.choice) == (("1",), True)
    unknown = read_log(harness_choice(tmp_path / "samples_x.jsonl", [(-1.0, -2.0)], [1], target=lambda i: "perhaps"))
    assert (unknown.references, unknown.choice) == (("perhaps",), False)


def test_generated_answers_need_a_filter_and_keep_the_harness_score(tmp_path):
    path = harness_text(tmp_path / "samples_qa.jsonl", ["Paris", "rome"], ["paris", "Oslo"])
    with pytest.raises(DataError, match=r"filtered in several ways \(strict, flexible\); name one: filter="):
        read_log(path)
    run = read_log(path, filter="strict")
    assert run.answers == ("Paris", "rome")
    assert run.correct.tolist() == [True, False]
    assert (run.scored_by, run.choice) == ("exact_match", False)
    with pytest.raises(DataError, match="no filter 'loose'; there are strict, flexible"):
        read_log(path, filter="loose")


def test_a_named_metric_is_used_and_must_say_right_or_wrong(tmp_path):
    path = harness_choice(
        tmp_path / "samples_nli.jsonl", [(-1.0, -2.0)], [0], metrics=["f1", "acc_norm", "acc"], f1=0.4
    )
    assert read_log(path).scored_by == "acc_norm"  # the first that is 0 or 1 for every item
    assert read_log(path, metric="acc").correct.tolist() == [True]
    with pytest.raises(DataError, match=r"score 'f1' of item '0' is 0\.4, neither right \(1, C\) nor wrong"):
        read_log(path, metric="f1")
    with pytest.raises(DataError, match="no score 'em'; metric may be f1, acc_norm, acc"):
        read_log(path, metric="em")


@pytest.mark.parametrize("write", [inspect_eval, inspect_json])
def test_inspect_in_both_forms(tmp_path, write):
    path = write(tmp_path / f"log.{'eval' if write is inspect_eval else 'json'}", inspect_samples("ABBA", "ABAA"))
    run = read_log(path)
    assert sorted(run.ids) == ["c0", "c1", "c2", "c3"]
    assert dict(zip(run.ids, run.answers, strict=True)) == {"c0": "A", "c1": "B", "c2": "B", "c3": "A"}
    assert run.correct.tolist() == [True, True, False, True]
    assert (run.scored_by, run.choice) == ("choice", True)


def test_an_older_eval_file_keeps_its_status_in_results(tmp_path):
    path = inspect_eval(tmp_path / "log.eval", inspect_samples("A", "A"), header="results.json")
    assert len(read_log(path)) == 1


def test_samples_that_were_not_finished_are_listed(tmp_path):
    samples = inspect_samples("ABAB", "ABAA")
    samples[1] |= {"error": {"message": "boom"}, "scores": None}
    samples[2]["scores"]["choice"]["value"] = float("nan")
    run = read_log(inspect_json(tmp_path / "log.json", samples))
    assert run.ids == ("c0", "c3")
    assert dict(run.dropped) == {"c1": "ended in an error", "c2": "was left unscored"}


def test_answers_without_an_extracted_one_are_the_completion(tmp_path):
    samples = inspect_samples("AB", "AB", scorer="match", choices=None)
    for sample in samples:
        sample["scores"]["match"].pop("answer")
    samples[1]["output"]["choices"][0]["message"]["content"] = [{"type": "text", "text": "ANSWER: "}, {"text": "B"}]
    samples[1]["target"] = ["B", "b"]
    run = read_log(inspect_json(tmp_path / "log.json", samples))
    assert run.answers == ("ANSWER: A", "ANSWER: B")
    assert run.references == ("A", "B | b")
    assert not run.choice


def test_several_scorers_epochs_and_values(tmp_path):
    samples = inspect_samples("AB", "AA", epochs=2)
    for sample in samples:
        sample["scores"]["quality"] = {"value": {"correct": 1, "style": 0.5}}
        sample["scores"]["grade"] = {"value": "P"}
    path = inspect_json(tmp_path / "log.json", samples)
    with pytest.raises(DataError, match="run 2 times; name one: epoch=1"):
        read_log(path)
    with pytest.raises(DataError, match="no epoch 3; there are 1, 2"):
        read_log(path, epoch=3)
    assert read_log(path, epoch=2).scored_by == "choice"
    assert read_log(path, epoch=2, scorer="quality.correct").correct.tolist() == [True, True]
    with pytest.raises(DataError, match="score 'grade' of item 'c0' is 'P', neither right"):
        read_log(path, epoch=1, scorer="grade")
    with pytest.raises(
        DataError, match=r"no score 'f1'; scorer may be choice, quality\.correct, quality\.style, grade"
    ):
        read_log(path, epoch=1, scorer="f1")


def runs(tmp_path, answers, gold, *, orders=None):
    """One file per run; the first has the true evidence."""
    return [
        read_log(
            harness_choice(
                tmp_path / f"samples_{k}.jsonl", [(-1.0, -2.0) if a == 0 else (-2.0, -1.0) for a in row], gold,
                order=None if orders is None else orders[k],
            )
        )
        for k, row in enumerate(answers)
    ]  # fmt: skip


def test_runs_are_matched_by_id_whatever_their_order(tmp_path):
    rng = np.random.default_rng(0)
    gold = rng.integers(0, 2, 30).tolist()
    answers = rng.integers(0, 2, (3, 30)).tolist()
    orders = [rng.permutation(30) for _ in range(3)]
    matched = match_runs(*_split(runs(tmp_path, answers, gold, orders=orders)))
    assert matched.ids == tuple(str(i) for i in orders[0])
    assert matched.predictions == [str(answers[0][i]) for i in orders[0]]
    assert matched.references == [str(gold[i]) for i in orders[0]]
    assert matched.shuffled_predictions == [[str(answers[k][i]) for i in orders[0]] for k in (1, 2)]
    assert matched.left_out == 0


def _split(all_runs):
    return all_runs[0], all_runs[1:]


def test_delta_evi_of_logs_by_hand(tmp_path):
    # 40 items, all right with evidence; shuffled runs right on 10 and on 20: ΔEvi = 1 - (0.25 + 0.5) / 2 = 0.625
    gold = [0, 1] * 20
    wrong = [1 - label for label in gold]
    shuffled = [gold[:10] + wrong[10:], gold[:20] + wrong[20:]]
    result = delta_evi_from_logs(*_split(runs(tmp_path, [gold, *shuffled], gold)))
    assert result.mean == pytest.approx(0.625)
    assert result.accuracy_shuffled == (0.25, 0.5)
    assert (result.verdict, result.p_method) == ("sensitive", "sign-flip")
    # 30 of 40 differences are above 0 (10 of them 0.5, 20 of them 1), none below: only the observed signs do as well
    assert result.p_value == pytest.approx(2.0**-30, rel=1e-6)
    grouped = delta_evi_from_logs(*_split(runs(tmp_path, [gold, *shuffled], gold)), groups=[i // 4 for i in range(40)])
    assert grouped.n_groups == 10
    assert grouped.mean == result.mean


def test_one_shuffled_run_is_enough(tmp_path):
    gold = [0, 1] * 100
    half = gold[:100] + [1 - label for label in gold[100:]]
    assert delta_evi_from_logs(*_split(runs(tmp_path, [gold, half], gold))).verdict == "sensitive"
    assert delta_evi_from_logs(*_split(runs(tmp_path, [gold, gold], gold))).verdict == "equivalent"


def test_the_arguments_fit_the_evaluate_module(tmp_path):
    from evidep.audit.from_predictions import delta_evi_from_predictions

    gold = [0, 1] * 50
    shuffled = [[1 - label for label in gold]] * 20
    matched = match_runs(*_split(runs(tmp_path, [gold, *shuffled], gold)))
    assert delta_evi_from_predictions(**matched.arguments()).mean == 1.0


def test_free_answers_go_by_the_harness_score(tmp_path):
    full = read_log(harness_text(tmp_path / "samples_a.jsonl", ["Paris", "oslo"], ["paris", "Oslo"]), filter="strict")
    other = read_log(harness_text(tmp_path / "samples_b.jsonl", ["Paris", "rome"], ["paris", "Oslo"]), filter="strict")
    matched = match_runs(full, [other])
    assert (matched.predictions, matched.references) == (["right", "right"], ["right", "right"])
    assert matched.shuffled_predictions == [["right", "wrong"]]
    as_text = match_runs(full, [other], by="answers")
    assert as_text.predictions == ["Paris", "oslo"]  # compared as they are: "Paris" is not "paris"


def test_items_of_only_some_runs(tmp_path):
    samples = inspect_samples("ABAB", "ABAB")
    full = read_log(inspect_json(tmp_path / "full.json", samples))
    samples[2] |= {"error": {"message": "boom"}, "scores": None}
    shuffled = read_log(inspect_json(tmp_path / "shuffled.json", samples))
    with pytest.raises(DataError, match=r"item 'c2' is not in .*shuffled.json \(it ended in an error\)"):
        match_runs(full, [shuffled])
    matched = match_runs(full, [shuffled], missing="drop")
    assert (matched.ids, matched.left_out) == (("c0", "c1", "c3"), 1)


def test_items_that_are_not_the_same(tmp_path):
    full, moved = (
        read_log(harness_choice(tmp_path / f"samples_{k}.jsonl", [(-1.0, -2.0)] * 2, gold))
        for k, gold in enumerate(([0, 1], [1, 0]))
    )
    with pytest.raises(DataError, match=r"item '0': the gold answer is '0' in .* and '1' in .*; only the evidence may"):
        match_runs(full, [moved])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda run: match_runs(run, []), DataError, "at least one run with shuffled evidence"),
        (lambda run: match_runs(run, [run], by="words"), SettingError, "by: expected"),
        (lambda run: match_runs(run, [run], missing="ignore"), SettingError, "missing: expected"),
        (lambda run: delta_evi_from_logs(run, [run], groups=[1]), DataError, "groups: expected 2 names"),
        (lambda run: delta_evi_from_logs(run, [run], groups=[1, None]), DataError, r"groups\[1\]: is missing"),
    ],
)
def test_bad_arguments(tmp_path, call, error, words):
    run = read_log(harness_choice(tmp_path / "samples_0.jsonl", [(-1.0, -2.0)] * 2, [0, 1]))
    with pytest.raises(error, match=words):
        call(run)


def test_scores_that_are_needed_and_not_there(tmp_path):
    path = harness_text(tmp_path / "samples_a.jsonl", ["a", "b"], ["a", "b"], filters=("strict",))
    rows = [json.loads(line) | {"exact_match": 0.5} for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run = read_log(path)
    assert run.correct is None
    with pytest.raises(DataError, match="no score says right or wrong for every item"):
        match_runs(run, [run])
    assert match_runs(run, [run], by="answers").predictions == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("samples_a.jsonl", b"", "no finished items"),
        ("samples_a.jsonl", b'{"doc_id": 0}\n', "line 1: no 'filtered_resps'"),
        ("samples_a.jsonl", b'{"results": {}}\n', "line 1: no 'doc_id'"),
        ("samples_a.jsonl", b'{"doc_id": 0,\n', "line 1: no JSON"),
        ("samples_a.jsonl", b"\xff\xfe\n", "line 1: no JSON"),
        ("samples_a.jsonl.gz", b"no gzip", "cannot be read"),
        ("log.json", b'{"results": {}}', "no Inspect log with samples"),
        ("log.json", b"[1]", "expected a JSON object"),
        ("log.json", b'{"eval": {}, "samples": [], "status": "success"}', "no finished items"),
        ("log.json", b'{"eval": {}, "samples": [], "status": "started"}', "not finished"),
        ("log.eval", b"no zip", "no Inspect log"),
        ("none.eval", None, "no such log"),
    ],
)
def test_files_that_are_no_logs(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words) as caught:
        read_log(tmp_path / name)
    assert "\n" not in str(caught.value)
    assert name in str(caught.value)


def test_an_eval_file_without_a_header_was_not_finished(tmp_path):
    with pytest.raises(DataError, match="not finished"):
        read_log(inspect_eval(tmp_path / "log.eval", inspect_samples("A", "A"), header=None))


def test_an_item_twice_is_refused(tmp_path):
    path = harness_choice(tmp_path / "samples_a.jsonl", [(-1.0, -2.0)] * 2, [0, 1])
    path.write_text(path.read_text() * 2)
    with pytest.raises(DataError, match="item '0' is there 2 times"):
        read_log(path)


def test_a_folder_with_one_log(tmp_path):
    (tmp_path / "model").mkdir()
    harness_choice(tmp_path / "model" / "samples_a_2026-01-01.jsonl", [(-1.0, -2.0)], [0])
    assert len(read_log(tmp_path)) == 1
    harness_choice(tmp_path / "model" / "samples_b_2026-01-01.jsonl", [(-1.0, -2.0)], [0])
    with pytest.raises(DataError, match=r"expected one samples_\*\.jsonl in this folder, found samples_a"):
        read_log(tmp_path)


def test_options_of_the_other_kind(tmp_path):
    path = harness_choice(tmp_path / "samples_a.jsonl", [(-1.0, -2.0)], [0])
    with pytest.raises(SettingError, match="scorer: no option for a log of the lm-evaluation-harness"):
        read_log(path, scorer="choice")
    with pytest.raises(SettingError, match="filter: no option for a log of Inspect"):
        read_log(inspect_json(tmp_path / "log.json", inspect_samples("A", "A")), filter="strict")
