"""The audit end to end on data whose answer is known: planted worlds, hand-made readers, brute force."""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass

import numpy as np
import pytest
from support import make_rows

import evidep
from evidep.audit.packet import AuditPacket, check_document, packet_schema
from evidep.data.synthetic import planted_world
from evidep.errors import PacketError, ReaderError, SettingError
from evidep.types import EMPTY, NULL, ReaderInfo


@dataclass
class Work:
    """How often a reader was fitted, and how many pairs it scored."""

    fits: int = 0
    pairs: int = 0


class KeywordReader:
    """Says yes where query and evidence share their last word: it needs both, and scores one pair at a time."""

    def __init__(self, strength="strong"):
        self.info = ReaderInfo("keyword", strength, interaction=True)
        self.fingerprint = f"keyword-{strength}"
        self.work = Work()

    def __deepcopy__(self, memo):
        clone = copy.copy(self)  # the audit works on copies of a reader; the counts are shared
        return clone

    def fit(self, train, *, seed):
        self.work.fits += 1
        return self

    def encode(self, table):
        last = [
            [text.split()[-1] if text else "" for text in column.to_list()]
            for column in (table.queries, table.evidence)
        ]
        return [np.array(words) for words in last]

    def scores(self, encoded, rows, donors):
        self.work.pairs += len(rows)
        assert (donors != EMPTY).sum() in (0, len(donors))
        queries, evidence = encoded
        same = (queries[np.maximum(rows, 0)] == evidence[np.maximum(donors, 0)]) & (rows >= 0) & (donors >= 0)
        return np.column_stack([~same, same]) * 4.0


def keyword_rows(n, seed=0):
    """The label says whether both texts end in the same of four words."""
    rng = np.random.default_rng(seed)
    words = np.array(["oak", "elm", "ash", "fir"])
    rows = []
    for number in range(n):
        yes = rng.random() < 0.5
        asked = rng.integers(4)
        told = asked if yes else (asked + 1 + rng.integers(3)) % 4
        rows.append(
            {
                "query": f"Is tree {number} an {words[asked]}",
                "evidence": f"The list of page {number} says {words[told]}",
                "label": "yes" if yes else "no",
            }
        )
    return rows


def test_a_reader_of_ones_own_gives_the_planted_effect():
    reader = KeywordReader()
    packet = evidep.audit(keyword_rows(400), train=keyword_rows(50, seed=1), readers=(reader,), ablations=())
    row = packet["delta_evi"][0]
    assert packet["readers"][0]["accuracy_full"] == 1.0
    # Foreign evidence names the asked word with probability 1/4: right on 1/4 of the yes items and 3/4 of the no items.
    assert row["mean"] == pytest.approx(0.5, abs=0.03)
    assert row["verdict"] == "sensitive"
    assert row["exact"] is None
    assert "one pair at a time" in row["reason"]
    assert packet.region == "evidence_sensitive"


def test_a_reader_is_fitted_once_and_not_at_all_when_its_cells_are_there(tmp_path):
    first, second = KeywordReader(), KeywordReader()
    arguments = {"train": keyword_rows(50, seed=1), "ablations": (), "out": tmp_path}
    one = evidep.audit(keyword_rows(200), readers=(first,), **arguments)
    two = evidep.audit(keyword_rows(200), readers=(second,), **arguments)
    assert first.work.fits == 1
    assert second.work.fits == second.work.pairs == 0
    assert one.to_json() == two.to_json()


def test_the_fingerprint_of_a_reader_is_in_the_key(tmp_path):
    arguments = {"train": keyword_rows(50, seed=1), "ablations": (), "out": tmp_path}
    evidep.audit(keyword_rows(100), readers=(KeywordReader(),), **arguments)
    other = KeywordReader("light")
    evidep.audit(keyword_rows(100), readers=(other,), **arguments)
    assert other.work.fits == 1


def test_exact_is_the_brute_force_mean_over_all_allowed_donors():
    """tfidf_lr's exact ΔEvi against its own scores of every single pair, same-text donors left out."""
    from evidep.data.loading import load_audit_data
    from evidep.readers.registry import make_reader

    rows = make_rows(90)
    for number in range(0, 90, 3):
        rows[number]["evidence"] = "The ledger is lost."
    train = make_rows(150, seed=5)
    packet = evidep.audit(
        rows, train=train, roles={"query": "claim"}, ablations=(), shuffles=("global", "within-label")
    )
    data = load_audit_data(rows, train=train, roles={"query": "claim"})
    table = data.evaluation
    reader = make_reader("tfidf_lr").fit(data.train, seed=0)
    encoded = reader.encode(table)
    n = len(table)
    h = np.array(
        [
            reader.scores(encoded, np.full(n, i), np.arange(n)).argmax(axis=1) == table.labels[i]
            for i in range(n)
        ]
    )  # fmt: skip
    for row, same_label in zip(packet["delta_evi"], (False, True), strict=True):
        drops = []
        for i in range(n):
            allowed = table.evidence_codes != table.evidence_codes[i]
            if same_label:
                allowed &= table.labels == table.labels[i]
            drops.append(h[i, i] - h[i, allowed].mean())
        assert row["exact"] == pytest.approx(np.mean(drops), abs=1e-12)
        assert row["unmovable_share"] == 0.0


def test_mean_over_many_shuffles_approaches_the_exact_value():
    world = planted_world("triviaqa", n_train=300, n_eval=300, seed=1)
    packet = evidep.audit(
        world.evaluation, train=world.train, roles=world.roles, k=200, shuffles=("global",), ablations=()
    )
    row = packet["delta_evi"][0]
    # Monte-Carlo error of the mean of 200 permutations: sd_permutation / sqrt(200); five of those.
    assert row["mean"] == pytest.approx(row["exact"], abs=5 * row["sd_permutation"] / 200**0.5 + 0.003)
    assert row["sd_population"] == pytest.approx(row["sd_permutation"], rel=0.25)


def test_out_of_fold_answers_come_from_readers_that_did_not_see_the_item():
    """Labels are noise: a reader that had seen the items would know them, one that had not is at chance."""
    rows = make_rows(200, matching=False)
    packet = evidep.audit(rows, roles={"query": "claim"}, ablations=())
    assert packet["data"]["train_rows"] is None
    assert packet["settings"]["n_folds"] == 5
    assert abs(packet["readers"][0]["accuracy_full"] - 0.5) < 0.13
    assert not packet["readers"][0]["works"]


def test_near_miss_and_within_metadata_arms():
    rows = make_rows(200)
    packet = evidep.audit(
        rows, roles={"query": "claim", "metadata": ["source"]}, shuffles=("near-miss", "within-metadata"), ablations=()
    )
    near, within = packet["delta_evi"]
    assert (near["shuffle"], near["p_method"], near["sd_permutation"]) == ("near-miss", "sign-flip", None)
    assert (within["shuffle"], within["p_method"]) == ("within-metadata", "permutation")
    assert near["exact"] is not None
    assert near["unchanged_rate"] == within["unchanged_rate"] == 0.0


def test_a_sample_of_the_items_is_declared_and_depends_on_the_seed_alone():
    rows, train = make_rows(200), make_rows(100, seed=3)
    arguments = {"train": train, "roles": {"query": "claim"}, "ablations": (), "max_items": 50}
    one, two = (evidep.audit(rows, **arguments) for _ in range(2))
    assert one.to_json() == two.to_json()
    assert one["data"]["rows"] == 50
    assert any("50 of 200 evaluation items audited" in note for note in one["data"]["notes"])
    other = evidep.audit(rows, seed=1, **arguments)
    assert other["data"]["fingerprint"] != one["data"]["fingerprint"]
    with pytest.raises(SettingError, match="max_items must be a whole number of at least 2"):
        evidep.audit(rows, **(arguments | {"max_items": 1}))
    fewer = evidep.audit(rows, **(arguments | {"max_train_items": 40}))
    assert fewer["data"]["train_rows"] == 40
    assert any("40 of 100 train items fitted on" in note for note in fewer["data"]["notes"])


def test_two_readers_of_one_name_are_refused_and_can_be_renamed():
    rows = make_rows(80)
    with pytest.raises(SettingError, match="two are called 'tfidf_lr'"):
        evidep.audit(rows, roles={"query": "claim"}, readers=("tfidf_lr", "tfidf_lr:C=0.1"), ablations=())
    packet = evidep.audit(
        rows, roles={"query": "claim"}, readers=("tfidf_lr", "tfidf_lr:C=0.1,name=strict"), ablations=()
    )
    assert [row["reader"] for row in packet["readers"]] == ["tfidf_lr", "strict"]


def test_baselines_stand_on_the_ladder_and_do_not_decide():
    world = planted_world("triviaqa", n_train=300, n_eval=200, seed=0)
    packet = evidep.audit(
        world.evaluation,
        train=world.train,
        roles=world.roles,
        readers=("majority", "metadata", "tfidf_lr"),
        ablations=(),
    )
    rows = {row["reader"]: row for row in packet["delta_evi"] if row["shuffle"] == "global"}
    assert rows["majority"]["mean"] == rows["metadata"]["mean"] == 0.0
    assert packet["metadata"]["reader"] == "tfidf_lr"
    assert packet.region == "evidence_sensitive"


def test_retrained_and_masked_ablations_and_v_information():
    world = planted_world("triviaqa", n_train=400, n_eval=300, seed=0)
    packet = evidep.audit(
        world.evaluation,
        train=world.train,
        roles=world.roles,
        ablations=("query-only", "evidence-only", "shuffled-training"),
    )
    found = {(row["arm"], row["how"]): row["accuracy"] for row in packet["ablations"]}
    assert found["evidence-only", "retrained"] == pytest.approx(1.0, abs=0.02)  # the label stands in the evidence
    assert found["query-only", "retrained"] < 0.45  # the query says nothing: about the majority rate of 0.31
    assert found["shuffled-training", "retrained"] < 0.5  # nothing to learn from foreign evidence
    assert {("query-only", "masked"), ("evidence-only", "masked"), ("empty", "masked")} <= set(found)
    information = packet["information"][0]["v_information_bits"]
    assert information > 1.0
    pvi = packet.items.column("pvi_bits").to_numpy()
    assert pvi.mean() == pytest.approx(information)


def test_items_agree_with_the_document():
    packet = evidep.audit(make_rows(120), roles={"query": "claim", "metadata": ["source"]})
    items = packet.items.to_pandas()
    right = items["label"].astype(str) == items["prediction"].astype(str)
    assert right.mean() == pytest.approx(packet["readers"][0]["accuracy_full"])
    row = packet["delta_evi"][0]
    assert items["right_share_global"].mean() == pytest.approx(np.mean(row["accuracy_shuffled"]))
    metadata_right = items["label"].astype(str) == items["metadata_prediction"].astype(str)
    assert metadata_right.mean() == pytest.approx(packet["metadata"]["accuracy"])


@pytest.mark.parametrize("world", ["nq", "hotpotqa", "triviaqa"])
def test_the_end_points_of_the_paper(world):
    planted = planted_world(world, n_train=4000, n_eval=600, seed=0)
    packet = evidep.audit(planted.evaluation, train=planted.train, roles=planted.roles)
    row = packet["delta_evi"][0]
    assert packet.region == planted.truth["region_light"]
    assert row["exact"] == pytest.approx(planted.truth["delta_evi"], abs=3 * max(row["standard_error"], 0.005))
    low, high = packet["metadata"]["ci"]
    assert low - 0.02 <= planted.truth["mpds"] <= high + 0.02


def test_one_item_groups_and_user_groups_change_the_interval_only():
    rows = [{**row, "case": f"case {number // 10}"} for number, row in enumerate(make_rows(300))]
    train = [{**row, "case": f"train {number}"} for number, row in enumerate(make_rows(200, seed=9))]
    plain = evidep.audit(rows, train=train, roles={"query": "claim"}, ablations=())
    grouped = evidep.audit(rows, train=train, roles={"query": "claim", "group": "case"}, ablations=())
    assert grouped["data"]["groups"] <= 30
    assert grouped["readers"][0]["accuracy_full"] == plain["readers"][0]["accuracy_full"]
    assert grouped["delta_evi"][0]["exact"] == plain["delta_evi"][0]["exact"]
    assert grouped["delta_evi"][0]["ci"] != plain["delta_evi"][0]["ci"]


def test_progress_counts_up_to_the_total_and_may_stop_the_audit(tmp_path):
    seen = []
    evidep.audit(make_rows(60), roles={"query": "claim"}, progress=lambda *step: seen.append(step), out=tmp_path)
    done = [step[1] for step in seen]
    assert done == sorted(done)
    assert seen[-1][1] == seen[-1][2]

    class Stop(Exception):
        pass

    def stop(stage, done, total):
        if done > 5:
            raise Stop

    with pytest.raises(Stop):
        evidep.audit(make_rows(60), roles={"query": "claim"}, progress=stop, out=tmp_path / "stopped")
    assert list((tmp_path / "stopped").rglob("*.npz"))


class Broken(KeywordReader):
    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def scores(self, encoded, rows, donors):
        return self.answer(len(rows))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda n: np.full((n, 2), np.nan), "is nan"),
        (lambda n: np.zeros((n, 3)), r"scores must have shape \(60, 2\), got \(60, 3\)"),
    ],
)
def test_a_reader_that_breaks_the_protocol_is_named(answer, words):
    with pytest.raises(ReaderError, match=words):
        evidep.audit(keyword_rows(60), train=keyword_rows(30, seed=1), readers=(Broken(answer),), ablations=())


def test_a_collapsed_reader_has_failed_and_says_nothing():
    def one_class(n):
        return np.tile([1.0, 0.0], (n, 1))

    packet = evidep.audit(keyword_rows(200), train=keyword_rows(30, seed=1), readers=(Broken(one_class),), ablations=())
    assert not packet["readers"][0]["works"]
    assert packet.region == "reader_limited"


def test_a_packet_survives_saving_and_loading(tmp_path):
    packet = evidep.audit(make_rows(60), roles={"query": "claim"}, out=tmp_path)
    loaded = AuditPacket.load(tmp_path)
    assert loaded.to_dict() == packet.to_dict()
    assert loaded.items.equals(packet.items)
    assert AuditPacket.load(tmp_path / "packet.json").to_dict() == packet.to_dict()


def test_the_published_schema_is_a_schema_and_real_packets_obey_it():
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(packet_schema())
    check_document(evidep.audit(make_rows(60), roles={"query": "claim"}).to_dict())


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda d: d.pop("diagnosis"), "diagnosis"),
        (lambda d: d.update(schema_version="2.0"), "schema version 2.0"),
        (lambda d: d["delta_evi"][0].update(verdict="maybe"), "delta_evi/0/verdict"),
        (lambda d: d["readers"][0].update(accuracy_full=1.5), "readers/0/accuracy_full"),
        (lambda d: d.pop("schema_version"), "no schema_version"),
    ],
)
def test_a_broken_packet_is_one_line(tmp_path, change, words):
    packet = evidep.audit(make_rows(60), roles={"query": "claim"}, ablations=())
    document = packet.to_dict()
    change(document)
    (tmp_path / "packet.json").write_text(json.dumps(document))
    with pytest.raises(PacketError, match=words) as caught:
        AuditPacket.load(tmp_path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("content", ["", "[1, 2", "[]", '{"a": 1}', "[" * 5000])
def test_a_file_that_is_no_packet(tmp_path, content):
    (tmp_path / "packet.json").write_text(content)
    with pytest.raises(PacketError):
        AuditPacket.load(tmp_path)


def test_undefined_numbers_are_null_beside_a_reason():
    """Every null among the numbers of a row stands beside a reason."""
    rows = make_rows(80)
    for row in rows:
        row["evidence"] = "The same sentence for all."
    packet = evidep.audit(rows, roles={"query": "claim"})
    for block in ("delta_evi", "readers", "ablations", "information"):
        for row in packet[block]:
            empty = [key for key in ("mean", "exact", "ci", "p_value", "standard_error") if row.get(key, 0) is None]
            assert not empty or row["reason"], (block, row)
    assert packet["metadata"]["mpds"] is None
    assert packet["metadata"]["reason"]


def test_within_metadata_without_metadata_is_refused_before_work():
    with pytest.raises(SettingError, match="--metadata"):
        evidep.audit(make_rows(40), roles={"query": "claim"}, shuffles=("within-metadata",))


def test_null_rows_and_donors_reach_the_reader_as_declared():
    seen = set()

    class Watching(KeywordReader):
        def scores(self, encoded, rows, donors):
            seen.update([(int(rows.min()), int(donors.min()))])
            return super().scores(encoded, rows, donors)

    evidep.audit(keyword_rows(60), train=keyword_rows(30, seed=1), readers=(Watching(),), ablations=())
    assert {(0, 0), (0, NULL), (NULL, 0), (0, EMPTY)} <= seen
