"""`evidep audit`: a dataset in, an audit packet out."""

from __future__ import annotations

import argparse
import sys
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "audit",
        help="audit a dataset of (query, evidence, label)",
        description="Swap the evidence between items and see whether accuracy falls; see how far metadata alone goes.",
    )
    parser.add_argument(
        "data", help="csv/tsv/json/jsonl/parquet file (.gz too), save_to_disk folder, or Hub dataset id"
    )
    parser.add_argument("--train", help="data to fit readers on, like DATA; without any the audit is out of fold")
    parser.add_argument("--config", help="configuration of a Hub dataset")
    parser.add_argument("--split", help="split to audit")
    parser.add_argument("--train-split", help="split to fit readers on")
    parser.add_argument("--revision", help="revision of a Hub dataset")
    roles = parser.add_argument_group("columns (inferred from conventional names when left out)")
    roles.add_argument("--query", help="column of the question, claim or hypothesis")
    roles.add_argument("--evidence", help="column of the passage or premise")
    roles.add_argument("--label", help="column of the gold label")
    roles.add_argument("--metadata", type=_names, default=(), help="columns C1,C2 that might give the label away")
    roles.add_argument("--group", help="column that names items that belong together")
    how = parser.add_argument_group("audit")
    how.add_argument(
        "--readers",
        default="tfidf_lr",
        help="readers R1,R2, weakest first, settings as NAME:KEY=VALUE (default tfidf_lr)",
    )
    how.add_argument("--reader-seeds", type=int, default=1, help="seeds that each reader is fitted with (default 1)")
    how.add_argument(
        "--shuffles",
        type=_names,
        default=(),
        help="global,within-label,within-metadata,near-miss (default: all but near-miss, as far as they apply)",
    )
    how.add_argument(
        "--ablations", type=_names, default=None, help="query-only,evidence-only,shuffled-training or none"
    )
    how.add_argument("--k", type=int, default=20, help="shuffles per family (default 20)")
    how.add_argument("--seed", type=int, default=0, help="seed of shuffles, folds and fits (default 0)")
    how.add_argument("--margin", type=float, default=0.02, help="largest ΔEvi that counts as none (default 0.02)")
    how.add_argument("--alpha", type=float, default=0.05, help="level of the tests (default 0.05)")
    how.add_argument("--mpds-high", type=float, default=0.9, help="MPDS that counts as predicting (default 0.9)")
    how.add_argument("--folds", type=int, default=5, help="folds of an out-of-fold audit (default 5)")
    how.add_argument("--max-items", type=int, help="audit a uniform sample of so many items (default: all)")
    how.add_argument(
        "--max-train-items", type=int, help="fit on a uniform sample of so many train items (default: all)"
    )
    how.add_argument("--controls", action="store_true", help="refit on planted labels: what would this audit find?")
    how.add_argument(
        "--diagnostics", action="store_true", help="metadata shift, flip of a metadata field, filtering by metadata"
    )
    how.add_argument(
        "--auto-metadata", action="store_true", help="screen the labels against features derived from the texts"
    )
    parser.add_argument("--name", help="what the dataset is called in the packet (default: file name or id)")
    parser.add_argument("--out", help="folder for the packet, per-item results and resumable work")
    parser.add_argument("--json", action="store_true", help="the packet as JSON on stdout, everything else on stderr")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Audit, print, save."""
    from evidep.audit.api import audit
    from evidep.cli.console import is_main_process
    from evidep.cli.progress import progress_bar
    from evidep.readers.registry import split_specs
    from evidep.types import ColumnRoles

    named = {
        "query": arguments.query,
        "evidence": arguments.evidence,
        "label": arguments.label,
        "metadata": arguments.metadata,
        "group": arguments.group,
    }
    more: dict[str, Any] = {}
    if arguments.ablations is not None:
        more["ablations"] = () if arguments.ablations == ("none",) else arguments.ablations
    with progress_bar() as progress:
        packet = audit(
            arguments.data,
            train=arguments.train,
            config=arguments.config,
            split=arguments.split,
            train_split=arguments.train_split,
            revision=arguments.revision,
            roles={role: column for role, column in named.items() if column},
            readers=split_specs(arguments.readers),
            reader_seeds=arguments.reader_seeds,
            shuffles=arguments.shuffles,
            k=arguments.k,
            seed=arguments.seed,
            margin=arguments.margin,
            alpha=arguments.alpha,
            mpds_high=arguments.mpds_high,
            n_folds=arguments.folds,
            max_items=arguments.max_items,
            max_train_items=arguments.max_train_items,
            controls=arguments.controls,
            diagnostics=arguments.diagnostics,
            auto_metadata=arguments.auto_metadata,
            name=arguments.name,
            out=arguments.out,
            progress=progress,
            **more,
        )
    if not is_main_process():
        return 0
    roles = ColumnRoles(**(packet["data"]["roles"] | {"metadata": tuple(packet["data"]["roles"]["metadata"])}))
    sys.stderr.write(
        f"evidep: query={roles.query} evidence={roles.evidence} label={roles.label} "
        f"metadata={','.join(roles.metadata) or 'none'} group={roles.group or 'none'}\n"
    )
    if arguments.json:
        sys.stdout.write(packet.to_json() + "\n")
    else:
        from evidep.cli.console import results_console
        from evidep.report.text import render

        render(packet, results_console())
    if arguments.out:
        sys.stderr.write(f"evidep: packet and per-item results are in {arguments.out}\n")
    return 0


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())
