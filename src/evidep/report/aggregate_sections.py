"""An aggregation result as sections of sentences and tables. Terminal and Markdown show the same sections."""

from __future__ import annotations

import math

from evidep.report.aggregate_comparisons import comparison_section, tests_section
from evidep.report.aggregate_words import SHORT, Grid, Section, digits_of, p_text, range_text, rank_text, short, shown
from evidep.report.numerals import UNDEFINED, confidence, percent
from evidep.stats.aggregate.conflict import MIN_SYSTEMS
from evidep.stats.aggregate.results import Aggregate, AggregateResult, Standing

MOST_SYSTEMS = 20
MOST_WIDE = 6


def sections(result: AggregateResult) -> tuple[Section, ...]:
    """Everything that a reader of the result should see, the verdict first."""
    found = [
        _verdict(result),
        _side_by_side(result),
        _ranks(result),
        _values(result),
        _stability(result),
        tests_section(result),
        comparison_section(result),
        _tasks(result),
        _widths(result),
        _audits(result),
        _notes(result),
    ]
    return tuple(section for section in found if section is not None)


def _rank_range(standing: Standing) -> str:
    ci = standing.rank_ci
    return UNDEFINED if math.isnan(ci.low) else f"{rank_text(ci.low)}–{rank_text(ci.high)}"


def _defined(result: AggregateResult) -> list[Aggregate]:
    return [aggregate for aggregate in result.aggregates if aggregate.standings]


def _verdict(result: AggregateResult) -> Section:
    table = result.table
    head = f"{len(table.systems)} systems on {len(table.tasks)} tasks"
    return Section(head, (*result.verdict, result.covers))


def _side_by_side(result: AggregateResult) -> Section:
    rows = []
    for aggregate in _defined(result):
        first = aggregate.standings[0]
        digits = digits_of(standing.value for standing in aggregate.standings)
        rows.append(
            (
                aggregate.title,
                " = ".join(aggregate.winners[:3]) + (" = …" if len(aggregate.winners) > 3 else ""),
                shown(first.value, digits),
                range_text(first.ci, digits),
                UNDEFINED if math.isnan(first.p_first) else percent(first.p_first),
            )
        )
    reasons: dict[str, list[str]] = {}
    for aggregate in result.aggregates:
        if not aggregate.standings:
            reasons.setdefault(aggregate.reason or "", []).append(aggregate.title)
    missing = tuple(f"Undefined: {'; '.join(titles)}. Why: {reason}." for reason, titles in reasons.items())
    left_out = tuple(
        f"{aggregate.title} leaves out {name}: {reason}."
        for aggregate in _defined(result)
        if aggregate.name in ("z_score", "chance_normalised")
        for name, reason in aggregate.excluded.items()
    )
    level = confidence(result.settings.alpha)
    heads = ("aggregate", "first", "value", level, "P(first)")
    notes = tuple(dict.fromkeys(f"{a.title}: {a.note}" for a in _defined(result) if a.note))
    return Section(
        "Aggregates side by side", (), (Grid(heads, "llrrr", tuple(rows), (1,)),), (*missing, *left_out, *notes)
    )


def _shown_systems(result: AggregateResult) -> tuple[list[str], tuple[str, ...]]:
    ordered = [standing.system for standing in result.aggregate("mean_rank").standings]
    if len(ordered) <= MOST_SYSTEMS:
        return ordered, ()
    return ordered[:MOST_SYSTEMS], (f"The first {MOST_SYSTEMS} of {len(ordered)} systems by mean rank; JSON has all.",)


def _ranks(result: AggregateResult) -> Section | None:
    systems, note = _shown_systems(result)
    if len(systems) < 2:
        return None
    aggregates = _defined(result)
    places = [{standing.system: standing for standing in aggregate.standings} for aggregate in aggregates]
    rows = tuple(
        (system, *(rank_text(place[system].rank) if system in place else UNDEFINED for place in places))
        for system in systems
    )
    heads = ("system", *(SHORT[aggregate.name] for aggregate in aggregates))
    sentence = (
        "No column is the true order; listed by mean rank for want of a better order."
        if not result.single_order
        else "No column is the true order; systems are listed by mean rank."
    )
    return Section(
        "Rank of each system under each aggregate", (sentence,), (Grid(heads, "l" + "r" * len(aggregates), rows),), note
    )


def _values(result: AggregateResult) -> Section:
    systems, note = _shown_systems(result)
    defined = {aggregate.name: aggregate for aggregate in _defined(result)}
    mean = next((defined[name] for name in ("macro", "chance_normalised", "z_score") if name in defined), None)
    aggregates = [*([mean] if mean else []), defined["mean_rank"]]
    level = confidence(result.settings.alpha)
    heads, sides = ["system"], "l"
    for aggregate in aggregates:
        heads += [SHORT[aggregate.name], level]
        sides += "rr"
    heads.append("rank " + level)
    rows = []
    for system in systems:
        cells = [system]
        for aggregate in aggregates:
            digits = digits_of(standing.value for standing in aggregate.standings)
            standing = aggregate.standing(system)
            cells += [shown(standing.value, digits), range_text(standing.ci, digits)]
        rows.append((*cells, _rank_range(result.aggregate("mean_rank").standing(system))))
    return Section("Values with intervals", (), (Grid(tuple(heads), sides + "r", tuple(rows)),), note)


def _stability(result: AggregateResult) -> Section | None:
    if len(result.table.systems) < 2 or len(result.table.tasks) < 2:
        return None
    sentences = []
    for aggregate in _defined(result):
        changed = [left for left in aggregate.leave_one_out if left.winners != aggregate.winners]
        parts = []
        if aggregate.leave_one_out:
            most = max((left.moved for left in aggregate.leave_one_out if not math.isnan(left.moved)), default=0.0)
            if changed:
                parts.append(
                    f"first changes without {', '.join(left.task for left in changed[:5])}"
                    + (f" (and {len(changed) - 5} more)" if len(changed) > 5 else "")
                )
            else:
                parts.append("first is the same without any one task")
            parts.append(f"no system moves by more than {rank_text(most)} rank(s)")
        if aggregate.flip is not None:
            parts.append(
                f"moving {percent(aggregate.flip.moved_share)} of the weight between tasks draws "
                f"{aggregate.flip.rival} level"
            )
        elif aggregate.task_weights is not None and aggregate.flip_reason:
            parts.append(aggregate.flip_reason)
        if parts:
            sentences.append(f"{SHORT[aggregate.name]}: " + "; ".join(parts) + ".")
    if result.kemeny is not None:
        found = result.kemeny
        if found.exact and not math.isnan(found.n_optimal):
            text = f"exact, {found.n_optimal:.0f} optimal order(s)"
        else:
            text = "proven optimal" if found.exact else f"approximate; no order has cost below {found.lower_bound:g}"
        sentences.append(f"Kemeny order contradicts {found.cost:g} comparisons within tasks ({text}).")
    return Section("How firm is it", tuple(sentences))


def _tasks(result: AggregateResult) -> Section | None:
    found = result.agreement
    if len(result.table.systems) < 2:
        return None
    sentences = []
    if found.reason is None:
        for pair in found.opposed[:10]:
            sentences.append(
                f"Opposed: {pair.tasks[0]} and {pair.tasks[1]} (tau {pair.correlation:.2f} "
                f"{range_text(pair.ci, 2)}, {p_text(pair.p_opposed)})."
            )
        if not found.opposed:
            sentences.append(
                f"No pair of tasks is opposed with support ({found.negative} with negative tau, all within noise)."
                if found.negative
                else "No two tasks order the systems in opposite ways."
            )
        sentences.append(found.covers)
        for pair in found.redundant[:10]:
            sentences.append(
                f"Redundant: {pair.tasks[0]} and {pair.tasks[1]} order the systems alike (Spearman "
                f"{pair.correlation:.3f} {range_text(pair.ci, 2)} over {len(result.table.systems)} systems)."
            )
        if len(result.table.systems) < MIN_SYSTEMS:
            sentences.append(f"Fewer than {MIN_SYSTEMS} systems: no two tasks can be called redundant.")
        elif not found.redundant:
            sentences.append(f"No two tasks are redundant (Spearman of {result.settings.redundant_at:g} or more).")
    front = result.pareto
    names = ", ".join(front[:MOST_SYSTEMS]) + (
        f" and {len(front) - MOST_SYSTEMS} more" if len(front) > MOST_SYSTEMS else ""
    )
    sentences.append(
        f"Pareto front, dominated by no other system ({len(front)} of {len(result.table.systems)}): {names}."
    )
    return Section("Do the tasks agree", tuple(sentences))


def _widths(result: AggregateResult) -> Section | None:
    if not result.wide:
        return None
    sentences = [f"{task}: {sentence}" for task, sentence in result.wide.items()]
    more = len(sentences) - MOST_WIDE
    rest = (f"Likewise {', '.join(list(result.wide)[MOST_WIDE:])}.",) if more > 0 else ()
    return Section("Where single tasks cannot tell systems apart", (*sentences[:MOST_WIDE], *rest))


def _audits(result: AggregateResult) -> Section | None:
    link = result.evidence
    if link is None:
        return None
    sentences = [
        f"{audit.task}: {audit.region} ({audit.source})" + (", left out below." if audit.failed else ", kept.")
        for audit in link.audits
    ]
    if link.unaudited:
        sentences.append(f"Not audited, kept: {', '.join(link.unaudited)}.")
    if link.reason:
        return Section(
            "Without tasks that failed their audit", (*sentences, f"{link.reason[0].upper()}{link.reason[1:]}.")
        )
    rows = []
    for change in link.changes:
        moved = "; ".join(
            f"{short(m.system)} {rank_text(m.rank_all)} → {rank_text(m.rank_kept)}" for m in change.moved[:3]
        ) + (f" and {len(change.moved) - 3} more" if len(change.moved) > 3 else "")
        rows.append(
            (
                SHORT[change.method],
                " = ".join(short(name) for name in change.winners_all[:2]),
                " = ".join(short(name) for name in change.winners_kept[:2])
                if change.winners_kept
                else f"{UNDEFINED} ({change.reason})",
                moved or "nothing moved",
            )
        )
    heads = ("aggregate", "first, all tasks", "first, without failed", "what moved (rank)")
    return Section(
        "Without tasks that failed their audit", tuple(sentences), (Grid(heads, "llll", tuple(rows), (), (1, 2, 3)),)
    )


def _notes(result: AggregateResult) -> Section | None:
    return Section("Notes on the input", result.notes) if result.notes else None
