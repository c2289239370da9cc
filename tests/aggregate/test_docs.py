"""The guide's example is run, and what it prints must be what the guide shows."""

from __future__ import annotations

import argparse
import json
import re
import shlex
from pathlib import Path

import pytest

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "aggregate.md"


@pytest.fixture
def example(tmp_path, monkeypatch):
    text = GUIDE.read_text(encoding="utf-8")
    (tmp_path / "scores.json").write_text(re.search(r"```json\n(.*?)```", text, re.S)[1], encoding="utf-8")
    packet = {"diagnosis": {"region": "question_dominant"}, "data": {"name": "my-nli"}}
    (tmp_path / "packet.json").write_text(json.dumps(packet), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return text


def test_the_command_prints_what_the_guide_shows(example, capsys):
    from evidep.cli.aggregate import add_parser

    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    command = shlex.split(re.search(r"```sh\nevidep (.*?)\n```", example)[1])
    arguments = parser.parse_args(command)
    assert arguments.run(arguments) == 0
    printed = "\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines())
    blocks = re.findall(r"```text\n(.*?)```", example, re.S)
    assert len(blocks) == 3
    for block in blocks:
        assert block.rstrip() in printed


def test_the_python_example_runs(example, capsys):
    code = re.search(r"```python\n(.*?)```\n\nprints `(.*?)`\.", example, re.S)
    exec(code[1], {})
    assert capsys.readouterr().out.strip() == code[2]
