from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
import yaml
from markdown_it import MarkdownIt
from report import report_packets as packets

from evidep.audit.packet import AuditPacket
from evidep.errors import CacheError, SettingError
from evidep.report import facts, words
from evidep.report.badge import COLOURS, MESSAGES, badge_endpoint, badge_svg
from evidep.report.card import audit_card
from evidep.report.card_files import write_card

GOLDEN = Path(__file__).parent / "golden_card.md"


def parse(card: str) -> list[tuple[str, str]]:
    """(type, content) of all tokens, blocks and inline."""
    tokens = []
    for block in MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).parse(card):
        tokens.append((block.type, block.content if block.type in ("fence", "html_block") else ""))
        tokens.extend((child.type, child.content) for child in block.children or [])
    return tokens


def test_card_is_the_reviewed_one() -> None:
    """To renew after an intended change: write the new card to tests/report/golden_card.md and read the difference."""
    assert audit_card(packets.three_readers(), figures=True, front_matter=True) == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", packets.EVERY)
def test_verdict_and_numbers_agree_with_the_terminal(name: str) -> None:
    packet = packets.EVERY[name]()
    card, text = audit_card(packet), " ".join(str(packet).split())
    assert words.region_meaning(packet) in card
    assert " ".join(words.region_meaning(packet).split()) in text
    for row in facts.delta_rows(packet, seed=0):
        value = facts.effect(row)
        if value is not None:
            assert f"{value:.3f}" in card
            assert f"{value:.3f}" in text


@pytest.mark.parametrize("name", packets.EVERY)
def test_tables_are_whole(name: str) -> None:
    card = audit_card(packets.EVERY[name](), figures=True)
    for table in re.findall(r"(?:^\|.*\n)+", card, flags=re.MULTILINE):
        pipes = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(pipes) == 1
    assert "nan" not in re.findall(r"\w+", card)
    assert "None" not in re.findall(r"\w+", card)


def test_undefined_is_a_dash_with_its_reason() -> None:
    card = audit_card(packets.undefined_mpds())
    assert re.search(r"MPDS .*: – \(\d\)\.", card)
    assert "no metadata columns were declared" in card
    assert "|  | metadata alone" not in card


def test_figures_are_named_where_they_are() -> None:
    packet = packets.three_readers()
    assert "![" not in audit_card(packet)
    assert "](figures/diagnostic_map.png)" in audit_card(packet, figures=True)
    assert "](audit/a%20b/diagnostic_map.png)" in audit_card(packet, figures="audit/a b/")


def test_front_matter_is_yaml_and_optional() -> None:
    assert audit_card(packets.one_reader()).startswith("# Evidence audit of `snli_cad`")
    card = audit_card(packets.hostile(), front_matter=True)
    _, head, body = card.split("---\n", 2)
    assert set(yaml.safe_load(head)) == {"pretty_name", "tags"}
    assert yaml.safe_load(head)["tags"] == ["evidep", "evidence-audit", "evidep-evidence-sensitive"]
    assert body.startswith("\n# Evidence audit of ")


def test_hostile_names_break_nothing() -> None:
    tame, wild = (parse(audit_card(make(), figures=True)) for make in (packets.three_readers, packets.hostile))
    kinds = {kind for kind, _ in wild}
    assert not kinds & {
        "html_block",
        "html_inline",
        "link_open",
        "em_open",
        "s_open",
        "code_block",
        "hr",
    }
    assert [kind for kind, _ in wild].count("image") == 1
    for kind in ("heading_open", "table_open", "fence", "td_open", "strong_open"):
        # The one difference is a second metadata column, which only lengthens a line.
        assert [k for k, _ in wild].count(kind) == [k for k, _ in tame].count(kind), kind
    assert all("\n" not in content for kind, content in wild if kind in ("text", "code_inline"))
    card = audit_card(packets.hostile(), figures=True, front_matter=True)
    assert not re.search("[\u202a-\u202e\u2066\u2067\x00-\x09\x0b-\x1f]", card)


def test_limits_name_contaminated_readers_and_unmovable_items() -> None:
    packet = packets.three_readers()
    assert "`minilm_lr`: pre-trained on SNLI" in audit_card(packet)
    assert "may be memory" not in audit_card(packets.one_reader())
    document = packet.to_dict()
    document["delta_evi"][1]["unmovable_share"] = 0.125
    assert "12.5 % of the items cannot get other evidence in the within-label shuffle" in audit_card(
        AuditPacket(document)
    )
    assert "licence of the data was not checked" in audit_card(packet)


def test_files_of_a_card(tmp_path: Path) -> None:
    packet = packets.one_reader()
    written = write_card(packet, tmp_path / "audit", badge=True)
    assert written[0] == tmp_path / "audit" / "README.md"
    assert all(path.is_file() for path in written)
    names = {path.relative_to(tmp_path / "audit").as_posix() for path in written}
    assert {"README.md", "packet.json", "badge.svg", "badge.json", "figures/diagnostic_map.png"} <= names
    for address in re.findall(r"!\[.*?\]\((.*?)\)", written[0].read_text(encoding="utf-8")):
        assert (tmp_path / "audit" / address).is_file()
    assert AuditPacket.load(tmp_path / "audit").to_dict() == packet.to_dict()


def test_a_foreign_readme_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# My dataset\n")
    with pytest.raises(SettingError, match=r"README\.md exists and is no audit card"):
        write_card(packets.one_reader(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["README.md"]
    assert write_card(packets.one_reader(), tmp_path / "AUDIT.md")[0] == tmp_path / "AUDIT.md"


def test_the_folder_of_another_audit_is_not_touched(tmp_path: Path) -> None:
    packets.one_reader().save(tmp_path)
    (tmp_path / "items.parquet").write_bytes(b"x")
    with pytest.raises(SettingError, match="holds another audit"):
        write_card(packets.three_readers(), tmp_path)
    for _ in range(2):
        assert write_card(packets.one_reader(), tmp_path)[0].is_file()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(CacheError, match="cannot write"):
        write_card(packets.one_reader(), tmp_path / "file")


def luminance(colour: str) -> float:
    """WCAG 2 relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_badge_texts_and_colours_cover_every_region_legibly() -> None:
    assert set(MESSAGES) == set(COLOURS) == set(words.REGIONS)
    for colour in (*COLOURS.values(), "#333333"):
        assert 1.05 / (luminance(colour) + 0.05) >= 6.0


def test_badge_endpoint_is_what_shields_reads() -> None:
    # ΔEvi of minilm_lr, the strongest sensitive reader: 0.18
    endpoint = badge_endpoint(packets.undefined_mpds())
    assert endpoint == {"schemaVersion": 1, "label": "evidence", "message": "needed, ΔEvi 0.18", "color": "00598c"}
    assert badge_endpoint(packets.inconclusive())["message"] == "undecided: too few items"
    json.dumps(endpoint)


@pytest.mark.parametrize("name", packets.EVERY)
def test_badge_svg_is_well_formed_and_says_the_same(name: str) -> None:
    packet = packets.EVERY[name]()
    root = ET.fromstring(badge_svg(packet))
    said = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert said == ["evidence", badge_endpoint(packet)["message"]]
    widths = [int(rect.get("width", "")) for rect in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert widths[0] == widths[1] + widths[2] == int(root.get("width", ""))
