"""The audit card: what somebody who downloads the dataset should know, in Markdown."""

from __future__ import annotations

import urllib.parse
from collections.abc import Iterable, Sequence
from typing import Final

from evidep.audit.packet import AuditPacket
from evidep.report import facts, words
from evidep.report.change import would_change
from evidep.report.data_facts import data_facts
from evidep.report.diagnostics_text import extra_sections, surface_screen
from evidep.report.escape import MARKDOWN, MARKDOWN_CELL, cell, code, fenced, one_line, prose
from evidep.report.escape import front_matter as yaml_front_matter
from evidep.report.numerals import UNDEFINED, confidence, interval, number, p_value, percent
from evidep.report.reproduce import reproduction

HEADING: Final = "# Evidence audit of "
"""Begins every card's first heading; by it a card is known again."""
FIGURE_FOLDER: Final = "figures"
TAGS: Final = ("evidep", "evidence-audit")
_ABLATIONS: Final = {
    ("query-only", "retrained"): "query only, retrained",
    ("query-only", "masked"): "query only, masked",
    ("evidence-only", "retrained"): "evidence only, retrained",
    ("evidence-only", "masked"): "evidence only, masked",
    ("empty", "masked"): "empty evidence",
    ("shuffled-training", "retrained"): "trained on swapped evidence",
}


def audit_card(packet: AuditPacket, *, figures: bool | str = False, front_matter: bool = False) -> str:
    """The packet as a Markdown card: verdict, map, numbers, what would change it, how to repeat it, limits.

    Everything that comes from the dataset (names, labels, columns, notes) is escaped, so that it can break neither
    Markdown nor HTML nor YAML nor the shell line.

    Args:
        packet: The audit.
        figures: Relative folder or address where `save_figures` wrote its files; True stands for "figures".
        front_matter: Whether to begin with YAML front matter (tags for the Hub).
    """
    name = packet["data"]["name"]
    parts = []
    if front_matter:
        tags = [*TAGS, f"evidep-{packet.region.replace('_', '-')}"]
        values = {"pretty_name": f"Evidence audit of {one_line(name)}", "tags": tags}
        parts.append(yaml_front_matter(values).rstrip("\n"))
    parts += [f"{HEADING}{code(name)}", _verdict(packet)]
    if figures is not False:
        parts.append(_figure(packet, FIGURE_FOLDER if figures is True else figures))
    footnotes = _Footnotes()
    notes = [prose(note) for note in packet["data"]["notes"]]
    parts += [
        _short_table(packet, footnotes),
        " ".join([_mpds(packet, footnotes), *surface_screen(packet, prose)]),
        "## Why",
        _bullets(prose(reason) for reason in packet["diagnosis"]["reasons"]),
        "## What would change this verdict",
        _bullets(would_change(packet, MARKDOWN)),
        "## Every arm",
        _arms(packet, footnotes),
        *footnotes.lines(),
        *(part for title, lines in extra_sections(packet, prose) for part in (f"## {title}", _bullets(lines))),
        "## Data",
        _table(("what", "found"), "ll", [[what, found] for what, found in data_facts(packet, MARKDOWN_CELL)]),
        *([_bullets(notes)] if notes else []),
        "## How to repeat it",
        *_repeat(packet),
        "## Limits",
        _bullets(_limits(packet)),
    ]
    return "\n\n".join(parts) + "\n"


class _Footnotes:
    """Numbers the reasons of undefined values."""

    def __init__(self) -> None:
        self.reasons: dict[str, int] = {}

    def undefined(self, reason: str | None) -> str:
        if not reason:
            return UNDEFINED
        return f"{UNDEFINED} ({self.reasons.setdefault(one_line(reason), len(self.reasons) + 1)})"

    def lines(self) -> list[str]:
        found = [f"({at}) {prose(reason)}" for reason, at in self.reasons.items()]
        return ["  \n".join(found)] if found else []


def _verdict(packet: AuditPacket) -> str:
    title = words.region_title(packet)
    lines = [f"**{title[0].upper()}{title[1:]}.** {words.region_meaning(packet)}"]
    evidence = words.evidence_line(packet, MARKDOWN)
    if evidence is not None:
        lines.append(evidence)
    flags = packet["diagnosis"]["flags"]
    if flags:
        lines.append(f"Flags: {', '.join(prose(words.flag_title(flag)) for flag in flags)}.")
    return "\n\n".join(lines)


def _figure(packet: AuditPacket, folder: str) -> str:
    address = urllib.parse.quote(f"{folder.rstrip('/')}/diagnostic_map.png", safe="/:.-_~")
    family = facts.main_shuffle(packet) or "no"
    return f"![Map of MPDS against ΔEvi under the {family} shuffle: {words.region_title(packet)}]({address})"


def _short_table(packet: AuditPacket, footnotes: _Footnotes) -> str:
    """One line per reader: what it scores with its own, with swapped and without evidence."""
    family = facts.main_shuffle(packet)
    rows = []
    for reader in facts.readers(packet):
        name, seed = reader["reader"], reader["seed"]
        row = next(iter(facts.delta_rows(packet, reader=name, seed=seed, shuffle=family)), None)
        query = facts.ablation(packet, name, seed, "query-only", "retrained")
        effect = [UNDEFINED] * 3 if row is None else _effect(row, footnotes)
        verdict = "" if row is None else words.verdict_text(row)
        rows.append(
            [
                cell(name),
                number(reader["accuracy_full"]),
                UNDEFINED if row is None else number(facts.accuracy_shuffled(packet, row)),
                *effect,
                UNDEFINED if query is None else number(query["accuracy"]),
                verdict if reader["works"] else "does not beat the majority rate",
            ]
        )
    heads = (
        "reader", "accuracy", f"with {family or 'no'} swap", "ΔEvi", confidence(packet["settings"]["alpha"]), "p",
        "query only", "verdict",
    )  # fmt: skip
    return _table(heads, "lrrrrrrl", rows) + f"\n\nMajority rate: {number(packet['majority_rate'])}."


def _arms(packet: AuditPacket, footnotes: _Footnotes) -> str:
    level = confidence(packet["settings"]["alpha"])
    blank = [""] * 5
    rows = [["", "majority rate", number(packet["majority_rate"]), *blank]]
    metadata = packet["metadata"]
    if metadata["schema"]:
        value = metadata["accuracy"]
        shown = footnotes.undefined(metadata.get("reason")) if value is None else number(value)
        rows.append(["", "metadata alone", shown, *blank])
    for reader in facts.readers(packet):
        rows.extend(_reader_rows(packet, reader, footnotes))
    heads = ("reader", "input", "accuracy", level, "ΔEvi", level, "p", "MDE")
    return _table(heads, "llrrrrrr", rows) + "\n\nMDE: the smallest ΔEvi that is found with 80 % power."


def _reader_rows(packet: AuditPacket, reader: facts.Row, footnotes: _Footnotes) -> Iterable[list[str]]:
    name, seed = reader["reader"], reader["seed"]
    blank = [""] * 4
    accuracy = number(reader["accuracy_full"])
    if not reader["works"]:
        accuracy += footnotes.undefined(reader.get("reason")).removeprefix(UNDEFINED)
    yield [cell(name), "query and evidence", accuracy, _interval(reader, footnotes), *blank]
    for row in facts.delta_rows(packet, reader=name, seed=seed):
        swapped = number(facts.accuracy_shuffled(packet, row))
        smallest = number(row["minimum_detectable_effect"])
        yield ["", f"swapped, {row['shuffle']}", swapped, "", *_effect(row, footnotes), smallest]
    for (arm, how), title in _ABLATIONS.items():
        found = facts.ablation(packet, name, seed, arm, how)
        if found is not None:
            yield ["", title, number(found["accuracy"]), _interval(found, footnotes), *blank]


def _effect(row: facts.Row, footnotes: _Footnotes) -> list[str]:
    value = facts.effect(row)
    if value is None:
        return [footnotes.undefined(row.get("reason")), UNDEFINED, UNDEFINED]
    p = footnotes.undefined(row.get("reason")) if row["p_value"] is None else p_value(row["p_value"])
    return [number(value), _interval(row, footnotes), p]


def _interval(row: facts.Row, footnotes: _Footnotes) -> str:
    return footnotes.undefined(row.get("reason")) if row["ci"] is None else interval(row["ci"])


def _mpds(packet: AuditPacket, footnotes: _Footnotes) -> str:
    metadata = packet["metadata"]
    reason = metadata.get("reason")
    if metadata["mpds"] is None:
        return f"MPDS (accuracy of metadata alone over the reader's): {footnotes.undefined(reason)}."
    corrected = metadata["mpds_chance_corrected"]
    above = footnotes.undefined(reason) if corrected is None else number(corrected)
    columns = ", ".join(code(column) for column in metadata["schema"])
    against = f" against {code(metadata['reader'])}" if metadata.get("reader") else ""
    return (
        f"MPDS (accuracy of metadata alone over the reader's){against}: {number(metadata['mpds'])} "
        f"{_interval(metadata, footnotes)}; above chance {above}. Metadata: {columns}."
    )


def _repeat(packet: AuditPacket) -> list[str]:
    found, environment = reproduction(packet), packet["environment"]
    versions = {"Python": environment["python"], **environment["packages"]}
    pins = [
        f"Signature: {code(packet.signature)}",
        f"Audited items: {code(packet['data']['fingerprint'])}",
        f"Run with {code(', '.join(f'{package} {version}' for package, version in versions.items() if version))}",
    ]
    return [
        *([fenced(found.command, "bash")] if found.command is not None else []),
        _bullets([*(prose(note) for note in found.notes), *pins]),
    ]


def _limits(packet: AuditPacket) -> list[str]:
    settings = packet["settings"]
    readers = ", ".join(code(row["reader"]) for row in facts.readers(packet))
    limits = [
        f"The p-values are claims about this evaluation set, from {settings['k']} shuffles (never below "
        f"{number(1 / (settings['k'] + 1))}); the intervals are claims about items like these. Neither speaks of other "
        "tasks or of other ways to make evidence useless.",
        f"A near-zero ΔEvi is relative to the readers that were run ({readers}); a stronger one may find more.",
        "MPDS knows only the metadata columns that were declared.",
    ]
    contaminated = [row for row in facts.readers(packet) if row.get("contamination")]
    if contaminated:
        listed = "; ".join(f"{code(row['reader'])}: {prose(row['contamination'])}" for row in contaminated)
        limits.append(f"Pre-training may have seen this benchmark ({listed}): its accuracy and ΔEvi may be memory.")
    stuck = [row for row in packet["delta_evi"] if (row.get("unmovable_share") or 0) > 0 and row["mean"] is not None]
    for row in {row["shuffle"]: row for row in stuck}.values():
        limits.append(
            f"{percent(row['unmovable_share'])} of the items cannot get other evidence in the {row['shuffle']} "
            "shuffle; its ΔEvi is about the rest."
        )
    limits.append("The licence of the data was not checked. This card holds none of its texts beyond names and labels.")
    return limits


def _bullets(sentences: Iterable[str]) -> str:
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _table(heads: Sequence[str], sides: str, rows: Iterable[Sequence[str]]) -> str:
    rule = ["---:" if side == "r" else "---" for side in sides]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (heads, rule, *rows))
