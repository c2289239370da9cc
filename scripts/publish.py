"""Create or update what the project keeps on the Hub. A dry run unless --yes is given.

metrics: Spaces of the evaluate modules, ORG/NAME
readers: models, ORG/evidep-NAME, from readers/NAME and (--trained) what readers/train.py wrote
spaces:  Spaces of the front ends, ORG/NAME
"""

from __future__ import annotations

import argparse
import logging
import sys
from pathlib import Path

from evidep.errors import EvidepError, SettingError
from evidep.hub.client import Hub, quiet_unless_watched
from evidep.hub.content import size
from evidep.hub.publish import Outcome, Publication, publish, reader_model, space

ROOT = Path(__file__).resolve().parents[1]


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("what", choices=("metrics", "readers", "spaces"))
    made.add_argument("names", nargs="*", metavar="NAME", help="which ones (default: all)")
    made.add_argument("--namespace", required=True, help="user or organisation")
    made.add_argument("--trained", type=Path, help="folder with one folder per reader, written by readers/train.py")
    made.add_argument("--timeout", type=float, default=60.0, help="seconds the Hub may take to answer (default 60)")
    made.add_argument("--yes", action="store_true", help="send it; without this nothing is sent")
    return made


def publications(options: argparse.Namespace, root: Path = ROOT) -> list[Publication]:
    """What the options name, all checked before anything is sent."""
    mark = "recipe.yaml" if options.what == "readers" else "README.md"
    known = sorted(path.parent.name for path in (root / options.what).glob(f"*/{mark}"))
    for name in options.names:
        if name not in known:
            raise SettingError(f"no {options.what} named {name!r}; there are {', '.join(known) or 'none'}")
    found = []
    for name in options.names or known:
        folder = root / options.what / name
        if options.what == "readers":
            trained = None if options.trained is None else options.trained / name
            found.append(reader_model(folder, options.namespace, trained))
        else:
            found.append(space(folder, options.namespace))
    return found


def report(outcome: Outcome) -> str:
    """What happens, or happened, to one repository."""
    target = outcome.publication
    if not outcome.changed:
        state = "as it should be"
    elif outcome.created:
        state = "created" if outcome.sent else "to be created"
    else:
        state = "updated" if outcome.sent else "to be updated"
    lines = [f"{target.kind} {target.name}: {state}"]
    lines += [f"  {path}: {size(target.files[path]):,} bytes, new or changed" for path in outcome.changed]
    lines += [f"  {path}: unchanged" for path in outcome.unchanged]
    lines += [f"  {path}: not ours, left alone" for path in outcome.foreign]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Run; 0, or 2 after one line on what to change."""
    options = parser().parse_intermixed_args(arguments)
    logging.getLogger("evidep.hub").addHandler(logging.StreamHandler(sys.stderr))
    try:
        quiet_unless_watched()
        wanted, hub = publications(options), Hub(timeout=options.timeout)
        for publication in wanted:
            print(report(publish(publication, send=options.yes, hub=hub)), flush=True)
    except EvidepError as error:
        print(f"publish: {error}", file=sys.stderr)
        return 2
    if not options.yes:
        print("publish: dry run, nothing was sent; --yes sends it", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
