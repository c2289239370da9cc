"""What a reader of an audit must know about its data, as pairs of a name and a value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evidep.audit.packet import AuditPacket
from evidep.report.escape import PLAIN, Quoting
from evidep.report.numerals import count, percent

MOST_LABELS = 12


def data_facts(packet: AuditPacket, quote: Quoting = PLAIN) -> list[tuple[str, str]]:
    """Rows, dropped rows, labels, groups, blanks, duplicates and overlap, ready to be shown."""
    data = packet["data"]
    facts = [
        ("items audited", count(data["rows"])),
        ("readers fitted on", _fitted_on(packet)),
        ("dropped", _dropped(data["dropped"], quote)),
        ("labels", _labels(data["label_counts"], quote)),
        ("columns", _columns(data["roles"], quote)),
        ("independent groups", f"{count(data['groups'])} for intervals{_components(data)}"),
    ]
    report = data.get("report") or {}
    counted = report.get("evaluation") or {}
    if counted.get("evidence_states"):
        states = counted["evidence_states"]
        without = states.get("blank", 0) + states.get("missing", 0)
        facts.append(
            (
                "without evidence",
                f"{count(without)} ({count(states.get('blank', 0))} blank, {count(states.get('missing', 0))} missing)",
            )
        )
    if "repeated_evidence_share" in counted:
        facts.append(
            (
                "repeated evidence",
                f"{percent(counted['repeated_evidence_share'])} of items, at most "
                f"{count(counted.get('largest_evidence_group'))} with one text",
            )
        )
    if "duplicate_rows" in counted:
        facts.append(
            (
                "duplicates",
                f"{count(counted['duplicate_rows'])} repeat an earlier item, {count(counted.get('conflicting_rows'))} "
                "share texts but not the label",
            )
        )
    overlap = report.get("overlap")
    if overlap:
        facts.append(
            (
                "also in train",
                f"{count(overlap.get('pairs'))} pairs, {count(overlap.get('queries'))} queries, "
                f"{count(overlap.get('evidence'))} evidence texts",
            )
        )
    return facts


def _fitted_on(packet: AuditPacket) -> str:
    rows, folds = packet["data"]["train_rows"], packet["settings"].get("n_folds")
    if rows is not None:
        return f"{count(rows)} training items"
    return f"the other folds of these items (out of fold{f', {folds} folds' if folds else ''})"


def _dropped(dropped: Mapping[str, Any], quote: Quoting) -> str:
    parts = [
        f"{count(rows)} of {quote.name(split)} ({quote.name(reason)})"
        for split, reasons in dropped.items()
        for reason, rows in reasons.items()
    ]
    return ", ".join(parts) or "none"


def _labels(counts: Mapping[str, int], quote: Quoting) -> str:
    commonest = sorted(counts.items(), key=lambda pair: -pair[1])[:MOST_LABELS]
    text = ", ".join(f"{quote.name(label)} {count(rows)}" for label, rows in commonest)
    return text if len(counts) <= MOST_LABELS else f"{text}, and {count(len(counts) - MOST_LABELS)} more"


def _columns(roles: Mapping[str, Any], quote: Quoting) -> str:
    named = [(role, roles[role]) for role in ("query", "evidence", "label")]
    named += [("metadata", column) for column in roles["metadata"]]
    if roles["group"] is not None:
        named.append(("group", roles["group"]))
    return ", ".join(f"{role} {quote.name(column)}" for role, column in named)


def _components(data: Mapping[str, Any]) -> str:
    return f", {count(data['components'])} for folds" if data.get("components") is not None else ""
