"""Logs of Inspect: .eval (a zip of JSON) and .json."""

from __future__ import annotations

import math
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evidep.data.logged_run import Answer, LoggedRun, field, load_json, make_run
from evidep.errors import DataError


def read_inspect(path: Path, *, scorer: str | None = None, epoch: int | None = None) -> LoggedRun:
    """The samples of one finished Inspect evaluation.

    Samples that ended in an error, or that the scorer left unscored, are dropped and listed.

    Args:
        path: The log, .eval or .json.
        scorer: Which scorer says right or wrong; None takes the first that does so for every sample.
        epoch: Which epoch, where samples were run several times.

    Raises:
        DataError: No such log, an unfinished one, several epochs and none named, or a scorer that does not say right
            or wrong.
    """
    header, samples = _eval_file(path) if path.suffix == ".eval" else _json_file(path)
    status = header.get("status")
    if status != "success":
        raise DataError(f"{path}: the run was not finished (status {status!r}); run it to its end (inspect eval-retry)")
    epochs = sorted({int(sample.get("epoch", 1)) for sample in samples})
    if epoch is None and len(epochs) > 1:
        raise DataError(f"{path}: samples were run {len(epochs)} times; name one: epoch={epochs[0]}")
    if epoch is not None and epoch not in epochs:
        raise DataError(f"{path}: no epoch {epoch}; there are {', '.join(map(str, epochs))}")
    answers, dropped = [], {}
    for sample in samples:
        if epoch is not None and int(sample.get("epoch", 1)) != epoch:
            continue
        name = str(field(sample, "id", f"{path}, a sample"))
        reason = _unfinished(sample, scorer)
        if reason is None:
            answers.append(_answer(name, sample, scorer, f"{path}, sample {name}"))
        else:
            dropped[name] = reason
    if not answers and dropped:
        raise DataError(f"{path}: no sample was finished and scored ({next(iter(dropped.values()))})")
    return make_run(path, answers, dropped, scorer, "scorer")


def _eval_file(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        with zipfile.ZipFile(path) as file:
            names = set(file.namelist())
            header = next((name for name in ("header.json", "results.json") if name in names), None)
            if header is None:
                raise DataError(f"{path}: the run was not finished (the log has no header)")
            members = sorted(name for name in names if name.startswith("samples/") and name.endswith(".json"))
            return _object(file.read(header), f"{path}, {header}"), [
                _object(file.read(name), f"{path}, {name}") for name in members
            ]
    except NotImplementedError as error:
        raise DataError(
            f"{path}: packed in a way Python cannot open; convert it: inspect log convert --to json"
        ) from error
    except (OSError, zipfile.BadZipFile, EOFError, RuntimeError) as error:
        raise DataError(f"{path}: no Inspect log ({error})") from error


def _json_file(path: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        log = _object(path.read_bytes(), str(path))
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error})") from error
    if "samples" not in log or "eval" not in log:
        raise DataError(f"{path}: no Inspect log with samples (it has no 'eval' or no 'samples')")
    return log, list(log["samples"] or ())


def _object(text: bytes, where: str) -> dict[str, Any]:
    value = load_json(text, where)
    if not isinstance(value, dict):
        raise DataError(f"{where}: expected a JSON object, got {type(value).__name__}")
    return value


def _unfinished(sample: dict[str, Any], scorer: str | None) -> str | None:
    if sample.get("error"):
        return "ended in an error"
    scores = sample.get("scores") or {}
    if scorer is not None and scorer in scores:
        scores = {scorer: scores[scorer]}
    values = list(_values(scores))
    if not values:
        return "was not scored"
    if all(isinstance(value, float) and math.isnan(value) for _, value in values):
        return "was left unscored"
    return None


def _values(scores: Any) -> Iterator[tuple[str, Any]]:
    """Every score by its name; a scorer that gives several is named SCORER.KEY."""
    for name, score in (scores or {}).items():
        value = score.get("value") if isinstance(score, dict) else score
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", part) for key, part in value.items())
        else:
            yield name, value


def _answer(name: str, sample: dict[str, Any], scorer: str | None, where: str) -> Answer:
    target = field(sample, "target", where)
    targets = [str(one).strip() for one in target] if isinstance(target, list) else [str(target).strip()]
    scores = sample.get("scores") or {}
    chosen = scores.get(scorer) if scorer in scores else next(iter(scores.values()), None)
    answer = chosen.get("answer") if isinstance(chosen, dict) else None
    text = str(answer if answer is not None else _completion(sample)).strip()
    choice = bool(sample.get("choices")) and len(targets) == 1
    return Answer(name, text, " | ".join(targets), choice, dict(_values(scores)))


def _completion(sample: dict[str, Any]) -> str:
    output = sample.get("output") or {}
    if isinstance(output.get("completion"), str):
        return str(output["completion"])
    for choice in output.get("choices") or ():
        content = (choice.get("message") or {}).get("content")
        if isinstance(content, str):
            return content
        return "".join(part.get("text", "") for part in content or () if isinstance(part, dict))
    return ""
