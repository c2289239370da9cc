"""A dataset with an attached audit loads as it did before, through the real `datasets` library."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
from report.report_packets import large_effect
from support import make_rows

from evidep.hub.attach import attach
from evidep.hub.client import Hub

AS_PUSHED = b"""---
dataset_info:
  features:
  - name: claim
    dtype: string
  - name: label
    dtype: int64
  splits:
  - name: train
    num_bytes: 100
    num_examples: 3
configs:
- config_name: default
  data_files:
  - split: train
    path: data/train-*
---
"""
LOAD = """
import sys
import datasets
for name, commit in zip(("ledger/pushed", "ledger/loose"), sys.argv[1:]):
    before, after = (datasets.load_dataset(name, revision=r, split="train").to_list() for r in (commit, "main"))
    print("RESULT", name, before == after, len(after))
"""


def test_rows_are_the_same_before_and_after_the_merge(standin, tmp_path):
    table, parquet = pa.table({"claim": ["a", "b", "c"], "label": [0, 1, 0]}), io.BytesIO()
    pq.write_table(table, parquet)
    pushed = standin.store.add_repo(
        "datasets", "ledger/pushed", {"README.md": AS_PUSHED, "data/train-00000-of-00001.parquet": parquet.getvalue()}
    )
    loose = standin.store.add_repo("datasets", "ledger/loose", {"data.csv": b"claim,label\na,0\nb,1\n"})
    before = [pushed.refs["main"], loose.refs["main"]]
    attach(large_effect(), "ledger/pushed", send=True, hub=Hub())
    attach(large_effect(), "ledger/loose", folder=".audit", send=True, hub=Hub())
    pushed.merge(1)
    loose.merge(1)
    assert "audit/packet.json" in pushed.files()
    assert ".audit/packet.json" in loose.files()
    environment = os.environ | {
        "HF_ENDPOINT": standin.url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", LOAD, *before], env=environment, cwd=tmp_path, capture_output=True, text=True,
        timeout=300,
    )  # fmt: skip
    assert "RESULT ledger/pushed True 3" in done.stdout, done.stderr
    assert "RESULT ledger/loose True 2" in done.stdout, done.stderr


def csv_of(rows):
    return "".join(",".join(map(str, row)) + "\n" for row in [list(rows[0]), *(row.values() for row in rows)]).encode()


def test_two_revisions_of_a_dataset_are_compared_item_by_item(standin, tmp_path):
    rows = [{"id": f"q{number}"} | row for number, row in enumerate(make_rows(120))]
    for row in rows:
        row |= {"claim": row["claim"].replace(",", ""), "evidence": row["evidence"].replace(",", "")}
    repo = standin.store.add_repo("datasets", "ledger/rows", {"data.csv": csv_of(rows)})
    first = repo.refs["main"]
    for row in rows[:60]:
        row["evidence"] = f"Nothing is said of {row['id']}."
    repo.commit("main", {"data.csv": csv_of(rows[:110])})
    environment = os.environ | {
        "HF_ENDPOINT": standin.url, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",
    }  # fmt: skip
    command = [sys.executable, "-m", "evidep", "diff", f"ledger/rows@{first}", "ledger/rows@main", "--json"]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["items"] == {"old": 120, "new": 110, "matched": 110, "relabelled": 0, "reason": None}
    change = next(c for c in result["changes"] if (c["quantity"], c["shuffle"]) == ("delta_evi", "global"))
    assert change["outcome"] == "lower"
    assert change["difference"] < -0.1
