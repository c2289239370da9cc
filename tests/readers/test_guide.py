"""The code of docs/readers.md is run as it stands."""

import re
from pathlib import Path

import evidep.readers.registry as registry
from evidep.readers.registry import reader_names

GUIDE = (Path(__file__).resolve().parents[2] / "docs" / "readers.md").read_text(encoding="utf-8")


def test_the_guides_code_runs_and_says_what_it_promises(monkeypatch, capsys):
    monkeypatch.setattr(registry, "_REGISTERED", {})
    blocks = re.findall(r"^```python\n(.*?)^```", GUIDE, flags=re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    names: dict = {}
    exec(compile(blocks[0], "docs/readers.md", "exec"), names)
    promised = re.search(r"print\(.*?\)  # (\w+)", blocks[0]).group(1)
    assert capsys.readouterr().out.split() == [promised]
    readers = {row["reader"]: row for row in names["packet"]["readers"]}
    # the rule is always right on its own evidence
    assert readers["colour rule"]["accuracy_full"] == 1.0
    exec(compile(blocks[1], "docs/readers.md", "exec"), names)
    assert "length" in reader_names()
    assert [row["reader"] for row in names["packet"]["readers"]] == ["length"]


def test_the_guide_names_every_reader():
    listed = set(re.findall(r"`(\w+)`", GUIDE[GUIDE.index("| name |") : GUIDE.index("A reader that only adds")]))
    assert listed >= set(reader_names())
