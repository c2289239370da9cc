"""Sentence embeddings of distinct texts, each computed once."""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evidep.errors import MissingExtraError, ReaderError
from evidep.readers.batching import (
    Precision,
    device_type,
    make_accelerator,
    resolve_precision,
    score_batches,
    token_budget_batches,
    torch_dtype,
)
from evidep.readers.pairing import assemble, encode_texts, input_lengths, window
from evidep.readers.weights import Weights, load_model, load_tokenizer, resolve
from evidep.types import NULL, StringColumn

Vectors = NDArray[np.float32]
CACHED_VALUES: Final = 64 * 2**20
"""Embedding values kept for later fits of the same texts (256 MiB): ablations and seeds embed the same train set."""

_cache: OrderedDict[str, Vectors] = OrderedDict()


@dataclass(frozen=True, slots=True)
class Pooling:
    """How token vectors become one text vector: mean or first token, then optionally scaled to length 1."""

    mode: str
    normalise: bool
    max_length: int | None


class SentenceEncoder:
    """A frozen sentence encoder.

    Folders written by sentence-transformers are read as they say (mean or first-token pooling, normalisation); other
    module stacks are left to the sentence-transformers package; a plain transformer gets mean pooling.

    Args:
        model: Folder, packaged model or Hub id.
        revision: Commit or tag on the Hub.
        max_length: Most tokens of a text; None takes the encoder's own limit.
        precision: Arithmetic: "auto", "fp32", "bf16" or "fp16".
        token_budget: Tokens per batch.
    """

    def __init__(
        self,
        model: str,
        *,
        revision: str | None = None,
        max_length: int | None = None,
        precision: Precision = "auto",
        token_budget: int = 4096,
    ) -> None:
        self.weights: Weights = resolve(model, revision)
        self._asked_length = max_length
        self._precision_setting: Precision = precision
        self._budget = token_budget
        self._loaded: tuple[Any, Any, Pooling | None] | None = None

    @property
    def precision(self) -> str:
        """The arithmetic that will be used on this machine."""
        return resolve_precision(self._precision_setting, device_type())

    @property
    def fingerprint(self) -> str:
        """Names the weights and every setting that changes the vectors."""
        return f"{self.weights.digest}:{self._asked_length}:{self.precision}"

    def embed(self, column: StringColumn) -> Vectors:
        """Vectors [U, d] of the column's distinct texts, in their order; computed once per set of texts and process.

        Raises:
            ReaderError: The encoder cannot be loaded, or memory runs out.
        """
        key = f"{self.fingerprint}:{_digest(column)}"
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]
        vectors = self._compute(column)
        if not np.isfinite(vectors).all():
            bad = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise ReaderError(
                f"the encoder {self.weights.source!r} gives nan or infinity for {column.texts[bad].as_py()[:60]!r}; "
                "use precision='fp32' or another encoder"
            )
        _cache[key] = vectors
        while sum(v.size for v in _cache.values()) > CACHED_VALUES and len(_cache) > 1:
            _cache.popitem(last=False)
        return vectors

    def _compute(self, column: StringColumn) -> Vectors:
        if self._loaded is None:
            self._loaded = self._load()
        model, tokenizer, pooling = self._loaded
        if pooling is None:
            texts = [text for chunk in column.chunks() for text in chunk]
            return np.asarray(model.encode(texts, show_progress_bar=False, convert_to_numpy=True), dtype=np.float32)
        import torch

        # Two texts at least, so that a probe of the width is never an empty batch.
        limit = window(tokenizer, model.config, self._asked_length or pooling.max_length)
        encoded = encode_texts(tokenizer, column, limit)
        accelerator = make_accelerator("fp32")
        network = model.to(accelerator.device, torch_dtype(self.precision))
        n, width = len(column.texts), int(model.config.hidden_size)
        alone = np.arange(n)
        nothing = np.full(n, NULL, dtype=np.int64)
        typed = "token_type_ids" in tokenizer.model_input_names

        def forward(batch: NDArray[np.int64]) -> Any:
            inputs = assemble(encoded, alone[batch], nothing[batch])
            tensors = {"input_ids": torch.from_numpy(inputs.ids).to(accelerator.device)}
            if typed:
                tensors["token_type_ids"] = torch.from_numpy(inputs.types).to(accelerator.device)
            mask = None if inputs.mask is None else torch.from_numpy(inputs.mask).to(accelerator.device)
            if mask is not None:
                tensors["attention_mask"] = mask
            return pool(network(**tensors).last_hidden_state.float(), mask, pooling)

        batches = token_budget_batches(input_lengths(encoded, alone, nothing), self._budget)
        return score_batches(accelerator, batches, forward, n, width, "embedding").astype(np.float32)

    def _load(self) -> tuple[Any, Any, Pooling | None]:
        pooling = read_pooling(self.weights)
        if pooling is None:
            try:
                from sentence_transformers import SentenceTransformer
            except ImportError as error:
                raise MissingExtraError(
                    "sentence-transformers", "transformers", f"the encoder {self.weights.source!r}"
                ) from error
            return SentenceTransformer(self.weights.source, trust_remote_code=False), None, None
        tokenizer = load_tokenizer(self.weights)
        return load_model("AutoModel", self.weights), tokenizer, pooling


def pool(hidden: Any, mask: Any, pooling: Pooling) -> Any:
    """Text vectors [B, d] of token vectors [B, L, d]; `mask` [B, L] is None where nothing is padded."""
    import torch

    if pooling.mode == "cls":
        vectors = hidden[:, 0]
    elif mask is None:
        vectors = hidden.mean(dim=1)
    else:
        weight = mask.unsqueeze(-1).to(hidden.dtype)
        vectors = (hidden * weight).sum(dim=1) / weight.sum(dim=1)
    return torch.nn.functional.normalize(vectors, dim=-1) if pooling.normalise else vectors


def read_pooling(weights: Weights) -> Pooling | None:
    """The pooling that a sentence-transformers folder declares; None where its modules are not the usual three."""
    modules = _read_json(weights, "modules.json")
    if modules is None:
        return Pooling("mean", False, None)
    kinds = [str(module["type"]).rsplit(".", 1)[-1] for module in modules]
    if kinds not in (["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]) or modules[0]["path"]:
        return None
    config = _read_json(weights, f"{modules[1]['path']}/config.json") or {}
    modes = [name for name, on in config.items() if name.startswith("pooling_mode_") and on is True] or [
        f"pooling_mode_{config.get('pooling_mode', 'mean')}"
    ]
    known = {
        "pooling_mode_mean_tokens": "mean",
        "pooling_mode_mean": "mean",
        "pooling_mode_cls_token": "cls",
        "pooling_mode_cls": "cls",
    }
    if len(modes) != 1 or modes[0] not in known:
        return None
    length = (_read_json(weights, "sentence_bert_config.json") or {}).get("max_seq_length")
    return Pooling(known[modes[0]], kinds[-1] == "Normalize", length)


def _read_json(weights: Weights, name: str) -> Any:
    from transformers.utils import cached_file

    if weights.folder is not None:
        file = weights.folder / name
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else None
    found = cached_file(
        weights.source,
        name,
        revision=weights.revision,
        _raise_exceptions_for_missing_entries=False,
        _raise_exceptions_for_connection_errors=False,
    )
    return None if found is None else json.loads(Path(found).read_text(encoding="utf-8"))


def _digest(column: StringColumn) -> str:
    digest = hashlib.sha256()
    for chunk in column.chunks():
        for text in chunk:
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
    return digest.hexdigest()[:32]
