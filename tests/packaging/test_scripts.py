"""Pages that scripts write: their tables hold the numbers of the packets."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import evidep
from evidep.data.synthetic import planted_world

SCRIPTS = Path(__file__).parents[2] / "scripts"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and SCRIPTS in Path(sys.modules[name].__file__).parents:
            del sys.modules[name]


def test_reproduction_page(scripts):
    from reproduction_page import page

    made = planted_world("nq", n_train=300, n_eval=200, seed=0)
    packet = evidep.audit(
        made.evaluation, train=made.train, roles=made.roles, ablations=("query-only",), diagnostics=True
    )
    found = json.loads(json.dumps({"packet": packet.document, "diagnostics": packet.document["diagnostics"]}))
    text = page(
        [("nq", "as expected", "direct_coupling", found), ("other", "else", "latent_coupling", found)], "make it"
    )
    rows = [line for line in text.splitlines() if line.startswith(("| nq |", "| other |"))]
    assert rows[0].startswith("| nq | as expected | direct coupling | direct coupling |")
    assert rows[0].endswith("| yes |")
    assert rows[1].endswith("| **no** |")
    numbers = next(line for line in text.splitlines() if line.startswith("| nq (200, 300) | tfidf_lr |"))
    accuracy, mpds = packet["readers"][0]["accuracy_full"], packet["metadata"]["mpds"]
    assert f"| {accuracy:.3f} |" in numbers
    assert f"| {mpds:.3f} |" in numbers
    shift = packet.document["diagnostics"]["shift"][0]
    assert f"| nq | {shift['column']} = {shift['value']} | {shift['accuracy_in_distribution']:.3f} |" in text


def test_decomposition_says_nothing_of_failing_readers(scripts):
    from decompose import shows

    def row(name, reader, shuffle, effect, works=True, less=None):
        return {
            "set": name, "reader": reader, "shuffle": shuffle, "exact": effect, "mean": effect, "works": works,
            "verdict": "sensitive", "less": less, "metadata": "length",
        }  # fmt: skip

    lines = shows(
        [
            row("A", "good", "global", 0.4), row("A", "good", "within-label", 0.3, less=(0.1, 0.05, 0.15)),
            row("A", "good", "within-metadata", 0.4, less=(0.0, -0.05, 0.05)),
            row("B", "bad", "global", 0.4, works=False), row("B", "bad", "within-label", 0.3, False, (0.1, 0.0, 0.2)),
        ]
    )  # fmt: skip
    assert len(lines) == 2
    assert "within-label 75% (less), within length 100% (not distinguishable" in lines[0]
    assert "nothing can be concluded (bad fails)" in lines[1]


def test_results_page(scripts):
    from results import Audit, table

    made = planted_world("matching", n_train=600, n_eval=300, seed=0)
    packet = evidep.audit(
        made.evaluation, train=made.train, roles=made.roles, readers=("tfidf_lr", "majority"), shuffles=("global",),
        ablations=("query-only",),
    )  # fmt: skip
    document = json.loads(packet.to_json())
    shown = {row["reader"]: row for row in document["delta_evi"]}
    # "matching" needs both texts: the additive reader cannot beat the commonest label, nor can the majority.
    assert not any(reader["works"] for reader in document["readers"])
    lines = table(Audit("m", "light", "Matching", "DATA/m.jsonl"), {"packet": document, "run": RUN})
    rows = [line for line in lines if line.startswith(("| tfidf_lr", "| majority"))]
    for row, reader in zip(rows, ("tfidf_lr", "majority"), strict=True):
        assert row.startswith(f"| {reader} | global | {shown[reader]['accuracy_full']:.3f} |")
        assert "| reader failed |" in row
    document["readers"][0]["works"] = True
    again = table(Audit("m", "light", "Matching", "DATA/m.jsonl"), {"packet": document, "run": RUN})
    (row,) = [line for line in again if line.startswith("| tfidf_lr")]
    assert f"| {shown['tfidf_lr']['verdict'].replace('_', ' ')}" in row
    assert "7 s (2 cells reused from an earlier run)" in "\n".join(lines)


RUN = {"seconds": 7.2, "cells_reused": 2}
