from __future__ import annotations

import pytest
from report import report_packets as packets
from report import report_rows as rows

from evidep.audit.packet import AuditPacket, check_document
from evidep.report import facts, words
from evidep.report.change import would_change


def test_effect_is_the_exact_value_where_there_is_one() -> None:
    assert facts.effect({"exact": 0.3, "mean": 0.31}) == 0.3
    assert facts.effect({"exact": None, "mean": 0.31}) == 0.31
    assert facts.effect({"exact": None, "mean": None}) is None
    assert facts.effect({"exact": 0.0, "mean": 0.01}) == 0.0


def test_readers_go_up_the_ladder_whatever_their_order() -> None:
    packet = rows.packet(
        [rows.reader_row("c", strength="strong"), rows.reader_row("a"), rows.reader_row("b")],
        [rows.delta_row("c")],
        region="evidence_sensitive",
    )
    assert [row["reader"] for row in facts.readers(packet)] == ["a", "b", "c"]
    seeds = [rows.reader_row(name, seed=seed) for seed in (0, 1) for name in ("b", "a")]
    packet = rows.packet(seeds, [rows.delta_row("a")], region="evidence_sensitive")
    every = [(row["reader"], row["seed"]) for row in facts.readers(packet, every_seed=True)]
    assert every == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]


def test_headline_is_the_strongest_sensitive_reader_and_not_the_largest_effect() -> None:
    packet = rows.packet(
        [
            rows.reader_row("light"),
            rows.reader_row("middle", strength="middle"),
            rows.reader_row("strong", strength="strong"),
            rows.reader_row("failed", strength="strong", works=False),
        ],
        [
            rows.delta_row("light", drop=0.6),
            rows.delta_row("middle", drop=0.3),
            rows.delta_row("middle", "near-miss", drop=0.5),
            rows.delta_row("strong", drop=0.01, verdict="inconclusive"),
            rows.delta_row("failed", drop=0.7),
        ],
        region="evidence_sensitive",
    )
    row = facts.headline(packet)
    assert row is not None
    assert (row["reader"], row["shuffle"]) == ("middle", "global")


def test_headline_of_other_regions_is_the_strongest_working_reader() -> None:
    row = facts.headline(packets.coupled("latent_coupling"))
    assert row is not None
    assert row["reader"] == "minilm"


def test_points_hold_every_seed_and_mark_the_first() -> None:
    points = facts.points(packets.three_readers())
    assert [(point.reader, point.seed, point.main) for point in points] == [
        ("tfidf_lr", 0, True), ("minilm_lr", 0, True), ("minilm", 0, True), ("minilm", 1, False)
    ]  # fmt: skip
    assert points[0].mpds == 0.4 / 0.585
    assert points[1].effect == 0.317


def test_points_without_metadata_have_no_mpds() -> None:
    assert [point.mpds for point in facts.points(packets.undefined_mpds())] == [None, None]


def test_packets_of_other_tools_may_lack_what_the_schema_leaves_out() -> None:
    document = packets.one_reader().to_dict()
    for row in document["readers"]:
        del row["strength"], row["interaction"], row["reason"], row["notes"]
    for row in document["delta_evi"]:
        for key in ("ci_equivalence", "p_value_holm", "accuracy_full", "accuracy_shuffled", "n_items", "reason"):
            del row[key]
    for row in document["ablations"]:
        del row["seed"], row["reason"]
    del document["metadata"]["by_reader"], document["information"], document["calibration"], document["majority"]
    document["data"].pop("report")
    document["settings"] = {
        key: document["settings"][key]
        for key in ("readers", "shuffles", "k", "seed", "margin", "alpha", "mpds_high")
    }  # fmt: skip
    check_document(document)
    packet = AuditPacket(document)
    assert facts.points(packet)[0].mpds == document["metadata"]["mpds"]
    assert "tfidf_lr" in str(packet)
    from evidep.report.card import audit_card
    from evidep.report.figures import FIGURES

    assert "0.585" in audit_card(packet)
    for draw in FIGURES.values():
        draw(packet)


def test_evidence_line_holds_the_numbers_of_the_headline() -> None:
    # 0.710 - 0.317 = 0.393
    packet = rows.packet(
        [rows.reader_row("minilm_lr")],
        [rows.delta_row("minilm_lr", full=0.710, drop=0.317, half_width=0.016)],
        region="evidence_sensitive",
    )
    line = words.evidence_line(packet)
    assert line is not None
    for text in ("0.710", "0.393", "0.317", "[0.301, 0.333]", "95 %", "global", "sensitive"):
        assert text in line


def test_every_region_has_words_and_something_that_would_change_it() -> None:
    seen = set()
    for make in packets.EVERY.values():
        packet = make()
        seen.add(packet.region)
        assert words.region_meaning(packet)
        assert would_change(packet)
    assert seen == set(words.REGIONS)


def test_direct_coupling_names_the_margin_that_would_not_hold() -> None:
    # minilm: 90 % interval -0.002 ± 0.84 * 0.008 = [-0.00872, 0.00472]: 0.00872 rounded up to 0.009.
    # MPDS against minilm: 0.62 / 0.65 = 0.9538, ± 0.04 holds 0.9 not: 0.914 to 0.994.
    text = " ".join(would_change(packets.coupled()))
    assert "A margin below 0.009, instead of 0.02" in text
    assert "MPDS is 0.954 [0.914, 0.994]; below 0.9 it would read latent coupling." in text
    assert "not settled" not in text


def test_an_mpds_interval_across_the_border_is_said() -> None:
    document = packets.coupled().to_dict()
    document["metadata"]["ci"] = [0.88, 0.98]
    assert "not settled" in " ".join(would_change(AuditPacket(document)))


def test_inconclusive_says_how_many_items() -> None:
    # MDE: 2.8 * 0.05 / 1.96 = 0.0714
    assert would_change(packets.inconclusive()) == [
        "tfidf_lr: about 6,100 items instead of 1,000 would settle it; this audit finds effects from 0.071 up."
    ]


def test_a_small_effect_names_the_margin_that_would_hide_it() -> None:
    # 0.03 + 0.84 * 0.02 = 0.0468, rounded up 0.047
    assert any("margin above 0.047" in text for text in would_change(packets.many_shuffles()))


def test_question_dominant_gives_the_gap() -> None:
    # 0.650 - 0.645 = 0.005
    text = " ".join(would_change(packets.coupled("question_dominant")))
    assert "reaches 0.645, 0.005 below the best full accuracy (minilm)" in text
    assert "MPDS" not in text


def test_candidate_columns_are_offered_where_no_metadata_was_declared() -> None:
    assert any("--metadata genre" in text for text in would_change(packets.undefined_mpds()))


def test_one_supporting_reader_is_named_as_such() -> None:
    packet = rows.packet(
        [rows.reader_row("a"), rows.reader_row("b", strength="strong")],
        [rows.delta_row("a", drop=0.001, half_width=0.004, verdict="equivalent"), rows.delta_row("b")],
        region="evidence_sensitive",
    )
    assert "It rests on b alone: no effect is shown by a." in would_change(packet)


@pytest.mark.parametrize(
    ("run", "strengths", "next_reader"),
    [
        (["tfidf_lr"], ["light"], "minilm_lr"),
        (["tfidf_lr", "minilm_lr"], ["light", "middle"], "minilm"),
        (["minilm:max_length=128"], ["strong"], "bert"),  # a setting does not make it another reader
        (["tfidf_lr", "minilm"], ["light", "strong"], "bert"),  # nor is a skipped, weaker rung the answer
        (["my_readers:Large"], ["strong"], "bert"),
        (["tfidf_lr", "bert"], ["light", "strong"], "hf:MODEL"),
    ],
)
def test_the_reader_to_try_next_is_above_all_that_were_run(
    run: list[str], strengths: list[str], next_reader: str
) -> None:
    document = packets.one_reader().to_dict()
    document["settings"]["readers"] = run
    document["readers"] = [rows.reader_row(f"r{i}", strength=strength) for i, strength in enumerate(strengths)]
    text = " ".join(would_change(AuditPacket(document)))
    assert f"for example --readers {','.join([*run, next_reader])}. If" in text


def test_failed_readers_are_not_said_to_ignore_the_evidence() -> None:
    document = packets.one_reader().to_dict()
    assert "do not react to the evidence" in words.region_meaning(AuditPacket(document))
    assert "says nothing" not in str(words.evidence_line(AuditPacket(document)))
    document["readers"][0]["works"] = False
    failed = AuditPacket(document)
    assert words.region_meaning(failed).startswith("No reader that was run beats a constant answer")
    assert str(words.evidence_line(failed)).endswith("That reader does not work, so this number says nothing.")
