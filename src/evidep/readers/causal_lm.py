"""Zero-shot reading: how likely a causal language model finds each label's word after a prompt with both texts."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Self

import numpy as np

from evidep.errors import ReaderError, SettingError
from evidep.readers.batching import (
    Precision,
    device_type,
    make_accelerator,
    resolve_precision,
    score_batches,
    token_budget_batches,
    torch_dtype,
    unique_pairs,
)
from evidep.readers.language_model import LanguageModel, check_causal
from evidep.readers.pairing import VERY_LARGE
from evidep.readers.prompts import Prompts
from evidep.readers.settings import check_model_settings, check_text_mappings, check_texts
from evidep.readers.weights import load_config, load_model, load_tokenizer, require_transformers, resolve
from evidep.types import NULL, FloatArray, IntArray, PairTable, ReaderInfo

VERSION: Final = 1
"""Raised when a change makes a reader with equal settings predict otherwise."""
TEMPLATE: Final = "Evidence: {evidence}\nStatement: {query}\nLabel ({labels}):"
CHUNK: Final = 8192
"""Prompts that are held in memory at once."""


@dataclass(frozen=True, slots=True, eq=False)
class EncodedTexts:
    """A table's distinct texts and which of them each item has (NULL: none)."""

    queries: list[str]
    query_index: IntArray
    evidence: list[str]
    evidence_index: IntArray


class CausalLMReader:
    """Scores a pair by the log-likelihood of each label's verbaliser after the prompt. Nothing is trained.

    The query is never cut; evidence that does not fit into the window is. A side that is not shown takes its line of
    the template with it.

    Args:
        name: Name in reports.
        model: Any causal language model of transformers: folder or Hub id.
        revision: Commit or tag on the Hub.
        template: Prompt with {query}, {evidence} and, if wanted, {labels} (the verbalisers, comma-separated). Query and
            evidence must stand on different lines, and text must follow the last of them.
        verbalisers: Label name to the text whose likelihood stands for it; None takes the label names themselves. A
            space goes in front unless there is one.
        max_length: Most tokens of prompt and verbaliser; None takes the model's limit.
        precision: Arithmetic: "auto", "fp32", "bf16" or "fp16".
        token_budget: Tokens per batch; None chooses by device.
        contamination: What the pre-training is known to have seen; None says that it is not known.
        licence: Licence of the weights.

    Raises:
        SettingError: No model, or a template or verbalisers that cannot work.
        MissingExtraError: torch, transformers or accelerate is not installed.
        ReaderError: The model cannot be found.
    """

    trainable = False

    def __init__(
        self,
        *,
        name: str = "causal_lm",
        model: str | None = None,
        revision: str | None = None,
        template: str = TEMPLATE,
        verbalisers: Mapping[str, str] | None = None,
        max_length: int | None = None,
        precision: Precision = "auto",
        token_budget: int | None = None,
        contamination: str | None = None,
        licence: str | None = None,
    ) -> None:
        if model is None:
            raise SettingError(
                "model: name a causal language model, for example causal_lm:model=HuggingFaceTB/SmolLM2-135M"
            )
        check_model_settings(
            name=name, model=model, revision=revision, max_length=max_length, precision=precision,
            token_budget=token_budget, contamination=contamination, licence=licence,
        )  # fmt: skip
        check_texts(template=template)
        if verbalisers is not None:
            check_text_mappings(verbalisers=verbalisers)
        require_transformers(f"the reader {name!r}")
        self.prompts = Prompts(template)
        self.weights = resolve(model, revision)
        self.verbalisers = None if verbalisers is None else dict(verbalisers)
        self._asked_length, self._asked_precision, self._asked_budget = max_length, precision, token_budget
        unknown = "not known: the pre-training text may hold this benchmark"
        self._info = ReaderInfo(name, "strong", True, unknown if contamination is None else contamination, licence)
        self.label_names: tuple[str, ...] | None = None
        self._words: tuple[str, ...] = ()
        self._loaded: LanguageModel | None = None
        self._truncated = 0.0

    @property
    def info(self) -> ReaderInfo:
        """What the audit must know of this reader."""
        return self._info

    @property
    def precision(self) -> str:
        """The arithmetic that is used on this machine."""
        return resolve_precision(self._asked_precision, device_type())

    @property
    def pairs_per_call(self) -> int:
        """How many pairs a call of `scores` should bring."""
        return 100 if device_type() == "cpu" else 10_000  # about ten seconds of a small model

    @property
    def fingerprint(self) -> str:
        """Names the weights and every setting that changes predictions."""
        settings = [
            VERSION,
            self.weights.digest,
            self.prompts.template,
            self.verbalisers,
            self._asked_length,
            self.precision,
        ]
        return f"causal_lm:{hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:24]}"

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks for reports."""
        found = [f"zero-shot, computed in {self.precision}", f"template {self.prompts.template!r}"]
        if self._truncated:
            found.append(f"evidence is cut in {self._truncated:.1%} of the items")
        return tuple(found)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": None}  # it holds the process group, which cannot be copied

    def fit(self, train: PairTable, *, seed: int) -> Self:
        """Take the label names of the table; neither its items nor the seed change anything.

        Raises:
            SettingError: The verbalisers are not one per label, or two labels read the same.
        """
        self._words = self._verbalise(train.label_names)
        self.label_names = train.label_names
        self._loaded = None
        return self

    def encode(self, table: PairTable) -> EncodedTexts:
        """The table's distinct texts.

        Raises:
            ReaderError: The reader has no labels yet, or other ones than the table.
        """
        if self.label_names is None:
            raise ReaderError(f"reader {self.info.name} knows no labels yet; call fit(train, seed=...) first")
        if self.label_names != table.label_names:
            raise ReaderError(
                f"reader {self.info.name} was given labels {list(self.label_names)}, the table has "
                f"{list(table.label_names)}; build both tables with one label order"
            )
        queries, evidence = table.queries.compact(), table.evidence.compact()
        encoded = EncodedTexts(queries.texts.to_pylist(), queries.index, evidence.texts.to_pylist(), evidence.index)
        loaded = self._ready()
        cut = 0
        for start in range(0, len(table), CHUNK):
            part = slice(start, start + CHUNK)
            cut += self._prompt_ids(loaded, encoded, queries.index[part], evidence.index[part])[1]
        self._truncated = cut / max(len(table), 1)
        return encoded

    def scores(self, encoded: EncodedTexts, rows: IntArray, donors: IntArray) -> FloatArray:
        """Log-likelihoods [len(rows), C] of the labels' verbalisers, in nats; each distinct pair is scored once.

        Raises:
            ReaderError: A query that leaves no room for evidence, or memory runs out.
        """
        if self.label_names is None:
            raise ReaderError(f"reader {self.info.name} knows no labels yet; call fit(train, seed=...) first")
        loaded = self._ready()
        rows, donors = np.asarray(rows, dtype=np.int64), np.asarray(donors, dtype=np.int64)
        query = np.where(rows < 0, NULL, _at(encoded.query_index, rows))
        evidence = np.where(donors < 0, donors, _at(encoded.evidence_index, donors))
        pairs = unique_pairs(query, evidence)
        scores = np.empty((len(pairs.query), len(self.label_names)))
        for start in range(0, len(scores), CHUNK):
            part = slice(start, start + CHUNK)
            scores[part] = self._chunk(loaded, encoded, pairs.query[part], pairs.evidence[part])
        return scores[pairs.of]

    def _ready(self) -> LanguageModel:
        if self._loaded is None:
            self._loaded = self._load()
        return self._loaded

    def _prompt_ids(
        self, loaded: LanguageModel, encoded: EncodedTexts, query: IntArray, evidence: IntArray
    ) -> tuple[list[list[int]], int]:
        texts = [
            (
                None if q == NULL else encoded.queries[q],
                None if e == NULL else encoded.evidence[e] if e >= 0 else "",
            )
            for q, e in zip(query.tolist(), evidence.tolist(), strict=True)
        ]
        room = loaded.max_length - max(map(len, loaded.label_ids))
        return self.prompts.token_ids(loaded.tokenizer, texts, self._words, loaded.first, room)

    def _chunk(self, loaded: LanguageModel, encoded: EncodedTexts, query: IntArray, evidence: IntArray) -> FloatArray:
        ids, _ = self._prompt_ids(loaded, encoded, query, evidence)
        # The longest verbaliser belongs to the input, but for its last token, which is only predicted.
        lengths = np.array([len(i) for i in ids], dtype=np.int64) + max(map(len, loaded.label_ids)) - 1
        budget = self._asked_budget or (2048 if device_type() == "cpu" else 16384)
        batches = token_budget_batches(lengths, budget)

        def forward(batch: IntArray) -> Any:
            return loaded.log_likelihoods([ids[at] for at in batch.tolist()])

        return score_batches(loaded.accelerator, batches, forward, len(ids), len(self._words), "scoring")

    def _verbalise(self, label_names: tuple[str, ...]) -> tuple[str, ...]:
        given = self.verbalisers if self.verbalisers is not None else {name: name for name in label_names}
        missing, unknown = set(label_names) - set(given), set(given) - set(label_names)
        if missing or unknown:
            raise SettingError(
                f"verbalisers: expected one for each of {', '.join(label_names)}; "
                f"missing {sorted(missing) or 'none'}, unknown {sorted(unknown) or 'none'}"
            )
        words = [given[name] for name in label_names]
        if any(not word.strip() for word in words) or len({word.strip() for word in words}) < len(words):
            raise SettingError(f"verbalisers: expected different, non-empty texts, got {words}")
        spaced = self.prompts.template[-1].isspace()
        return tuple(word if spaced or word[0].isspace() else f" {word}" for word in words)

    def _load(self) -> LanguageModel:
        if load_config(self.weights).is_encoder_decoder:
            raise ReaderError(
                f"model: {self.weights.source!r} has an encoder beside its decoder; name a decoder-only language model"
            )
        tokenizer = load_tokenizer(self.weights, pads=False)
        accelerator = make_accelerator("fp32")
        model = load_model("AutoModelForCausalLM", self.weights, complete=True)
        check_causal(model, self.weights.source)
        model = model.to(accelerator.device, torch_dtype(self.precision))
        limits = [
            int(min(tokenizer.model_max_length, VERY_LARGE)),
            getattr(model.config, "max_position_embeddings", VERY_LARGE),
        ]
        limit = min(value for value in limits if value)
        if self._asked_length is not None and self._asked_length > limit:
            raise ReaderError(f"max_length: the model holds at most {limit} tokens, got {self._asked_length}; lower it")
        first, label_ids = self.prompts.label_ids(tokenizer, self._words)
        return LanguageModel(model, tokenizer, accelerator, first, label_ids, self._asked_length or limit)


def _at(index: IntArray, items: IntArray) -> IntArray:
    return index[np.maximum(items, 0)] if len(index) else np.full(len(items), NULL, dtype=np.int64)
