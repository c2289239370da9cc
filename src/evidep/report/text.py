"""A packet in the terminal: verdict first, then the numbers it rests on."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from evidep.audit.packet import AuditPacket
from evidep.report import facts, words
from evidep.report.change import would_change
from evidep.report.data_facts import data_facts
from evidep.report.diagnostics_text import extra_sections, surface_screen
from evidep.report.escape import Quoting, one_line
from evidep.report.numerals import UNDEFINED, confidence, count, interval, number, p_value, percent
from evidep.report.terminal_map import character_map, letters

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

SUMMARY_WIDTH = 80
ARM_ORDER = ("query-only", "evidence-only", "empty", "shuffled-training")


def summary(packet: AuditPacket) -> str:
    """The packet as plain text, 80 columns wide, without colour. `print(packet)` shows it."""
    from rich.console import Console

    buffer = io.StringIO()
    render(packet, Console(file=buffer, width=SUMMARY_WIDTH, color_system=None, force_terminal=False))
    return "\n".join(line.rstrip() for line in buffer.getvalue().splitlines()).rstrip()


def render(packet: AuditPacket, console: Console) -> None:
    """Write the packet to a rich console: as wide as it is, in colour only where it is a terminal."""
    page = _Page(console)
    _verdict(page, packet)
    _delta(page, packet)
    _metadata(page, packet)
    _ablations(page, packet)
    _information(page, packet)
    for heading, sentences in extra_sections(packet, lambda text: one_line(text, 200)):
        page.heading(heading)
        page.bullets(sentences)
    _data(page, packet)
    page.footnotes()
    _map(page, packet)
    page.heading("What would change this verdict")
    page.bullets(would_change(packet))
    page.blank()
    page.line(one_line(packet.signature), style="dim", wrap=False)


class _Page:
    """Prints strangers' text literally (no markup, no highlighting) and numbers the reasons of undefined values."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.reasons: dict[str, int] = {}

    @property
    def width(self) -> int:
        return self.console.width

    @property
    def roomy(self) -> bool:
        return self.width > 100

    def line(self, text: str, *, style: str = "", wrap: bool = True) -> None:
        from rich.text import Text

        self.console.print(Text(text, style=style), highlight=False, soft_wrap=not wrap)

    def blank(self) -> None:
        self.console.print()

    def heading(self, text: str) -> None:
        self.blank()
        self.line(text, style="bold")

    def bullets(self, sentences: Iterable[str]) -> None:
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=1)
        grid.add_column(ratio=1, overflow="fold")
        for sentence in sentences:
            grid.add_row(Text("-"), Text(sentence))
        self.console.print(grid, highlight=False)

    def table(self, *columns: tuple[str, str], tight: bool = False) -> Table:
        """An empty table; each column is a heading and its side: "l" may wrap, "L" (left) and "r" (right) may not."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        gap = 0 if tight else 1  # beside the one space that the box puts between columns
        table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, gap, 0, 0), header_style="bold")
        for name, side in columns:
            justify: Literal["left", "right"] = "right" if side == "r" else "left"
            table.add_column(Text(name), justify=justify, overflow="fold", no_wrap=side != "l")
        return table

    def add(self, table: Table, *cells: str, style: str = "") -> None:
        from rich.text import Text

        table.add_row(*(Text(cell) for cell in cells), style=style)

    def show(self, table: Table) -> None:
        # A terminal narrower than a table wraps its lines; cutting digits off a number would change it.
        width = self.width
        self.console.width = max(width, SUMMARY_WIDTH)
        self.console.print(table, highlight=False)
        self.console.width = width

    def undefined(self, reason: str | None) -> str:
        """A dash with the number of its footnote."""
        if not reason:
            return UNDEFINED
        return f"{UNDEFINED}[{self.reasons.setdefault(one_line(reason), len(self.reasons) + 1)}]"

    def value(self, value: float | None, reason: str | None, digits: int = 3) -> str:
        return self.undefined(reason) if value is None else number(value, digits)

    def footnotes(self) -> None:
        if self.reasons:
            self.blank()
        for reason, at in self.reasons.items():
            self.line(f"[{at}] {reason}", style="dim")

    def name(self, text: object) -> str:
        return one_line(text, max(15, self.width // 3))


def _verdict(page: _Page, packet: AuditPacket) -> None:
    diagnosis = packet["diagnosis"]
    page.line(f"Evidence audit of {one_line(packet['data']['name'], 60)}", style="bold")
    page.blank()
    colour = "green" if packet.region == "evidence_sensitive" else "yellow"
    page.line(f"Verdict: {words.region_title(packet).upper()}", style=f"bold {colour}")
    page.line(words.region_meaning(packet))
    line = words.evidence_line(packet)
    if line is not None:
        page.line(line)
    page.heading("Why")
    page.bullets(one_line(reason) for reason in diagnosis["reasons"])
    if diagnosis["flags"]:
        page.blank()
        page.line(f"Flags: {', '.join(words.flag_title(one_line(flag)) for flag in diagnosis['flags'])}", style="bold")


def _delta(page: _Page, packet: AuditPacket) -> None:
    settings = packet["settings"]
    level = confidence(settings["alpha"])
    page.heading(f"ΔEvi: accuracy lost when the evidence is swapped ({settings['k']} shuffles each)")
    holm = [("p Holm", "r")] if page.roomy else []
    table = page.table(
        ("Reader and shuffle", "l"), ("Full", "r"), ("Shuf-\nfled", "r"), ("ΔEvi", "r"), (f"{level} interval", "r"),
        ("p", "r"), *holm, ("Verdict", "L"), ("Same", "r"), ("MDE", "r"),
        tight=not page.roomy,
    )  # fmt: skip
    table.columns[0].min_width = max((len(name) for name in facts.shuffles(packet)), default=0)
    for reader in facts.readers(packet, every_seed=True):
        state = "" if reader["works"] else " (fails)"
        page.add(table, _named(page, packet, reader) + state, style="bold" if reader["works"] else "dim")
        for row in facts.delta_rows(packet, reader=reader["reader"], seed=reader["seed"]):
            page.add(table, *_delta_cells(page, packet, row))
    page.show(table)
    page.line(_legend(packet), style="dim")
    for row in packet["delta_evi"]:
        if row.get("truncated_share") and row["seed"] == packet["settings"]["seed"]:
            page.line(
                f"{page.name(row['reader'])}, {row['shuffle']}: a text is cut in {percent(row['truncated_share'])} of "
                f"the pairs; {percent(row['unchanged_after_truncation'])} of the swaps are hidden by that"
            )
    for row in packet.document.get("calibration", {}).get("contrasts", []):
        page.line(
            f"ΔEvi of {page.name(row['reader'])} minus {page.name(row['against'])}, same items and shuffles: "
            f"{_with_ends(page, row['difference'], row['ci'], row.get('reason'))}" + _accuracy_words(page, row)
        )
    for row in packet.document.get("calibration", {}).get("seed_spread", []):
        if row["seeds"] > 1:
            page.line(
                f"{page.name(row['reader'])} over {row['seeds']} seeds: mean ΔEvi {number(row['mean'])}, "
                f"SD {page.value(row['sd'], row.get('reason'))}"
            )


def _accuracy_words(page: _Page, row: facts.Row) -> str:
    if row.get("accuracy_difference") is None:
        return ""
    return f"; accuracy {_with_ends(page, row['accuracy_difference'], row['accuracy_ci'], None)}"


def _legend(packet: AuditPacket) -> str:
    settings = packet["settings"]
    return (
        f"equivalent: the {confidence(2 * settings['alpha'])} interval lies within ±{settings['margin']:g}; "
        "negligible: that, and yet not zero. p: one-sided, about this evaluation set, at least "
        f"1/(K+1) = {number(1 / (settings['k'] + 1))}; the interval is about items like these. "
        "Same: items whose evidence stayed the same text. MDE: smallest ΔEvi found with 80 % power."
    )


def _delta_cells(page: _Page, packet: AuditPacket, row: facts.Row) -> list[str]:
    numbers: list[tuple[Any, Callable[[Any], str]]] = [
        (facts.accuracy_full(packet, row), number),
        (facts.accuracy_shuffled(packet, row), number),
        (facts.effect(row), number),
        (row["ci"], _ends),
        (row["p_value"], p_value),
        *([(row.get("p_value_holm"), p_value)] if page.roomy else []),
        (row["minimum_detectable_effect"], number),
    ]
    cells, marked = [], False
    for value, written in numbers:
        if value is None:
            cells.append(UNDEFINED if marked else page.undefined(row.get("reason")))
            marked = True
        else:
            cells.append(written(value))
    verdict = "negligible" if row.get("negligible") else row["verdict"].replace("not_applicable", "n/a")
    return [row["shuffle"], *cells[:-1], verdict, percent(row["unchanged_rate"]).replace(" ", ""), cells[-1]]


def _ends(ci: Sequence[float]) -> str:
    return f"{number(ci[0])}, {number(ci[1])}"


def _named(page: _Page, packet: AuditPacket, reader: facts.Row) -> str:
    fits = sum(row["reader"] == reader["reader"] for row in packet["readers"])
    return page.name(reader["reader"]) + (f" seed {reader['seed']}" if fits > 1 else "")


def _metadata(page: _Page, packet: AuditPacket) -> None:
    metadata, majority = packet["metadata"], packet.document.get("majority", {})
    page.heading("Accuracy, and how far metadata alone goes (MPDS = metadata accuracy / accuracy)")
    label = f" ({one_line(majority['label'], 30)})" if majority.get("label") is not None else ""
    page.line(f"majority rate {number(packet['majority_rate'])}{label}")
    if metadata["schema"]:
        columns = ", ".join(one_line(column, 30) for column in metadata["schema"])
        cells = f", {count(metadata['n_cells'])} cells" if metadata["n_cells"] is not None else ""
        page.line(f"metadata alone {page.value(metadata['accuracy'], metadata.get('reason'))} ({columns}{cells})")
    for sentence in surface_screen(packet, lambda text: one_line(text, 200)):
        page.line(sentence)
    table = page.table(
        ("Reader", "l"), ("Rung", "L"), ("Accuracy", "r"), ("Works", "L"), ("MPDS", "r"), ("above\nchance", "r"),
        tight=not page.roomy,
    )  # fmt: skip
    for reader in facts.readers(packet, every_seed=True):
        score = facts.metadata_row(packet, reader["reader"], reader["seed"])
        reason = (score or metadata).get("reason")
        page.add(
            table,
            _named(page, packet, reader),
            reader.get("strength", ""),
            f"{number(reader['accuracy_full'])} {_interval(page, reader)}",
            "yes" if reader["works"] else f"no{page.undefined(reader.get('reason')).removeprefix(UNDEFINED)}",
            page.undefined(reason) if score is None else _with_ends(page, score["mpds"], score["ci"], reason),
            page.value(None if score is None else score["mpds_chance_corrected"], reason),
        )
    page.show(table)


def _with_ends(page: _Page, value: float | None, ci: Sequence[float] | None, reason: str | None) -> str:
    """A value and its interval; one dash with the footnote of the reason where either is undefined."""
    if value is None:
        return page.undefined(reason)
    return f"{number(value)} {page.undefined(reason) if ci is None else interval(ci)}"


def _interval(page: _Page, row: facts.Row) -> str:
    return page.undefined(row.get("reason")) if row["ci"] is None else interval(row["ci"])


def _ablations(page: _Page, packet: AuditPacket) -> None:
    rows = packet["ablations"]
    if not rows:
        return
    page.heading("Partial input: accuracy when one side is missing")
    table = page.table(("Reader", "l"), ("Input", "L"), ("Retrained on it", "r"), ("Masked at test time", "r"))
    for reader in facts.readers(packet, every_seed=True):
        name = _named(page, packet, reader)
        for arm in ARM_ORDER:
            found = [
                facts.ablation(packet, reader["reader"], reader["seed"], arm, how) for how in ("retrained", "masked")
            ]
            if not any(found):
                continue
            cells = [UNDEFINED if row is None else f"{number(row['accuracy'])} {_interval(page, row)}" for row in found]
            page.add(table, name, arm, *cells)
            name = ""
    page.show(table)


def _information(page: _Page, packet: AuditPacket) -> None:
    rows: list[dict[str, Any]] = packet.document.get("information", [])
    if not rows:
        return
    page.heading("Usable information of the evidence, beyond the query (V-information)")
    for row in rows:
        page.line(
            f"{_named(page, packet, row)}, bits per item: "
            f"{_with_ends(page, row['v_information_bits'], row['ci'], row.get('reason'))}"
        )


def _data(page: _Page, packet: AuditPacket) -> None:
    page.heading("Data")
    grid = page.table(("What", "l"), ("Found", "l"))
    grid.show_header = False
    for name, value in data_facts(packet, Quoting(page.name, one_line)):
        page.add(grid, name, value)
    page.show(grid)
    notes = [*packet["data"]["notes"]]
    for reader in facts.readers(packet, every_seed=True):
        notes.extend(f"{reader['reader']}: {note}" for note in reader.get("notes") or ())
        if reader.get("contamination"):
            notes.append(f"{reader['reader']}: {reader['contamination']}")
    if notes:
        page.heading("Notes")
        page.bullets(dict.fromkeys(one_line(note) for note in notes))


def _map(page: _Page, packet: AuditPacket) -> None:
    points = facts.points(packet)
    lines = character_map(points, mpds_high=packet["settings"]["mpds_high"], width=min(page.width, 100) - 1)
    if not lines:
        return
    page.heading(f"Map: MPDS to the right, ΔEvi ({facts.main_shuffle(packet)} shuffle) upwards, with intervals")
    for line in lines:
        page.line(line, wrap=False)
    page.line("  ".join(f"{letter} {page.name(point.reader)}" for letter, point in letters(points)))
