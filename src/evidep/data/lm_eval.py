"""Result folders of the lm-evaluation-harness (results_*.json) as long scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from evidep.data.score_files import LongScores
from evidep.data.score_metrics import TaskSpec
from evidep.errors import DataError


def read_lm_eval(folder: Path, metrics: Mapping[str, str]) -> LongScores:
    """Every results_*.json below a folder, one system per model.

    Of a task with several metrics the declared one is taken, else the first; what else was there is noted. Groups that
    only average their subtasks are left out where the subtasks are there. Runs of one model that differ in their
    random seeds are seeds.

    Args:
        folder: Searched with all folders below.
        metrics: Task name to the metric to take ("acc_norm" or "exact_match,strict-match"); "*" is for all tasks.

    Raises:
        DataError: If there is no such file, one is not a result file, or one result is there twice.
    """
    paths = sorted(folder.rglob("results_*.json"))
    if not paths:
        raise DataError(f"{folder}: no results_*.json of the lm-evaluation-harness in this folder or below")
    rows: list[tuple[str, str, str, float | None, float | None]] = []
    specs: dict[str, TaskSpec] = {}
    notes: dict[str, None] = {}
    seen: dict[tuple[str, str, str], Path] = {}
    for path in paths:
        content = _load(path)
        model = _model(content, path)
        seed = "-".join(str(content.get("config", {}).get(key)) for key in ("random_seed", "fewshot_seed"))
        for task, values in content["results"].items():
            if task in _groups(content):
                notes[f"{task} is the average of its subtasks and is left out."] = None
                continue
            found = _pick(task, values, metrics, path)
            if found is None:
                continue
            metric, key, others = found
            if others:
                notes[f"{task}: {metric} is used (also there: {', '.join(others)})."] = None
            previous = specs.get(task)
            if previous is not None and previous.metric != metric:
                raise DataError(
                    f"{path}: task {task!r} has metric {metric!r} here and {previous.metric!r} elsewhere; declare one"
                )
            if (model, task, seed) in seen:
                raise DataError(
                    f"{path}: {model} on {task} is in {seen[model, task, seed]} too, with the same seeds; "
                    "remove one of the files"
                )
            seen[model, task, seed] = path
            specs[task] = _spec(content, task, metric)
            rows.append((model, task, seed, _number(values[key]), _number(values.get(_stderr_key(key)))))
    if not rows:
        raise DataError(f"{folder}: the result files hold no task with a score")
    system, tasks, seeds, scores, errors = zip(*rows, strict=True)
    return LongScores(
        pa.chunked_array([pa.array(system, pa.string())]),
        pa.chunked_array([pa.array(tasks, pa.string())]),
        pa.chunked_array([pa.array(scores, pa.float64())]),
        pa.chunked_array([pa.array(seeds, pa.string())]),
        None,
        pa.chunked_array([pa.array(errors, pa.float64())]),
        specs,
        tuple(notes),
        str(folder),
    )


def _load(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise DataError(f"{path}: not valid JSON ({str(error).splitlines()[0]})") from error
    results = content.get("results") if isinstance(content, dict) else None
    if not isinstance(results, dict) or not all(isinstance(values, dict) for values in results.values()):
        raise DataError(f"{path}: no 'results' object, so no result file of the lm-evaluation-harness")
    return dict(content)


def _model(content: Mapping[str, Any], path: Path) -> str:
    """Name of the model: the recorded one, else the pretrained argument, else the folder of the file."""
    name = content.get("model_name")
    if isinstance(name, str) and name:
        return name
    arguments = content.get("config", {}).get("model_args")
    if isinstance(arguments, Mapping) and arguments.get("pretrained"):
        return str(arguments["pretrained"])
    if isinstance(arguments, str):
        for part in arguments.split(","):
            key, _, value = part.partition("=")
            if key.strip() == "pretrained" and value:
                return value.strip()
    return path.parent.name


def _groups(content: Mapping[str, Any]) -> set[str]:
    """Entries that average other entries of the same file."""
    subtasks = content.get("group_subtasks", {})
    return {
        group for group, members in subtasks.items() if members and all(name in content["results"] for name in members)
    }


def _pick(
    task: str, values: Mapping[str, Any], metrics: Mapping[str, str], path: Path
) -> tuple[str, str, list[str]] | None:
    """(metric name, key in the file, other metrics), or None for an entry without scores."""
    keys = [key for key in values if "stderr" not in key and key != "alias" and _number(values[key]) is not None]
    if not keys:
        return None
    wanted = metrics.get(task, metrics.get("*"))
    if wanted is None:
        chosen = keys[0]
    else:
        plain = wanted.rstrip("%")
        matching = [key for key in keys if key == plain or key.partition(",")[0] == plain]
        if not matching:
            if task not in metrics:
                chosen = keys[0]
            else:
                raise DataError(f"{path}: task {task!r} has no metric {wanted!r}; it has {', '.join(keys)}")
        else:
            chosen = matching[0]
    return chosen.partition(",")[0], chosen, [key for key in keys if key != chosen]


def _spec(content: Mapping[str, Any], task: str, metric: str) -> TaskSpec:
    up = content.get("higher_is_better", {}).get(task, {})
    up = up.get(metric) if isinstance(up, Mapping) else None
    samples = content.get("n-samples", {}).get(task, {})
    count = samples.get("effective") if isinstance(samples, Mapping) else None
    return TaskSpec(
        metric=metric,
        higher_is_better=up if isinstance(up, bool) else None,
        n_items=float(count) if isinstance(count, int) and count > 0 else None,
    )


def _stderr_key(key: str) -> str:
    metric, comma, name = key.partition(",")
    return f"{metric}_stderr{comma}{name}"


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
