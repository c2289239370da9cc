"""Tiny tokenizers, models and tables built on the spot: nothing is downloaded, everything takes milliseconds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa

from evidep.types import BLANK, MISSING, PRESENT, PairTable, StringColumn

WORDS = [
    *("red", "blue", "green", "cat", "dog", "bird", "runs", "sleeps", "sits", "is", "not"),
    *("the", "a", "on", "in", "big", "small", "house", "tree", "yes", "no"),
]
NAMES = ("contradiction", "entailment", "neutral")


def table(
    queries: list[str | None],
    evidence: list[str | None],
    labels: list[int],
    names: tuple[str, ...] = ("no", "yes"),
    fingerprint: str = "tiny",
) -> PairTable:
    """A PairTable whose items are connected through equal evidence."""
    texts = StringColumn.from_list(["" if text is None else text for text in evidence])
    state = [MISSING if text is None else PRESENT if text.strip() else BLANK for text in evidence]
    return PairTable(
        ids=pa.array([f"t{i}" for i in range(len(labels))], type=pa.large_string()),
        queries=StringColumn.from_list(queries),
        evidence=texts,
        evidence_state=np.array(state, dtype=np.int8),
        evidence_codes=texts.index,
        labels=np.array(labels, dtype=np.int64),
        label_names=names,
        metadata={},
        groups=texts.index,
        components=texts.index,
        fingerprint=fingerprint,
    )


def matching_world(n: int, seed: int, *, words: int = 6, fingerprint: str | None = None) -> PairTable:
    """Items whose label is "yes" exactly when the query's word is the evidence's word: only matching solves it."""
    rng = np.random.default_rng(seed)
    query = rng.integers(0, words, n)
    yes = rng.integers(0, 2, n)
    other = (query + rng.integers(1, words, n)) % words
    found = np.where(yes == 1, query, other)
    filler = rng.choice(WORDS[6:15], size=(n, 2))
    return table(
        [f"the {WORDS[w]}" for w in query],
        [f"{a} {WORDS[w]} {b} {i}" for i, (w, (a, b)) in enumerate(zip(found, filler, strict=True))],
        yes.tolist(),
        fingerprint=fingerprint or f"matching-{n}-{seed}-{words}",
    )


def random_texts(n: int, seed: int, longest: int = 12) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, size=int(size))) for size in rng.integers(1, longest + 1, n)]


def bert_tokenizer(folder: Path, *, typed: bool = True, **options: object) -> Path:
    """A WordPiece tokenizer with BERT's pairs, saved into `folder`; `typed` False leaves token types out."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    letters = [chr(c) for c in range(ord("a"), ord("z") + 1)] + list("0123456789.,!?'-")
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS, *letters, *(f"##{c}" for c in letters)]
    ids = {token: at for at, token in enumerate(dict.fromkeys(vocabulary))}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    names = ["input_ids", "token_type_ids", "attention_mask"] if typed else ["input_ids", "attention_mask"]
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        model_input_names=names,
        **{"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", **options},
    )
    fast.save_pretrained(folder)
    return folder


def byte_tokenizer(folder: Path, *, roberta: bool = True, pad: bool = True) -> Path:
    """A byte-level BPE tokenizer: RoBERTa's pairs (<s> a </s></s> b </s>), or GPT-2's (no special tokens at all)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<s>", "<pad>", "</s>", "<unk>"]
    trainer = trainers.BpeTrainer(
        vocab_size=340,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainer)
    if roberta:
        tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokens: dict[str, str] = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    if pad:
        tokens["pad_token"] = "<pad>"
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, model_max_length=64, model_input_names=["input_ids", "attention_mask"], **tokens
    )
    fast.save_pretrained(folder)
    return folder


def bert_model(folder: Path, *, layers: int = 2, hidden: int = 32, seed: int = 0, **config: object) -> Path:
    """A randomly initialised BERT encoder with its tokenizer, saved into `folder`."""
    import torch
    from transformers import AutoTokenizer, BertConfig, BertModel

    bert_tokenizer(folder)
    size = len(AutoTokenizer.from_pretrained(folder))
    settings = {
        "vocab_size": size,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
        "intermediate_size": 2 * hidden,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
        "initializer_range": 0.2,
        **config,
    }
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertModel(BertConfig(**settings)).save_pretrained(folder)
    return folder


def classifier(folder: Path, kind: str, labels: tuple[str, ...] = NAMES) -> Path:
    """A randomly initialised classifier of one architecture, with a tokenizer, saved into `folder`."""
    import torch
    import transformers

    typed = kind in ("bert", "electra")
    if kind in ("roberta", "gpt2"):
        byte_tokenizer(folder, roberta=kind == "roberta")
    else:
        bert_tokenizer(folder, typed=typed)
    vocabulary = len(transformers.AutoTokenizer.from_pretrained(folder))
    shared = {
        "vocab_size": vocabulary,
        "id2label": dict(enumerate(labels)),
        "label2id": {n: i for i, n in enumerate(labels)},
    }
    wide = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
    settings = {
        "bert": {**wide, "max_position_embeddings": 64, "pad_token_id": 0, "initializer_range": 0.3},
        "electra": {
            **wide,
            "embedding_size": 16,
            "max_position_embeddings": 64,
            "pad_token_id": 0,
            "initializer_range": 0.3,
        },
        "roberta": {
            **wide,
            "max_position_embeddings": 66,
            "pad_token_id": 1,
            "type_vocab_size": 1,
            "initializer_range": 0.3,
        },
        "distilbert": {
            "dim": 32,
            "n_layers": 2,
            "n_heads": 2,
            "hidden_dim": 64,
            "max_position_embeddings": 64,
            "initializer_range": 0.3,
        },
        "gpt2": {
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 2,
            "n_positions": 64,
            "pad_token_id": 1,
            "initializer_range": 0.3,
        },
    }[kind]
    name = {"bert": "Bert", "electra": "Electra", "roberta": "Roberta", "distilbert": "DistilBert", "gpt2": "GPT2"}[
        kind
    ]
    config = getattr(transformers, f"{name}Config")(**shared, **settings)
    with torch.random.fork_rng():
        torch.manual_seed(1)
        getattr(transformers, f"{name}ForSequenceClassification")(config).save_pretrained(folder)
    return folder


def sentence_folder(folder: Path, *modules: str, mode: str = "mean_tokens", seed: int = 0) -> Path:
    """A tiny encoder in the layout of sentence-transformers."""
    bert_model(folder, seed=seed)
    kinds = ["Transformer", *modules]
    listed = [
        {
            "idx": at,
            "name": str(at),
            "path": "" if at == 0 else f"{at}_{kind}",
            "type": f"sentence_transformers.models.{kind}",
        }
        for at, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    for at, kind in enumerate(kinds):
        if kind == "Pooling":
            (folder / f"{at}_{kind}").mkdir()
            config = {"word_embedding_dimension": 32, f"pooling_mode_{mode}": True}
            (folder / f"{at}_{kind}" / "config.json").write_text(json.dumps(config))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 24, "do_lower_case": False}))
    return folder


def spoken_world(n: int, seed: int, *, share: float = 0.5, fingerprint: str | None = None) -> PairTable:
    """Items whose evidence says the label outright: a classifier of any size learns it within seconds."""
    rng = np.random.default_rng(seed)
    yes = (rng.random(n) < share).astype(int)
    said = np.where(yes == 1, "red", "blue")
    filler = rng.choice(WORDS[6:18], size=(n, 3))
    return table(
        [f"the {w} is in" for w in rng.choice(WORDS[3:6], size=n)],
        [f"{a} {s} {b} {c} {i}" for i, (s, (a, b, c)) in enumerate(zip(said, filler, strict=True))],
        yes.tolist(),
        fingerprint=fingerprint or f"spoken-{n}-{seed}-{share}",
    )


def audit_rows(n: int, seed: int) -> list[dict[str, str]]:
    """The items of `spoken_world` as rows with queries of their own, as an audit takes them."""
    data = spoken_world(n, seed)
    return [
        {
            "id": f"{seed}-{i}",
            "query": f"{data.queries[i]} {seed} {i}",
            "evidence": str(data.evidence[i]),
            "label": data.label_names[int(data.labels[i])],
        }
        for i in range(n)
    ]
