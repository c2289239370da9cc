"""Shuffled scoring and fitting of the light readers, beside the ordinary way."""

from __future__ import annotations

import contextlib
import statistics
from itertools import count

import numpy as np
from bench_common import Row, at_least, interleaved, median_ratio, pairs


def shuffles(quick: bool) -> list[Row]:
    """One shuffle, from the drawn permutation to the accuracy: parts added up against joined text vectorised anew."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    from evidep.readers.ngrams import TOKEN_PATTERN
    from evidep.readers.tfidf import TfidfReader
    from evidep.readers.tfidf_joined import SEPARATOR, JoinedTfidfReader
    from evidep.readers.tfidf_overlap import TfidfOverlapReader

    data = pairs(10_000)
    train, table = data.train, data.evaluation
    n, labels = len(table), table.labels
    queries, evidence = table.queries.to_list(), table.evidence.to_list()
    joined = [f"{q} {SEPARATOR} {e}" for q, e in zip(train.queries.to_list(), train.evidence.to_list(), strict=True)]
    pipeline = make_pipeline(
        TfidfVectorizer(ngram_range=(1, 2), token_pattern=TOKEN_PATTERN, min_df=2),
        LogisticRegression(solver="newton-cg"),
    ).fit(joined, train.labels)
    numbers = count()

    def donors() -> np.ndarray:
        return np.random.default_rng([0, next(numbers)]).permutation(n)

    def naive() -> float:
        texts = [f"{query} {SEPARATOR} {evidence[j]}" for query, j in zip(queries, donors().tolist(), strict=True)]
        return float((pipeline.predict(texts) == labels).mean())

    everyone = np.arange(n)
    ways = {"naive": naive}
    for kind in (TfidfReader, JoinedTfidfReader, TfidfOverlapReader):
        reader = kind().fit(train, seed=0)
        encoded = reader.encode(table)

        def ours(reader=reader, encoded=encoded) -> float:
            return float((reader.scores(encoded, everyone, donors()).argmax(axis=1) == labels).mean())

        ways[reader.name] = ours
    seconds = interleaved(ways, 5 if quick else 15)
    rows = [Row(f"shuffle of {n} pairs, {name}", 1000 * statistics.median(s), "ms") for name, s in seconds.items()]
    limits = {"tfidf_lr": 250.0, "tfidf_lr_joined": 30.0}
    for name, least in limits.items():
        rows.append(at_least(f"naive / {name}", median_ratio(seconds["naive"], seconds[name]), "x", least))
    return rows


def fits(quick: bool) -> list[Row]:
    """A fit with BLAS on one thread, as the reader does it, against BLAS as it comes."""
    import threadpoolctl

    from evidep.readers.tfidf import TfidfReader

    train = pairs(10_000).train
    pinned = threadpoolctl.threadpool_limits

    def unpinned_fit() -> None:
        threadpoolctl.threadpool_limits = lambda *_: contextlib.nullcontext()
        try:
            TfidfReader().fit(train, seed=0)
        finally:
            threadpoolctl.threadpool_limits = pinned

    seconds = interleaved(
        {"pinned": lambda: TfidfReader().fit(train, seed=0), "default": unpinned_fit}, 2 if quick else 5
    )
    return [
        *(Row(f"fit of {len(train)} pairs, BLAS {name}", statistics.median(s), "s") for name, s in seconds.items()),
        Row("fit, BLAS default / pinned", median_ratio(seconds["default"], seconds["pinned"]), "x"),
    ]
