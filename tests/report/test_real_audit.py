"""Reports of a packet that the audit itself wrote, from a planted world."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path

import pytest

import evidep
from evidep.audit.packet import AuditPacket
from evidep.cli import audit as audit_command
from evidep.data.synthetic import planted_world
from evidep.report import facts
from evidep.report.card import audit_card
from evidep.report.figures import save_figures
from evidep.report.reproduce import reproduction


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    world = planted_world("evidence_only_shortcut", n_train=150, n_eval=120, seed=1)
    path = tmp_path_factory.mktemp("world") / "world.jsonl"
    splits = {"train": world.train, "test": world.evaluation}
    rows = [row | {"split": split} for split, part in splits.items() for row in part]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def packet(data: Path) -> AuditPacket:
    roles = {"metadata": ("source",)}
    return evidep.audit(str(data), roles=roles, seed=3, margin=0.05, shuffles=("within-label", "global"))


def test_text_card_and_figures_of_a_real_packet(packet: AuditPacket, tmp_path: Path) -> None:
    row = facts.headline(packet)
    assert row is not None
    assert row["shuffle"] == "global"
    shown = f"{facts.effect(row):.3f}"
    assert shown in str(packet)
    assert shown in audit_card(packet)
    for reason in packet["diagnosis"]["reasons"]:
        assert " ".join(reason.split()[:4]) in " ".join(str(packet).split())
    assert all(path.stat().st_size > 10_000 for path in save_figures(packet, tmp_path, ("png",)))


def test_the_printed_command_gives_the_same_numbers(
    packet: AuditPacket, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = reproduction(packet).command
    assert command is not None
    _, name, operand, *options = shlex.split(command)
    assert (name, operand) == ("audit", "world")
    parser = argparse.ArgumentParser()
    audit_command.add_parser(parser.add_subparsers())
    arguments = parser.parse_args(["audit", str(data), *options, "--json"])
    assert arguments.run(arguments) == 0
    again = json.loads(capsys.readouterr().out)
    for key in ("signature", "settings", "delta_evi", "readers", "metadata", "ablations", "diagnosis"):
        assert again[key] == packet.to_dict()[key], key
