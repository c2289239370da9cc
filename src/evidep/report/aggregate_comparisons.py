"""The sections of an aggregation report that hold tests and the comparison of two systems."""

from __future__ import annotations

import math

from evidep.report.aggregate_words import SHORT, Grid, Section, digits_of, p_text, range_text, shown
from evidep.report.numerals import UNDEFINED, confidence, number, p_value
from evidep.stats.aggregate.compare import Comparison, PartialConjunction
from evidep.stats.aggregate.results import AggregateResult

MOST_PAIRS = 15


def tests_section(result: AggregateResult) -> Section | None:
    """Friedman, Nemenyi and Wilcoxon over tasks; None with one system."""
    if len(result.table.systems) < 2:
        return None
    names, alpha = result.table.systems, result.settings.alpha
    sentences = [f"Over {len(result.test_tasks)} task(s) that every system has, tasks as blocks."]
    test = result.friedman
    if math.isnan(test.p_value):
        sentences.append(f"Friedman: undefined, {test.reason}.")
    else:
        f_text = f"; Iman–Davenport {p_text(test.f_p_value)}"
        agreement = f"; Kendall's W = {number(test.kendall_w, 2)}" if not math.isnan(test.kendall_w) else ""
        sentences.append(
            f"Friedman: chi-square {test.statistic:.1f}, {p_text(test.p_value)}{f_text}{agreement}"
            + (f" ({test.reason})." if test.reason else ".")
        )
    post = result.nemenyi
    if math.isnan(post.critical_difference):
        sentences.append(f"Nemenyi: undefined, {post.reason}.")
    else:
        sentences.append(f"Nemenyi: mean ranks less than {post.critical_difference:.2f} apart are not told apart.")
    pairs = result.wilcoxon
    grids: tuple[Grid, ...] = ()
    if len(pairs.p_value):
        holm, bh = int((pairs.p_holm <= alpha).sum()), int((pairs.p_bh <= alpha).sum())
        sentences.append(
            f"Wilcoxon signed-rank over tasks: {holm} of {len(pairs.p_value)} pairs differ after Holm, {bh} after "
            "Benjamini–Hochberg."
        )
        if len(pairs.p_value) <= MOST_PAIRS:
            rows = tuple(
                (
                    names[a],
                    names[b],
                    number(float(pairs.effect[at]), 2),
                    p_value(float(pairs.p_value[at])),
                    p_value(float(pairs.p_holm[at])),
                    p_value(float(pairs.p_bh[at])),
                )
                for at, (a, b) in enumerate(pairs.pairs.tolist())
            )
            grids = (Grid(("a", "b", "effect", "p", "Holm", "BH"), "llrrrr", rows, (0, 1)),)
    if pairs.reason:
        sentences.append(f"Wilcoxon: {pairs.reason}.")
    after = ("Effect: rank-biserial correlation, positive where a is better.",) if grids else ()
    return Section("Tests over tasks", tuple(sentences), grids, after)


def comparison_section(result: AggregateResult) -> Section | None:
    """Two systems, per task and per aggregate; None with one system."""
    found = result.comparison
    if found is None:
        return None
    rows = []
    level = confidence(result.settings.alpha)
    for task in found.tasks:
        digits = digits_of([task.difference, task.ci.low, task.ci.high])
        rows.append(
            (
                task.task,
                shown(task.difference, digits),
                range_text(task.ci, digits),
                UNDEFINED if math.isnan(task.p_a_better) else p_value(task.p_a_better),
                UNDEFINED if math.isnan(task.p_b_better) else p_value(task.p_b_better),
                shown(task.effect, 2),
            )
        )
    grid = Grid(("task", "a − b", level, "p(a better)", "p(b better)", "effect"), "lrrrrr", tuple(rows))
    if all(row[2:] == (UNDEFINED,) * 4 for row in rows):
        grid = Grid(("task", "a − b"), "lr", tuple(row[:2] for row in rows))
    tests = sorted({task.test for task in found.tasks} - {"none"})
    effects = sorted({task.effect_name for task in found.tasks} - {"none"})
    after = [f"Tests: {', '.join(tests)}. Effect: {', '.join(effects)}."] if tests else []
    after += list(
        dict.fromkeys(f"{task.reason}." for task in found.tasks if task.reason and task.reason != "identical")
    )[:4]
    aggregates = _aggregate_differences(found, level)
    return Section(
        f"a = {found.a}, b = {found.b}",
        (
            f"a has the better score on {found.wins[0]} task(s), b on {found.wins[2]}, tied on {found.wins[1]}.",
            _at_least("a", found.a_better_on, result.settings.alpha),
            _at_least("b", found.b_better_on, result.settings.alpha),
        ),
        (grid, aggregates),
        tuple(after),
    )


def _aggregate_differences(found: Comparison, level: str) -> Grid:
    rows = []
    for item in found.methods:
        digits = digits_of([item.difference, item.ci.low, item.ci.high])
        rows.append(
            (
                SHORT[item.method],
                shown(item.difference, digits),
                range_text(item.ci, digits),
                UNDEFINED if math.isnan(item.p_value) else p_value(item.p_value),
                item.reason
                if item.reason == "identical"
                else "a"
                if item.a_better
                else "b"
                if item.difference
                else "tied",
            )
        )
    return Grid(("aggregate", "a − b", level, "p", "better"), "lrrrl", tuple(rows), ())


def _at_least(name: str, found: PartialConjunction, alpha: float) -> str:
    if found.reason:
        return f"On how many tasks {name} is better: undefined, {found.reason}."
    by_name = f": {', '.join(found.named)} by name (Holm)" if found.named else ""
    return (
        f"{name} is better on at least {found.at_least} of {found.n_tasks} tasks{by_name} (partial conjunction, error "
        f"rate {alpha:g} under any dependence; by Fisher's combination for independent tasks at least "
        f"{found.at_least_independent})."
    )
