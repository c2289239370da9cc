"""Write docs/cli.md from the command line's own parsers. `--check` only says whether it is up to date."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parents[1] / "docs" / "cli.md"


def cli_page() -> str:
    """The page as Markdown."""
    os.environ["COLUMNS"] = "110"
    os.environ["NO_COLOR"] = "1"
    from evidep.cli import build_parser

    parser = build_parser()
    parts = [
        "# Command line\n\nMade by `make docs` from the parsers; do not edit.\n\n"
        "Exit codes: 0 done, 1 a gate failed, 2 bad usage or input (one line on stderr), 130 interrupted.\n"
        "Results go to stdout, progress and notes to stderr.\n",
        f"```text\n{parser.format_help().rstrip()}\n```\n",
    ]
    for action in parser._subparsers._group_actions:  # type: ignore[union-attr]
        for name, command in action.choices.items():  # type: ignore[union-attr]
            parts.append(f"## evidep {name}\n\n```text\n{command.format_help().rstrip()}\n```\n")
    return "\n".join(parts)


def main() -> int:
    """Write or check the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true")
    check = options.parse_args().check
    page = cli_page()
    if not check:
        TARGET.write_text(page, encoding="utf-8")
        return 0
    if not TARGET.is_file() or TARGET.read_text(encoding="utf-8") != page:
        sys.stderr.write("docs/cli.md is out of date: make docs\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
