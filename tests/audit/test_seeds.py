"""What several seeds of a reader say, and what they cannot."""

import evidep
from evidep.data.synthetic import planted_world


def test_several_seeds_show_their_spread():
    world = planted_world("matching", n_train=200, n_eval=150, seed=0)
    data = {"train": world.train, "roles": world.roles, "ablations": (), "shuffles": ["global"]}
    # 120 of 200 items are fitted on, another 120 for each seed.
    packet = evidep.audit(world.evaluation, readers="tfidf_lr:max_train_rows=120", reader_seeds=3, **data)
    assert [row["seed"] for row in packet["readers"]] == [0, 1, 2]
    spread = packet["calibration"]["seed_spread"][0]
    assert spread["seeds"] == 3
    assert spread["sd"] > 0.0
    one = evidep.audit(world.evaluation, **data)
    assert one["calibration"]["seed_spread"][0]["sd"] is None
    assert one["calibration"]["seed_spread"][0]["reason"]
    # On all items the fit has nothing that a seed could change.
    same = evidep.audit(world.evaluation, reader_seeds=3, **data)["calibration"]["seed_spread"][0]
    assert (same["seeds"], same["sd"]) == (3, None)
    assert "all 3 fits give the same answers" in same["reason"]


def test_a_reader_that_fits_nothing_runs_once():
    def answer(queries, evidence):
        return ["yes" if "yes" in (text or "") else "no" for text in evidence]

    reader = evidep.from_callable(answer, name="says", fingerprint="1", label_names=("no", "yes"))
    rows = [
        {"query": f"q{i}", "evidence": f"{said} {i}", "label": said}
        for i in range(40)
        for said in [("no", "yes")[i % 2]]
    ]
    packet = evidep.audit(rows, train=rows, readers=[reader], reader_seeds=3, shuffles=["global"], ablations=())
    assert [row["seed"] for row in packet["readers"]] == [0]
    row = packet["calibration"]["seed_spread"][0]
    assert (row["seeds"], row["sd"]) == (1, None)
    assert "nothing is fitted" in row["reason"]
