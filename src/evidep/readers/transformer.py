"""The strong rung: pair classifiers, fine-tuned, and asked about index pairs without re-tokenising anything."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final, Self

import numpy as np

from evidep.errors import ReaderError
from evidep.readers.batching import (
    Precision,
    device_type,
    make_accelerator,
    resolve_precision,
    unique_pairs,
)
from evidep.readers.checkpoint import CheckpointFolder
from evidep.readers.pairing import (
    EncodedPairs,
    encode_pairs,
    pair_lengths,
    window,
)
from evidep.readers.recipe import FitReport, TrainSettings
from evidep.readers.saved import Fitted, Notes, match_labels, public_name, read_notes, save_reader
from evidep.readers.scorer import PREPARED, PairScorer, reads_padding
from evidep.readers.settings import check_flags, check_model_settings, check_text_mappings
from evidep.readers.training import fine_tune
from evidep.readers.truncation import check_shuffled, seen
from evidep.readers.weights import (
    CONTAMINATION,
    Weights,
    load_config,
    load_model,
    load_tokenizer,
    require_transformers,
    resolve,
)
from evidep.types import BoolArray, FloatArray, IntArray, PairTable, ReaderInfo

VERSION: Final = 1
"""Raised when a change makes a reader with equal settings predict otherwise."""
TOKEN_BUDGETS: Final = {"cpu": 2048}
GPU_TOKENS: Final = 65536
PAIRS_PER_CALL: Final = {"cpu": 1_000}
"""About ten seconds of MiniLM, which is what a kill may cost. It is a number and no measured time, so that the batches,
and with them the last digits of half-precision scores, do not depend on how busy the machine is."""
GPU_PAIRS: Final = 100_000


class TransformerReader:
    """A pre-trained encoder, fine-tuned to classify (query, evidence) pairs.

    The query comes first and is never cut; evidence that does not fit is. A missing side is left out (single-text
    input); EMPTY evidence is a pair with an empty second text.

    Args:
        name: Name in reports.
        model: Folder, packaged model or Hub id.
        revision: Commit or tag on the Hub.
        max_length: Most tokens of an input; None takes the model's limit.
        precision: Arithmetic: "auto", "fp32", "bf16" or "fp16".
        token_budget: Tokens per scoring batch; None chooses by device.
        new_head: Start from a fresh classification layer although the checkpoint has one.
        label_map: Checkpoint label to the table's label, for a checkpoint that is already a classifier.
        contamination: What the pre-training is known to have seen; None looks the model up.
        licence: Licence of the weights.
        **recipe: Fields of TrainSettings.

    Attributes:
        workdir: Folder for checkpoints and finished weights, or None.
        report: How the last fit went, or None.
        recipe: The settings that the weights were fitted with (a loaded reader fits no more).
        base_model: The model that fine-tuning began from; of a local folder its last part alone.
        base_revision: Its revision on the Hub, where one was asked for.
        fitted: Which fit the weights come from, or None before a fit and for weights used as they came.

    Raises:
        SettingError: A setting out of its range.
        MissingExtraError: torch, transformers or accelerate is not installed.
        ReaderError: The model cannot be found.
    """

    def __init__(
        self,
        *,
        name: str = "minilm",
        model: str = "sentence-transformers/all-MiniLM-L6-v2",
        revision: str | None = None,
        max_length: int | None = None,
        precision: Precision = "auto",
        token_budget: int | None = None,
        new_head: bool = False,
        label_map: Mapping[str, str] | None = None,
        contamination: str | None = None,
        licence: str | None = None,
        **recipe: Any,
    ) -> None:
        check_model_settings(
            name=name, model=model, revision=revision, max_length=max_length, precision=precision,
            token_budget=token_budget, contamination=contamination, licence=licence,
        )  # fmt: skip
        check_flags(new_head=new_head)
        check_text_mappings(label_map={} if label_map is None else label_map)
        require_transformers(f"the reader {name!r}")
        self.settings = TrainSettings.of(recipe)
        self.model_name, self.revision = str(model), revision
        self.recipe, self.base_model, self.base_revision = self.settings, public_name(self.model_name), revision
        self.fitted: Fitted | None = None
        self.weights = resolve(model, revision)
        self.max_length, self._asked_precision, self._asked_budget = max_length, precision, token_budget
        self.new_head, self.label_map = new_head, dict(label_map or {})
        seen = contamination if contamination is not None else CONTAMINATION.get(str(model))
        self._info = ReaderInfo(name, "strong", True, seen, licence)
        self.workdir: Path | None = None
        self.report: FitReport | None = None
        self.label_names: tuple[str, ...] | None = None
        self._columns = np.empty(0, dtype=np.int64)
        self._model: Any = None
        self._tokenizer: Any = None
        self._scorer: PairScorer | None = None
        self._precision: str | None = None
        self._truncated, self._exact = 0.0, False

    @property
    def info(self) -> ReaderInfo:
        """What the audit must know of this reader."""
        return self._info

    @property
    def trainable(self) -> bool:
        """Whether `fit` learns anything (epochs=0 uses a finished classifier as it is)."""
        return self.settings.epochs > 0

    @property
    def precision(self) -> str:
        """The arithmetic that is used on this machine."""
        if self._precision is None:
            self._precision = resolve_precision(self._asked_precision, device_type())
        return self._precision

    @property
    def token_budget(self) -> int:
        """Tokens per scoring batch."""
        return self._asked_budget or TOKEN_BUDGETS.get(device_type(), GPU_TOKENS)

    @property
    def pairs_per_call(self) -> int:
        """How many pairs a call of `scores` should bring: enough to batch well, few enough to lose little to a kill."""
        return PAIRS_PER_CALL.get(device_type(), GPU_PAIRS)

    @property
    def fingerprint(self) -> str:
        """Names the weights and every setting that changes predictions."""
        recipe = {key: value for key, value in asdict(self.settings).items() if key != "checkpoint_seconds"}
        settings = [
            VERSION, self.weights.digest, self.max_length, self.precision, self.new_head, self.label_map, recipe,
        ]  # fmt: skip
        return f"transformer:{hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:24]}"

    @property
    def collapsed(self) -> bool:
        """Whether the fitted reader gave one label to every item that the fit checked it on."""
        return self.report is not None and self.report.collapsed

    @property
    def notes(self) -> tuple[str, ...]:
        """Remarks on fit and scoring, for reports."""
        found = [f"computed in {self.precision}"]
        report = self.report
        if report is not None and self.trainable:
            found.append(
                f"fine-tuned on {report.items} items ({report.held_out} held out), {report.world_size} process(es)"
            )
            if report.note:
                found.append(f"no early stopping: {report.note}")
            if report.collapsed:
                found.append("collapsed: one label for every item checked")
        if self._truncated:
            found.append(f"evidence is cut in {self._truncated:.1%} of the items")
        return tuple(found)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_scorer": None}  # it holds the process group, which cannot be copied

    def fit(self, train: PairTable, *, seed: int) -> Self:
        """Fine-tune on true pairs, or on one side alone where the table lacks the other.

        With `workdir` set, a finished fit found there is loaded, and an interrupted one is continued.

        Raises:
            ReaderError: An empty table or one label only, nan loss, out of memory, a damaged checkpoint, or a
                checkpoint whose labels are not the table's.
        """
        counts = np.bincount(train.labels, minlength=train.n_classes)
        if self.trainable and (counts > 0).sum() < 2:
            raise ReaderError(
                f"reader {self.info.name}: the train table has {len(train)} items of {int((counts > 0).sum())} "
                "label(s); a reader needs items of at least two"
            )
        if not self.trainable and self._model is not None and self.label_names == train.label_names:
            return self
        key = self._fit_key(train, seed)
        fitted = Fitted(self.fingerprint, train.fingerprint, seed) if self.trainable else None
        folder = None if self.workdir is None or not self.trainable else Path(self.workdir) / key[:24]
        accelerator = make_accelerator(self.precision)
        if folder is not None and (folder / "finished").is_dir():
            notes = read_notes(folder / "finished")
            if notes.key != key:
                raise ReaderError(f"{folder / 'finished'} holds another reader's fit; use another workdir or delete it")
            self._read(notes, resolve(folder / "finished"))
            return self
        self._load_base(train.label_names, seed)
        self.label_names, self.fitted = train.label_names, fitted
        longest = self._window()
        if self.trainable:
            encoded = encode_pairs(self._tokenizer, train, longest)
            checkpoints = None if folder is None else CheckpointFolder(folder / "checkpoints", key)
            self.report = fine_tune(
                self._model,
                encoded,
                train.labels,
                train.components,
                self.settings,
                seed=seed,
                accelerator=accelerator,
                logits=self._logits,
                score=lambda model, rows: self._score_rows(model, accelerator, encoded, rows),
                typed=self._typed,
                exact=self._exact,
                checkpoints=checkpoints,
            )
        for attribute in PREPARED:
            self._model.__dict__.pop(attribute, None)
        self._model.eval()
        if folder is not None:
            if accelerator.is_main_process:
                save_reader(folder / "finished", replace(self.describe(), key=key), self._model, self._tokenizer)
                CheckpointFolder(folder / "checkpoints", key).clear()
            accelerator.wait_for_everyone()
        return self

    def encode(self, table: PairTable) -> EncodedPairs:
        """Tokenise each distinct text of the table once.

        Raises:
            ReaderError: The reader is not fitted, or for other labels than the table's, or a query leaves no room for
                its evidence.
        """
        if self.label_names is None:
            raise ReaderError(f"reader {self.info.name} is not fitted; call fit(train, seed=...) or load(folder) first")
        if self.label_names != table.label_names:
            raise ReaderError(
                f"reader {self.info.name} was fitted for labels {list(self.label_names)}, the table has "
                f"{list(table.label_names)}; build both tables with one label order"
            )
        encoded = encode_pairs(self._tokenizer, table, self._window())
        everyone = np.arange(len(table))
        self._truncated = float((pair_lengths(encoded, *encoded.texts(everyone, everyone))[2] > 0).mean())
        return encoded

    def scores(self, encoded: EncodedPairs, rows: IntArray, donors: IntArray) -> FloatArray:
        """Logits [len(rows), C]: each distinct pair is scored once, on this or on many processes.

        Raises:
            ReaderError: No room for evidence, memory runs out, or truncation leaves every swapped pair as it was.
        """
        if self._model is None:
            raise ReaderError(f"reader {self.info.name} is not fitted; call fit(train, seed=...) or load(folder) first")
        rows, donors = np.asarray(rows, dtype=np.int64), np.asarray(donors, dtype=np.int64)
        query, evidence = encoded.texts(rows, donors)
        check_shuffled(encoded, rows, donors, evidence)
        pairs = unique_pairs(query, evidence)
        if self._scorer is None:
            accelerator = make_accelerator(self.precision)
            self._scorer = PairScorer(
                self._model, accelerator, self.precision, self.token_budget, self._typed, self._exact
            )
        return self._scorer.logits(encoded, pairs.query, pairs.evidence)[:, self._columns][pairs.of]

    def truncation(self, encoded: EncodedPairs, rows: IntArray, donors: IntArray) -> tuple[BoolArray, BoolArray]:
        """[t] whether a pair's evidence is cut, and [t] whether what is left of it is the input with its own evidence.

        Raises:
            ReaderError: A query that leaves no room for its evidence.
        """
        return seen(encoded, rows, donors)

    def save(self, folder: str | Path, *, card: str | None = None) -> None:
        """Write a folder that `AutoModelForSequenceClassification` and `pipeline` open, with `card` as its README.md.

        A folder that holds a saved reader is replaced; one that holds anything else is left alone.

        Raises:
            ReaderError: The reader is not fitted.
            CacheError: The folder cannot be written, or holds other files.
        """
        save_reader(folder, self.describe(), self._model, self._tokenizer, card)

    @classmethod
    def load(cls, folder: str | Path) -> TransformerReader:
        """The reader that `save` wrote, as it is: `fit` leaves it unchanged (epochs=0).

        Raises:
            ReaderError: The folder is no saved reader, or is damaged.
        """
        notes = read_notes(folder)
        reader = cls(**{**notes.settings, "model": str(folder), "epochs": 0})
        reader._info = replace(reader._info, contamination=notes.contamination)
        reader._read(notes, reader.weights)
        return reader

    def _score_rows(self, model: Any, accelerator: Any, encoded: EncodedPairs, rows: IntArray) -> FloatArray:
        scorer = PairScorer(model, accelerator, self.precision, self.token_budget, self._typed, self._exact)
        return scorer.logits(encoded, *encoded.texts(rows, rows))[:, self._columns]

    def _logits(self, model: Any, inputs: dict[str, Any]) -> Any:
        return model(**inputs).logits[:, self._columns.tolist()]

    @property
    def _typed(self) -> bool:
        return "token_type_ids" in self._tokenizer.model_input_names

    def _window(self) -> int:
        return window(self._tokenizer, self._model.config, self.max_length)

    def _fit_key(self, train: PairTable, seed: int) -> str:
        parts = [self.fingerprint, train.fingerprint, seed, train.label_names]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()

    def _load_base(self, label_names: tuple[str, ...], seed: int) -> None:
        import torch

        self._tokenizer = load_tokenizer(self.weights)
        config = load_config(self.weights)
        classifier = any(str(a).endswith("ForSequenceClassification") for a in config.architectures or ())
        if classifier and not self.new_head:
            self._columns = match_labels(config.id2label, label_names, self.label_map, self.model_name)
            self._model = load_model("AutoModelForSequenceClassification", self.weights, complete=True)
        elif not self.trainable:
            raise ReaderError(
                f"epochs=0 needs a checkpoint that is already a classifier; {self.model_name!r} has no classification "
                "layer: set epochs to at least 1"
            )
        else:
            self._columns = np.arange(len(label_names))
            with torch.random.fork_rng():
                torch.manual_seed(int(np.random.SeedSequence([seed, 0x4EAD]).generate_state(1)[0]))
                self._model = load_model(
                    "AutoModelForSequenceClassification",
                    self.weights,
                    num_labels=len(label_names),
                    id2label=dict(enumerate(label_names)),
                    label2id={name: at for at, name in enumerate(label_names)},
                    problem_type="single_label_classification",
                    ignore_mismatched_sizes=True,
                )
        if self._model.config.pad_token_id is None:
            self._model.config.pad_token_id = self._tokenizer.pad_token_id
        self._scorer, self.report = None, None
        self._exact = reads_padding(self._model, self._tokenizer, self._typed)

    def describe(self) -> Notes:
        """What a saved copy, or its card, says of this reader.

        Raises:
            ReaderError: The reader is not fitted.
        """
        if self.label_names is None:
            raise ReaderError(f"reader {self.info.name} is not fitted: there is nothing to save")
        settings = {
            "name": self.info.name,
            "max_length": self.max_length,
            "precision": self._asked_precision,
            "token_budget": self._asked_budget,
            "licence": self.info.licence,
        }
        return Notes(
            settings, self.recipe, self.base_model, self.base_revision, self.info.contamination, self.label_names,
            self._columns, self.report, self.fitted,
        )  # fmt: skip

    def _read(self, notes: Notes, weights: Weights) -> None:
        self._tokenizer = load_tokenizer(weights)
        self._model = load_model("AutoModelForSequenceClassification", weights, complete=True)
        if self._model.config.num_labels != len(notes.label_names):
            raise ReaderError(
                f"{weights.source} has {self._model.config.num_labels} outputs and its notes {len(notes.label_names)} "
                "labels; fit again"
            )
        self.recipe, self.base_model, self.base_revision = notes.recipe, notes.base_model, notes.base_revision
        self.label_names, self._columns = notes.label_names, notes.columns
        self.report, self.fitted, self._scorer = notes.report, notes.fitted, None
        self._exact = reads_padding(self._model, self._tokenizer, self._typed)
