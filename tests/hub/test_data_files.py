"""The audit's files must not become data. What `datasets` itself finds is the judge."""

from __future__ import annotations

import json

import pytest
from hub.fixtures import CARD

from evidep.hub.data_files import front_matter, would_be_loaded

OURS = ["audit/packet.json", "audit/badge.json", "audit/badge.svg", "audit/figures/diagnostic_map.png"]
HIDDEN = [f".{path}" for path in OURS]
NO_CONFIGS = b"---\nlicense: mit\n---\n# Data\n"


@pytest.mark.parametrize(
    ("readme", "present", "loaded"),
    [
        (CARD, ["data.csv"], False),  # the card names its files
        (NO_CONFIGS, ["data.csv"], True),  # found by looking: two json files beat one csv
        (NO_CONFIGS, ["data.json"], True),
        (None, ["data.csv"], True),
        (NO_CONFIGS, ["train.csv", "test.csv"], False),  # names of splits come first
        (NO_CONFIGS, ["data/train-00000-of-00001.parquet"], False),
        (NO_CONFIGS, ["train/a.json", "train/b.json"], False),
        (b"---\nconfigs:\n- config_name: default\n---\n", ["data.csv"], True),  # a configuration without files
        (b"---\nconfigs:\n- config_name: a\n  data_dir: part\n---\n", ["part/data.csv"], False),
        (b"---\nconfigs: [\n---\n", ["data.csv"], True),  # broken YAML names nothing
    ],
)
def test_when_the_audit_would_be_loaded(readme, present, loaded):
    assert would_be_loaded(readme, ["README.md", *present], OURS) is loaded
    assert would_be_loaded(readme, ["README.md", *present], HIDDEN) is False
    assert would_be_loaded(readme, ["README.md", *present, *OURS], OURS) is loaded  # the same at the second run


@pytest.mark.parametrize(
    ("readme", "folder"), [(CARD.decode(), "audit"), (NO_CONFIGS.decode(), ".audit"), (NO_CONFIGS.decode(), "audit")]
)
def test_datasets_agrees(tmp_path, readme, folder):
    """A real folder with a real csv and the audit's files, loaded by `datasets`."""
    import datasets

    data = tmp_path / "claims"
    (data / folder / "figures").mkdir(parents=True)
    (data / "README.md").write_text(readme)
    (data / "data.csv").write_text("claim,label\nx,1\ny,0\n")
    for path in OURS:
        file = data / path.replace("audit", folder, 1)
        file.write_text(json.dumps({"a": 1}))
    safe = not would_be_loaded(
        readme.encode(), ["README.md", "data.csv"], [p.replace("audit", folder, 1) for p in OURS]
    )
    try:
        loaded = datasets.load_dataset(str(data), cache_dir=str(tmp_path / "cache"))["train"]
        right = loaded.column_names == ["claim", "label"] and loaded.num_rows == 2
    except Exception:
        right = False
    assert right is safe


def test_front_matter_in_every_form():
    assert front_matter(b"\xef\xbb\xbf---\r\nlicense: mit\r\n---\r\ntext") == {"license": "mit"}
    assert front_matter(b"---\nlicense: mit\n---") == {"license": "mit"}
    assert front_matter(b"# no head\n---\nlicense: mit\n---\n") == {}
    assert front_matter(b"---\n- a list\n---\n") == {}
    assert front_matter(None) == {}
