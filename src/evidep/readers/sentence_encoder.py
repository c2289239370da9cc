"""Sentence embeddings of distinct texts, each computed once."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from evidep.errors import ReaderError, SettingError
from evidep.readers.batching import (
    Precision,
    device_type,
    make_accelerator,
    resolve_precision,
    score_batches,
    token_budget_batches,
    torch_dtype,
)
from evidep.readers.pairing import VERY_LARGE, assemble, encode_texts, input_lengths, window
from evidep.readers.sentence_modules import load_stack, pool, read_pooling
from evidep.readers.weights import Weights, load_config, load_model, load_tokenizer, resolve
from evidep.types import NULL, BoolArray, IntArray, StringColumn

Vectors = NDArray[np.float32]
Forward = Callable[[IntArray], Any]
CACHED_VALUES: Final = 64 * 2**20
"""Embedding values kept for later fits of the same texts (256 MiB): ablations and seeds embed the same train set."""

_cache: OrderedDict[str, Vectors] = OrderedDict()
_positions: dict[str, dict[bytes, int]] = {}
"""Of the sets of texts that were prepared: where each text's vector is. Each belongs to an entry of `_cache`."""


class SentenceEncoder:
    """A frozen sentence encoder.

    Folders written by sentence-transformers are read as they say (mean or first-token pooling, normalisation); other
    stacks of modules are left to the sentence-transformers package, in fp32; a plain transformer gets mean pooling.

    Args:
        model: Folder, packaged model or Hub id.
        revision: Commit or tag on the Hub.
        max_length: Most tokens of a text; None takes the encoder's own limit.
        precision: Arithmetic: "auto", "fp32", "bf16" or "fp16".
        token_budget: Tokens per batch.

    Raises:
        SettingError: A setting that this encoder cannot follow.
        ReaderError: The encoder cannot be found, or its module files are damaged.
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
        self._pooling = read_pooling(self.weights)
        if self._pooling is None and precision not in ("auto", "fp32"):
            raise SettingError(
                f"precision: the modules of {self.weights.source!r} are computed in fp32 only, got {precision!r}; "
                "leave it out"
            )
        self._loaded: tuple[Any, Any] | None = None

    @property
    def precision(self) -> str:
        """The arithmetic that will be used on this machine."""
        if self._pooling is None:
            return "fp32"
        return resolve_precision(self._precision_setting, device_type())

    @property
    def fingerprint(self) -> str:
        """Names the weights and every setting that changes the vectors."""
        return f"{self.weights.digest}:{self._asked_length}:{self.precision}"

    def embed(self, column: StringColumn) -> Vectors:
        """Vectors [U, d] of the column's distinct texts, in their order; computed once per set of texts and process.

        Raises:
            ReaderError: The encoder cannot be loaded, or memory runs out.
            SettingError: max_length leaves no room for text.
        """
        key = f"{self.fingerprint}:{_digest(column)}"
        if key in _cache:
            _cache.move_to_end(key)
            return _cache[key]
        taken = self._from_prepared(column)
        if taken is not None:
            return taken
        vectors = self._compute(column)
        if not np.isfinite(vectors).all():
            bad = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise ReaderError(
                f"the encoder {self.weights.source!r} gives nan or infinity for {column.texts[bad].as_py()[:60]!r}; "
                "use precision='fp32' or another encoder"
            )
        _cache[key] = vectors
        while sum(v.size for v in _cache.values()) > CACHED_VALUES and len(_cache) > 1:
            _positions.pop(_cache.popitem(last=False)[0], None)
        return vectors

    def prepare(self, column: StringColumn) -> None:
        """Embed a column's distinct texts so that `embed` of any subset takes its vectors from here.

        A vector depends, by rounding, on what was computed together with it. So a subset's vectors are taken from a
        set that was prepared as a whole, never put together from several.

        Raises:
            ReaderError: As `embed`.
        """
        if len(column.texts):
            self.embed(column)
            key = f"{self.fingerprint}:{_digest(column)}"
            _positions[key] = {digest: at for at, digest in enumerate(_text_digests(column))}

    def _from_prepared(self, column: StringColumn) -> Vectors | None:
        """Vectors of a column whose texts are all in one prepared set, else None."""
        digests: list[bytes] | None = None
        for key, positions in _positions.items():
            if key not in _cache or not key.startswith(f"{self.fingerprint}:") or len(positions) < len(column.texts):
                continue
            digests = list(_text_digests(column)) if digests is None else digests
            if all(digest in positions for digest in digests):
                _cache.move_to_end(key)
                return _cache[key][[positions[digest] for digest in digests]]
        return None

    def windows(self, column: StringColumn) -> tuple[BoolArray, IntArray] | None:
        """What truncation leaves of the column's distinct texts.

        Returns:
            [U] whether a text is cut, and [U] a code that texts share whose tokens are the same after the cut. None for
            a stack of modules, which cuts by itself.
        """
        if self._pooling is None:
            return None
        tokenizer = load_tokenizer(self.weights)
        limit = window(tokenizer, load_config(self.weights), self._asked_length or self._pooling.max_length)
        store = encode_texts(tokenizer, column, limit).queries
        tokens = [store.ids[start:stop].tobytes() for start, stop in pairwise(store.starts.tolist())]
        codes: dict[bytes, int] = {}
        seen = [codes.setdefault(text, len(codes)) for text in tokens]
        return store.lengths > store.kept(), np.array(seen, dtype=np.int64)

    def _compute(self, column: StringColumn) -> Vectors:
        accelerator = make_accelerator("fp32")
        forward, lengths, width = (self._plain if self._pooling else self._stack)(accelerator, column)
        batches = token_budget_batches(lengths, self._budget)
        return score_batches(accelerator, batches, forward, len(lengths), width, "embedding").astype(np.float32)

    def _plain(self, accelerator: Any, column: StringColumn) -> tuple[Forward, IntArray, int]:
        """A transformer with pooling: how to embed the texts at given positions, the texts' lengths, the width."""
        import torch

        if self._loaded is None:
            self._loaded = load_model("AutoModel", self.weights), load_tokenizer(self.weights)
        model, tokenizer = self._loaded
        pooling = self._pooling
        assert pooling is not None
        limit = window(tokenizer, model.config, self._asked_length or pooling.max_length)
        _check_room(tokenizer, limit)
        encoded = encode_texts(tokenizer, column, limit)
        network = model.to(accelerator.device, torch_dtype(self.precision))
        alone = np.arange(len(column.texts))
        nothing = np.full(len(alone), NULL, dtype=np.int64)
        typed = "token_type_ids" in tokenizer.model_input_names

        def forward(batch: IntArray) -> Any:
            inputs = assemble(encoded, alone[batch], nothing[batch])
            tensors = {"input_ids": torch.from_numpy(inputs.ids).to(accelerator.device)}
            if typed:
                tensors["token_type_ids"] = torch.from_numpy(inputs.types).to(accelerator.device)
            mask = None if inputs.mask is None else torch.from_numpy(inputs.mask).to(accelerator.device)
            if mask is not None:
                tensors["attention_mask"] = mask
            return pool(network(**tensors).last_hidden_state.float(), mask, pooling)

        return forward, input_lengths(encoded, alone, nothing), int(model.config.hidden_size)

    def _stack(self, accelerator: Any, column: StringColumn) -> tuple[Forward, IntArray, int]:
        """The same for a stack of modules that the sentence-transformers package runs."""
        if self._loaded is None:
            self._loaded = load_stack(self.weights, str(accelerator.device)), None
        model = self._loaded[0]
        if self._asked_length is not None:
            limit = model.max_seq_length or VERY_LARGE
            if self._asked_length > limit:
                raise ReaderError(
                    f"max_length: the model holds at most {limit} tokens, got {self._asked_length}; lower it"
                )
            _check_room(model.tokenizer, self._asked_length)
            model.max_seq_length = self._asked_length
        texts = [text for chunk in column.chunks() for text in chunk]

        def embed(chosen: list[str]) -> Any:
            return model.encode(chosen, batch_size=len(chosen), convert_to_tensor=True, show_progress_bar=False).float()

        # About four characters make a token; the lengths only decide what is embedded together.
        lengths = np.array([min(1 + len(text) // 4, model.max_seq_length or 512) for text in texts], dtype=np.int64)
        return lambda batch: embed([texts[at] for at in batch.tolist()]), lengths, int(embed([""]).shape[1])


def _check_room(tokenizer: Any, limit: int) -> None:
    special = tokenizer.num_special_tokens_to_add()
    if limit <= special:
        raise SettingError(
            f"max_length: {special} special tokens surround a text, got max_length={limit}; use at least {special + 1}"
        )


def _digest(column: StringColumn) -> str:
    digest = hashlib.sha256()
    for chunk in column.chunks():
        for text in chunk:
            raw = text.encode("utf-8", "surrogatepass")
            digest.update(len(raw).to_bytes(8, "little"))
            digest.update(raw)
    return digest.hexdigest()[:32]


def _text_digests(column: StringColumn) -> Iterator[bytes]:
    for chunk in column.chunks():
        for text in chunk:
            yield hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
