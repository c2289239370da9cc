"""Zero-shot label likelihoods: the same numbers as a slow, direct computation, one label and one token at a time."""

from __future__ import annotations

import copy
from pathlib import Path

import numpy as np
import pytest
from tiny_models import byte_tokenizer, random_texts, table

from evidep.errors import ReaderError, SettingError
from evidep.readers.prompts import Prompts
from evidep.readers.protocol import Reader
from evidep.types import EMPTY, NULL

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

from evidep.readers.causal_lm import TEMPLATE, CausalLMReader  # noqa: E402

NAMES = ("contradiction", "yes", "no")


def language_model(folder: Path, kind: str = "gpt2", *, bos: bool = False) -> Path:
    """A randomly initialised GPT-2 or Llama with a byte-level tokenizer without padding."""
    import transformers

    byte_tokenizer(folder, roberta=False, pad=False)
    if bos:
        tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
        from tokenizers.processors import TemplateProcessing

        tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
            single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
        )
        tokenizer.save_pretrained(folder)
    vocabulary = len(transformers.AutoTokenizer.from_pretrained(folder))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        if kind == "gpt2":
            config = transformers.GPT2Config(
                vocab_size=vocabulary, n_embd=32, n_layer=2, n_head=2, n_positions=256, initializer_range=0.3
            )
            transformers.GPT2LMHeadModel(config).save_pretrained(folder)
        else:
            config = transformers.LlamaConfig(
                vocab_size=vocabulary, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=2,
                max_position_embeddings=256, initializer_range=0.3,
            )  # fmt: skip
            transformers.LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    tokenizer.model_max_length = 256
    tokenizer.save_pretrained(folder)
    return folder


def data(n=12):
    return table(
        random_texts(n, 1, 4), [*random_texts(n - 1, 2, 9), "{braces} and é"], [i % 3 for i in range(n)], NAMES
    )


def direct(folder, prompt: str, words: list[str]) -> list[float]:
    """log p(word | prompt), token by token, from the full logits of one unpadded sequence."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    start = tokenizer("x")["input_ids"][:-1] if tokenizer("x")["input_ids"][0] == 0 else []
    start = [0] if start else []
    found = []
    for word in words:
        before = start + tokenizer(prompt, add_special_tokens=False)["input_ids"]
        whole = start + tokenizer(prompt + word, add_special_tokens=False)["input_ids"]
        assert whole[: len(before)] == before
        with torch.no_grad():
            log_p = model(torch.tensor([whole])).logits[0].log_softmax(dim=-1)
        found.append(sum(float(log_p[at - 1, whole[at]]) for at in range(len(before), len(whole))))
    return found


@pytest.mark.parametrize(("kind", "bos"), [("gpt2", False), ("llama", True)])
@pytest.mark.parametrize("verbalisers", [None, {"contradiction": "not", "yes": "yes", "no": "no"}])
def test_scores_are_the_direct_likelihoods(tmp_path, kind, bos, verbalisers):
    folder = language_model(tmp_path, kind, bos=bos)
    items = data()
    reader = CausalLMReader(model=str(folder), verbalisers=verbalisers, precision="fp32", token_budget=400).fit(
        items, seed=0
    )
    encoded = reader.encode(items)
    rows = np.array([0, 1, 2, 11, 4, NULL, 5, NULL, 3])
    donors = np.array([0, 2, 1, 11, NULL, 4, EMPTY, NULL, 3])
    scores = reader.scores(encoded, rows, donors)
    given = [(verbalisers or {name: name for name in NAMES})[name] for name in NAMES]
    for t, (r, d) in enumerate(zip(rows.tolist(), donors.tolist(), strict=True)):
        lines = []
        if d != NULL:
            lines.append(f"Evidence: {'' if d == EMPTY else items.evidence[d]}")
        if r != NULL:
            lines.append(f"Statement: {items.queries[r]}")
        prompt = "\n".join([*lines, f"Label ({', '.join(given)}):"])
        expected = direct(folder, prompt, [f" {word}" for word in given])
        np.testing.assert_allclose(scores[t], expected, atol=1e-4)


def test_pairs_protocol_and_copies(tmp_path):
    folder = language_model(tmp_path)
    items = data()
    reader = CausalLMReader(model=str(folder), precision="fp32").fit(items, seed=0)
    assert isinstance(reader, Reader)
    assert not reader.trainable
    assert reader.info.strength == "strong"
    assert "not known" in reader.info.contamination
    encoded = reader.encode(items)
    rows = np.tile(np.arange(12), 3)
    scores = reader.scores(encoded, rows, np.tile(np.roll(np.arange(12), 1), 3))
    assert np.array_equal(scores[:12], scores[24:])
    again = copy.deepcopy(reader)
    np.testing.assert_allclose(again.scores(encoded, rows[:3], rows[:3]), reader.scores(encoded, rows[:3], rows[:3]))
    other = CausalLMReader(model=str(folder), precision="fp32", template=TEMPLATE + "\n")
    assert other.fingerprint != reader.fingerprint


def test_evidence_is_cut_and_the_query_kept(tmp_path):
    folder = language_model(tmp_path)
    evidence = "red cat runs in the big house on a tree " * 12
    items = table(["the dog sleeps"], [evidence], [0], NAMES)
    reader = CausalLMReader(model=str(folder), precision="fp32", max_length=120).fit(items, seed=0)
    encoded = reader.encode(items)
    at = np.array([0])
    scores = reader.scores(encoded, at, at)
    loaded = reader._loaded
    longest = max(map(len, loaded.label_ids))
    ids, cut = reader.prompts.token_ids(
        loaded.tokenizer, [("the dog sleeps", evidence)], reader._words, [], 120 - longest
    )
    assert cut == 1
    assert len(ids[0]) <= 120 - longest
    prompt = loaded.tokenizer.decode(ids[0])
    assert "Statement: the dog sleeps\nLabel" in prompt
    kept = prompt.removeprefix("Evidence: ").partition("\n")[0]
    assert evidence.startswith(kept)
    assert len(kept) > 20
    expected = direct(folder, prompt, [f" {name}" for name in NAMES])
    np.testing.assert_allclose(scores[0], expected, atol=1e-4)
    assert "evidence is cut in 100.0% of the items" in reader.notes


def test_no_room_for_evidence(tmp_path):
    items = table(["the dog sleeps " * 40], ["red"], [0], NAMES)
    reader = CausalLMReader(model=str(language_model(tmp_path)), precision="fp32", max_length=120).fit(items, seed=0)
    with pytest.raises(ReaderError, match="no room for evidence after truncation"):
        reader.encode(items)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("Say {query}:", "expected {query} and {evidence}"),
        ("{evidence}\n{query}\n{answer}:", "expected {query} and {evidence}"),
        ("{evidence} {query}\nAnswer:", "must stand on different lines"),
        ("{query}\n{evidence}", "text must follow"),
        ("{query}\n{evidence}\n{:", "template: "),
    ],
)
def test_templates_are_checked(template, message):
    with pytest.raises(SettingError, match=message.replace("{", r"\{").replace("}", r"\}")):
        Prompts(template)


def test_verbalisers_are_checked(tmp_path):
    folder = str(language_model(tmp_path))
    with pytest.raises(SettingError, match=r"missing \['no'\], unknown \['maybe'\]"):
        CausalLMReader(model=folder, verbalisers={"contradiction": "a", "yes": "b", "maybe": "c"}).fit(data(), seed=0)
    with pytest.raises(SettingError, match="different, non-empty texts"):
        CausalLMReader(model=folder, verbalisers={"contradiction": "a", "yes": "a", "no": "c"}).fit(data(), seed=0)
    with pytest.raises(SettingError, match="name a causal language model"):
        CausalLMReader()


def test_labels_and_window(tmp_path):
    folder = str(language_model(tmp_path))
    reader = CausalLMReader(model=folder, precision="fp32")
    with pytest.raises(ReaderError, match="knows no labels yet"):
        reader.encode(data())
    reader.fit(data(), seed=0)
    with pytest.raises(ReaderError, match="was given labels"):
        reader.encode(table(["a"], ["b"], [0]))
    long = CausalLMReader(model=folder, precision="fp32", max_length=999).fit(data(), seed=0)
    with pytest.raises(ReaderError, match="max_length: the model holds at most 256 tokens, got 999"):
        long.encode(data())


# ------------------------------------------------------------------------------------------------ which models


def model_of(folder: Path, model) -> str:
    """A model with a byte-level tokenizer."""
    byte_tokenizer(folder, roberta=False, pad=False)
    model.save_pretrained(folder)
    return str(folder)


def small(kind: str, **more):
    """A randomly initialised model of one of transformers' classes."""
    import transformers

    family = kind.removesuffix("ForMaskedLM").removesuffix("LMHeadModel").removesuffix("Model")
    size = {"vocab_size": 340, "initializer_range": 0.3}
    if family == "GPT2":
        size |= {"n_embd": 32, "n_layer": 1, "n_head": 2, "n_positions": 128}
    elif family == "XLNet":
        size |= {"d_model": 32, "n_layer": 1, "n_head": 2, "d_inner": 64}
    else:
        size |= {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return getattr(transformers, kind)(getattr(transformers, f"{family}Config")(**size, **more))


def ask(folder: str) -> np.ndarray:
    items = data(4)
    reader = CausalLMReader(model=folder, precision="fp32").fit(items, seed=0)
    return reader.scores(reader.encode(items), np.arange(4), np.arange(4))


def test_encoders_are_no_language_models(tmp_path):
    """A BERT encoder lacks the head; one saved with its masked-language head has all tensors and reads both ways."""
    with pytest.raises(ReaderError, match=r"as BertLMHeadModel: \d+ of \d+ tensors are missing and would be random"):
        ask(model_of(tmp_path / "encoder", small("BertModel")))
    for kind, loaded in (("BertForMaskedLM", "BertLMHeadModel"), ("XLNetLMHeadModel", "XLNetLMHeadModel")):
        with pytest.raises(ReaderError, match=f"as {loaded} looks at later tokens, so it is no causal language model"):
            ask(model_of(tmp_path / kind, small(kind)))


def test_an_encoder_decoder_is_refused(tmp_path):
    import transformers

    config = transformers.BartConfig(
        vocab_size=340, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
        decoder_attention_heads=2, encoder_ffn_dim=64, decoder_ffn_dim=64, max_position_embeddings=128,
    )  # fmt: skip
    with pytest.raises(ReaderError, match="has an encoder beside its decoder; name a decoder-only language model"):
        ask(model_of(tmp_path, transformers.BartForConditionalGeneration(config)))


def test_a_head_that_is_missing_is_an_error_and_a_tied_one_is_not(tmp_path):
    """GPT-2's head is its embedding: a base model saved without head is the same language model, unless untied."""
    whole = small("GPT2LMHeadModel")
    scores = ask(model_of(tmp_path / "whole", whole))
    np.testing.assert_array_equal(ask(model_of(tmp_path / "tied", whole.transformer)), scores)
    untied = small("GPT2Model", tie_word_embeddings=False)
    with pytest.raises(
        ReaderError, match=r"1 of \d+ tensors are missing and would be random, for example lm_head.weight"
    ):
        ask(model_of(tmp_path / "untied", untied))


def test_one_tensor_missing_is_an_error(tmp_path):
    from safetensors.torch import load_file, save_file

    folder = language_model(tmp_path, "llama")
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(
        ReaderError, match=r"1 of \d+ tensors are missing and would be random, for example model.layers.1"
    ):
        ask(str(folder))
