"""Two audits side by side: for a terminal and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from evidep.audit.compare import Change, Comparison
from evidep.report.escape import MARKDOWN, PLAIN, Quoting, cell, one_line, prose
from evidep.report.numerals import UNDEFINED, count, interval, number
from evidep.report.words import REGIONS

if TYPE_CHECKING:
    from rich.console import Console

TITLES: Final = {"delta_evi": "ΔEvi", "mpds": "MPDS", "accuracy": "accuracy"}
HEADS: Final = ("value", "reader", "old", "new", "change", "interval", "beyond noise")


def comparison_markdown(comparison: Comparison) -> str:
    """The comparison as a Markdown section."""
    rows = [f"| {' | '.join((cells[0], cell(cells[1]), *cells[2:]))} |" for cells in _rows(comparison)]
    notes = [f"- {prose(note)}" for note in (*_reasons(comparison), *comparison.notes)]
    parts = [
        f"### {_title(comparison, MARKDOWN)}",
        _regions(comparison),
        _items(comparison, MARKDOWN),
        "\n".join([f"| {' | '.join(HEADS)} |", "| --- | --- | ---: | ---: | ---: | ---: | --- |", *rows]),
        *(["\n".join(notes)] if notes else []),
        "\n".join(f"- {which}: {MARKDOWN.name(line)}" for which, line in _signatures(comparison)),
    ]
    return "\n\n".join(parts) + "\n"


def render_comparison(comparison: Comparison, console: Console) -> None:
    """Print the comparison."""
    from rich.table import Table
    from rich.text import Text

    def line(text: str, *, soft_wrap: bool = False) -> None:
        console.print(Text(text), soft_wrap=soft_wrap)

    line(_title(comparison, PLAIN))
    line(_regions(comparison))
    line(_items(comparison, PLAIN))
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for number_of, head in enumerate(HEADS):
        numeric, wraps = 2 <= number_of <= 5, head in ("reader", "beyond noise")
        table.add_column(Text(head), justify="right" if numeric else "left", no_wrap=not wraps, min_width=6)
    for cells in _rows(comparison):
        table.add_row(*(Text(one_line(text)) for text in cells))
    console.print(table)
    for note in (*_reasons(comparison), *comparison.notes):
        line(f"- {one_line(note)}")
    for which, signature in _signatures(comparison):
        line(f"{which}: {one_line(signature)}", soft_wrap=True)


def _title(comparison: Comparison, quote: Quoting) -> str:
    old, new = comparison.names
    return f"Audits of {quote.name(old)}" if old == new else f"Audits of {quote.name(old)} and {quote.name(new)}"


def _regions(comparison: Comparison) -> str:
    old, new = (REGIONS[region].title for region in comparison.regions)
    return f"Region: {new}, as before." if old == new else f"Region: {old} before, {new} now."


def _items(comparison: Comparison, quote: Quoting) -> str:
    items = comparison.items
    sizes = f"{count(items.old)} items before, {count(items.new)} now"
    if items.reason is not None:
        return f"{sizes}; not matched: {quote.sentence(items.reason)}."
    relabelled = f", {count(items.relabelled)} of them with another label" if items.relabelled else ""
    return f"{sizes}, {count(items.matched)} in both{relabelled}."


def _rows(comparison: Comparison) -> Iterator[tuple[str, ...]]:
    several = len({change.fit for change in comparison.changes}) > 1
    for change in comparison.changes:
        title = TITLES[change.quantity] + (f", {change.shuffle}" if change.shuffle else "")
        reader = f"{change.reader} (fit {change.fit + 1})" if several else change.reader
        difference = _number(change.difference)
        if change.difference > 0 and float(difference) > 0:
            difference = f"+{difference}"
        ci = UNDEFINED if math.isnan(change.ci[0]) else interval(change.ci)
        yield title, reader, _number(change.old), _number(change.new), difference, ci, _outcome(change)


def _number(value: float) -> str:
    return UNDEFINED if math.isnan(value) else number(value)


def _outcome(change: Change) -> str:
    return "no" if change.outcome == "no difference shown" else change.outcome


def _reasons(comparison: Comparison) -> list[str]:
    """Why values are undefined, each reason once."""
    return list(
        dict.fromkeys(f"{TITLES[change.quantity]}: {change.reason}" for change in comparison.changes if change.reason)
    )


def _signatures(comparison: Comparison) -> Iterator[tuple[str, str]]:
    yield from zip(("old", "new"), comparison.signatures, strict=True)
