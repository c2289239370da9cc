"""Factories of small packets in the shape that the audit writes, each checked against the packet schema."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from evidep.audit.packet import AuditPacket, check_document, plain

HOSTILE = (
    "a|b `c` <script>alert(1)</script>\n---\nx: - {y} ![i](http://evil.example/p.png) $m_1$ \u202e\x1b[31m \"'</td>"
)


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


def one_reader() -> AuditPacket:
    """A light reader alone: near zero, calibrate first."""
    return packet(
        [reader_row("tfidf_lr", full=0.585)],
        [
            delta_row("tfidf_lr", full=0.585, drop=0.011, half_width=0.004, verdict="equivalent", negligible=True),
            delta_row("tfidf_lr", "within-label", full=0.585, drop=0.004, half_width=0.004, verdict="equivalent"),
        ],
        region="reader_limited",
        reasons=(
            "tfidf_lr is equivalent to zero (ΔEvi 0.011, 90 % interval inside ±0.02) and no strong reader was run",
        ),
        ablations=(
            ablation_row("tfidf_lr", "query-only", 0.57),
            ablation_row("tfidf_lr", "evidence-only", 0.34),
            ablation_row("tfidf_lr", "query-only", 0.56, how="masked"),
            ablation_row("tfidf_lr", "evidence-only", 0.36, how="masked"),
            ablation_row("tfidf_lr", "empty", 0.55, how="masked"),
        ),
    )


def three_readers(**settings: Any) -> AuditPacket:
    """The ladder of a calibration reversal: light near zero, middle and strong sensitive, two seeds of the last."""
    readers = [
        reader_row("tfidf_lr", full=0.585),
        reader_row("minilm_lr", full=0.710, strength="middle", interaction=True, contamination="pre-trained on SNLI"),
        reader_row("minilm", full=0.801, strength="strong", interaction=True),
        reader_row("minilm", full=0.795, strength="strong", interaction=True, seed=1),
    ]
    deltas = [
        delta_row("tfidf_lr", full=0.585, drop=0.011, half_width=0.004, verdict="equivalent", negligible=True),
        delta_row("tfidf_lr", "within-label", full=0.585, drop=0.004, half_width=0.004, verdict="equivalent"),
        delta_row("minilm_lr", full=0.710, drop=0.317, half_width=0.016),
        delta_row("minilm_lr", "within-label", full=0.710, drop=0.261, half_width=0.016),
        delta_row("minilm", full=0.801, drop=0.364, half_width=0.015, exact=False),
        delta_row("minilm", "within-label", full=0.801, drop=0.301, half_width=0.015, exact=False),
        delta_row("minilm", full=0.795, drop=0.352, half_width=0.015, exact=False, seed=1),
        delta_row("minilm", "within-label", full=0.795, drop=0.296, half_width=0.015, exact=False, seed=1),
    ]
    ablations = tuple(
        ablation_row(name, arm, accuracy, how=how)
        for name, base in (("tfidf_lr", 0.57), ("minilm_lr", 0.60), ("minilm", 0.62))
        for arm, how, accuracy in (
            ("query-only", "retrained", base),
            ("evidence-only", "retrained", 0.35),
            ("query-only", "masked", base - 0.05),
            ("evidence-only", "masked", 0.34),
            ("empty", "masked", base - 0.08),
        )
    )
    return packet(
        readers,
        deltas,
        region="evidence_sensitive",
        flags=("calibration_reversal", "residual_query_signal", "contaminated_reader"),
        reasons=(
            "minilm loses 0.364 of its accuracy when the evidence is swapped (95 % interval [0.349, 0.379])",
            "tfidf_lr is equivalent to zero (ΔEvi 0.011)",
        ),
        ablations=ablations,
        reader_seeds=2,
        **settings,
    )


def undefined_mpds() -> AuditPacket:
    """No metadata column was declared."""
    return packet(
        [reader_row("tfidf_lr", full=0.62), reader_row("minilm_lr", full=0.70, strength="middle")],
        [
            delta_row("tfidf_lr", full=0.62, drop=0.05, half_width=0.02),
            delta_row("minilm_lr", full=0.70, drop=0.18, half_width=0.03),
        ],
        region="evidence_sensitive",
        metadata_accuracy=None,
        name="fever",
    )


def not_applicable() -> AuditPacket:
    """All evidence is one text."""
    return packet(
        [reader_row("tfidf_lr", full=0.62)],
        [delta_row("tfidf_lr", drop=None), delta_row("tfidf_lr", "within-label", drop=None)],
        region="not_applicable",
        reasons=("every item has the same evidence",),
        name="constant",
    )


def large_effect() -> AuditPacket:
    """ΔEvi 0.9, MPDS 0.09; the within-label arm cannot be run."""
    return packet(
        [reader_row("tfidf_lr", full=0.99)],
        [
            delta_row("tfidf_lr", full=0.99, drop=0.9, half_width=0.01),
            delta_row("tfidf_lr", "within-label", drop=None, reason="one class alone has items that can move"),
        ],
        region="evidence_sensitive",
        metadata_accuracy=0.09,
        majority=0.09,
        name="planted",
    )


def many_shuffles() -> AuditPacket:
    """K = 500."""
    return packet(
        [reader_row("tfidf_lr", full=0.62), reader_row("minilm_lr", full=0.66, strength="middle", works=False)],
        [
            delta_row("tfidf_lr", full=0.62, drop=0.03, half_width=0.02, k=500),
            delta_row("tfidf_lr", "within-label", full=0.62, drop=0.01, half_width=0.02, k=500, verdict="inconclusive",
                      items_needed=4200),
            delta_row("minilm_lr", full=0.66, drop=0.02, half_width=0.03, k=500, verdict="inconclusive"),
        ],
        region="evidence_sensitive",
        k=500,
    )  # fmt: skip


def inconclusive() -> AuditPacket:
    return packet(
        [reader_row("tfidf_lr", full=0.62)],
        [delta_row("tfidf_lr", full=0.62, drop=0.02, half_width=0.05, verdict="inconclusive", items_needed=6100)],
        region="inconclusive",
        reasons=("tfidf_lr: ΔEvi 0.020, 95 % interval [-0.030, 0.070], neither above zero nor inside ±0.02",),
    )


def coupled(region: str = "direct_coupling") -> AuditPacket:
    accuracy = {"direct_coupling": 0.62, "latent_coupling": 0.41, "question_dominant": 0.41}[region]
    query = 0.645 if region == "question_dominant" else 0.45
    readers = [reader_row("tfidf_lr", full=0.64), reader_row("minilm", full=0.65, strength="strong")]
    return packet(
        readers,
        [
            delta_row("tfidf_lr", full=0.64, drop=0.001, half_width=0.006, verdict="equivalent"),
            delta_row("minilm", full=0.65, drop=-0.002, half_width=0.008, verdict="equivalent"),
        ],
        region=region,
        ablations=(ablation_row("minilm", "query-only", query), ablation_row("minilm", "evidence-only", 0.35)),
        metadata_accuracy=accuracy,
    )


def hostile() -> AuditPacket:
    """Every name that a stranger can choose is an attack."""
    made = three_readers()
    document = made.to_dict()
    text = document["data"]
    text["name"] = HOSTILE
    text["labels"] = [HOSTILE, "neutral", "contradiction"]
    text["label_counts"] = {HOSTILE: 330, "neutral": 340, "contradiction": 330}
    text["notes"] = [HOSTILE]
    text["roles"] = {
        "query": HOSTILE, "evidence": HOSTILE, "label": HOSTILE, "metadata": [HOSTILE, "b"], "group": HOSTILE
    }  # fmt: skip
    text["dropped"] = {HOSTILE: {HOSTILE: 3}}
    document["metadata"]["schema"] = [HOSTILE, "b"]
    document["majority"]["label"] = HOSTILE
    document["signature"] = f"evidep:0.1.0|data:{HOSTILE}"
    document["diagnosis"]["reasons"] = [HOSTILE]
    document["diagnosis"]["flags"] = [HOSTILE]
    names = {"minilm_lr": HOSTILE}
    for row in (
        document["readers"] + document["delta_evi"] + document["ablations"] + document["metadata"]["by_reader"]
        + document["information"]
    ):  # fmt: skip
        row["reader"] = names.get(row["reader"], row["reader"])
        row["reason"] = HOSTILE
    document["readers"][1]["contamination"] = HOSTILE
    document["readers"][1]["notes"] = [HOSTILE]
    check_document(document)
    return AuditPacket(document)


def many() -> AuditPacket:
    """Seven readers with long names, four families."""
    names = (
        "tfidf_lr:C=0.5,ngrams=1-2", "minilm_lr", "MiniLM-L6 fine-tuned on 50k pairs with a very long name indeed",
        "bert", "distilbert", "electra_small", "scibert",
    )  # fmt: skip
    drops = (0.011, 0.317, 0.364, 0.367, 0.33, 0.26, 0.31)
    readers = [
        reader_row(name, full=0.5 + drop, strength="light" if at == 0 else "middle" if at == 1 else "strong")
        for at, (name, drop) in enumerate(zip(names, drops, strict=True))
    ]
    deltas = [
        delta_row(name, family, full=0.5 + drop, drop=drop * share, half_width=0.015,
                  verdict="equivalent" if drop < 0.02 else "sensitive")
        for name, drop in zip(names, drops, strict=True)
        for family, share in (("global", 1), ("within-label", 0.8), ("within-metadata", 0.95), ("near-miss", 0.4))
    ]  # fmt: skip
    return packet(readers, deltas, region="evidence_sensitive", flags=("calibration_reversal",))


EVERY = {
    "one_reader": one_reader,
    "three_readers": three_readers,
    "undefined_mpds": undefined_mpds,
    "not_applicable": not_applicable,
    "large_effect": large_effect,
    "many_shuffles": many_shuffles,
    "inconclusive": inconclusive,
    "direct": coupled,
    "latent": lambda: coupled("latent_coupling"),
    "question": lambda: coupled("question_dominant"),
    "hostile": hostile,
    "many": many,
}
