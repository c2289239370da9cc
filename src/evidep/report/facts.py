"""What table, figure, card and badge read off a packet. Picking is done here once, so that they cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from evidep.audit.packet import AuditPacket

Row = Mapping[str, Any]
STRENGTHS: Final = ("baseline", "light", "middle", "strong")
SHUFFLES: Final = ("global", "within-label", "within-metadata", "near-miss")


@dataclass(frozen=True, slots=True)
class Point:
    """One reader on the diagnostic map.

    Attributes:
        reader: Name of the reader.
        seed: Seed that it was fitted with.
        strength: Rung of the ladder.
        works: Whether it beats the majority rate; the ΔEvi of one that does not says nothing.
        mpds: Metadata accuracy over this reader's accuracy, or None.
        mpds_ci: Interval of it, or None.
        effect: ΔEvi, or None.
        effect_ci: Interval of it, or None.
        verdict: Verdict on ΔEvi.
        main: True for the first seed, whose point is drawn with intervals.
    """

    reader: str
    seed: int
    strength: str
    works: bool
    mpds: float | None
    mpds_ci: Sequence[float] | None
    effect: float | None
    effect_ci: Sequence[float] | None
    verdict: str
    main: bool


def readers(packet: AuditPacket, *, every_seed: bool = False) -> list[Row]:
    """The readers from the weakest rung to the strongest, in the order given within a rung; first seed only."""
    found = [row for row in packet["readers"] if every_seed or row["seed"] == packet["settings"]["seed"]]
    if not found:
        first = packet["readers"][0]["seed"]
        found = [row for row in packet["readers"] if row["seed"] == first]
    order = {name: at for at, name in reversed(list(enumerate(row["reader"] for row in packet["readers"])))}
    return sorted(
        found, key=lambda row: (STRENGTHS.index(row.get("strength", "light")), order[row["reader"]], row["seed"])
    )


def counts(reader: Row) -> bool:
    """Whether the verdict may rest on a reader: it works, and is no baseline that never sees the evidence."""
    return bool(reader["works"]) and reader.get("strength") != "baseline"


def delta_rows(
    packet: AuditPacket, *, reader: str | None = None, seed: int | None = None, shuffle: str | None = None
) -> list[Row]:
    """The ΔEvi rows of a reader, seed and shuffle family (None: any), in the packet's order."""
    return [
        row
        for row in packet["delta_evi"]
        if (reader is None or row["reader"] == reader)
        and (seed is None or row["seed"] == seed)
        and (shuffle is None or row["shuffle"] == shuffle)
    ]


def shuffles(packet: AuditPacket) -> list[str]:
    """The shuffle families that were run, the paper's global one first."""
    present = {row["shuffle"] for row in packet["delta_evi"]}
    return [name for name in SHUFFLES if name in present]


def main_shuffle(packet: AuditPacket) -> str | None:
    """The family that verdict and map rest on: global where it was run, else the first; None where none was."""
    return next(iter(shuffles(packet)), None)


def effect(row: Row) -> float | None:
    """ΔEvi of a row: the expectation over all allowed donors where the reader gives it, else the mean over K."""
    value = row["exact"] if row["exact"] is not None else row["mean"]
    return None if value is None else float(value)


def accuracy_full(packet: AuditPacket, row: Row) -> float | None:
    """Accuracy with the true evidence on the items of a ΔEvi row (those whose evidence can change)."""
    if row.get("accuracy_full") is not None:
        return float(row["accuracy_full"])
    found = reader_row(packet, row["reader"], row["seed"])
    return None if found is None or row["mean"] is None else float(found["accuracy_full"])


def accuracy_shuffled(packet: AuditPacket, row: Row) -> float | None:
    """Accuracy with swapped evidence: full accuracy minus ΔEvi."""
    full, drop = accuracy_full(packet, row), effect(row)
    return None if full is None or drop is None else full - drop


def reader_row(packet: AuditPacket, reader: str, seed: int) -> Row | None:
    """The row of one reader and seed."""
    return next((row for row in packet["readers"] if (row["reader"], row["seed"]) == (reader, seed)), None)


def ablation(packet: AuditPacket, reader: str, seed: int, arm: str, how: str) -> Row | None:
    """One ablation of one reader and seed, or None where it was not run."""
    return next(
        (
            row
            for row in packet["ablations"]
            if (row["reader"], row.get("seed", seed), row["arm"], row["how"]) == (reader, seed, arm, how)
        ),
        None,
    )


def metadata_row(packet: AuditPacket, reader: str, seed: int) -> Row | None:
    """MPDS against one reader and seed, or None where it was not computed."""
    metadata = packet["metadata"]
    for row in metadata.get("by_reader", ()):
        if (row["reader"], row["seed"]) == (reader, seed):
            found: Row = row
            return found
    if metadata.get("by_reader") or metadata.get("reader") not in (reader, None):
        return None
    return metadata if metadata["mpds"] is not None else None


def points(packet: AuditPacket) -> list[Point]:
    """Every reader and seed on the map, from the weakest rung to the strongest."""
    family = main_shuffle(packet)
    first = {(row["reader"], row["seed"]) for row in readers(packet)}
    found = []
    for reader in readers(packet, every_seed=True):
        name, seed = reader["reader"], reader["seed"]
        row = next(iter(delta_rows(packet, reader=name, seed=seed, shuffle=family)), None)
        score = metadata_row(packet, name, seed)
        found.append(
            Point(
                reader=name,
                seed=seed,
                strength=reader.get("strength", "light"),
                works=reader["works"],
                mpds=None if score is None else score["mpds"],
                mpds_ci=None if score is None else score["ci"],
                effect=None if row is None else effect(row),
                effect_ci=None if row is None else row["ci"],
                verdict="not_applicable" if row is None else row["verdict"],
                main=(name, seed) in first,
            )
        )
    return found


def headline(packet: AuditPacket) -> Row | None:
    """The ΔEvi row that stands for the verdict: the strongest working reader that shows it, in the main family.

    For evidence_sensitive it is the strongest sensitive reader. Never the one with the largest effect: picking by the
    outcome would overstate it.
    """
    count = {(row["reader"], row["seed"]): counts(row) for row in packet["readers"]}
    order = {row["reader"]: rank for rank, row in enumerate(readers(packet))}
    families = shuffles(packet)

    def rank(row: Row) -> tuple[bool, bool, int, int]:
        sensitive = packet["diagnosis"]["region"] == "evidence_sensitive" and row["verdict"] == "sensitive"
        usable = count.get((row["reader"], row["seed"]), False)
        return (sensitive and usable, usable, -families.index(row["shuffle"]), order.get(row["reader"], -1))

    rows = delta_rows(packet, seed=readers(packet)[0]["seed"])
    return max(rows, key=rank, default=None)
