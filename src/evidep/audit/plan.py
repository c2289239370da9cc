"""What an audit will do: its settings, checked before anything is computed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from evidep.errors import SettingError
from evidep.readers.protocol import Reader

SHUFFLES: Final = ("global", "within-label", "within-metadata", "near-miss")
ABLATIONS: Final = ("query-only", "evidence-only", "shuffled-training")
NEAR_MISS_NEIGHBOURS: Final = 5


@dataclass(frozen=True, slots=True)
class AuditSettings:
    """Settings of one audit. All of them enter the packet; those that change numbers enter the cell keys.

    Attributes:
        readers: Registry names (with settings, `tfidf_lr:C=1.0`) or objects with the reader protocol.
        shuffles: Families of evidence shuffles; empty means the default: global, within-label, and within-metadata
            where metadata columns are declared.
        k: Shuffles per family, at least 1/alpha - 1.
        seed: Seed of shuffles, folds and reader fits. 0 is a seed like any other.
        reader_seeds: How many seeds each reader is fitted with: seed, seed + 1, ...
        margin: Half-width of the equivalence region of ΔEvi, declared before the run.
        alpha: Level of the tests; intervals have level 1 - alpha.
        mpds_high: MPDS from which metadata counts as predicting the labels.
        ablations: Retrained ablations that are run for every reader that can be fitted.
        n_folds: Folds of the out-of-fold audit where no train split is given.
        controls: Also refit on labels that are functions of the evidence and of the query (planted controls).
        diagnostics: Also run the diagnostics of metadata shift, flip and filtering.
        auto_metadata: Also screen the labels against features derived from the texts.
    """

    readers: tuple[str | Reader, ...] = ("tfidf_lr",)
    shuffles: tuple[str, ...] = ()
    k: int = 20
    seed: int = 0
    reader_seeds: int = 1
    margin: float = 0.02
    alpha: float = 0.05
    mpds_high: float = 0.9
    ablations: tuple[str, ...] = ("query-only", "evidence-only")
    n_folds: int = 5
    controls: bool = False
    diagnostics: bool = False
    auto_metadata: bool = False

    def __post_init__(self) -> None:
        _check_integer("k", self.k, 1)
        _check_integer("seed", self.seed, 0)
        _check_integer("reader_seeds", self.reader_seeds, 1)
        _check_integer("n_folds", self.n_folds, 2)
        _check_share("alpha", self.alpha, 0.5)
        _check_share("margin", self.margin, 1.0)
        _check_share("mpds_high", self.mpds_high, 10.0)
        smallest_k = math.ceil(1 / self.alpha - 1e-9) - 1
        if self.k < smallest_k:
            raise SettingError(
                f"k={self.k} shuffles cannot give a p-value below 1/(k+1)={1 / (self.k + 1):.3g}, so "
                f"alpha={self.alpha:g} could never be reached; the smallest k is {smallest_k}"
            )
        if not self.readers:
            raise SettingError("readers is empty; name at least one, for example tfidf_lr")
        _check_names("shuffles", self.shuffles, SHUFFLES)
        _check_names("ablations", self.ablations, ABLATIONS)

    def shuffle_families(self, has_metadata: bool) -> tuple[str, ...]:
        """The families that are run, for a dataset with or without declared metadata columns."""
        if self.shuffles:
            if "within-metadata" in self.shuffles and not has_metadata:
                raise SettingError(
                    "shuffle within-metadata needs metadata columns; name some with --metadata or leave the shuffle out"
                )
            return self.shuffles
        return ("global", "within-label", "within-metadata") if has_metadata else ("global", "within-label")


def _check_integer(name: str, value: object, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise SettingError(f"{name} must be a whole number of at least {least}, got {value!r}")


def _check_share(name: str, value: float, below: float) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < below:
        raise SettingError(f"{name} must be a number above 0 and below {below:g}, got {value!r}")


def _check_names(name: str, given: tuple[str, ...], known: tuple[str, ...]) -> None:
    for value in given:
        if value not in known:
            raise SettingError(f"{name}: {value!r} is unknown; choose from {', '.join(known)}")
    if len(set(given)) != len(given):
        raise SettingError(f"{name}: {', '.join(given)} names one of them twice")
