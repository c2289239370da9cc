"""What the benchmarks share: rows with limits, interleaved timing, peak memory of a process, texts."""

from __future__ import annotations

import gzip
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
WORDS = [f"word{i}" for i in range(20_000)]


@dataclass(frozen=True, slots=True)
class Row:
    """One measured value; `limit` is what it must keep to ("" for none), `ok` whether it does."""

    name: str
    value: float
    unit: str
    limit: str = ""
    ok: bool = True


def at_least(name: str, value: float, unit: str, least: float) -> Row:
    """A value that must not be smaller."""
    return Row(name, value, unit, f">= {least:g}", value >= least)


def at_most(name: str, value: float, unit: str, most: float) -> Row:
    """A value that must not be larger."""
    return Row(name, value, unit, f"<= {most:g}", value <= most)


def interleaved(ways: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    """Wall seconds of each way, run in turn `repeats` times after one round that does not count."""
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return seconds


class Setting(NamedTuple):
    """How many threads torch takes, and the clock that counts its seconds."""

    name: str
    threads: int
    clock: Callable[[], float]


def settings() -> list[Setting]:
    """As a user meets it (every core that torch takes, wall time), and one thread in CPU seconds of this process."""
    import torch

    cores = torch.get_num_threads()
    alone = Setting("one thread", 1, time.process_time)
    return [alone] if cores == 1 else [Setting("all cores", cores, time.perf_counter), alone]


def rates(
    methods: dict[str, Callable[[], int | tuple[int, float]]], rounds: int, clock: Callable[[], float]
) -> dict[str, float]:
    """Median items per second of each method, run in turn; a method returns items done [, seconds taken]."""
    found: dict[str, list[float]] = {name: [] for name in methods}
    for _ in range(rounds):
        for name, work in methods.items():
            started = clock()
            result = work()
            done, seconds = result if isinstance(result, tuple) else (result, clock() - started)
            found[name].append(done / seconds)
    return {name: statistics.median(values) for name, values in found.items()}


def median_ratio(slow: list[float], fast: list[float]) -> float:
    """Median over the turns of slow / fast: neighbours on the machine slow both down alike."""
    return statistics.median(a / b for a, b in zip(slow, fast, strict=True))


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes.

    Not from getrusage on Linux: its maximum outlives exec, so a process would be charged with the one that started it.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        lines = status.read_text(encoding="utf-8").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def data_folder() -> Path | None:
    """Folder of real benchmark text: EVIDEP_DATA, else ../shared/data beside the checkout."""
    named = os.environ.get("EVIDEP_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    return folder if (folder / "snli.jsonl.gz").is_file() else None


@cache
def pairs(n: int) -> Any:
    """AuditData with n evaluation pairs and up to 36,000 training pairs: SNLI where it is found, else made up."""
    from evidep.data.table import build_audit_data
    from evidep.types import ColumnRoles

    folder = data_folder()
    if folder is None:
        rows = sentences(n + 20_000, seed=0)
        train, evaluation = rows[n:], rows[:n]
    else:
        train, evaluation = _read(folder / "snli_train.jsonl.gz"), _read(folder / "snli.jsonl.gz")[:n]
    return build_audit_data(evaluation, train, ColumnRoles("query", "evidence", "label"))


def sentences(n: int, seed: int, words: tuple[int, int] = (8, 15)) -> list[dict[str, str]]:
    """Made-up rows whose word frequencies fall as 1/rank; the label follows the query's first word."""
    rng = np.random.default_rng(seed)
    weights = np.cumsum(1.0 / np.arange(1, len(WORDS) + 1))
    drawn = np.searchsorted(weights / weights[-1], rng.random((n, sum(words))))
    return [
        {
            "query": " ".join(WORDS[w] for w in row[: words[0]]),
            "evidence": " ".join(WORDS[w] for w in row[words[0] :]),
            "label": "abc"[row[0] % 3],
        }
        for row in drawn.tolist()
    ]


def source() -> str:
    """Which text `pairs` gives."""
    folder = data_folder()
    return "made-up sentences" if folder is None else f"SNLI from {folder}"


def _read(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [{key: row[key] for key in ("query", "evidence", "label")} for row in rows]
