"""`evidep aggregate`: scores of systems on tasks, aggregated in every way, with what each way hides."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to the command line."""
    parser = subparsers.add_parser(
        "aggregate",
        help="compare systems over several tasks",
        description="Scores of systems on tasks: aggregates side by side with intervals, tests, conflicts between "
        "tasks, and the table without tasks that failed their audit. The report goes to stdout.",
        epilog="VALUE stands for all tasks, TASK=VALUE for one; both may be repeated.",
    )
    parser.add_argument(
        "scores", nargs="+", help="csv, tsv, json, jsonl, parquet, or a folder of lm-evaluation-harness results"
    )
    reading = parser.add_argument_group("what the scores are")
    each: dict[str, Any] = {"action": "append", "default": []}
    reading.add_argument(
        "--metric", metavar="[TASK=]NAME", help="metric; a trailing %% means per cent: accuracy%%", **each
    )
    reading.add_argument("--direction", metavar="[TASK=]WAY", help="higher or lower is better", **each)
    reading.add_argument("--range", metavar="[TASK=]LOW:HIGH", help="least and greatest possible score", **each)
    reading.add_argument("--chance", metavar="[TASK=]SCORE", help="score of guessing", **each)
    reading.add_argument("--items", metavar="[TASK=]N", help="number of evaluation items", **each)
    reading.add_argument(
        "--tasks", metavar="FILE", help="the same as JSON: {task: {metric, direction, low, high, ...}}"
    )
    reading.add_argument(
        "--columns",
        metavar="ROLE=COLUMN,...",
        default="",
        help="roles: system, task, score, seed, item, stderr, metric",
    )
    reading.add_argument(
        "--missing",
        choices=("refuse", "drop-systems", "drop-tasks", "rank"),
        default="refuse",
        help="what to do with missing cells (default refuse)",
    )
    reading.add_argument("--only", metavar="PATTERN,...", default="", help="tasks to keep, for example 'dmc_*'")
    reading.add_argument("--merge", metavar="NEW=TASK,...", help="several metrics of one task become one", **each)
    analysis = parser.add_argument_group("what to compute")
    analysis.add_argument(
        "--baseline", metavar="SYSTEM", help="reference of the z-scores (default all systems)", **each
    )
    analysis.add_argument("--weight", metavar="TASK=WEIGHT", help="declared weight of a task (default 1)", **each)
    analysis.add_argument("--compare", nargs=2, metavar=("A", "B"), help="two systems (default the first two)")
    analysis.add_argument("--audit", metavar="TASK=PACKET.json", help="audit packet of a task", **each)
    analysis.add_argument(
        "--resample", choices=("auto", "within", "tasks"), default="auto", help="bootstrap within tasks or over tasks"
    )
    analysis.add_argument(
        "--seeds",
        choices=("per-cell", "per-system"),
        default="per-cell",
        help="per-system: a seed is one trained model, evaluated on all tasks",
    )
    analysis.add_argument("--bootstrap", type=int, default=10_000, metavar="N", help="replicates (default 10000)")
    analysis.add_argument("--seed", type=int, default=0, help="seed of the replicates (default 0)")
    analysis.add_argument("--alpha", type=float, default=0.05, help="error rate (default 0.05)")
    output = parser.add_argument_group("where the result goes")
    output.add_argument("--json", action="store_true", help="the result as JSON on stdout instead of text")
    output.add_argument("--save", metavar="FILE", help="also write the JSON there")
    output.add_argument("--markdown", metavar="FILE", help="also write the report as Markdown there")
    output.add_argument("--figures", metavar="DIR", help="also write the figures there")
    output.add_argument(
        "--format", default="png", metavar="F1,F2", help="formats of the figures: png,svg (default png)"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Read, analyse, report."""
    import json
    from pathlib import Path

    from evidep.data.audit_regions import read_audit_regions
    from evidep.data.scores import read_scores
    from evidep.stats.aggregate import Settings, analyse, to_dict

    settings = Settings(
        n_draws=arguments.bootstrap,
        seed=arguments.seed,
        alpha=arguments.alpha,
        baseline=tuple(arguments.baseline),
        weights=_weights(arguments.weight),
        resample=arguments.resample,
        seeds=arguments.seeds,
        compare=None if arguments.compare is None else (arguments.compare[0], arguments.compare[1]),
    )
    audits = read_audit_regions(dict(_pair(text, "audit") for text in arguments.audit)) if arguments.audit else None
    table = read_scores(
        arguments.scores,
        tasks=_declared(arguments),
        columns=dict(_pair(text, "columns") for text in _listed(arguments.columns)),
        missing=arguments.missing,
        merge={name: _listed(members) for name, members in (_pair(text, "merge") for text in arguments.merge)},
        only=_listed(arguments.only),
    )
    result = analyse(table, settings, audits)
    document = json.dumps(to_dict(result), ensure_ascii=False, allow_nan=False, indent=1)
    if arguments.json:
        sys.stdout.write(document + "\n")
    else:
        from evidep.cli.console import results_console
        from evidep.report.aggregate_text import render

        render(result, results_console())
    if arguments.save is not None:
        _write(Path(arguments.save), document + "\n")
    if arguments.markdown is not None:
        from evidep.report.aggregate_text import markdown

        _write(Path(arguments.markdown), markdown(result))
    if arguments.figures is not None:
        from evidep.report.aggregate_figures import FIGURES, save_figures, unavailable

        for path in save_figures(result, arguments.figures, _listed(arguments.format)):
            sys.stderr.write(f"{path}\n")
        for name in FIGURES:
            reason = unavailable(result, name)
            if reason is not None:
                sys.stderr.write(f"no figure {name}: {reason}\n")
    return 0


def _declared(arguments: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Task name ("*" for all) to what is declared of it; options win over the file."""
    from evidep.data.score_metrics import number_setting
    from evidep.errors import SettingError

    out: dict[str, dict[str, Any]] = {}
    if arguments.tasks is not None:
        for name, value in _tasks_file(arguments.tasks).items():
            out[name] = {"metric": value} if isinstance(value, str) else value
            if not isinstance(out[name], dict):
                raise SettingError(
                    f"{arguments.tasks}: task {name!r}: expected a metric name or an object, got {value!r}"
                )

    def put(texts: Sequence[str], read: Callable[[str, str], dict[str, Any]]) -> None:
        for text in texts:
            name, _, value = text.rpartition("=")
            out.setdefault(name or "*", {}).update(read(name or "*", value))

    def bounds(name: str, text: str) -> dict[str, Any]:
        low, colon, high = text.partition(":")
        if not colon:
            raise SettingError(f"range of {name!r}: expected LOW:HIGH, got {text!r}; for example 0:1 or 0:inf")
        return {"low": number_setting("range", low), "high": number_setting("range", high)}

    put(arguments.metric, lambda _, value: {"metric": value})
    put(arguments.direction, lambda _, value: {"direction": value})
    put(arguments.range, bounds)
    put(arguments.chance, lambda name, value: {"chance": number_setting(f"chance of {name!r}", value)})
    put(arguments.items, lambda name, value: {"n_items": number_setting(f"items of {name!r}", value)})
    return out


def _tasks_file(name: str) -> dict[str, Any]:
    import json
    from pathlib import Path

    from evidep.errors import DataError

    try:
        content = json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise DataError(f"{name}: cannot be read as JSON ({str(error).splitlines()[0]})") from error
    if not isinstance(content, dict):
        raise DataError(f"{name}: expected an object task -> declaration, got {type(content).__name__}")
    return content


def _weights(texts: Sequence[str]) -> dict[str, float] | None:
    from evidep.data.score_metrics import number_setting

    if not texts:
        return None
    return {name: number_setting(f"weight of {name!r}", value) for name, value in (_pair(t, "weight") for t in texts)}


def _pair(text: str, option: str) -> tuple[str, str]:
    """NAME=VALUE, split at the last sign for weights and paths, which hold none, and at the first otherwise."""
    from evidep.errors import SettingError

    name, sign, value = text.partition("=") if option in ("columns", "merge") else text.rpartition("=")
    if not sign or not name or not value:
        raise SettingError(f"--{option}: expected NAME=VALUE, got {text!r}")
    return name, value


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _write(path: Any, text: str) -> None:
    from evidep.errors import CacheError

    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CacheError(f"cannot write {path}: {error.strerror or error}") from error
    sys.stderr.write(f"{path}\n")
