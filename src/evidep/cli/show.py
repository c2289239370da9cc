"""`evidep show`: an audit packet for people."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "show",
        help="show an audit packet",
        description="Verdict, reasons, tables and a map of an audit on stdout; pictures where asked for.",
    )
    parser.add_argument("packet", help="audit folder or packet.json")
    parser.add_argument("--figures", metavar="DIR", help="also write the figures there")
    parser.add_argument(
        "--format", type=_names, default=("png",), metavar="F1,F2", help="formats of the figures: png,svg (default png)"
    )
    parser.add_argument("--json", action="store_true", help="the packet as JSON on stdout instead of text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show, and draw."""
    from evidep.audit.packet import AuditPacket

    packet = AuditPacket.load(arguments.packet)
    if arguments.json:
        sys.stdout.write(packet.to_json() + "\n")
    else:
        from evidep.cli.console import results_console
        from evidep.report.text import render

        render(packet, results_console())
    if arguments.figures is not None:
        from evidep.report.figures import save_figures

        for path in save_figures(packet, arguments.figures, arguments.format):
            sys.stderr.write(f"{path}\n")
    return 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
