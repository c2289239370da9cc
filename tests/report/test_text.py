from __future__ import annotations

import io
import re

import pytest
from report import report_packets as packets
from rich.console import Console

from evidep.audit.packet import AuditPacket
from evidep.report.text import render, summary


def rendered(packet: AuditPacket, width: int, *, terminal: bool = False) -> str:
    buffer = io.StringIO()
    render(
        packet,
        Console(
            file=buffer,
            width=width,
            force_terminal=terminal,
            color_system="auto" if not terminal else "standard",
            legacy_windows=False,
        ),
    )
    return buffer.getvalue()


@pytest.mark.parametrize("name", packets.EVERY)
def test_summary_fits_80_columns_and_is_plain(name: str) -> None:
    text = summary(packets.EVERY[name]())
    *lines, signature = text.splitlines()
    assert max(len(line) for line in lines) <= 80
    assert signature.startswith("evidep:")
    assert "\x1b" not in text
    assert "Verdict: " in "\n".join(lines[:3])


def test_print_shows_the_summary() -> None:
    packet = packets.three_readers()
    assert str(packet) == summary(packet)


def test_the_verdict_comes_first_then_its_numbers() -> None:
    text = summary(packets.three_readers())
    order = [
        "Verdict: EVIDENCE-SENSITIVE", "ΔEvi 0.36", "Why", "calibration reversal", "Reader and", "Partial input",
        "Data", "Map:", "What would change", "evidep:0.1.0|",
    ]  # fmt: skip
    places = [text.index(part) for part in order]
    assert places == sorted(places)


def test_every_number_of_a_row_is_there() -> None:
    # minilm_lr, global: 0.710 - 0.317 = 0.393; interval ± 0.016; MDE 2.8 * 0.016 / 1.96 = 0.0229
    line = next(line for line in summary(packets.three_readers()).splitlines() if "0.301, 0.333" in line)
    assert line.split() == [
        "global",
        "0.710",
        "0.393",
        "0.317",
        "0.301,",
        "0.333",
        "0.048",
        "sensitive",
        "0.1%",
        "0.023",
    ]


@pytest.mark.parametrize("width", [30, 79, 80, 120])
@pytest.mark.parametrize("name", ["three_readers", "many", "many_shuffles", "hostile"])
def test_no_width_cuts_a_number(name: str, width: int) -> None:
    packet = packets.EVERY[name]()
    lines = [line.split() for line in rendered(packet, width).splitlines()]
    for row in packet["delta_evi"]:
        effect = row["exact"] if row["exact"] is not None else row["mean"]
        low, high = row["ci"]
        verdict = "negligible" if row["negligible"] else row["verdict"]
        numbers = [row["accuracy_full"], row["accuracy_full"] - effect, effect, low]
        expected = [row["shuffle"], *(f"{value:.3f}" for value in numbers)]
        expected[-1] += ","
        expected += [f"{high:.3f}", f"{row['p_value']:.3f}"]
        rest = [verdict, "0.1%", f"{row['minimum_detectable_effect']:.3f}"]
        assert any(line[: len(expected)] == expected and line[-3:] == rest for line in lines), expected
    for score in packet["metadata"]["by_reader"]:
        low, high = score["ci"]
        whole = [f"{score['mpds']:.3f}", f"[{low:.3f},", f"{high:.3f}]"]
        assert any(line[-4:-1] == whole for line in lines), whole


def test_wide_terminals_get_the_adjusted_p() -> None:
    assert "p Holm" in rendered(packets.three_readers(), 120)
    assert "p Holm" not in rendered(packets.three_readers(), 80)


def test_colour_only_where_there_is_a_terminal() -> None:
    assert "\x1b[" in rendered(packets.three_readers(), 80, terminal=True)
    assert "\x1b" not in rendered(packets.three_readers(), 80)


def test_undefined_is_a_dash_with_its_reason_and_never_0() -> None:
    text = summary(packets.not_applicable())
    assert re.search(r"global +–\[1\] +– +– +– +– +n/a +100% +–\n", text)
    assert "[1] every item has the same evidence: swapping it changes nothing" in text
    assert "Map:" not in text


def test_undefined_mpds_has_its_reason() -> None:
    text = summary(packets.undefined_mpds())
    assert "no metadata columns were declared" in text
    assert "no MPDS" in text


def test_a_failed_reader_says_so() -> None:
    text = summary(packets.many_shuffles())
    assert re.search(r"minilm_lr\s+\(fails\)", text)
    assert "accuracy is not above the majority rate by more than noise" in text


def test_strangers_text_cannot_colour_or_format() -> None:
    packet = packets.three_readers()
    document = packet.to_dict()
    document["data"]["name"] = "\x1b[31m[red]x[/red] :smile:"
    document["diagnosis"]["reasons"] = ["[link=http://x]y[/link] \x1b]8;;http://x\x07"]
    text = rendered(AuditPacket(document), 100, terminal=True)
    assert "\x1b[31m[" not in text
    assert "\x1b]8" not in text
    assert "[red]x[/red] :smile:" in text
    assert "[link=http://x]y[/link]" in text


def test_data_facts_are_shown() -> None:
    text = summary(packets.three_readers())
    for fact in ("8,330 training items", "3 of evaluation (label -1)", "10 (10 blank, 0 missing)", "12 queries"):
        assert fact in text


def test_many_labels_are_counted_and_not_listed() -> None:
    document = packets.one_reader().to_dict()
    document["data"]["label_counts"] = {f"label{n}": 50 - n for n in range(40)}
    text = summary(AuditPacket(document))
    assert "and 28 more" in text
    assert "label11" in text
    assert "label12" not in text
