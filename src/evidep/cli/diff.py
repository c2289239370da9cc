"""`evidep diff`: two audits, or two revisions of a dataset, compared item by item."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "diff",
        help="compare two audits or two revisions of a dataset",
        description="OLD and NEW are each an audit folder, a packet.json, a data file, or ORG/NAME@REVISION. Data is "
        "audited first: in the way of the other packet where that is one, else by the options below.",
    )
    parser.add_argument("old", metavar="OLD")
    parser.add_argument("new", metavar="NEW")
    parser.add_argument("--json", action="store_true", help="the comparison as JSON on stdout")
    parser.add_argument("--markdown", metavar="FILE", help="also write the comparison as Markdown")
    how = parser.add_argument_group("audit, where OLD or NEW is data (default: as in the other packet)")
    how.add_argument("--train", help="data to fit readers on")
    how.add_argument("--config", help="configuration of a Hub dataset")
    for name in ("split", "train-split", "query", "evidence", "label", "group"):
        how.add_argument(f"--{name}", help="as in `evidep audit`")
    how.add_argument("--metadata", type=_names, help="as in `evidep audit`")
    how.add_argument("--readers", type=_names, help="as in `evidep audit`")
    how.add_argument("--k", type=int, help="as in `evidep audit`")
    how.add_argument("--seed", type=int, help="as in `evidep audit`")
    how.add_argument("--out", metavar="DIR", help="keep the audits in DIR/old and DIR/new")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare, print, write."""
    from evidep.audit.again import audit_operand, is_packet, settings_of
    from evidep.audit.compare import compare
    from evidep.audit.packet import AuditPacket
    from evidep.cli.console import is_main_process
    from evidep.cli.progress import progress_bar
    from evidep.errors import CacheError
    from evidep.report.comparison import comparison_markdown, render_comparison

    read = {name: AuditPacket.load(name) for name in (arguments.old, arguments.new) if is_packet(name)}
    settings = settings_of(next(iter(read.values()))) if read else {}
    settings = _with_options(settings, arguments)
    packets = []
    for side in ("old", "new"):
        name = getattr(arguments, side)
        if name in read:
            packets.append(read[name])
            continue
        out = None if arguments.out is None else Path(arguments.out) / side
        with progress_bar() as progress:
            packets.append(audit_operand(name, settings, out=out, progress=progress))
    if not is_main_process():
        return 0
    comparison = compare(*packets)
    if arguments.json:
        sys.stdout.write(json.dumps(comparison.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        from evidep.cli.console import results_console

        render_comparison(comparison, results_console())
    if arguments.markdown is not None:
        path = Path(arguments.markdown)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(comparison_markdown(comparison), encoding="utf-8")
        except OSError as error:
            raise CacheError(f"cannot write {path}: {error.strerror or error}") from error
        sys.stderr.write(f"{path}\n")
    return 0


def _with_options(settings: dict[str, Any], arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings of the other packet, overruled by options that were given."""
    roles = {name: getattr(arguments, name) for name in ("query", "evidence", "label", "metadata", "group")}
    given = {
        name: getattr(arguments, name) for name in ("train", "config", "split", "train_split", "readers", "k", "seed")
    }
    merged = settings | {name: value for name, value in given.items() if value is not None}
    merged["roles"] = settings.get("roles", {}) | {role: column for role, column in roles.items() if column}
    return merged


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
