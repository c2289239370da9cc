"""The demonstration: planted truth beside what the audit says, with light readers and up the ladder."""

from __future__ import annotations

import pytest

from evidep.audit import demo
from evidep.audit.packet import AuditPacket

SMALL = {"strong_size": (250, 150), "shuffles": ("global",), "ablations": ()}


def test_light_scenes_are_printed_beside_their_truth(call_cli, monkeypatch, tmp_path):
    scenes = [scene for scene in demo.SCENES if scene.world in ("nq", "triviaqa")]
    monkeypatch.setattr(demo, "SCENES", scenes)
    code, out, err = call_cli("demo", "--light", "--out", tmp_path)
    assert code == 0
    assert "nq, planted" in out
    assert "audit says" in out
    assert "direct coupling" in out
    assert "evidence-sensitive" in out
    assert "strong readers of the calibration ladder did not run (--light)" in err
    assert AuditPacket.load(tmp_path / "nq").region == "direct_coupling"
    assert AuditPacket.load(tmp_path / "triviaqa").region == "evidence_sensitive"
    assert list((tmp_path / "nq" / "figures").iterdir())


def test_the_ladder_is_made_of_known_readers():
    assert [scene.world for scene in demo.SCENES if scene.strong] == ["reader_limited"]
    if not demo.strong_readers_available():
        pytest.skip("the transformers extra or the packaged weights are not installed")
    from evidep.readers.registry import make_reader

    assert [make_reader(spec).info.strength for spec in demo.LADDER] == ["light", "middle", "strong"]


def test_a_scene_goes_up_the_ladder_where_strong_readers_are_there(monkeypatch, tmp_path):
    if not demo.strong_readers_available():
        pytest.skip("the transformers extra or the packaged weights are not installed")
    # Without the fine-tuned rung, which takes minutes.
    rungs = demo.LADDER[:2]
    monkeypatch.setattr(demo, "SCENES", (demo.Scene("reader_limited", "only comparison tells", strong=rungs, **SMALL),))
    stages: list[str] = []
    told = demo.run_demo(out=tmp_path, strong=True, progress=lambda stage, done, total: stages.append(stage))
    outcome = next(told)
    assert next(told, None) is None
    assert [row["reader"] for row in outcome.packet["readers"]] == list(rungs)
    assert outcome.packet["data"]["rows"] == 150
    assert outcome.packet["data"]["train_rows"] == 250
    contrast = outcome.packet["calibration"]["contrasts"]
    assert all((row["reader"], row["against"]) == ("minilm_lr", "tfidf_lr") for row in contrast)
    assert outcome.truth["region_strong"] == "evidence_sensitive"
    assert all(stage.startswith("reader_limited: ") for stage in stages)
    assert AuditPacket.load(tmp_path / "reader_limited").to_json() == outcome.packet.to_json()
