"""Tiny encoders that several files of this folder read: built in milliseconds, once per process."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiny_models import bert_model, sentence_folder


@pytest.fixture(scope="session")
def model(tmp_path_factory) -> Path:
    """A tiny BERT encoder to fine-tune."""
    return bert_model(tmp_path_factory.mktemp("bert"))


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> str:
    """A tiny encoder of sentences."""
    return str(sentence_folder(tmp_path_factory.mktemp("encoder"), "Pooling", "Normalize"))
