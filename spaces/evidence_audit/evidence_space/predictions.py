"""A visitor's own predictions: the template with the shuffles drawn, and ΔEvi and MPDS of the filled one."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evidence_space import limits
from evidence_space.markup import bullets, table, text
from evidence_space.origins import Origin
from evidence_space.plots import FAMILIES, axis, base_figure, vertical_line
from evidence_space.sheets import column_texts, write_sheet
from evidep.audit.from_predictions import delta_evi_from_predictions, delta_evi_values, mpds_from_predictions
from evidep.audit.packet import plain
from evidep.data.conditions import shuffle
from evidep.data.loading import NO_TRAIN, load_audit_data
from evidep.data.sources import Source
from evidep.errors import DataError
from evidep.report.escape import one_line
from evidep.report.figures_shuffles import stacked
from evidep.report.numerals import confidence, interval, number, p_value, percent
from evidep.report.words import VERDICTS
from evidep.stats.mpds import Mpds
from evidep.types import ColumnRoles, DeltaEvi

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ITEM, ID, LABEL, PREDICTION, GROUP = "item", "id", "label", "prediction", "group"
META: Final = "meta:"
_SHUFFLED: Final = re.compile(r"prediction[_ ]?(\d{1,4})")
_ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True)
class Template:
    """What a template holds; `unchanged` is the share of items that a shuffle leaves with an equal text."""

    items: int
    left_out: int
    k: int
    unchanged: float


def write_template(origin: Origin, roles: ColumnRoles, path: Path, *, k: int, seed: int, with_texts: bool) -> Template:
    """Write one row per item: its texts and label, an empty prediction, and for each shuffle whose evidence to show.

    The columns `donor_1` ... hold item numbers; `evidence_1` ... the texts behind them, where `with_texts`. Items whose
    evidence no shuffle can change are left out: ΔEvi is about the others.

    Raises:
        DataError: The rows cannot be used, or the file would be too large.
    """
    data = load_audit_data(origin.first, roles=roles, train_split=NO_TRAIN)
    full = data.evaluation
    drawn = shuffle(full, "global", 0, seed=seed)
    keep = np.flatnonzero(drawn.movable)
    if len(keep) < 2:
        raise DataError("all items have the same evidence, so that no shuffle can change it")
    items = full if len(keep) == len(full) else full.under(keep, keep, name="movable")
    shuffles = [shuffle(items, "global", number_, seed=seed) for number_ in range(k)]
    donors = np.stack([one.donors for one in shuffles])
    evidence, queries = items.evidence.to_list(), items.queries.to_list()
    if with_texts:
        size = sum(len(evidence[at] or "") for at in range(len(items))) * (k + 1)
        if size > limits.MAX_FILE_BYTES:
            raise DataError(
                f"with the swapped texts the file would have about {size / 1024**2:.0f} MB, more than the "
                f"{limits.MAX_FILE_BYTES // 1024**2} MB that can be uploaded again: leave the texts out (the donor "
                "numbers say whose evidence to show), or use fewer shuffles"
            )
    names = [name for name in items.metadata]
    metadata = {name: items.metadata[name].to_list() for name in names}
    heads = [ITEM, ID, GROUP, "query", "evidence", LABEL, *(META + name for name in names), PREDICTION]
    for number_ in range(1, k + 1):
        heads += [f"donor_{number_}", *([f"evidence_{number_}"] if with_texts else []), f"prediction_{number_}"]
    rows = []
    for at in range(len(items)):
        row: list[Any] = [at, items.ids[at].as_py(), int(items.groups[at]), queries[at], evidence[at] or ""]
        row += [items.label_names[int(items.labels[at])], *(metadata[name][at] or "" for name in names), ""]
        for other in donors[:, at].tolist():
            row += [other, *([evidence[other] or ""] if with_texts else []), ""]
        rows.append(row)
    write_sheet(path, heads, rows)
    unchanged = float(np.mean([one.unchanged_rate for one in shuffles]))
    return Template(len(items), len(full) - len(items), k, unchanged)


@dataclass(frozen=True, slots=True, eq=False)
class Filled:
    """Predictions read from a file. Lists have one entry per item."""

    name: str
    labels: list[str]
    predictions: list[str]
    shuffled: list[list[str]]
    donors: list[list[int]] | None
    groups: list[str] | None
    metadata: dict[str, list[str]]
    notes: tuple[str, ...] = ()


def read_filled(source: Source, name: str, metadata: Sequence[str] = ()) -> Filled:
    """A filled template, or any table with label, prediction and prediction_1 ... prediction_K.

    Args:
        source: The rows.
        name: What the file is called.
        metadata: Columns beside those named meta:... that might give the label away.

    Raises:
        DataError: Columns missing, cells empty, donors that are no item numbers.
    """
    lowered = {column.strip().lower(): column for column in source.columns}
    for role in (LABEL, PREDICTION):
        if role not in lowered:
            raise DataError(
                f"{name} has no column {role!r}; it needs {LABEL}, {PREDICTION} and {PREDICTION}_1 to {PREDICTION}_K "
                f"(K at least {limits.MIN_K}). It has {', '.join(one_line(c, 30) for c in source.columns[:12])}"
            )
    numbered = sorted((int(m[1]), column) for low, column in lowered.items() if (m := _SHUFFLED.fullmatch(low)))
    if len(numbered) < limits.MIN_K:
        raise DataError(
            f"{name} has {len(numbered)} columns of predictions with swapped evidence ({PREDICTION}_1, ...); at least "
            f"{limits.MIN_K} are needed, fewer can never reach p = 0.05"
        )
    limits.check_k(len(numbered))
    labels = _complete(source, lowered[LABEL], name)
    shuffled = [_complete(source, column, name) for _, column in numbered]
    donor_columns = [lowered.get(f"donor_{at}") for at, _ in numbered]
    donors, notes = None, []
    if all(donor_columns):
        donors = [_donors(source, str(column), name, len(labels)) for column in donor_columns]
        if ITEM in lowered and column_texts(source, lowered[ITEM]) != [str(at) for at in range(len(labels))]:
            raise DataError(f"{name}: the rows are not in the order of the template (column {ITEM}: 0, 1, 2, ...)")
    else:
        notes.append(
            "No donor columns: the interval holds for items like these and this pool of evidence, not for other "
            "evidence texts."
        )
    columns = {c.removeprefix(META): c for c in source.columns if c.startswith(META)}
    for column in metadata:
        if column not in source.columns:
            raise DataError(f"{name} has no column {one_line(column, 60)!r}")
        columns.setdefault(column, column)
    groups = column_texts(source, lowered[GROUP]) if GROUP in lowered else None
    if groups is not None and "" in groups:
        raise DataError(
            f"{name}, row {groups.index('')}: no {GROUP}; give every item one, a single item one of its own"
        )
    if groups is None:
        notes.append("No group column: items are taken as independent.")
    return Filled(
        name,
        labels,
        _complete(source, lowered[PREDICTION], name),
        shuffled,
        donors,
        groups,
        {shown: column_texts(source, column) for shown, column in columns.items()},
        tuple(notes),
    )


def _complete(source: Source, column: str, name: str) -> list[str]:
    values = column_texts(source, column)
    if "" in values:
        empty = values.count("")
        raise DataError(
            f"{name}, row {values.index('')}: the column {one_line(column, 40)!r} is empty ({empty:,} of "
            f"{len(values):,} rows): fill in an answer for every row; a missing answer needs "
            "a label of its own, such as none"
        )
    return values


def _donors(source: Source, column: str, name: str, n: int) -> list[int]:
    values = column_texts(source, column)
    for row, value in enumerate(values):
        if not value.isdecimal() or int(value) >= n:
            raise DataError(
                f"{name}, row {row}: {column} must be an item number from 0 to {n - 1}, got {one_line(value, 40)!r}"
            )
    return [int(value) for value in values]


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """ΔEvi and, where metadata are named, MPDS of somebody's predictions."""

    name: str
    delta: DeltaEvi
    mpds: Mpds | None
    n_items: int
    notes: tuple[str, ...]


def score(filled: Filled, *, margin: float = 0.02, seed: int = 0) -> Scores:
    """Both scores, by the same functions as the evaluate modules.

    Raises:
        EvidepError: Labels or settings that do not fit.
    """
    delta = delta_evi_from_predictions(
        filled.predictions, filled.labels, filled.shuffled, donors=filled.donors, groups=filled.groups, alpha=_ALPHA,
        margin=margin,
    )  # fmt: skip
    mpds = None
    if filled.metadata:
        mpds = mpds_from_predictions(
            filled.predictions, filled.labels, filled.metadata, groups=filled.groups, alpha=_ALPHA, seed=seed
        )
    return Scores(filled.name, delta, mpds, len(filled.labels), filled.notes)


def as_dict(scores: Scores) -> dict[str, Any]:
    """The result for programs; undefined numbers are None beside a reason."""
    values: dict[str, Any] = {"delta_evi": delta_evi_values(scores.delta), "n_items": scores.n_items}
    if scores.mpds is not None:
        found = scores.mpds
        values["mpds"] = {
            "mpds": found.mpds,
            "accuracy_metadata": found.accuracy_metadata,
            "accuracy_full": found.accuracy_full,
            "majority_rate": found.majority_rate,
            "mpds_chance_corrected": found.mpds_chance_corrected,
            "ci": [found.ci.low, found.ci.high],
            "reasons": found.reasons,
        }
    result: dict[str, Any] = plain(values | {"notes": scores.notes})
    return result


def verdict(scores: Scores) -> str:
    """The verdict in a box."""
    delta = scores.delta
    kind = {"sensitive": "good", "equivalent": "bad"}.get(delta.verdict, "open")
    words = {
        "sensitive": "These predictions need the evidence",
        "equivalent": "These predictions do not react to the evidence",
        "inconclusive": "Inconclusive: too few items to tell",
        "not_applicable": "Not applicable",
    }[delta.verdict]
    if delta.negligible:
        words = "Detectable but negligible: these predictions hardly react to the evidence"
    line = (
        f"Right on {number(delta.accuracy_full)} of {scores.n_items:,} items with their own evidence, on "
        f"{number(delta.accuracy_full - delta.mean)} with swapped evidence: ΔEvi {number(delta.mean)}, "
        f"{confidence(_ALPHA)} interval {interval(_ends(delta.ci))}, p {p_value(_finite(delta.p_value))}, "
        f"{VERDICTS[delta.verdict]}."
        if math.isfinite(delta.mean)
        else f"ΔEvi is undefined: {delta.reason}."
    )
    more = "" if delta.items_needed is None else f"<p>About {delta.items_needed:,} items would settle it.</p>"
    return (
        f'<section class="ev-verdict ev-{kind}" role="status" aria-label="verdict"><p class="ev-small">Predictions in '
        f"{text(scores.name, 60)}</p><h2>{words}</h2><p>{text(line)}</p>{more}</section>"
    )


def numbers(scores: Scores) -> str:
    """All values as tables, with notes."""
    delta = scores.delta
    rows = [
        ("accuracy, own evidence", number(_finite(delta.accuracy_full))),
        ("accuracy, swapped evidence, mean", number(_finite(delta.accuracy_full - delta.mean))),
        ("ΔEvi", f"{number(_finite(delta.mean))} {interval(_ends(delta.ci))}"),
        ("SD over the shuffles (no standard error)", number(_finite(delta.sd_population), 4)),
        ("standard error", number(_finite(delta.standard_error), 4)),
        ("smallest ΔEvi found with 80 % power", number(_finite(delta.minimum_detectable_effect))),
        ("shuffles", str(len(delta.accuracy_shuffled))),
        ("independent groups", f"{delta.n_groups:,}"),
    ]
    parts = [table("ΔEvi", ("What", "Value"), rows, numeric=(1,))]
    if scores.mpds is not None:
        found = scores.mpds
        parts.append(
            table(
                "MPDS: accuracy of metadata alone over accuracy of the predictions",
                ("What", "Value"),
                [
                    ("MPDS", f"{number(_finite(found.mpds))} {interval(_ends(found.ci))}"),
                    ("metadata alone", number(_finite(found.accuracy_metadata))),
                    ("majority rate", number(_finite(found.majority_rate))),
                    ("MPDS above chance", number(_finite(found.mpds_chance_corrected))),
                ],
                numeric=(1,),
            )
        )
    notes = [*scores.notes, *([delta.reason] if delta.reason else [])]
    if scores.mpds is None:
        notes.append("No metadata columns, so there is no MPDS: name columns meta:... or choose them above.")
    else:
        notes += [f"{what}: {reason}" for what, reason in scores.mpds.reasons.items()]
    return "".join(parts) + bullets("Notes", notes)


def figure(scores: Scores) -> Figure:
    """One dot per shuffle beside the accuracy with the own evidence."""
    values = np.array(scores.delta.accuracy_shuffled, dtype=np.float64)
    drawn = base_figure(
        210, showlegend=False, xaxis=axis("accuracy"), yaxis=axis("", visible=False, range=[0.8, -0.8]),
        shapes=[] if scores.mpds is None else [vertical_line(scores.mpds.majority_rate)],
    )  # fmt: skip
    if len(values):
        colour, symbol = FAMILIES["global"]
        drawn.add_scatter(
            x=values.tolist(), y=stacked(values).tolist(), mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 7},
            hovertext=[f"shuffle {at}: {number(value)}" for at, value in enumerate(values.tolist(), 1)],
            hoverinfo="text",
        )  # fmt: skip
    if math.isfinite(scores.delta.accuracy_full):
        full = float(scores.delta.accuracy_full)
        drawn.add_scatter(
            x=[full], y=[0], mode="markers+text", text=["own evidence"], textposition="top center",
            marker={"symbol": "line-ns", "size": 30, "line": {"width": 4, "color": "#d62728"}},
            hovertext=[f"own evidence: {number(full)}"], hoverinfo="text",
        )  # fmt: skip
    return drawn


def summary_line(made: Template) -> str:
    """What a template holds and what to do with it."""
    k = made.k
    out = f" {made.left_out:,} items are left out: no shuffle can change their evidence." if made.left_out else ""
    if made.unchanged:
        out += f" One text is so common that {percent(made.unchanged)} of the swapped evidence is an equal text."
    return (
        f"{made.items:,} items, {k} shuffles drawn.{out} Fill in the column prediction (own evidence) and prediction_1 "
        f"to prediction_{k} (the evidence of item donor_1 to donor_{k}), keep the rows in order, and upload it below."
    )


def check_rows(rows: Mapping[str, Any]) -> None:
    """Refuse API input that is larger than a file may be."""
    n = max((len(value) for value in rows.values() if isinstance(value, list)), default=0)
    if n > limits.MAX_ROWS:
        raise DataError(f"got {n:,} items, more than the {limits.MAX_ROWS:,} that this Space takes")


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _ends(ci: Any) -> tuple[float, float] | None:
    return (ci.low, ci.high) if math.isfinite(ci.low) and math.isfinite(ci.high) else None
