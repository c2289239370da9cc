"""Small packets that tests share: one of every region, and some that are hard to show."""

from __future__ import annotations

from typing import Any

from report.report_rows import ablation_row, delta_row, packet, reader_row

from evidep.audit.packet import AuditPacket, check_document

HOSTILE = (
    "a|b `c` <script>alert(1)</script>\n---\nx: - {y} ![i](http://evil.example/p.png) $m_1$ \u202e\x1b[31m \"'</td>"
)


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
