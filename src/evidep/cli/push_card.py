"""`evidep push-card`: an audit as a pull request on the dataset that it is about."""

from __future__ import annotations

import argparse
import logging
import sys
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "push-card",
        help="attach an audit to its dataset on the Hub, as a pull request",
        description="Shows what would change on the dataset. With --yes it is sent as one commit in a pull request: a "
        "section of README.md between markers, the packet, a badge and figures. A second run updates them.",
    )
    parser.add_argument("packet", help="audit folder or packet.json")
    parser.add_argument("--dataset", required=True, metavar="ORG/NAME", help="dataset on the Hub")
    parser.add_argument("--folder", default="audit", help="folder in the dataset (default audit)")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds the Hub may take to answer (default 60)")
    parser.add_argument("--yes", action="store_true", help="send it; without this nothing is sent")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Show the difference, and send it where asked to."""
    from evidep.audit.packet import AuditPacket
    from evidep.hub.attach import README, attach
    from evidep.hub.client import Hub, quiet_unless_watched
    from evidep.report.escape import one_line

    logging.getLogger("evidep.hub").addHandler(logging.StreamHandler(sys.stderr))
    quiet_unless_watched()
    packet = AuditPacket.load(arguments.packet)
    called = packet["data"]["name"]
    if called != arguments.dataset:
        sys.stderr.write(f"evidep: note: the packet calls its data {one_line(called)}, not {arguments.dataset}\n")
    hub = Hub(timeout=arguments.timeout)
    done = attach(packet, arguments.dataset, folder=arguments.folder, send=arguments.yes, hub=hub)
    if done.nothing_to_do:
        where = done.url or f"dataset {done.dataset}"
        sys.stderr.write(f"evidep: nothing to do: {where} already holds this audit\n")
        return 0
    sys.stdout.write(done.diff)
    for path, content in done.files.items():
        if path != README:
            sys.stdout.write(f"{path}: {len(content):,} bytes, new or changed\n")
    for path in done.unchanged:
        sys.stdout.write(f"{path}: unchanged\n")
    target = "a new pull request" if done.pull_request is None else f"pull request {done.pull_request}"
    if arguments.yes:
        sys.stderr.write(f"evidep: sent as {target}: {done.url}\n")
    else:
        sys.stderr.write(f"evidep: dry run, nothing was sent; --yes sends this as {target} on {done.dataset}\n")
    return 0
