"""What an audit found, before a packet is written from it: a few frozen dataclasses of arrays and statistics."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evidep.audit.plan import AuditSettings
from evidep.data.table import AuditData
from evidep.stats.accuracy import MajorityRate
from evidep.stats.calibration import Works
from evidep.stats.information import VInformation
from evidep.stats.mpds import Mpds
from evidep.stats.resampling import unseen_share
from evidep.types import BoolArray, DeltaEvi, FloatArray, IntArray, Interval, ReaderInfo


@dataclass(frozen=True, slots=True, eq=False)
class ArmResult:
    """One shuffle family of one reader: the statistic and each item's share of right answers over the K shuffles."""

    arm: str
    delta: DeltaEvi
    right_when_shuffled: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class AblationResult:
    """Accuracy on partial input: `retrained` on it, or the fitted reader `masked` at test time."""

    arm: str
    how: str
    correct: BoolArray
    log_probability: FloatArray | None
    ci: Interval

    @property
    def accuracy(self) -> float:
        """Share of right answers."""
        return float(self.correct.mean())


@dataclass(frozen=True, slots=True, eq=False)
class ReaderResult:
    """All that one reader with one seed answered."""

    info: ReaderInfo
    spec: str
    seed: int
    fingerprint: str
    predictions: IntArray
    correct: BoolArray
    log_probability: FloatArray | None
    ci: Interval
    works: Works
    arms: tuple[ArmResult, ...]
    ablations: tuple[AblationResult, ...]
    information: VInformation | None
    notes: tuple[str, ...] = ()
    trainable: bool = True

    def arm(self, name: str) -> ArmResult | None:
        """The result of one shuffle family, or None."""
        return next((arm for arm in self.arms if arm.arm == name), None)

    def drop(self, name: str) -> FloatArray:
        """[n] right with the own evidence minus the share of shuffles answered right."""
        arm = self.arm(name)
        if arm is None:
            raise KeyError(name)
        return self.correct - arm.right_when_shuffled

    def ablation(self, arm: str, how: str) -> AblationResult | None:
        """The result of one ablation, or None."""
        return next((a for a in self.ablations if (a.arm, a.how) == (arm, how)), None)


@dataclass(frozen=True, slots=True, eq=False)
class MetadataResult:
    """What the declared metadata columns alone predict (None where no column is declared)."""

    columns: tuple[str, ...]
    n_cells: int
    predictions: IntArray
    correct: BoolArray
    by_reader: dict[str, Mpds] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class AuditResults:
    """Everything that the packet is written from."""

    data: AuditData
    settings: AuditSettings
    shuffles: tuple[str, ...]
    folds: IntArray | None
    fold_warnings: tuple[str, ...]
    majority: MajorityRate
    correct_majority: BoolArray
    metadata: MetadataResult | None
    readers: tuple[ReaderResult, ...]
    cells_computed: int
    cells_reused: int
    extras: Mapping[str, Any] = field(default_factory=dict)
    """Further parts of the packet that were asked for (controls, diagnostics, automatic_metadata), as plain values."""
    costs: Mapping[str, float] = field(default_factory=dict)
    """Seconds of automatic features and their joint model. They are for run.json: a packet holds no times."""

    @property
    def majority_rate(self) -> float:
        """Accuracy of the constant answer, chosen on training items (out of fold: on the other folds)."""
        return float(self.correct_majority.mean())


def detectable_effect(delta: DeltaEvi) -> float:
    """Smallest true ΔEvi that this design finds with 80 % power; nan where no interval can be given.

    Where no group differs from another the standard error is 0 and power cannot be computed. Then it is the share of
    groups that may have an effect and all be missed by the sample (`unseen_share`).
    """
    if math.isnan(delta.minimum_detectable_effect) and delta.standard_error == 0.0:
        return unseen_share(delta.ci.level, delta.n_groups)
    return delta.minimum_detectable_effect
