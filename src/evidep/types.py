"""The few frozen dataclasses that flow through evidep. Everything else is a function of these and of arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

NULL: Final = -1
"""Index that stands for "no such segment": the reader sees the other side alone."""
EMPTY: Final = -2
"""Donor index that stands for the empty string as evidence (the segment is there, its text is not)."""

Arm = Literal["full", "global", "within-label", "within-metadata", "near-miss", "empty", "query-only", "evidence-only"]
Verdict = Literal["sensitive", "equivalent", "inconclusive", "not_applicable"]
Strength = Literal["baseline", "light", "middle", "strong"]

PRESENT: Final = 0
BLANK: Final = 1
MISSING: Final = 2
"""States of one item's evidence: a text, an empty or whitespace-only string, or None."""


@dataclass(frozen=True, slots=True)
class ColumnRoles:
    """Which column of a dataset plays which part.

    Attributes:
        query: Column of the question, claim or hypothesis.
        evidence: Column of the passage or premise; its values are strings, None, or lists of strings.
        label: Column of the gold label.
        metadata: Columns from which the label might be guessed without reading either text.
        group: Column that names items that belong together (same source, same claim), or None.
    """

    query: str
    evidence: str
    label: str
    metadata: tuple[str, ...] = ()
    group: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class StringColumn:
    """A column of strings in which each distinct string is kept once.

    Attributes:
        texts: Distinct strings in order of first appearance.
        index: [n] position in `texts` of each item's string; NULL where the item has none.
    """

    texts: pa.LargeStringArray
    index: IntArray

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, item: int) -> str | None:
        at = int(self.index[item])
        return None if at == NULL else self.texts[at].as_py()

    def to_list(self) -> list[str | None]:
        """All n strings as Python objects (costs memory: use `chunks` on large columns)."""
        texts = self.texts.to_pylist()
        return [None if at < 0 else texts[at] for at in self.index.tolist()]

    def chunks(self, size: int = 8192) -> Iterator[list[str]]:
        """The distinct strings, in order, `size` at a time."""
        for start in range(0, len(self.texts), size):
            yield self.texts.slice(start, size).to_pylist()

    def take(self, rows: IntArray) -> StringColumn:
        """The column of the given items; NULL and EMPTY rows become items without a string."""
        index = np.where(rows < 0, NULL, self.index[np.maximum(rows, 0)]) if len(rows) else rows.astype(np.int64)
        return replace(self, index=index.astype(np.int64, copy=False))

    def compact(self) -> StringColumn:
        """The same column without the distinct strings that no item uses any more."""
        used = np.unique(self.index[self.index >= 0])
        position = np.full(len(self.texts) + 1, NULL, dtype=np.int64)
        position[used] = np.arange(len(used))
        return StringColumn(self.texts.take(pa.array(used)), np.where(self.index < 0, NULL, position[self.index]))

    @classmethod
    def from_list(cls, values: list[str | None]) -> StringColumn:
        """Build the column from Python strings; None becomes NULL."""
        seen: dict[str, int] = {}
        index = np.fromiter(
            (NULL if value is None else seen.setdefault(value, len(seen)) for value in values), np.int64, len(values)
        )
        return cls(pa.array(list(seen), type=pa.large_string()), index)


@dataclass(frozen=True, slots=True, eq=False)
class PairTable:
    """n items (query, evidence, label, metadata), validated, with labels as integers.

    Attributes:
        ids: [n] stable name of each item (the dataset's id column, else split name and row number).
        queries: The queries.
        evidence: The evidence texts; blank and missing evidence is the string "".
        evidence_state: [n] int8: PRESENT, BLANK or MISSING.
        evidence_codes: [n] equal exactly where two items' evidence is equal as normalised text.
        labels: [n] integer labels in [0, C).
        label_names: The C names, shared by train and evaluation tables.
        metadata: Column name to column.
        groups: [n] cluster of each item for intervals: connected through equal evidence or the group column.
        components: [n] cluster of each item for folds: connected through query, evidence or group.
        fingerprint: Hex digest of the content, equal for equal content.
    """

    ids: pa.LargeStringArray
    queries: StringColumn
    evidence: StringColumn
    evidence_state: NDArray[np.int8]
    evidence_codes: IntArray
    labels: IntArray
    label_names: tuple[str, ...]
    metadata: Mapping[str, StringColumn]
    groups: IntArray
    components: IntArray
    fingerprint: str

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def n_classes(self) -> int:
        return len(self.label_names)

    def select(self, rows: IntArray) -> PairTable:
        """The table of the given items, in the given order. Texts are shared, not copied."""
        return self.under(rows, rows, name=f"rows:{_digest(rows)}")

    def under(self, rows: IntArray, donors: IntArray, *, name: str) -> PairTable:
        """The table that a reader sees under a condition: query of rows[t], evidence of donors[t].

        Labels, metadata and groups follow `rows`, or the position where rows[t] is NULL. `name` enters the fingerprint.
        """
        keep = np.where(rows < 0, np.arange(len(rows)), rows)
        safe = np.maximum(donors, 0)
        return replace(
            self,
            ids=self.ids.take(pa.array(keep)),
            queries=self.queries.take(rows),
            evidence=self.evidence.take(donors),
            evidence_state=np.where(donors < 0, np.int8(MISSING), self.evidence_state[safe]).astype(np.int8),
            evidence_codes=np.where(donors < 0, NULL, self.evidence_codes[safe]),
            labels=self.labels[keep],
            metadata={key: column.take(keep) for key, column in self.metadata.items()},
            groups=self.groups[keep],
            components=self.components[keep],
            fingerprint=f"{self.fingerprint}|{name}",
        )


def _digest(rows: IntArray) -> str:
    import hashlib

    return hashlib.sha256(np.ascontiguousarray(rows, dtype=np.int64).tobytes()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, eq=False)
class Condition:
    """What the reader is shown: the query of item rows[t] with the evidence of item donors[t].

    Attributes:
        arm: Family of the condition.
        k: Number of the shuffle within its family, 0-based; None for conditions that are not drawn.
        rows: [n] item index, or NULL for "no query".
        donors: [n] item index, or NULL for "no evidence", or EMPTY for the empty string.
        uniform_donors: [n] the permutation before collisions were repaired; the permutation p-value needs it
            (uniform permutations form a group, derangements do not). None where the arm has no such test.
        movable: [n] whether the item's evidence can change at all in this arm.
        unchanged_rate: Share of movable and unmovable items whose evidence is still the same normalised text.
    """

    arm: Arm
    k: int | None
    rows: IntArray
    donors: IntArray
    movable: BoolArray
    uniform_donors: IntArray | None = None
    unchanged_rate: float = 0.0

    @property
    def name(self) -> str:
        return self.arm if self.k is None else f"{self.arm}/{self.k}"


@dataclass(frozen=True, slots=True)
class ReaderInfo:
    """What the audit must know about a reader before it believes its numbers.

    Attributes:
        name: Registry name, or the name under which a user's own reader is reported.
        strength: Rung of the calibration ladder.
        interaction: Whether the reader can use query and evidence together (a purely additive one cannot match them).
        contamination: Benchmarks that the reader's pre-training is known to have seen, in words, or None.
        licence: Licence of pre-trained weights, or None.
    """

    name: str
    strength: Strength
    interaction: bool
    contamination: str | None = None
    licence: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PredictionCell:
    """The finished work for one reader, seed and condition.

    Attributes:
        predictions: [n] predicted class under `donors`.
        uniform_predictions: [n] predicted class under `uniform_donors`, or None.
        log_probability: [n] log-probability of the gold label under the condition (natural logarithm), or None.
    """

    reader: str
    seed: int
    condition: str
    predictions: IntArray
    uniform_predictions: IntArray | None = None
    log_probability: FloatArray | None = None


@dataclass(frozen=True, slots=True)
class Interval:
    """A confidence interval. `reason` says why the ends are nan, or why the interval is degenerate."""

    low: float
    high: float
    level: float = 0.95
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class DeltaEvi:
    """ΔEvi of one reader under one shuffle family: how far accuracy falls when the evidence is swapped.

    All accuracies are shares in [0, 1]; ΔEvi is in [-1, 1]. Computed over the movable items only, so that items whose
    evidence could not change do not dilute the effect.

    Attributes:
        mean: accuracy_full minus the mean accuracy over the K shuffles.
        sd_population: Population SD (divisor K) over the K shuffled accuracies, as the paper reports. It is
            no standard error.
        exact: Expectation over all allowed donors, no Monte-Carlo error; nan where the reader cannot give it.
        sd_permutation: Closed-form SD of the accuracy over all uniform permutations (Hoeffding 1951); nan where
            `exact` is.
        standard_error: For items like these: items as rows and donors jointly, clustered by group.
        ci: Interval of ΔEvi at level 1 - alpha.
        ci_equivalence: Interval at level 1 - 2 alpha, used by the two one-sided tests.
        p_value: One-sided; add-one permutation test, or the sign-flip test where no permutation group exists. Where
            groups hold several items, not below the cluster p-value from `standard_error`; nan for one group.
        minimum_detectable_effect: Smallest true ΔEvi that this design finds with 80 % power at alpha.
        items_needed: For an inconclusive verdict, about how many items would settle it; else None.
        negligible: True where equivalent to zero within the margin and yet detectably not zero.
        reason: Why a value is nan or the arm is not applicable.
        truncated_share: Share of the pairs in which a text is cut; nan where the reader does not say.
        unchanged_after_truncation: Share of the pairs with another text than the own that read like it once cut;
            nan likewise.
    """

    verdict: Verdict
    mean: float
    sd_population: float
    exact: float
    sd_permutation: float
    standard_error: float
    ci: Interval
    ci_equivalence: Interval
    p_value: float
    p_method: Literal["permutation", "sign-flip", "cluster", "none"]
    minimum_detectable_effect: float
    accuracy_full: float
    accuracy_shuffled: tuple[float, ...]
    n_items: int
    n_groups: int
    unchanged_rate: float
    unmovable_share: float
    items_needed: int | None = None
    negligible: bool = False
    reason: str | None = None
    truncated_share: float = float("nan")
    unchanged_after_truncation: float = float("nan")


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """The region that the audit ends in, with its reasons in plain sentences and numbers."""

    region: Literal[
        "direct_coupling",
        "latent_coupling",
        "question_dominant",
        "reader_limited",
        "evidence_sensitive",
        "inconclusive",
        "not_applicable",
    ]
    flags: tuple[str, ...] = ()
    reasons: tuple[str, ...] = field(default_factory=tuple)
