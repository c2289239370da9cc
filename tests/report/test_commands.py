from __future__ import annotations

import argparse
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from report import report_packets as packets

from evidep.audit.packet import AuditPacket
from evidep.cli import audit as audit_command
from evidep.cli import card as card_command
from evidep.cli import show as show_command
from evidep.errors import PacketError, SettingError
from evidep.report.reproduce import reproduction


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser()
    commands = made.add_subparsers()
    for command in (audit_command, card_command, show_command):
        command.add_parser(commands)
    return made


def run(*words: str | Path) -> int:
    arguments = parser().parse_args([str(word) for word in words])
    return int(arguments.run(arguments))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return packets.one_reader().save(tmp_path / "audit")


def test_show_prints_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", folder) == 0
    out, err = capsys.readouterr()
    assert "Verdict: READER-LIMITED" in out
    assert "\x1b" not in out
    assert err == ""
    assert run("show", folder / "packet.json") == 0
    assert capsys.readouterr().out == out


def test_show_json_is_the_packet(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("show", folder, "--json") == 0
    assert capsys.readouterr().out == (folder / "packet.json").read_text(encoding="utf-8")


def test_show_writes_figures_and_names_them_on_stderr(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("show", folder, "--figures", tmp_path / "f", "--format", "svg, png") == 0
    named = [Path(line) for line in capsys.readouterr().err.splitlines()]
    assert sorted(named) == sorted((tmp_path / "f").iterdir())
    assert {path.suffix for path in named} == {".svg", ".png"}
    with pytest.raises(SettingError, match="choose from png, svg"):
        run("show", folder, "--figures", tmp_path / "g", "--format", "gif")


def test_show_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(PacketError, match="no audit packet at"):
        run("show", tmp_path)


def test_card_is_printed_or_written(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("card", folder) == 0
    out = capsys.readouterr().out
    assert out.startswith("# Evidence audit of")
    assert "![" not in out
    assert run("card", folder, "--out", tmp_path / "card", "--badge", "--front-matter") == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert str(tmp_path / "card" / "badge.svg") in err.splitlines()
    assert (tmp_path / "card" / "README.md").read_text(encoding="utf-8").startswith("---\npretty_name:")
    with pytest.raises(SettingError, match="--out"):
        run("card", folder, "--badge")


def test_help_and_text_load_nothing_heavy(folder: Path) -> None:
    program = (
        "import sys, argparse\n"
        "from evidep.cli import show, card\n"
        "p = argparse.ArgumentParser(); s = p.add_subparsers(); show.add_parser(s); card.add_parser(s)\n"
        f"a = p.parse_args(['show', {str(folder)!r}]); assert 'numpy' not in sys.modules; a.run(a)\n"
        "heavy = {'matplotlib', 'datasets', 'sklearn', 'torch', 'transformers', 'evaluate', 'pandas'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


def test_reproduction_says_every_setting_to_the_command_line() -> None:
    packet = packets.three_readers(margin=0.03, alpha=0.01, k=99, seed=7)
    document = packet.to_dict()
    document["settings"]["ablations"] = []
    for row in document["readers"] + document["delta_evi"]:
        row["seed"] += 7
    found = reproduction(AuditPacket(document))
    assert found.command is not None
    program, *words = shlex.split(found.command)
    assert program == "evidep"
    arguments = parser().parse_args(words)
    assert arguments.data == "snli_cad"
    assert (arguments.split, arguments.query, arguments.evidence) == ("validation", "hypothesis", "premise")
    assert arguments.metadata == ("source",)
    assert arguments.readers == "tfidf_lr,minilm_lr,minilm"
    assert arguments.shuffles == ("global", "within-label")
    assert arguments.ablations == ("none",)
    assert (arguments.k, arguments.seed, arguments.margin, arguments.alpha) == (99, 7, 0.03, 0.01)
    assert arguments.reader_seeds == 2


def test_reproduction_of_an_out_of_fold_audit_asks_for_no_train_split() -> None:
    document = packets.one_reader().to_dict()
    document["data"]["train_rows"] = None
    document["settings"] |= {"n_folds": 7, "mpds_high": 0.8}
    found = reproduction(AuditPacket(document))
    assert "--train-split none" in str(found.command)
    assert any("mpds_high was 0.8" in note for note in found.notes)
    assert any("7 folds" in note for note in found.notes)


def test_reproduction_with_hostile_names_reaches_the_program_unharmed() -> None:
    document = packets.three_readers().to_dict()
    roles = document["data"]["roles"]
    roles |= {"query": packets.HOSTILE, "evidence": "-e", "label": "$(id) `id` 'x'"}
    document["data"]["name"] = "--help"
    command = reproduction(AuditPacket(document)).command
    assert command is not None
    assert "\n" not in command
    script = f"evidep() {{ printf '%s\\0' \"$@\"; }}; {command}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"})
    arguments = parser().parse_args(done.stdout.decode().split("\x00")[:-1])
    assert arguments.data == "./--help"
    assert (arguments.query, arguments.evidence, arguments.label) == (packets.HOSTILE, "-e", "$(id) `id` 'x'")


@pytest.mark.parametrize("name", ["a,b", " a", ""])
def test_what_no_command_line_can_name_is_said(name: str) -> None:
    document = packets.one_reader().to_dict()
    document["data"]["roles"]["metadata"] = [name]
    found = reproduction(AuditPacket(document))
    assert found.command is None
    assert "use evidep.audit in Python" in found.notes[0]
    document = packets.one_reader().to_dict()
    document["settings"]["readers"] = ["my reader, the 2nd"]
    assert reproduction(AuditPacket(document)).command is None
    document["settings"]["readers"] = ["tfidf_lr:C=1,min_df=3", "minilm_lr"]
    assert "--readers tfidf_lr:C=1,min_df=3,minilm_lr " in str(reproduction(AuditPacket(document)).command)
