"""The section in a README: everything outside of it stays byte for byte."""

from __future__ import annotations

import pytest
from hub.fixtures import CARD
from hypothesis import given, settings
from hypothesis import strategies as st
from report.report_packets import HOSTILE, large_effect, three_readers

from evidep.audit.packet import AuditPacket
from evidep.hub.errors import HubError
from evidep.hub.section import BEGIN, END, audit_section, with_section

ONE, TWO = audit_section(large_effect(), "audit/figures"), audit_section(three_readers(), "audit/figures")

text_without_markers = st.binary(max_size=200).filter(lambda raw: BEGIN not in raw and END not in raw)


@given(text_without_markers)
@settings(max_examples=150, deadline=None)
def test_appended_behind_whatever_was_there(readme):
    once = with_section(readme, ONE)
    assert once.startswith(readme)
    assert with_section(once, ONE) == once
    assert once.replace(b"\r\n", b"\n").endswith(ONE.encode())


@given(text_without_markers, text_without_markers)
@settings(max_examples=150, deadline=None)
def test_an_update_touches_nothing_around_it(before, after):
    readme = before + BEGIN + b"\nold\n" + END + after
    updated = with_section(readme, TWO)
    begin, end = updated.index(BEGIN), updated.index(END) + len(END)
    assert updated[:begin] == before
    assert updated[end:] == after
    assert with_section(updated, TWO) == updated


def test_going_back_to_the_first_audit_gives_the_first_bytes():
    once = with_section(CARD, ONE)
    assert with_section(with_section(once, TWO), ONE) == once


def test_line_ends_and_byte_order_mark_are_kept():
    windows = b"\xef\xbb\xbf---\r\nlicense: mit\r\n---\r\n# Data\r\n"
    result = with_section(windows, ONE)
    assert result.startswith(windows)
    assert b"\n" not in result.replace(b"\r\n", b"")


def test_no_readme_gives_the_section_alone():
    assert with_section(None, ONE) == with_section(b"", ONE) == ONE.encode()


@pytest.mark.parametrize(
    "broken",
    [BEGIN, END, END + BEGIN, BEGIN + END + BEGIN + END, BEGIN + BEGIN + END, BEGIN + END + END],
)
def test_broken_markers_are_refused(broken):
    with pytest.raises(HubError, match="leave one pair") as caught:
        with_section(CARD + broken, ONE)
    assert "\n" not in str(caught.value)


def test_headings_go_one_level_down_and_code_stays():
    document = large_effect().to_dict()
    document["data"]["roles"]["query"] = "# no heading"
    section = audit_section(AuditPacket(document), "audit/figures")
    headings = [line for line in section.splitlines() if line.startswith("#")]
    assert headings[0].startswith("## Evidence audit of")
    assert {line.split(" ")[0] for line in headings[1:]} == {"###"}
    assert "### Limits" in headings


def test_text_from_the_data_cannot_end_the_section():
    document = large_effect().to_dict()
    attack = f"{HOSTILE} {END.decode()} {BEGIN.decode()}"
    document["data"]["name"] = attack
    document["data"]["notes"] = [attack]
    document["diagnosis"]["reasons"] = [attack]
    document["signature"] = attack
    section = audit_section(AuditPacket(document), "audit/figures")
    assert section.count(BEGIN.decode()) == section.count(END.decode()) == 1
    assert with_section(with_section(CARD, section), section) == with_section(CARD, section)
