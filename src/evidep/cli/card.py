"""`evidep card`: an audit packet as a Markdown card, with figures and badge."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "card",
        help="write an audit card",
        description="A card that says in half a minute what an audit found. Without --out it is printed, no figures.",
    )
    parser.add_argument("packet", help="audit folder or packet.json")
    parser.add_argument(
        "--out",
        metavar="FOLDER_OR_FILE",
        help="folder for README.md (or a file NAME.md), packet.json and figures/; an existing file is replaced only "
        "where it is an audit card",
    )
    parser.add_argument("--badge", action="store_true", help="also write badge.svg and badge.json (for shields.io)")
    parser.add_argument("--front-matter", action="store_true", help="begin with YAML front matter for the Hub")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the card, or write it with what belongs to it."""
    from evidep.audit.packet import AuditPacket
    from evidep.errors import SettingError

    if arguments.badge and arguments.out is None:
        raise SettingError("--badge writes files: name a folder for them with --out")
    packet = AuditPacket.load(arguments.packet)
    if arguments.out is None:
        from evidep.report.card import audit_card

        sys.stdout.write(audit_card(packet, front_matter=arguments.front_matter))
        return 0
    from evidep.report.card_files import write_card

    for path in write_card(packet, Path(arguments.out), badge=arguments.badge, front_matter=arguments.front_matter):
        sys.stderr.write(f"{path}\n")
    return 0
