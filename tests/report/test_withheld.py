"""Where an interval is withheld, terminal and card say why, everywhere that a number stands without one."""

from __future__ import annotations

import copy
import dataclasses
import re
from collections.abc import Callable

import pytest
from report import report_packets as packets

import evidep
from evidep.audit.packet import AuditPacket
from evidep.data.synthetic import planted_world
from evidep.report.card import audit_card
from evidep.report.change import would_change

REASON = "too few groups: 4, at least 10 are needed"


@pytest.fixture(scope="module")
def four_groups() -> AuditPacket:
    world = planted_world("nq", n_train=200, n_eval=120, seed=0)
    evaluation = [row | {"page": f"p{number % 4}"} for number, row in enumerate(world.evaluation)]
    train = [row | {"page": f"t{number}"} for number, row in enumerate(world.train)]
    roles = dataclasses.replace(world.roles, group="page")
    return evidep.audit(evaluation, train=train, roles=roles, controls=True, diagnostics=True, auto_metadata=True)


def with_(packet: AuditPacket, change: Callable[[dict], None]) -> AuditPacket:
    document = copy.deepcopy(packet.to_dict())
    change(document)
    return AuditPacket(document)


def test_every_dash_of_an_audit_with_few_groups_has_its_reason(four_groups: AuditPacket) -> None:
    text, card = str(four_groups), audit_card(four_groups)
    flat = " ".join(text.split())
    # Tables point at footnotes ...
    notes = dict(re.findall(r"^\[(\d+)\] (.*)$", text, flags=re.MULTILINE))
    assert notes
    assert re.findall(r"[\d.]+ –(?!\[)(?! *$)", text.split("What surface features")[0], flags=re.MULTILINE) == []
    assert set(re.findall(r"–\[(\d+)\]", text)) <= set(notes)
    # ... and no interval, however short, is printed by either.
    for shown in (text, card):
        assert re.findall(r"\[-?\d\.\d{3}, -?\d\.\d{3}\]", shown) == []
    for sentence in (
        "gap 1.000; against",
        "they lose 1.000 (no interval: gap: other items",
        f"change (no interval: {REASON})",
    ):
        assert sentence in flat
        assert sentence in card
    assert f"ΔEvi 0.000, no 95 % interval ({REASON})" in flat
    assert f"ΔEvi 0.000, no 95 % interval ({REASON})" in card
    assert "too few items to tell (not above the majority rate by more than noise" in flat


def test_contrasts_and_information_point_at_the_reason() -> None:
    def withhold(document: dict) -> None:
        document["calibration"] = {
            "contrasts": [{"reader": "minilm", "against": "tfidf_lr", "difference": 0.3, "ci": None, "reason": REASON}]
        }
        document["information"] = [
            {"reader": "minilm", "seed": 0, "v_information_bits": 0.25, "ci": None, "reason": REASON}
        ]

    text = str(with_(packets.three_readers(), withhold))
    number = re.search(rf"^\[(\d+)\] {REASON}$", text, flags=re.MULTILINE)[1]
    flat = " ".join(text.split())
    assert f"same items and shuffles: 0.300 –[{number}]" in flat
    assert f"bits per item: 0.250 –[{number}]" in flat


def test_mpds_without_an_interval_says_why() -> None:
    packet = with_(packets.coupled(), lambda document: document["metadata"].update(ci=None, reason=REASON))
    assert any(f"without an interval ({REASON})" in sentence for sentence in would_change(packet))
    card = audit_card(packet)
    number = re.search(rf"^\((\d+)\) {REASON}", card, flags=re.MULTILINE)[1]
    assert re.search(rf"^MPDS .*: \d\.\d{{3}} – \({number}\); above chance", card, flags=re.MULTILINE)
