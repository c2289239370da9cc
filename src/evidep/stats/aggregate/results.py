"""One result object: terminal, Markdown, JSON and figures are all made from it, so that they cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evidep.errors import SettingError
from evidep.stats.aggregate.compare import Comparison
from evidep.stats.aggregate.conflict import Agreement
from evidep.stats.aggregate.evidence import EvidenceLink
from evidep.stats.aggregate.profiles import ScoreProfiles
from evidep.stats.aggregate.significance import Friedman, Nemenyi, PairTests
from evidep.stats.aggregate.stability import Flip, LeaveOneOut
from evidep.stats.aggregate.table import ScoreTable
from evidep.types import FloatArray, Interval


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that changes the numbers, declared before the run.

    Attributes:
        n_draws: Number of bootstrap replicates.
        seed: Seed of all of them.
        alpha: Error rate; intervals are at level 1 - alpha.
        baseline: Reference systems of the z-scores; none: all systems.
        weights: Declared task weights, or None.
        resample: "auto", "within" or "tasks" (see `resample.plan`).
        seeds: "per-cell" or "per-system" (see `resample.Plan`).
        redundant_at: Spearman correlation from which two tasks are called redundant.
        compare: Two systems to compare; None: the first two by mean rank.
    """

    n_draws: int = 10_000
    seed: int = 0
    alpha: float = 0.05
    baseline: tuple[str, ...] = ()
    weights: Mapping[str, float] | None = None
    resample: str = "auto"
    seeds: str = "per-cell"
    redundant_at: float = 0.95
    compare: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.n_draws < 100:
            raise SettingError(f"bootstrap: expected at least 100 replicates, got {self.n_draws}; 10000 is the default")
        if self.seed < 0:
            raise SettingError(f"seed: expected a whole number of at least 0, got {self.seed}")
        if not 0.0 < self.alpha < 0.5:
            raise SettingError(f"alpha: expected a number between 0 and 0.5, got {self.alpha}; 0.05 is usual")
        if not 0.0 < self.redundant_at <= 1.0:
            raise SettingError(f"redundant_at: expected a correlation in (0, 1], got {self.redundant_at}")


@dataclass(frozen=True, slots=True)
class Cell:
    """One system on one task.

    Attributes:
        score: Mean over the units; nan where missing.
        ci: Interval of it.
        n_units: Number of items (or seeds) behind it.
    """

    score: float
    ci: Interval
    n_units: int


@dataclass(frozen=True, slots=True)
class Standing:
    """One system under one aggregate.

    Attributes:
        system: The system.
        value: The aggregate; nan where undefined (a gap in its scores).
        ci: Bootstrap interval of the value.
        rank: Rank among the systems, 1 = best, ties averaged.
        rank_ci: Bootstrap interval of the rank.
        p_first: Share of the replicates in which the system is first.
    """

    system: str
    value: float
    ci: Interval
    rank: float
    rank_ci: Interval
    p_first: float


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One way to aggregate, with everything that is known of its order.

    Attributes:
        name: Key.
        title: Name in words.
        higher_is_better: Direction of the values.
        standings: Per system, best first; empty where undefined.
        winners: Systems with the best rank.
        task_weights: Task name to share, for weighted means; else None.
        excluded: Task name to the reason why it does not enter.
        leave_one_out: Without each task in turn.
        flip: Least change of weights that puts a rival level with the winner, or None with `flip_reason`.
        flip_reason: Why there is no flip.
        reason: Why the aggregate is undefined, else None.
        note: What a reader must know of it.
    """

    name: str
    title: str
    higher_is_better: bool
    standings: tuple[Standing, ...]
    winners: tuple[str, ...]
    task_weights: Mapping[str, float] | None
    excluded: Mapping[str, str]
    leave_one_out: tuple[LeaveOneOut, ...]
    flip: Flip | None
    flip_reason: str | None
    reason: str | None = None
    note: str = ""

    def standing(self, system: str) -> Standing:
        """The standing of one system.

        Raises:
            SettingError: If there is none.
        """
        for standing in self.standings:
            if standing.system == system:
                return standing
        raise SettingError(f"aggregate {self.name!r} has no standing of {system!r}")


@dataclass(frozen=True, slots=True)
class KemenySummary:
    """The Kemeny order's certificate.

    Attributes:
        order: Systems from best to worst.
        cost: Comparisons within tasks that the order contradicts (a tie counts one half).
        lower_bound: No order contradicts fewer than this.
        n_optimal: Number of orders that are as good; nan where not exact.
        exact: Whether the order is proven optimal; otherwise it is approximate.
    """

    order: tuple[str, ...]
    cost: float
    lower_bound: float
    n_optimal: float
    exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class AggregateResult:
    """The whole analysis.

    Attributes:
        table: The scores that were analysed.
        settings: The settings.
        covers: What the intervals of the aggregates cover.
        single_order: False where tasks conflict: then no total order may be printed as the truth.
        verdict: In sentences, what may be said of the order.
        cells: [S][T].
        profiles: [S, T] scores on a common scale for pictures (0 = worst, 1 = best); nan where undefined.
        profile_scale: What that scale is.
        score_profiles: Share of runs above each threshold, for the first systems by mean rank.
        aggregates: All ways to aggregate.
        kemeny: Certificate of the Kemeny order, or None with one system.
        friedman: Friedman's test.
        nemenyi: Nemenyi's test on the mean ranks of complete tasks.
        wilcoxon: Wilcoxon tests of all pairs.
        wilcoxon_groups: Runs of systems that Wilcoxon-Holm does not tell apart.
        test_tasks: Tasks on which every system has a score: the blocks of the tests.
        agreement: Correlation of tasks, redundancy, conflict, Pareto front.
        comparison: Two systems, or None with one system.
        wide: Task name to a sentence that says how wide its intervals are.
        evidence: Link to audits, or None.
        notes: What was done to the input.
        signature: One line that names all settings.
    """

    table: ScoreTable
    settings: Settings
    covers: str
    single_order: bool
    verdict: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    profiles: FloatArray
    profile_scale: str
    score_profiles: ScoreProfiles
    aggregates: tuple[Aggregate, ...]
    kemeny: KemenySummary | None
    friedman: Friedman
    nemenyi: Nemenyi
    wilcoxon: PairTests
    wilcoxon_groups: tuple[tuple[int, ...], ...]
    test_tasks: tuple[str, ...]
    agreement: Agreement
    comparison: Comparison | None
    wide: Mapping[str, str]
    evidence: EvidenceLink | None
    notes: tuple[str, ...]
    signature: str

    def aggregate(self, name: str) -> Aggregate:
        """One aggregate by name.

        Raises:
            SettingError: If there is none of that name.
        """
        for aggregate in self.aggregates:
            if aggregate.name == name:
                return aggregate
        raise SettingError(
            f"no aggregate {name!r}; there are {', '.join(aggregate.name for aggregate in self.aggregates)}"
        )

    @property
    def pareto(self) -> tuple[str, ...]:
        """Systems that no other dominates."""
        return tuple(name for name, on in zip(self.table.systems, self.agreement.pareto, strict=True) if on)
