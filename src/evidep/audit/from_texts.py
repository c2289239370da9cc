"""ΔEvi of a reader from plain lists of texts and labels: the "reader" configuration of the evaluate module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evidep.audit.api import audit
from evidep.audit.from_predictions import group_numbers
from evidep.errors import DataError
from evidep.metric_input import check_labels, check_texts, same_lengths, text_lists
from evidep.readers.protocol import Reader
from evidep.types import ColumnRoles


def delta_evi_from_texts(
    queries: Any,
    evidence: Any,
    references: Any,
    *,
    reader: str | Reader = "tfidf_lr",
    train: Mapping[str, Any] | None = None,
    k: int = 20,
    seed: int = 0,
    shuffle: str = "global",
    groups: Any = None,
    alpha: float = 0.05,
    margin: float = 0.02,
) -> dict[str, Any]:
    """Fit a reader, swap the evidence K times, and return ΔEvi with its interval, the region and the whole packet.

    Args:
        queries: n questions, claims or hypotheses.
        evidence: n passages; a string, a list of strings or None each.
        references: n gold labels, int or str.
        reader: Registry name or an object with the reader protocol.
        train: {"queries": ..., "evidence": ..., "references": ...} to fit on; None: out of fold.
        k: Number of shuffles.
        seed: Seed of shuffles, folds and fit.
        shuffle: Family of shuffles.
        groups: n group names, or None.
        alpha: Level of the test.
        margin: Largest ΔEvi that counts as none.

    Raises:
        EvidepError: Anything the caller can fix, in one line.
    """
    roles = ColumnRoles("query", "evidence", "label", group=None if groups is None else "group")
    rows = _rows(queries, evidence, references, "")
    if groups is not None:
        for row, group in zip(rows, groups, strict=False):
            row["group"] = group
        group_numbers(groups, len(rows))
    train_rows: Sequence[dict[str, Any]] | None = None
    if train is not None:
        missing = [name for name in ("queries", "evidence", "references") if name not in train]
        if missing:
            raise DataError(f"train: expected the keys queries, evidence and references; {', '.join(missing)} missing")
        train_rows = _rows(train["queries"], train["evidence"], train["references"], "train ")
        if groups is not None:
            train_rows = [{**row, "group": f"train-{number}"} for number, row in enumerate(train_rows)]
    packet = audit(
        rows,
        train=train_rows,
        roles=roles,
        readers=(reader,),
        shuffles=(shuffle,),
        k=k,
        seed=seed,
        alpha=alpha,
        margin=margin,
        name="texts",
    )
    row = packet["delta_evi"][0]
    return {
        "delta_evi": row["mean"],
        "exact": row["exact"],
        "accuracy_full": row["accuracy_full"],
        "accuracy_shuffled": row["accuracy_shuffled"],
        "sd_population": row["sd_population"],
        "p_value": row["p_value"],
        "ci": row["ci"],
        "verdict": row["verdict"],
        "standard_error": row["standard_error"],
        "minimum_detectable_effect": row["minimum_detectable_effect"],
        "reason": row["reason"],
        "region": packet.region,
        "reasons": packet["diagnosis"]["reasons"],
        "packet": packet.to_dict(),
    }


def _rows(queries: Any, evidence: Any, references: Any, what: str) -> list[dict[str, Any]]:
    same_lengths(**{f"{what}queries": queries, f"{what}evidence": evidence, f"{what}references": references})
    check_labels(references, f"{what}references")
    texts = check_texts(queries, f"{what}queries")
    passages = text_lists(evidence, f"{what}evidence")
    labels = references.tolist() if hasattr(references, "tolist") else list(references)
    return [
        # Labels as text, so that the label -1 of a caller's own coding is not taken for "missing".
        {"query": query, "evidence": "\n".join(parts) if parts else None, "label": str(label)}
        for query, parts, label in zip(texts, passages, labels, strict=True)
    ]
