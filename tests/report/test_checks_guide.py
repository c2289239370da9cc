"""The code of docs/checks.md is run as it stands, and prints what the guide shows."""

from __future__ import annotations

import re
from pathlib import Path

import evidep.data.auto_metadata as features

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "checks.md").read_text(encoding="utf-8")


def test_the_guide_shows_what_its_code_prints(monkeypatch, capsys):
    monkeypatch.setattr(features, "_FEATURES", dict(features._FEATURES))
    blocks = re.findall(r"<!-- checks-code -->\n```python\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    printed = ""
    for block in blocks:
        exec(compile(block, "docs/checks.md", "exec"), {})
        printed += capsys.readouterr().out
    shown = re.findall(r"<!-- checks-output -->\n```text\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)
    assert len(shown) == 5
    for text in shown:
        assert text in printed


def test_the_guide_names_every_kind_of_feature():
    for side in ("query", "evidence", "pair", "table"):
        assert f'`"{side}"`' in GUIDE
