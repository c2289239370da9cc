"""Shuffled copies of a dataset."""

from __future__ import annotations

import statistics

import numpy as np
from bench_common import Row, at_least, interleaved, sentences


def permute(quick: bool) -> list[Row]:
    """`data.intervene.permute_evidence` on 500,000 rows against a map over single rows (on fewer, scaled)."""
    import datasets

    from evidep.data.intervene import permute_evidence

    n = 50_000 if quick else 500_000
    few = 5_000 if quick else 20_000
    datasets.disable_progress_bars()
    base = sentences(10_000, seed=1)
    rows = [{**base[i % len(base)], "evidence": f"{base[i % len(base)]['evidence']} {i}"} for i in range(n)]
    whole = datasets.Dataset.from_list(rows)
    part = whole.select(range(few))
    number = iter(range(1000))

    def ours() -> None:
        permute_evidence(whole, evidence="evidence", k=next(number))

    def row_by_row() -> None:
        donors = np.random.default_rng(next(number)).permutation(few).tolist()
        texts = part["evidence"][:]
        part.map(lambda row, i: {"evidence": texts[donors[i]]}, with_indices=True, load_from_cache_file=False)

    seconds = interleaved({"ours": ours, "rows": row_by_row}, 1 if quick else 3)
    ratios = [n / few * slow / fast for slow, fast in zip(seconds["rows"], seconds["ours"], strict=True)]
    return [
        Row(f"permute_evidence on {n:,} rows", statistics.median(seconds["ours"]), "s"),
        at_least("map over single rows / permute_evidence", statistics.median(ratios), "x", 3.0),
    ]
