"""The README's Python runs and prints what the README says it prints."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = re.compile(
    r"<!-- readme-code -->\n```python\n(.*?)```\n.*?<!-- readme-output -->\n```text\n(.*?)```", re.DOTALL
)


def examples():
    return EXAMPLE.findall((ROOT / "README.md").read_text(encoding="utf-8"))


def test_there_are_examples():
    assert len(examples()) == (ROOT / "README.md").read_text(encoding="utf-8").count("readme-code")
    assert len(examples()) >= 2


@pytest.mark.parametrize("number", range(len(examples())))
def test_example_prints_what_the_readme_says(number):
    code, printed = examples()[number]
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == printed


def test_the_two_commands_are_targets():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("demo", "test", "check", "bench", "docs"):
        assert re.search(rf"^{command}:", makefile, re.MULTILINE)
    assert "make test" in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_commands_of_the_readme_are_understood():
    """Every `evidep ...` line of the README parses."""
    import shlex

    from evidep.cli import build_parser

    lines = re.findall(r"^evidep .*$", (ROOT / "README.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert lines
    for line in lines:
        build_parser().parse_args(shlex.split(line.split("#")[0])[1:])
