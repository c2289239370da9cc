"""The audit: readers × conditions → cells → statistics. Writes no document (see assemble.py) and reads no file."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import tee
from pathlib import Path
from typing import Any

import numpy as np

from evidep.audit.cache import CellStore
from evidep.audit.plan import NEAR_MISS_NEIGHBOURS, AuditSettings
from evidep.audit.results import AblationResult, ArmResult, AuditResults, MetadataResult, ReaderResult
from evidep.audit.scoring import ReaderRun
from evidep.data.conditions import arm_strata, empty_evidence, evidence_only, full, query_only, shuffle
from evidep.data.near_miss import nearest_other_evidence
from evidep.data.splits import stratified_group_folds
from evidep.data.table import AuditData, aligned_codes
from evidep.errors import ReaderError, SettingError
from evidep.readers.crossfit import cross_fit
from evidep.readers.protocol import Reader
from evidep.readers.registry import make_reader
from evidep.stats.accuracy import MajorityRate, accuracy_interval, majority_rate
from evidep.stats.calibration import reader_works
from evidep.stats.delta_evi import delta_evi
from evidep.stats.information import v_information
from evidep.stats.mpds import metadata_predictions, metadata_predictions_out_of_fold, mpds, n_cells
from evidep.stats.truncation import with_truncation
from evidep.types import NULL, BoolArray, Condition, FloatArray, IntArray, PairTable

Progress = Callable[[str, int, int], None]
"""Called with (what is being done, steps done, steps in all). May raise to stop the audit; finished cells are kept."""


def run_audit(
    data: AuditData,
    settings: AuditSettings,
    *,
    store: CellStore | None = None,
    workdir: Path | None = None,
    progress: Progress | None = None,
) -> AuditResults:
    """Run every reader under every condition and compute the statistics.

    Without a train table the audit is out of fold: each item is answered by a reader that was fitted on the other
    folds, folds keep connected items together, and evidence is only swapped inside a fold (a donor from another fold
    would have been seen in training).

    Raises:
        EvidepError: Bad settings or data, a reader that fails, a cell that cannot be read or written.
    """
    store = store if store is not None else CellStore()
    table = data.evaluation
    shuffles = settings.shuffle_families(bool(table.metadata))
    folds, fold_warnings = _folds(data, settings)
    majority, correct_majority = majority_baseline(data, folds)
    metadata = _metadata(data, folds)
    neighbours = nearest_other_evidence(table, NEAR_MISS_NEIGHBOURS, folds) if "near-miss" in shuffles else None
    context = RunContext(data, settings, shuffles, folds, neighbours, correct_majority, store, workdir)
    prototypes = [make_reader(spec) for spec in settings.readers]
    _check_names([reader.info.name for reader in prototypes])
    jobs = [
        (spec, seed)
        for spec, reader in zip(settings.readers, prototypes, strict=True)
        for seed in _seeds(reader, settings)
    ]
    del prototypes
    steps = Steps(progress, len(jobs) * (1 + len(shuffles) * (settings.k + 1) + 1 + len(settings.ablations)))
    readers = tuple(_run_reader(context, spec, seed, steps) for spec, seed in jobs)
    if metadata is not None:
        by_reader = {
            f"{r.info.name}/{r.seed}": mpds(
                metadata.correct,
                r.correct,
                float(correct_majority.mean()),
                correct_majority=correct_majority,
                groups=table.groups,
                alpha=settings.alpha,
                seed=settings.seed,
                n_cells=metadata.n_cells,
            )
            for r in readers
        }
        metadata = replace(metadata, by_reader=by_reader)
    extras, costs = _extras(context, readers, metadata, steps)
    return AuditResults(
        data, settings, shuffles, folds, fold_warnings, majority, correct_majority, metadata, readers,
        store.computed, store.reused, extras, costs,
    )  # fmt: skip


def _extras(
    context: RunContext, readers: tuple[ReaderResult, ...], metadata: MetadataResult | None, step: Steps
) -> tuple[dict[str, Any], dict[str, float]]:
    """The parts of an audit that run only when asked for, and what they cost."""
    found: dict[str, Any] = {}
    costs: dict[str, float] = {}
    if context.settings.auto_metadata:
        from evidep.audit.automatic_metadata import automatic_metadata

        step("automatic metadata", 0)
        found["automatic_metadata"], costs = automatic_metadata(context, readers, metadata)
    if context.settings.controls:
        from evidep.audit.controls import run_controls

        found["controls"] = run_controls(context, step)
    if context.settings.diagnostics:
        from evidep.audit.diagnostics import run_diagnostics

        found["diagnostics"] = run_diagnostics(context, step)
    return found, costs


@dataclass(frozen=True, slots=True, eq=False)
class RunContext:
    """What all readers of one audit share."""

    data: AuditData
    settings: AuditSettings
    shuffles: tuple[str, ...]
    folds: IntArray | None
    neighbours: IntArray | None
    correct_majority: BoolArray
    store: CellStore
    workdir: Path | None

    @property
    def table(self) -> PairTable:
        """The items that readers are asked about."""
        return self.data.evaluation

    def reader_run(self, spec: str | Reader, seed: int, train: PairTable) -> ReaderRun:
        """The reader on one training table, cross-fitted where there is no train split."""
        folds = self.folds

        def make() -> Reader:
            return make_reader(spec) if folds is None else cross_fit(lambda: make_reader(spec), folds)

        return ReaderRun(
            make,
            train,
            self.table,
            seed=seed,
            store=self.store,
            workdir=self.workdir,
            context="train" if folds is None else "out-of-fold",
        )


class Steps:
    """Counts the steps done for the progress callback."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def __call__(self, stage: str, steps: int = 1) -> None:
        """Report a stage, and that so many steps are done."""
        self._done += steps
        if self._progress is not None:
            self._progress(stage, min(self._done, self._total), self._total)


def _run_reader(context: RunContext, spec: str | Reader, seed: int, step: Steps) -> ReaderResult:
    table, settings = context.table, context.settings
    n = len(table)
    train = context.data.train if context.data.train is not None else table
    run = context.reader_run(spec, seed, train)
    info, fingerprint = run.info, run.reader.fingerprint
    name = info.name
    step(f"{name}: fitting", 0)
    cell = next(run.cells([full(n)], log_probability=True))
    correct = cell.predictions == table.labels
    step(f"{name}: full evidence")
    arms = tuple(run_arm(context, run, arm, correct, step) for arm in context.shuffles)
    ablations = [*_masked(context, run)]
    step(f"{name}: masked input")
    trainable, notes = getattr(run.reader, "trainable", True), run.notes()
    del run  # the fitted reader is done with, and the retrained ones need the memory
    if trainable:
        for arm in settings.ablations:
            step(f"{name}: retraining {arm}", 0)
            ablations.append(_retrained(context, spec, seed, train, arm))
            step(f"{name}: retrained {arm}")
    retrained = next((a for a in ablations if (a.arm, a.how) == ("query-only", "retrained")), None)
    information = None
    if retrained is not None and retrained.log_probability is not None and cell.log_probability is not None:
        information = v_information(retrained.log_probability, cell.log_probability, table.groups, settings.alpha)
    return ReaderResult(
        info=info,
        spec=spec if isinstance(spec, str) else name,
        seed=seed,
        fingerprint=fingerprint,
        predictions=cell.predictions,
        correct=correct,
        log_probability=cell.log_probability,
        ci=accuracy_interval(correct, table.groups, settings.alpha),
        works=reader_works(
            correct,
            context.correct_majority,
            cell.predictions,
            table.groups,
            settings.alpha,
            labels=table.labels,
            seed=settings.seed,
        ),
        arms=arms,
        ablations=tuple(ablations),
        information=information,
        notes=notes,
        trainable=trainable,
    )


def run_arm(context: RunContext, run: ReaderRun, arm: str, correct: BoolArray, step: Steps) -> ArmResult:
    """One shuffle family of one fitted reader."""
    table, settings, k = context.table, context.settings, context.settings.k
    n = len(table)
    neighbours = context.neighbours if arm == "near-miss" else None

    def drawn() -> Iterator[Condition]:
        for number in range(k):
            yield shuffle(table, arm, number, seed=settings.seed, strata=context.folds, neighbours=neighbours)

    drawing = {"arm": arm, "k": k, "seed": settings.seed}
    truncated_share, unchanged_after = run.truncation(drawn(), drawing, context.folds, neighbours)
    if unchanged_after == 1.0:
        raise ReaderError(
            f"reader {run.info.name}: after truncation every swapped pair of the {arm} shuffle reads like the pair "
            "with its own evidence, so the shuffle tests nothing; raise max_length"
        )
    sums = run.pair_sums(arm, context.folds, correct, neighbours)
    step(f"{run.info.name}: {arm}, all pairs" if sums is not None else f"{run.info.name}: {arm}")
    shuffled = np.empty((k, n), dtype=bool)
    uniform = np.empty((k, n), dtype=bool)
    donors = np.empty((k, n), dtype=np.int64) if sums is None else None
    movable: BoolArray | None = None
    unchanged: list[float] = []
    has_uniform = True
    asked, kept = tee(drawn())
    for number, cell in enumerate(run.cells(asked)):
        condition = next(kept)
        movable = condition.movable
        unchanged.append(condition.unchanged_rate)
        shuffled[number] = cell.predictions == table.labels
        if cell.uniform_predictions is None:
            has_uniform = False
        else:
            uniform[number] = cell.uniform_predictions == table.labels
        if donors is not None:
            donors[number] = condition.donors
        step(f"{run.info.name}: {arm}")
    delta = delta_evi(
        correct,
        shuffled,
        donors,
        movable=movable,
        groups=table.groups,
        correct_uniform=uniform if has_uniform else None,
        sums=sums,
        strata=arm_strata(table, arm, context.folds),
        unchanged_rate=statistics.fmean(unchanged),
        alpha=settings.alpha,
        margin=settings.margin,
    )
    return ArmResult(arm, with_truncation(delta, truncated_share, unchanged_after), shuffled.mean(axis=0))


def _masked(context: RunContext, run: ReaderRun) -> Iterator[AblationResult]:
    table = context.table
    n = len(table)
    conditions = [query_only(n), evidence_only(n), empty_evidence(n)]
    for condition, cell in zip(conditions, run.cells(conditions, log_probability=True), strict=True):
        yield _ablation(context, condition.arm, "masked", cell.predictions, cell.log_probability)


def _retrained(context: RunContext, spec: str | Reader, seed: int, train: PairTable, arm: str) -> AblationResult:
    table = context.table
    everyone, nothing = np.arange(len(train)), np.full(len(train), NULL, dtype=np.int64)
    if arm == "query-only":
        partial, condition = train.under(everyone, nothing, name=arm), query_only(len(table))
    elif arm == "evidence-only":
        partial, condition = train.under(nothing, everyone, name=arm), evidence_only(len(table))
    else:
        donors = shuffle(train, "global", 0, seed=seed, strata=context.folds).donors
        partial, condition = train.under(everyone, donors, name=f"{arm}/{seed}"), full(len(table))
    run = context.reader_run(spec, seed, partial)
    cell = next(run.cells([condition], log_probability=True))
    return _ablation(context, arm, "retrained", cell.predictions, cell.log_probability)


def _ablation(
    context: RunContext, arm: str, how: str, predictions: IntArray, log_probability: FloatArray | None
) -> AblationResult:
    correct = predictions == context.table.labels
    ci = accuracy_interval(correct, context.table.groups, context.settings.alpha)
    return AblationResult(arm, how, correct, log_probability, ci)


def _check_names(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise SettingError(
                f"readers: two are called {name!r}, so the packet could not tell them apart; "
                f"name one of them otherwise ({name}:name=OTHER)"
            )


def _seeds(reader: Reader, settings: AuditSettings) -> range:
    once = reader.info.strength == "baseline" or not getattr(reader, "trainable", True)
    return range(settings.seed, settings.seed + (1 if once else settings.reader_seeds))


def _folds(data: AuditData, settings: AuditSettings) -> tuple[IntArray | None, tuple[str, ...]]:
    if data.train is not None:
        return None, ()
    table = data.evaluation
    folds = stratified_group_folds(table.labels, table.components, settings.n_folds, seed=settings.seed)
    return folds.fold, tuple(folds.warnings)


def majority_baseline(data: AuditData, folds: IntArray | None) -> tuple[MajorityRate, BoolArray]:
    """The constant answer, chosen on training items (out of fold: on the other folds), and where it is right."""
    table = data.evaluation
    if folds is None:
        assert data.train is not None
        counts = np.bincount(data.train.labels, minlength=table.n_classes)
        correct = table.labels == counts.argmax()
        return majority_rate(table.labels, table.n_classes, data.train.labels), correct
    correct = np.empty(len(table), dtype=bool)
    for fold in np.unique(folds):
        inside = folds == fold
        counts = np.bincount(table.labels[~inside], minlength=table.n_classes)
        correct[inside] = table.labels[inside] == counts.argmax()
    return majority_rate(table.labels, table.n_classes), correct


def _metadata(data: AuditData, folds: IntArray | None) -> MetadataResult | None:
    table = data.evaluation
    if not table.metadata:
        return None
    train_codes, codes = aligned_codes(None if data.train is None else data.train.metadata, table.metadata)
    if train_codes is not None and data.train is not None:
        predictions = metadata_predictions(train_codes, data.train.labels, codes, table.n_classes)
    else:
        assert folds is not None
        predictions = metadata_predictions_out_of_fold(codes, table.labels, folds, table.n_classes)
    return MetadataResult(tuple(table.metadata), n_cells(codes), predictions, predictions == table.labels)
