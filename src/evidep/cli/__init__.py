"""Command line of evidep: one file per command, each a parser and a thin call.

A command module has `add_parser(subparsers)` and `run(arguments) -> int`; everything heavy is imported inside `run`.
"""

from __future__ import annotations

import argparse
import importlib
import io
import os
import sys
from collections.abc import Sequence
from typing import Final

from evidep.errors import EvidepError
from evidep.version import __version__

COMMANDS: Final = ("audit", "show", "demo", "card", "push_card", "check", "diff", "aggregate", "modules")
EXIT_FAILED_GATE: Final = 1
EXIT_BAD_INPUT: Final = 2
EXIT_INTERRUPTED: Final = 130


def build_parser() -> argparse.ArgumentParser:
    """The parser of the whole command line (also read by the generator of docs/cli.md)."""
    parser = argparse.ArgumentParser(
        prog="evidep", description="Does a benchmark need the evidence that it hands to a system? Audit it."
    )
    parser.add_argument("--version", action="version", version=f"evidep {__version__}")
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        importlib.import_module(f"evidep.cli.{name}").add_parser(subparsers)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Exit codes: 0 done, 1 a gate failed, 2 bad usage or input, 130 interrupted."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a pipe in an old encoding must not break on "Δ"
            stream.reconfigure(errors="replace")
    arguments = build_parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except EvidepError as error:
        sys.stderr.write(f"evidep: {error}\n")
        return EXIT_BAD_INPUT
    except KeyboardInterrupt:
        kept = f"; finished work is kept in {arguments.out}" if getattr(arguments, "out", None) else ""
        sys.stderr.write(f"evidep: interrupted{kept}; the same command goes on from there\n")
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
