"""The recipe of a fine-tuning run and the report of how it went."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from evidep.errors import SettingError
from evidep.readers.settings import check_counts, check_positive


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """How a classifier is fine-tuned.

    Attributes:
        epochs: Most passes over the train items; 0 uses the checkpoint's own head as it is.
        batch_size: Items per optimiser step, over all processes.
        micro_batch: Most items per process that are computed at once; None tries a process's whole share of the batch.
            Gradients are accumulated up to batch_size with the loss of the whole batch.
        learning_rate: Peak of the learning rate, reached after the warm-up and then falling linearly to 0.
        warmup_share: Share of all steps over which the learning rate rises.
        weight_decay: AdamW's decay of all weights but biases and normalisations.
        max_grad_norm: Largest norm of the gradient.
        holdout_share: Share of the train items held out to choose the best epoch; 0 holds none out.
        patience: Evaluations without a gain after which training stops.
        evaluations_per_epoch: How often the held-out items are scored.
        checkpoint_seconds: Time between checkpoints, where a workdir is set.
    """

    epochs: int = 3
    batch_size: int = 32
    micro_batch: int | None = None
    learning_rate: float = 5e-5
    warmup_share: float = 0.1
    weight_decay: float = 0.01
    max_grad_norm: float = 1.0
    holdout_share: float = 0.1
    patience: int = 2
    evaluations_per_epoch: int = 1
    checkpoint_seconds: float = 120.0

    def __post_init__(self) -> None:
        for name, low in (("epochs", 0), ("batch_size", 1), ("patience", 1), ("evaluations_per_epoch", 1)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < low:
                raise SettingError(f"{name}: expected a whole number of at least {low}, got {value!r}")
        if self.micro_batch is not None:
            check_counts(micro_batch=self.micro_batch)
        check_positive(learning_rate=self.learning_rate, max_grad_norm=self.max_grad_norm)
        highest = {"warmup_share": 1.0, "holdout_share": 0.5, "weight_decay": math.inf, "checkpoint_seconds": math.inf}
        for name, high in highest.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= high:
                raise SettingError(f"{name}: expected a number from 0 to {high}, got {value!r}")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> TrainSettings:
        """Settings from keywords; numbers may be written as text (YAML reads 5e-5 as text).

        Raises:
            SettingError: An unknown name, or a value out of its range.
        """
        known = [f.name for f in fields(cls)]
        unknown = sorted(set(values) - set(known))
        if unknown:
            close = difflib.get_close_matches(unknown[0], known, 1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            raise SettingError(f"unknown setting {unknown[0]!r}: {hint}The recipe has {', '.join(known)}")
        return cls(**{name: _number(value) for name, value in values.items()})


def _number(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Held-out items after a step: mean log-loss (nats), accuracy, and the mean train loss since the one before."""

    step: int
    loss: float
    accuracy: float
    train_loss: float


@dataclass(frozen=True, slots=True)
class FitReport:
    """How a fit went.

    Attributes:
        items: Items trained on.
        held_out: Items held out.
        steps: Optimiser steps taken.
        best_step: Step whose weights were kept.
        evaluations: Held-out results in order.
        held_out_majority: Share of the commonest label among the held-out items; nan where none are.
        collapsed: Whether the reader gives one label to every item that it was checked on.
        precision: Arithmetic of the fit.
        world_size: Number of processes.
        threads: CPU threads per process.
        micro_batch: Items per process computed at once in the end (smaller than asked where memory ran out).
        seconds: Time of the last, uninterrupted part.
        note: Why no item was held out, or None.
    """

    items: int
    held_out: int
    steps: int
    best_step: int
    evaluations: tuple[Evaluation, ...]
    held_out_majority: float
    collapsed: bool
    precision: str
    world_size: int
    threads: int
    micro_batch: int
    seconds: float
    note: str | None = None

    @property
    def held_out_accuracy(self) -> float:
        """Held-out accuracy of the kept weights; nan without held-out items."""
        return next((e.accuracy for e in self.evaluations if e.step == self.best_step), float("nan"))

    def as_dict(self) -> dict[str, Any]:
        """The report as JSON values (nan becomes null)."""
        values = asdict(self)
        return {**values, "held_out_majority": None if math.isnan(self.held_out_majority) else self.held_out_majority}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> FitReport:
        """The inverse of `as_dict`."""
        majority = math.nan if values["held_out_majority"] is None else values["held_out_majority"]
        evaluations = tuple(Evaluation(**e) for e in values["evaluations"])
        return cls(**{**values, "held_out_majority": majority, "evaluations": evaluations})
