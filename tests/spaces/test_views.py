"""What the page says of a packet, without a server."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from evidence_space import downloads, plots, result_view
from evidence_space.auditing import Choices, audit_origin, check_readers
from evidence_space.markup import bullets, progress, table, text
from evidence_space.origins import guess_roles, preview, world_origin
from evidence_space.runs import OutOfTime, Run, Stopped, Visitors

from evidep.audit.packet import AuditPacket
from evidep.audit.results import AuditResults
from evidep.errors import SettingError
from evidep.report.landmarks import LANDMARKS


@pytest.fixture(scope="module")
def trivia() -> tuple[AuditPacket, AuditResults]:
    origin = world_origin("triviaqa", 200, 0)
    known = origin.roles
    assert known is not None
    choices = Choices(known.query, known.evidence, known.label, known.metadata)
    return audit_origin(origin, choices, lambda stage, done, total: None)


def test_the_verdict_names_region_and_the_packets_own_number(trivia: tuple[AuditPacket, AuditResults]) -> None:
    packet, _ = trivia
    shown = result_view.verdict(packet)
    row = next(r for r in packet["delta_evi"] if r["shuffle"] == "global")
    assert "<h2>Evidence-sensitive</h2>" in shown
    assert f"ΔEvi {row['exact']:.3f}" in shown


def test_the_map_has_every_landmark_and_the_reader_at_the_packets_place(
    trivia: tuple[AuditPacket, AuditResults],
) -> None:
    packet, _ = trivia
    document = json.loads(plots.diagnostic_map(packet).to_json())
    marks = [trace for trace in document["data"] if trace["name"] in {mark.name for mark in LANDMARKS}]
    assert [(t["x"][0], t["y"][0]) for t in marks] == [
        (0 if mark.mpds is None else mark.mpds, mark.delta_evi) for mark in LANDMARKS
    ]
    (reader,) = [trace for trace in document["data"] if trace["name"] == "tfidf_lr"]
    row = next(r for r in packet["delta_evi"] if r["shuffle"] == "global")
    assert reader["y"] == [row["exact"]]
    assert reader["x"] == [packet["metadata"]["mpds"]]
    assert reader["y"][0] + reader["error_y"]["array"][0] == pytest.approx(row["ci"][1])


def test_every_shuffle_is_a_dot(trivia: tuple[AuditPacket, AuditResults]) -> None:
    packet, _ = trivia
    document = json.loads(plots.shuffles(packet).to_json())
    dots = [trace["x"] for trace in document["data"] if len(trace["x"]) > 1]
    assert dots == [row["accuracy_shuffled"] for row in packet["delta_evi"]]


def test_examples_are_items_that_change_and_items_that_do_not(trivia: tuple[AuditPacket, AuditResults]) -> None:
    packet, results = trivia
    who, changed, kept = result_view.examples(results, packet)
    assert who == "tfidf_lr, global shuffle"
    assert changed
    assert all(item.right_share < 0.5 and item.answer == item.label for item in changed)
    assert all(item.right_share == 1 for item in kept)


def test_downloads_are_the_packet_and_its_figures(trivia: tuple[AuditPacket, AuditResults], tmp_path: Path) -> None:
    packet, _ = trivia
    files = [Path(file) for file in downloads.result_files(packet, tmp_path)]
    assert AuditPacket.load(files[0]).document == packet.to_dict()
    assert {file.name for file in files} >= {"card.md", "badge.svg", "diagnostic_map.png", "items.parquet", "audit.zip"}


def test_strangers_text_is_never_markup() -> None:
    nasty = "<script>alert(1)</script>${alert(1)}{{7*7}}\x1b[31m"
    for shown in (text(nasty), table("x", ("a",), [(nasty,)]), bullets("h", [nasty]), progress(nasty, 1, 2, 0.1)):
        assert "<script" not in shown
        assert "${" not in shown
        assert "{{" not in shown
        assert "\x1b" not in shown


def test_a_progress_bar_says_how_far_it_is() -> None:
    assert '<progress max="1" value="0.250"' in progress("fitting", 1, 4, 2.0)
    assert "fitting (25%, 2 s)" in progress("fitting", 1, 4, 2.0)


def test_a_preview_is_short_and_harmless() -> None:
    heads, rows = preview(world_origin("nq", 50, 0).first)
    assert heads[:4] == ["id", "query", "evidence", "label"]
    assert len(rows) == 8
    assert all(len(cell) <= 160 for row in rows for cell in row)


def test_roles_of_a_planted_world_are_known() -> None:
    guess = guess_roles(world_origin("nq", 50, 0))
    assert (guess.query, guess.evidence, guess.label) == ("query", "evidence", "label")
    assert guess.metadata


def test_readers_outside_the_list_are_refused() -> None:
    for name in ("os:system", "hf:/etc", "tfidf_lr:C=1", "minilm_xl"):
        with pytest.raises(SettingError, match="unknown reader"):
            check_readers([name])
    assert check_readers(["tfidf_lr", "majority"]) == ("majority", "tfidf_lr")


def test_a_stopped_run_ends_at_its_next_step() -> None:
    run: Run[int] = Run()
    run.stop.set()
    with pytest.raises(Stopped):
        run.progress("x", 0, 1)


def test_a_run_out_of_time_says_what_to_do() -> None:
    with pytest.raises(OutOfTime, match="use fewer rows"):
        Run(seconds=-1.0).progress("x", 0, 1)


def test_a_followed_run_hands_over_result_and_error() -> None:
    run: Run[int] = Run()
    assert all(len(stage) == 4 for stage in run.follow(lambda step: 7))
    assert run.result() == 7

    def fail(step: object) -> int:
        raise SettingError("no")

    failed: Run[int] = Run()
    list(failed.follow(fail))
    with pytest.raises(SettingError, match="no"):
        failed.result()


def test_a_visitor_has_one_run_and_stops_only_his_own() -> None:
    visitors = Visitors()
    mine, other = visitors.start("a"), visitors.start("b")
    with pytest.raises(SettingError, match="still running"):
        visitors.start("a")
    assert visitors.stop("a")
    assert mine.stop.is_set()
    assert not other.stop.is_set()
    visitors.finish("a")
    assert not visitors.stop("a")


def test_the_share_line_is_one_line(trivia: tuple[AuditPacket, AuditResults]) -> None:
    line = result_view.share_line(trivia[0])
    assert re.fullmatch(r"Evidence audit of planted triviaqa: evidence-sensitive\. With .* sensitive\.", line)
