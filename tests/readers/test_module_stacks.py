"""Stacks of sentence-transformers modules: computed by that package, as it would, and never from a pickle."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_models import random_texts, sentence_folder

from evidep.errors import ReaderError, SettingError
from evidep.readers.sentence_encoder import SentenceEncoder
from evidep.readers.sentence_modules import read_pooling
from evidep.readers.weights import resolve
from evidep.types import StringColumn

torch = pytest.importorskip("torch")
torch.set_num_threads(1)


def stack(folder: Path, seed: int = 0) -> Path:
    """A tiny encoder with a dense layer after the pooling, as the sentence-transformers package saves it."""
    package = pytest.importorskip("sentence_transformers")
    sentence_folder(folder, "Pooling", seed=seed)
    model = package.SentenceTransformer(str(folder), device="cpu")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model.append(package.models.Dense(32, 8))
    model.save_pretrained(str(folder), safe_serialization=True)
    return folder


def test_a_stack_is_followed_in_length_and_computed_by_its_own_package(tmp_path):
    folder = stack(tmp_path / "stack")
    texts = StringColumn.from_list([*random_texts(30, 1, 30), ""])
    distinct = [text for chunk in texts.chunks() for text in chunk]
    direct = pytest.importorskip("sentence_transformers").SentenceTransformer(str(folder), device="cpu")
    own = SentenceEncoder(str(folder), token_budget=100)
    assert own.precision == "fp32"
    np.testing.assert_allclose(own.embed(texts), direct.encode(distinct), atol=1e-5)
    assert own.embed(texts).shape == (len(distinct), 8)
    direct.max_seq_length = 5
    short = SentenceEncoder(str(folder), max_length=5)
    np.testing.assert_allclose(short.embed(texts), direct.encode(distinct), atol=1e-5)
    assert not np.allclose(short.embed(texts), own.embed(texts))
    with pytest.raises(SettingError, match=r"^precision: the modules of .* are computed in fp32 only, got 'bf16'"):
        SentenceEncoder(str(folder), precision="bf16")
    with pytest.raises(SettingError, match=r"^max_length: 2 special tokens surround a text, got max_length=2"):
        SentenceEncoder(str(folder), max_length=2).embed(texts)
    with pytest.raises(ReaderError, match=r"^max_length: the model holds at most 24 tokens, got 25"):
        SentenceEncoder(str(folder), max_length=25).embed(texts)


@pytest.mark.parametrize("where", ["", "2_Dense"])
def test_pickled_weights_are_not_loaded(tmp_path, where):
    folder = stack(tmp_path / "stack")
    place = folder / where
    from safetensors.torch import load_file

    torch.save(load_file(place / "model.safetensors"), place / "pytorch_model.bin")
    (place / "model.safetensors").unlink()
    with pytest.raises(ReaderError, match=r"pytorch_model\.bin as a pickle, which is not loaded; save it anew"):
        SentenceEncoder(str(folder)).embed(StringColumn.from_list(["red"]))


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "cannot be loaded"), ("[1]", "cannot be loaded"), ('{"in_features": "x"}', "cannot be loaded")],
)
def test_a_damaged_module_is_one_line(tmp_path, content, message):
    folder = stack(tmp_path / "stack")
    (folder / "2_Dense" / "config.json").write_text(content)
    with pytest.raises(ReaderError, match=message) as caught:
        SentenceEncoder(str(folder)).embed(StringColumn.from_list(["red"]))
    assert "\n" not in str(caught.value)


def test_the_digest_is_of_all_files_but_cards_and_hidden_ones(tmp_path):
    folder = stack(tmp_path / "stack")
    before = resolve(folder).digest
    for name in ("README.md", ".gitattributes", ".cache/x"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("changed")
    assert resolve(folder).digest == before
    seen = {before}
    for name in ("pytorch_model.bin", "2_Dense/pytorch_model.bin", "2_Dense/deeper/own.json", "merges.bpe"):
        for content in ("1", "2"):  # of one length
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(content)
            seen.add(resolve(folder).digest)
    assert len(seen) == 9


def test_a_stack_from_the_hub_is_that_of_the_revision():
    """A Hub cache with two commits: the branch that is asked for decides, as the digest says."""
    from huggingface_hub import constants

    cache = Path(constants.HF_HUB_CACHE) / "models--evidep-test--stack"
    vectors, texts = {}, StringColumn.from_list(["red cat", "blue dog"])
    try:
        for at, branch in enumerate(("main", "old")):
            commit = str(at) * 40
            (cache / "refs").mkdir(parents=True, exist_ok=True)
            (cache / "refs" / branch).write_text(commit)
            stack(cache / "snapshots" / commit, seed=at)
            vectors[branch] = SentenceEncoder(str(cache / "snapshots" / commit)).embed(texts)
        for branch in ("main", "old"):
            encoder = SentenceEncoder("evidep-test/stack", revision=branch)
            assert encoder.weights.digest.endswith(("0" if branch == "main" else "1") * 40)
            assert np.array_equal(encoder.embed(texts), vectors[branch])
        assert not np.allclose(vectors["main"], vectors["old"])
    finally:
        shutil.rmtree(cache, ignore_errors=True)


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("sentence_bert_config.json", {"max_seq_length": 24, "do_lower_case": True}),
        ("config_sentence_transformers.json", {"prompts": {"say": "red "}, "default_prompt_name": "say"}),
    ],
)
def test_lower_case_and_prompts_are_the_packages_own(tmp_path, file, content):
    folder = sentence_folder(tmp_path, "Pooling")
    assert read_pooling(resolve(folder)) is not None
    (folder / file).write_text(json.dumps(content))
    assert read_pooling(resolve(folder)) is None
    texts = ["Red Cat", "blue dog"]
    direct = pytest.importorskip("sentence_transformers").SentenceTransformer(str(folder), device="cpu")
    own = SentenceEncoder(str(folder)).embed(StringColumn.from_list(texts))
    np.testing.assert_allclose(own, direct.encode(texts), atol=1e-5)
