"""A running stand-in, and the client library pointed at it."""

from __future__ import annotations

import pytest
from hub.standin import StandIn

WRITER, READER, OWNER = "hf_writerwriterwriterwriter", "hf_readerreaderreaderreader", "hf_ownerownerownerowner"

CARD = b"""---
license: mit
configs:
- config_name: default
  data_files: data.csv
dataset_info:
  features: [{name: claim, dtype: string}, {name: label, dtype: int64}]   # a comment that a YAML round trip would lose
---
# Ledger claims

Text of the owners.
"""


_FILES: dict[tuple[str, str], dict[str, bytes]] = {}


@pytest.fixture(autouse=True)
def figures_drawn_once(monkeypatch):
    """Drawing takes most of the time here: the files of a packet are made once for all tests."""
    from evidep.hub import attach

    real = attach.audit_files

    def cached(packet, folder="audit"):
        key = packet.to_json(), folder
        if key not in _FILES:
            _FILES[key] = real(packet, folder)
        return dict(_FILES[key])

    monkeypatch.setattr(attach, "audit_files", cached)


@pytest.fixture
def standin(monkeypatch):
    """The server with three users: `owner` of ledger/claims, `auditor` who may write, `guest` who may only read."""
    with StandIn() as server:
        server.store.add_user(OWNER, "ledger")
        server.store.add_user(WRITER, "auditor")
        server.store.add_user(READER, "guest", "read")
        server.store.add_repo("datasets", "ledger/claims", {"README.md": CARD, "data.csv": b"claim,label\nx,1\n"})
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_TOKEN", WRITER)
        yield server


@pytest.fixture
def claims(standin):
    """The dataset that most tests audit."""
    return standin.store.repos["datasets", "ledger/claims"]
