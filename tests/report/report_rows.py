"""Rows of a packet in the shape that the audit writes, and a packet of them, checked against the packet schema."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from evidep.audit.packet import AuditPacket, check_document, plain


def delta_row(
    reader: str,
    shuffle: str = "global",
    *,
    full: float = 0.71,
    drop: float | None = 0.3,
    half_width: float = 0.02,
    verdict: str = "sensitive",
    seed: int = 0,
    k: int = 20,
    n: int = 1000,
    exact: bool = True,
    **more: Any,
) -> dict[str, Any]:
    """One ΔEvi row; drop None is an arm that is not applicable. Shuffled accuracies scatter by sqrt(.25/n)."""
    row: dict[str, Any] = {"reader": reader, "seed": seed, "shuffle": shuffle, "k": k}
    if drop is None:
        undefined = dict.fromkeys(
            ("mean", "sd_population", "exact", "sd_permutation", "standard_error", "ci", "ci_equivalence", "p_value",
             "p_value_holm", "minimum_detectable_effect", "items_needed", "accuracy_full")
        )  # fmt: skip
        return (
            row
            | undefined
            | {
                "verdict": "not_applicable", "p_method": "none", "negligible": False, "unchanged_rate": 1.0,
                "unmovable_share": 1.0, "accuracy_shuffled": [], "n_items": 0, "n_groups": 0,
                "reason": "every item has the same evidence: swapping it changes nothing",
            }
            | more
        )  # fmt: skip
    noise = np.random.default_rng([seed, k, len(reader), len(shuffle)]).normal(0, math.sqrt(0.25 / n), k)
    shuffled = np.clip(full - drop + noise, 0, 1)
    p = (1 + int((shuffled >= full).sum())) / (k + 1)
    return (
        row
        | {
            "mean": full - float(shuffled.mean()),
            "sd_population": float(shuffled.std()),
            "exact": drop if exact else None,
            "sd_permutation": math.sqrt(0.25 / n) if exact else None,
            "standard_error": half_width / 1.96,
            "ci": [drop - half_width, drop + half_width],
            "ci_equivalence": [drop - 0.84 * half_width, drop + 0.84 * half_width],
            "p_value": p,
            "p_value_holm": min(1.0, 2 * p),
            "p_method": "permutation",
            "verdict": verdict,
            "negligible": False,
            "unchanged_rate": 0.001,
            "unmovable_share": 0.0,
            "minimum_detectable_effect": 2.8 * half_width / 1.96,
            "items_needed": None,
            "accuracy_full": full,
            "accuracy_shuffled": shuffled,
            "n_items": n,
            "n_groups": n // 3,
            "reason": None if exact else "exact: this reader scores one pair at a time, so the mean over K stands",
        }
        | more
    )


def reader_row(reader: str, *, full: float = 0.71, works: bool = True, seed: int = 0, **more: Any) -> dict[str, Any]:
    return {
        "reader": reader,
        "seed": seed,
        "strength": "light",
        "interaction": False,
        "accuracy_full": full,
        "ci": [full - 0.03, full + 0.03],
        "works": works,
        "p_above_majority": 0.0005 if works else 0.4,
        "contamination": None,
        "fingerprint": "f" * 16,
        "notes": [],
        "reason": None if works else "accuracy is not above the majority rate by more than noise",
    } | more


def ablation_row(reader: str, arm: str, accuracy: float, *, how: str = "retrained", seed: int = 0) -> dict[str, Any]:
    ci = [max(0.0, accuracy - 0.03), min(1.0, accuracy + 0.03)]
    return {"reader": reader, "seed": seed, "arm": arm, "how": how, "accuracy": accuracy, "ci": ci, "reason": None}


def metadata(
    readers: list[dict[str, Any]], accuracy: float | None, schema: tuple[str, ...] = ("source",)
) -> dict[str, Any]:
    """MPDS against every reader, or no declared metadata for accuracy None."""
    if accuracy is None:
        empty = dict.fromkeys(("reader", "accuracy", "mpds", "mpds_chance_corrected", "ci", "n_cells"))
        return empty | {"schema": [], "by_reader": [], "reason": "no metadata columns were declared (--metadata)"}
    rows = [
        {
            "reader": row["reader"],
            "seed": row["seed"],
            "accuracy_full": row["accuracy_full"],
            "mpds": accuracy / row["accuracy_full"],
            "mpds_chance_corrected": None,
            "ci": [accuracy / row["accuracy_full"] - 0.04, accuracy / row["accuracy_full"] + 0.04],
            "reason": "accuracy_full - majority_rate is not above noise: the corrected ratio has no denominator",
        }
        for row in readers
    ]
    best = max(rows, key=lambda row: row["accuracy_full"])
    return {
        "schema": list(schema),
        "reader": best["reader"],
        "accuracy": accuracy,
        "mpds": best["mpds"],
        "mpds_chance_corrected": None,
        "ci": best["ci"],
        "n_cells": 4,
        "by_reader": rows,
        "reason": best["reason"],
    }


def packet(
    readers: list[dict[str, Any]],
    deltas: list[dict[str, Any]],
    *,
    region: str,
    flags: tuple[str, ...] = (),
    reasons: tuple[str, ...] = ("one reason with a number: 0.300",),
    ablations: tuple[dict[str, Any], ...] = (),
    metadata_accuracy: float | None = 0.4,
    majority: float = 0.34,
    name: str = "snli_cad",
    **settings: Any,
) -> AuditPacket:
    """A packet from its parts, valid by the schema."""
    shuffles = list(dict.fromkeys(row["shuffle"] for row in deltas))
    names = list(dict.fromkeys(row["reader"] for row in readers))
    document = {
        "schema_version": "1.0",
        "signature": f"evidep:0.1.0|data:{name}@0123abcd|train@89abcdef|readers:{','.join(names)}|K:20|seed:0",
        "data": {
            "name": name,
            "rows": 1000,
            "train_rows": 8330,
            "dropped": {"evaluation": {"label -1": 3}, "train": {}},
            "labels": ["entailment", "neutral", "contradiction"],
            "label_counts": {"entailment": 330, "neutral": 340, "contradiction": 330},
            "groups": 333,
            "components": 200,
            "fingerprint": "0123abcd" * 8,
            "train_fingerprint": "89abcdef" * 8,
            "roles": {
                "query": "hypothesis",
                "evidence": "premise",
                "label": "label",
                "metadata": ["source"] if metadata_accuracy is not None else [],
                "group": None,
            },
            "report": {
                "evaluation": {
                    "name": "validation", "rows_read": 1003, "rows_kept": 1000, "dropped": {"label -1": 3},
                    "evidence_states": {"present": 990, "blank": 10, "missing": 0}, "duplicate_rows": 7,
                    "conflicting_pairs": 2, "conflicting_rows": 4, "repeated_evidence_share": 0.8,
                    "largest_evidence_group": 9, "n_groups": 333, "n_components": 200,
                    "largest_component_share": 0.012,
                },
                "overlap": {"pairs": 0, "queries": 12, "evidence": 3},
                "candidate_metadata": ["genre"],
                "candidate_groups": [],
            },
            "notes": ["7 items of the evaluation split repeat an earlier query, evidence and label."],
        },
        "settings": {
            "readers": names, "shuffles": shuffles or ["global"], "k": 20, "seed": 0, "reader_seeds": 1,
            "margin": 0.02, "alpha": 0.05, "mpds_high": 0.9, "ablations": ["query-only", "evidence-only"],
            "n_folds": None,
        }
        | settings,
        "majority_rate": majority,
        "majority": {
            "label": "neutral", "train_majority_on_evaluation": majority, "evaluation_majority_share": majority
        },
        "metadata": metadata(readers, metadata_accuracy),
        "readers": readers,
        "delta_evi": deltas,
        "ablations": list(ablations),
        "information": [
            {"reader": names[-1], "seed": 0, "v_information_bits": 0.41, "standard_error": 0.02,
             "ci": [0.37, 0.45], "reason": None}
        ],
        "calibration": {
            "contrasts": [
                {"reader": stronger, "against": lighter, "difference": 0.306, "ci": [0.290, 0.322], "reason": None}
                for lighter, stronger in pairwise(names)
            ],
            "seed_spread": [
                {"reader": name, "seeds": 1, "mean": 0.3, "sd": None, "reason": "one seed shows no spread"}
                for name in names
            ],
        },
        "diagnosis": {"region": region, "flags": list(flags), "reasons": list(reasons)},
        "environment": {"python": "3.11.2", "platform": "Linux x86_64", "packages": {"numpy": "2.4.0"}},
    }  # fmt: skip
    document = plain(document)
    check_document(document)
    return AuditPacket(document)
