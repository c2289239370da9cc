"""The audit's result in sentences: what its region means, what its flags mean, and the number behind it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from evidep.audit.packet import AuditPacket
from evidep.report import facts
from evidep.report.escape import PLAIN, Quoting
from evidep.report.numerals import confidence, interval, number


@dataclass(frozen=True, slots=True)
class RegionWords:
    """A region's name for people and what it means for somebody who uses the benchmark."""

    title: str
    meaning: str


_NO_PROOF: Final = "A good score here does not show that a system reads its evidence."

REGIONS: Final[dict[str, RegionWords]] = {
    "direct_coupling": RegionWords(
        "direct coupling",
        "Swapping the evidence changes nothing, and metadata alone predicts the labels about as well as a reader of "
        f"the texts does. {_NO_PROOF}",
    ),
    "latent_coupling": RegionWords(
        "latent coupling",
        "Swapping the evidence changes nothing, and neither the declared metadata nor the query alone explains the "
        f"accuracy. {_NO_PROOF}",
    ),
    "question_dominant": RegionWords(
        "question-dominant",
        "The query alone does as well as query and evidence together, and swapping the evidence changes nothing. "
        f"{_NO_PROOF}",
    ),
    "reader_limited": RegionWords(
        "reader-limited: calibrate first",
        "The readers that were run do not react to the evidence, but none of them is strong enough to say that nothing "
        "would. This is a finding about the readers, not yet about the benchmark.",
    ),
    "evidence_sensitive": RegionWords(
        "evidence-sensitive",
        "Accuracy falls when the evidence is swapped: at least one reader needs the evidence that belongs to the item.",
    ),
    "inconclusive": RegionWords(
        "inconclusive",
        "The audit is too small to tell whether accuracy falls when the evidence is swapped: neither a fall nor its "
        "absence (within the margin) is shown.",
    ),
    "not_applicable": RegionWords(
        "not applicable",
        "The evidence cannot be swapped in this data, so the question cannot be asked of it.",
    ),
}

_NONE_WORKS: Final = (
    "No reader that was run beats a constant answer by more than noise, so what they do with the evidence tells "
    "nothing. This is a finding about the readers, not yet about the benchmark."
)

VERDICTS: Final[dict[str, str]] = {
    "sensitive": "sensitive",
    "equivalent": "equivalent to zero",
    "inconclusive": "inconclusive",
    "not_applicable": "not applicable",
}


def region_title(packet: AuditPacket) -> str:
    """The region's name for people."""
    return REGIONS[packet["diagnosis"]["region"]].title


def region_meaning(packet: AuditPacket) -> str:
    """What the region means, in one or two sentences."""
    reads_text = any(row.get("strength") != "baseline" for row in packet["readers"])
    if packet.region == "reader_limited" and reads_text and not any(map(facts.counts, packet["readers"])):
        return _NONE_WORKS
    return REGIONS[packet.region].meaning


def flag_title(flag: str) -> str:
    """A flag's name for people; the reasons hold the sentence with its numbers."""
    return flag.replace("_", " ")


def verdict_text(row: facts.Row) -> str:
    """The verdict on one ΔEvi row. Equivalent and yet different from zero reads "detectable but negligible"."""
    return "detectable but negligible" if row.get("negligible") else VERDICTS[row["verdict"]]


def evidence_line(packet: AuditPacket, quote: Quoting = PLAIN) -> str | None:
    """The number behind the verdict in one sentence, or None where no shuffle could be run."""
    row = facts.headline(packet)
    if row is None or facts.effect(row) is None:
        return None
    full, shuffled = facts.accuracy_full(packet, row), facts.accuracy_shuffled(packet, row)
    level = confidence(packet["settings"]["alpha"])
    ends = f"{level} interval {interval(row['ci'])}"
    if row["ci"] is None:
        ends = f"no {level} interval ({quote.sentence(row.get('reason') or 'none was given')})"
    works = {reader["reader"]: reader["works"] for reader in packet["readers"] if reader["seed"] == row["seed"]}
    failed = "" if works.get(row["reader"], True) else " That reader does not work, so this number says nothing."
    return (
        f"With its own evidence {quote.name(row['reader'])} is right on {number(full)} of the items, with the evidence "
        f"of another item on {number(shuffled)} ({row['shuffle']} shuffle): ΔEvi {number(facts.effect(row))}, "
        f"{ends}, {verdict_text(row)}.{failed}"
    )
