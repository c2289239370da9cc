"""From a packet (and, right after a run, its items) to what the page shows. Pure: no gradio, no server."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from evidence_space.markup import bullets, table, text
from evidep.audit.packet import AuditPacket
from evidep.audit.results import AuditResults
from evidep.report import facts, words
from evidep.report.change import would_change
from evidep.report.data_facts import data_facts
from evidep.report.escape import one_line
from evidep.report.landmarks import LANDMARKS, SOURCE
from evidep.report.numerals import UNDEFINED, confidence, interval, number, p_value, percent

NEEDED: Final = "evidence_sensitive"
COUPLED: Final = ("direct_coupling", "latent_coupling", "question_dominant")
SHOWN_ITEMS: Final = 3
ITEM_TEXT: Final = 600


def verdict(packet: AuditPacket) -> str:
    """The verdict in a box: region, what it means, the number behind it, flags."""
    kind = "good" if packet.region == NEEDED else "bad" if packet.region in COUPLED else "open"
    title = words.region_title(packet)
    lines = [words.region_meaning(packet), words.evidence_line(packet)]
    flags = [words.flag_title(flag) for flag in packet["diagnosis"]["flags"]]
    if flags:
        lines.append(f"Flags: {', '.join(flags)}.")
    body = "".join(f"<p>{text(line)}</p>" for line in lines if line)
    return (
        f'<section class="ev-verdict ev-{kind}" role="status" aria-label="verdict">'
        f'<p class="ev-small">Evidence audit of '
        f"{text(packet['data']['name'], 60)}</p><h2>{text(title[0].upper() + title[1:])}</h2>{body}</section>"
    )


def map_key() -> str:
    """What the map shows, and the published results behind its numbers."""
    marks = "".join(
        f"<li>{text(mark.name)}: MPDS {number(mark.mpds) if mark.mpds is not None else 'not published'}, ΔEvi "
        f"{number(mark.delta_evi)}</li>"
        for mark in LANDMARKS
    )
    return (
        "<p>To the right: how far metadata alone goes (MPDS). Upwards: accuracy lost when evidence is swapped (ΔEvi). "
        "Bars are intervals. The band around 0 is the declared margin: yellow latent coupling or question-dominant, "
        f"orange direct coupling.</p><details><summary>Numbered diamonds: published results ({text(SOURCE)})</summary>"
        f"<ol>{marks}</ol></details>"
    )


def numbers(packet: AuditPacket) -> str:
    """ΔEvi, MPDS and data as tables, for those who want numbers and for screen readers."""
    level = confidence(packet["settings"]["alpha"])
    delta = table(
        "ΔEvi: accuracy lost when the evidence is swapped",
        ("Reader", "Shuffle", "Full", "Shuffled", "ΔEvi", f"{level} interval", "p", "Verdict", "Why undefined"),
        [
            (
                row["reader"] if facts.counts(reader) else f"{row['reader']} (says nothing: {_fails(reader)})",
                row["shuffle"],
                number(facts.accuracy_full(packet, row)),
                number(facts.accuracy_shuffled(packet, row)),
                number(facts.effect(row)),
                interval(row["ci"]),
                p_value(row["p_value"]),
                words.verdict_text(row),
                (row.get("reason") or "") if row["mean"] is None else "",
            )
            for reader in facts.readers(packet)
            for row in facts.delta_rows(packet, reader=reader["reader"], seed=reader["seed"])
        ],
        numeric=(2, 3, 4, 5, 6),
    )
    mpds = table(
        "MPDS: accuracy of metadata alone over accuracy of the reader",
        ("Reader", "Accuracy", "Interval", "Metadata alone", "MPDS", "Interval", "Why undefined"),
        [_mpds_row(packet, reader) for reader in facts.readers(packet)],
        numeric=(1, 2, 3, 4, 5),
    )
    return delta + mpds + table("Data", ("What", "Found"), data_facts(packet))


def _fails(reader: facts.Row) -> str:
    return "a baseline" if reader["works"] else "does not beat the majority rate"


def _mpds_row(packet: AuditPacket, reader: facts.Row) -> tuple[str, ...]:
    score = facts.metadata_row(packet, reader["reader"], reader["seed"])
    metadata = packet["metadata"]
    reason = (score or metadata).get("reason") or ""
    return (
        reader["reader"],
        number(reader["accuracy_full"]),
        interval(reader["ci"]),
        number(metadata["accuracy"]),
        UNDEFINED if score is None else number(score["mpds"]),
        UNDEFINED if score is None else interval(score["ci"]),
        reason if score is None or score["mpds"] is None else "",
    )


def explanation(packet: AuditPacket) -> str:
    """Why this verdict, and what would change it."""
    return bullets("Why", packet["diagnosis"]["reasons"]) + bullets(
        "What would change this verdict", would_change(packet)
    )


def warnings(packet: AuditPacket, more: Sequence[str] = ()) -> str:
    """Everything that a visitor must know before the numbers are believed."""
    return bullets("Warnings and notes", dict.fromkeys(_warnings(packet, more))) or "<p>No warnings.</p>"


def _warnings(packet: AuditPacket, more: Sequence[str]) -> Iterator[str]:
    yield from more
    for reader in facts.readers(packet):
        if not reader["works"]:
            yield f"{reader['reader']} does not beat the majority rate by more than noise: its ΔEvi says nothing."
        if reader.get("contamination"):
            yield f"{reader['reader']}: {reader['contamination']}"
        for note in reader.get("notes") or ():
            yield f"{reader['reader']}: {note}"
    for row in packet["delta_evi"]:
        if (row.get("unmovable_share") or 0) > 0 and row["mean"] is not None:
            share = percent(row["unmovable_share"])
            yield f"{share} of the items cannot get other evidence in the {row['shuffle']} shuffle."
    yield from packet["data"]["notes"]


@dataclass(frozen=True, slots=True)
class Item:
    """One item as an example: its texts, label, the reader's answer, and how often it stayed right."""

    query: str
    evidence: str
    label: str
    answer: str
    right_share: float
    name: str


def examples(results: AuditResults, packet: AuditPacket) -> tuple[str, list[Item], list[Item]]:
    """The reader that stands for the verdict, items whose answer the swap changes, and items where it changes nothing.

    Both lists hold items answered right with their own evidence; the first those that are right least often with
    swapped evidence, the second those that are always right.
    """
    row = facts.headline(packet)
    if row is None:
        return "", [], []
    reader = next((r for r in results.readers if (r.info.name, r.seed) == (row["reader"], row["seed"])), None)
    arm = None if reader is None else reader.arm(row["shuffle"])
    if reader is None or arm is None:
        return "", [], []
    data, right = results.data.evaluation, np.flatnonzero(reader.correct)
    order = right[np.argsort(arm.right_when_shuffled[right], kind="stable")]

    def item(at: int) -> Item:
        return Item(
            data.queries[at] or "",
            data.evidence[at] or "",
            data.label_names[int(data.labels[at])],
            data.label_names[int(reader.predictions[at])],
            float(arm.right_when_shuffled[at]),
            str(data.ids[at].as_py()),
        )

    changed = [item(int(at)) for at in order[:SHOWN_ITEMS] if arm.right_when_shuffled[at] < 0.5]
    kept = [item(int(at)) for at in order[::-1][:SHOWN_ITEMS] if arm.right_when_shuffled[at] == 1]
    return f"{reader.info.name}, {row['shuffle']} shuffle", changed, kept


def example_cards(results: AuditResults, packet: AuditPacket) -> str:
    """Examples of items that the swap changes and of items that it does not."""
    who, changed, kept = examples(results, packet)
    if not who:
        return "<p>No shuffle could be run, so there are no examples.</p>"
    return (
        f"<p>Items that {text(who)}, answers right with their own evidence.</p>"
        + _cards("Wrong once the evidence is swapped", changed, "No item becomes wrong in most shuffles.")
        + _cards("Right whatever evidence is shown", kept, "No item stays right in every shuffle.")
    )


def _cards(heading: str, items: Sequence[Item], none: str) -> str:
    cards = "".join(
        f'<article class="ev-item"><p class="ev-small">{text(item.name, 60)}</p>'
        f"<p><b>Query</b> {text(item.query, ITEM_TEXT)}</p><p><b>Evidence</b> {text(item.evidence, ITEM_TEXT)}</p>"
        f"<p><b>Label</b> {text(item.label, 80)} · right in {percent(item.right_share)} of the shuffles</p></article>"
        for item in items
    )
    return f"<h3>{heading}</h3>" + (cards or f"<p>{none}</p>")


def share_line(packet: AuditPacket) -> str:
    """The result in one sentence, to be pasted anywhere."""
    evidence = words.evidence_line(packet)
    return one_line(
        f"Evidence audit of {packet['data']['name']}: {words.region_title(packet)}. {evidence or ''}"
    ).strip()


def plain_summary(packet: AuditPacket) -> dict[str, Any]:
    """The result for programs: verdict in words and the packet."""
    return {
        "region": packet.region,
        "verdict": words.region_title(packet),
        "meaning": words.region_meaning(packet),
        "evidence": words.evidence_line(packet),
        "reasons": list(packet["diagnosis"]["reasons"]),
        "signature": packet.signature,
    }
