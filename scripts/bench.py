"""Time and memory that the project promises, measured side by side in one run. Exit code 1 when a limit is missed.

python scripts/bench.py [--only NAME ...] [--quick]
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

import bench_audit
import bench_data
import bench_exact
import bench_readers
from bench_common import Row, source

BENCHES: dict[str, Callable[[bool], list[Row]]] = {
    "shuffles": bench_readers.shuffles,
    "fits": bench_readers.fits,
    "exact": bench_exact.exact,
    "permute": bench_data.permute,
    "more-shuffles": bench_audit.more_shuffles,
    "memory": bench_audit.memory,
}


def table(rows: list[Row]) -> str:
    """The rows as text, one a line."""
    lines = [("what", "value", "limit", "")]
    lines += [
        (r.name, f"{r.value:.4g} {r.unit}", r.limit, "" if not r.limit else "ok" if r.ok else "MISSED") for r in rows
    ]
    widths = [max(len(line[column]) for line in lines) for column in range(4)]
    return "\n".join(
        f"{what:<{widths[0]}}  {value:>{widths[1]}}  {limit:<{widths[2]}}  {verdict}".rstrip()
        for what, value, limit, verdict in lines
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the chosen benchmarks and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(BENCHES), metavar="NAME", help=", ".join(BENCHES))
    parser.add_argument("--quick", action="store_true", help="smaller sizes and fewer repeats")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    for name in options.only or BENCHES:
        print(f"{name} ...", file=sys.stderr, flush=True)
        rows += BENCHES[name](options.quick)
    print(f"text: {source()}\n{table(rows)}")
    return 0 if all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
