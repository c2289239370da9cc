"""An aggregation result in the terminal and as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evidep.report.aggregate_sections import sections
from evidep.report.aggregate_words import Grid
from evidep.report.escape import cell, one_line, prose
from evidep.stats.aggregate.results import AggregateResult

if TYPE_CHECKING:
    from rich.console import Console

_LEAST_WIDTH = 80


def render(result: AggregateResult, console: Console) -> None:
    """Write the result to a rich console, in colour only where it is a terminal."""
    from rich.text import Text

    for section in sections(result):
        console.print()
        console.print(Text(one_line(section.heading), style="bold"), highlight=False)
        for sentence in section.sentences:
            _bullet(sentence, console)
        for grid in section.grids:
            console.print()
            _print_grid(grid, console)
        if section.grids and section.after:
            console.print()
        for sentence in section.after:
            _bullet(sentence, console)
    console.print()
    console.print(Text(one_line(result.signature), style="dim"), highlight=False, soft_wrap=True)


def markdown(result: AggregateResult) -> str:
    """The result as a Markdown page. Names of systems and tasks are escaped."""
    parts = ["# Scores over tasks"]
    for section in sections(result):
        parts.append(f"## {prose(section.heading)}")
        if section.sentences:
            parts.append("\n".join(f"- {prose(sentence)}" for sentence in section.sentences))
        parts += [_markdown_grid(grid) for grid in section.grids]
        if section.after:
            parts.append("\n".join(f"- {prose(sentence)}" for sentence in section.after))
    parts.append(cell(result.signature))
    return "\n\n".join(parts) + "\n"


def _bullet(sentence: str, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 1, 0, 0))
    grid.add_column(width=1)
    grid.add_column(ratio=1, overflow="fold")
    grid.add_row(Text("-"), Text(one_line(sentence)))
    console.print(grid, highlight=False)


def _print_grid(grid: Grid, console: Console) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for at, (head, side) in enumerate(zip(grid.heads, grid.sides, strict=True)):
        # Numbers are never wrapped: a digit on the next line is another number.
        table.add_column(
            Text(head), justify="right" if side == "r" else "left", overflow="fold", no_wrap=side == "r" and at > 0
        )
    most = max(18, console.width // 3)
    rows = [[one_line(text, most if at in grid.names else None) for at, text in enumerate(row)] for row in grid.rows]
    for row in rows:
        table.add_row(*(Text(text) for text in row))
    width = console.width
    # A terminal narrower than a table wraps its lines; cutting digits off a number would change it.
    console.width = max(width, _LEAST_WIDTH, _needed(grid, rows))
    console.print(table, highlight=False)
    console.width = width


def _needed(grid: Grid, rows: list[list[str]]) -> int:
    """Columns that a table takes when names and numbers stay on one line and other text wraps at 12."""
    widths = []
    for at, side in enumerate(grid.sides):
        widest = max(len(text) for text in [grid.heads[at], *(row[at] for row in rows)])
        widths.append(widest if side == "r" or at in grid.names else min(widest, 12))
    return sum(widths) + 2 * len(widths)


def _markdown_grid(grid: Grid) -> str:
    rule = ["---:" if side == "r" else "---" for side in grid.sides]
    rows = [
        [
            cell(text) if at in grid.names or at in grid.free else one_line(text).replace("|", "¦")
            for at, text in enumerate(row)
        ]
        for row in grid.rows
    ]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (grid.heads, rule, *rows))
