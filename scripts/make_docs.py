"""Write docs/cli.md from the command line's own parsers and docs/worlds.md from the planted worlds.

`--check` only says whether they are up to date.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
WORLDS_HEAD = """# Planted worlds

Made by `make docs` from `evidep.data.synthetic`; do not edit.

Benchmarks whose dependence on evidence is known because it was put there: for tests, for the [validity](validity.md)
study, and to try the audit.

```python
from evidep.data.synthetic import planted_world

world = planted_world("matching", n_train=1000, n_eval=1000, seed=0, skew=0.7, noise=0.1, group_size=4)
print(world.truth["delta_evi"], world.truth["region_strong"])
```

Every world takes `n_train`, `n_eval`, `seed`, `noise` (share of labels replaced at random, up to 0.5) and `group_size`
(items that share one evidence text); labels and skew (share of the first label) where the table says so. nq, hotpotqa
and triviaqa have the end points that Shao (arXiv 2605.23701) reports for synthetic sets of these names, and no data of
those benchmarks.

Truths at the default settings. "Additive": the best that a reader can do that cannot match query with evidence.
"""


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


def worlds_page() -> str:
    """The table of planted worlds as Markdown."""
    from evidep.data.synthetic import WORLDS, planted_world

    lines = [
        WORLDS_HEAD,
        "| world | what is planted | labels | skew | accuracy | query alone | ΔEvi | MPDS | ΔEvi, additive | region |"
        " with a light reader only |",
        f"|{'---|' * 11}",
    ]
    for name, kind in WORLDS.items():
        truth = planted_world(name, n_train=0, n_eval=1, seed=0).truth
        labels = (
            str(kind.n_classes)
            if kind.least_classes == kind.most_classes
            else f"{kind.least_classes} to {kind.most_classes} ({kind.n_classes})"
        )
        skew = "fixed" if kind.most_skew is None else f"up to {kind.most_skew:g}"
        numbers = ("accuracy_full", "query_only", "delta_evi", "mpds", "delta_evi_additive")
        values = " | ".join(f"{truth[number]:.3f}" for number in numbers)
        regions = " | ".join(truth[of].replace("_", " ") for of in ("region_strong", "region_light"))
        lines.append(f"| {name} | {kind.summary} | {labels} | {skew} | {values} | {regions} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write or check the pages."""
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("--check", action="store_true")
    check = options.parse_args().check
    late = []
    for name, page in (("cli.md", cli_page()), ("worlds.md", worlds_page())):
        target = DOCS / name
        if not check:
            target.write_text(page, encoding="utf-8")
        elif not target.is_file() or target.read_text(encoding="utf-8") != page:
            late.append(f"docs/{name}")
    if late:
        sys.stderr.write(f"out of date: {', '.join(late)}; run make docs\n")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
