"""Whole audits as a user runs them: processes from start to end."""

from __future__ import annotations

import io
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from bench_common import Row, at_most, data_folder, peak_memory, sentences


@dataclass(frozen=True, slots=True)
class Finished:
    """An audit that has ended: wall seconds, CPU seconds, peak resident bytes."""

    wall: float
    cpu: float
    peak: int


def more_shuffles(quick: bool) -> list[Row]:
    """K = 500 against K = 20: an additive reader scores a shuffle in a fraction of a millisecond."""
    with tempfile.TemporaryDirectory() as folder:
        if (real := data_folder()) is not None:
            data = [str(real / "snli.jsonl.gz"), "--split", "test", "--train", str(real / "snli_train.jsonl.gz")]
        else:
            train, evaluation = Path(folder) / "train.jsonl", Path(folder) / "evaluation.jsonl"
            for path, rows in ((train, sentences(20_000, seed=2)), (evaluation, sentences(10_000, seed=3))):
                path.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
            data = [str(evaluation), "--train", str(train)]
        few, many = [], []
        for _ in range(1 if quick else 3):
            few.append(_audit(*data, "--k", "20"))
            many.append(_audit(*data, "--k", "500"))
    ratios = [b.cpu / a.cpu for a, b in zip(few, many, strict=True)]
    return [
        Row("audit, K = 20, CPU time", statistics.median(run.cpu for run in few), "s"),
        Row("audit, K = 500, CPU time", statistics.median(run.cpu for run in many), "s"),
        at_most("audit, K = 500 / K = 20", statistics.median(ratios), "x", 1.5),
    ]


def memory(quick: bool) -> list[Row]:
    """Peak memory of an audit of 500,000 rows of a passage each (1 kB), out of fold, against the size of its text.

    The libraries take about 250 MB and every row about 800 bytes of indices and results, whatever its text: rows of
    400 bytes come to 4.2 times their text.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    n, at_once = (50_000 if quick else 500_000), 25_000
    size = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "big.parquet"
        schema = pa.schema([(name, pa.string()) for name in ("query", "evidence", "label")])
        with pq.ParquetWriter(path, schema) as file:
            for part in range(n // at_once):
                rows = sentences(at_once, seed=100 + part, words=(12, 125))
                size += sum(len(row["query"]) + len(row["evidence"]) for row in rows)
                file.write_table(pa.Table.from_pylist(rows, schema))
        run = _audit(str(path))
    name, share = f"audit of {n:,} rows, {size / 1e6:.0f} MB of text", run.peak / size
    # The libraries outweigh a small table: the limit is for the full size.
    ratio = Row(f"{name}: peak / text", share, "x") if quick else at_most(f"{name}: peak / text", share, "x", 3.0)
    return [
        Row(f"{name}: wall", run.wall, "s"),
        Row(f"{name}: CPU", run.cpu, "s"),
        Row(f"{name}: peak", run.peak / 1e6, "MB"),
        ratio,
    ]


def _audit(*arguments: str) -> Finished:
    """Run `evidep audit` in a process of its own.

    Raises:
        RuntimeError: It failed.
    """
    start = time.perf_counter()
    done = subprocess.run([sys.executable, __file__, *arguments], capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"evidep audit {' '.join(arguments)}: exit code {done.returncode}: {done.stderr[-500:]}")
    return Finished(wall, **json.loads(done.stdout))


if __name__ == "__main__":
    from evidep.cli import main

    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = main(["audit", *sys.argv[1:]])
    if code:
        sys.exit(said.getvalue())
    usage = resource.getrusage(resource.RUSAGE_SELF)
    sys.stdout.write(json.dumps({"cpu": usage.ru_utime + usage.ru_stime, "peak": peak_memory()}))
