"""`evidep modules`: the bundled evaluate modules by path or by bare name."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "modules",
        help="use the bundled evaluate modules (delta_evi, mpds, ...)",
        description="path: print where a module lies; register: make evaluate.load(NAME) work from any directory.",
    )
    parser.add_argument("action", choices=("path", "register", "list"))
    parser.add_argument("names", nargs="*", help="module names (default: all)")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """List, locate or register modules."""
    from evidep.modules import metric_path, module_names, register_modules

    names = arguments.names or list(module_names())
    if arguments.action == "list":
        lines = names
    elif arguments.action == "path":
        lines = [metric_path(name) for name in names]
    else:
        lines = [
            f"evaluate.load({name!r})  # {folder}" for name, folder in zip(names, register_modules(*names), strict=True)
        ]
    sys.stdout.write("\n".join(lines) + "\n")
    return 0
