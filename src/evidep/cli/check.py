"""`evidep check`: a gate over an audit packet, for continuous integration."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "check",
        help="fail where an audit packet breaks declared limits",
        description="Exit 1 where a limit is broken, a limited value is undefined, or the packet is worse than a "
        "baseline by more than noise; 0 where all checks pass.",
    )
    parser.add_argument("packet", help="audit folder or packet.json")
    limits = parser.add_argument_group("limits (at least one, or --baseline)")
    limits.add_argument("--region", type=_names, default=(), metavar="R1,R2", help="the only regions allowed")
    limits.add_argument("--forbid-region", type=_names, default=(), metavar="R1,R2", help="regions not allowed")
    limits.add_argument(
        "--min-delta-evi", type=float, metavar="X", help="the lower end of ΔEvi's interval must be at least X"
    )
    limits.add_argument("--max-mpds", type=float, metavar="X", help="MPDS must be at most X")
    limits.add_argument("--baseline", metavar="OLD", help="an earlier packet; being worse beyond noise fails")
    limits.add_argument("--reader", help="reader whose ΔEvi counts (default: the strongest that works)")
    limits.add_argument("--shuffle", help="shuffle family whose ΔEvi counts (default: global)")
    output = parser.add_argument_group("output")
    output.add_argument("--junit", metavar="FILE", help="write a JUnit report")
    output.add_argument("--sarif", metavar="FILE", help="write a SARIF log")
    output.add_argument("--markdown", metavar="FILE", help="write a Markdown summary")
    output.add_argument("--json", action="store_true", help="the result as JSON on stdout instead of text")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Check, report, and say by the exit code how it went."""
    from evidep.audit.gate import Limits, check_packet
    from evidep.audit.packet import PACKET_FILE, AuditPacket
    from evidep.cli import EXIT_FAILED_GATE
    from evidep.report.gate_files import gate_text, write_gate_files

    limits = Limits(
        regions=arguments.region,
        forbidden_regions=arguments.forbid_region,
        min_delta_evi=arguments.min_delta_evi,
        max_mpds=arguments.max_mpds,
        reader=arguments.reader,
        shuffle=arguments.shuffle,
    )
    packet = AuditPacket.load(arguments.packet)
    baseline = None if arguments.baseline is None else AuditPacket.load(arguments.baseline)
    result = check_packet(packet, limits, baseline)
    if arguments.json:
        sys.stdout.write(json.dumps(result.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        sys.stdout.write(gate_text(result))
    path = Path(arguments.packet)
    written = write_gate_files(
        result,
        path / PACKET_FILE if path.is_dir() else path,
        junit=arguments.junit,
        sarif=arguments.sarif,
        markdown=arguments.markdown,
    )
    for file in written:
        sys.stderr.write(f"{file}\n")
    return 0 if result.passed else EXIT_FAILED_GATE


def _names(text: str) -> tuple[str, ...]:
    """Comma-separated region names; a hyphen may stand for the underscore."""
    return tuple(name.strip().replace("-", "_") for name in text.split(",") if name.strip())
