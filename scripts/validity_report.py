"""Page of the validity study, from its results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import validity_text as text
from validity_checks import ALPHA, GROUPINGS, at_least, at_most, predicted_power
from validity_text import INTERVALS, SHORT

PARTS = ("null", "margin", "effect", "shuffles", "other", "few_groups", "seeds", "power", "regions")
"""Parts of the results that the page needs."""
ERRORS = {"null": ("p", "nonzero"), "margin": ("equivalent",), "effect": ()}
"""What is an error where ΔEvi is 0, at the margin, and anything else."""
WORDS = {"p": "p ≤ 0.05", "nonzero": "not zero", "equivalent": "equivalent"}


def write_page(found: dict[str, Any], path: Path) -> None:
    """docs/validity.md."""
    samples = ", ".join(f"{row['repeats']} of {row['n']:,} items" for row in found["null"][:4])
    head = text.HEAD.replace("SAMPLES", samples).replace("SCALE", f"{found['scale']:g}")
    wrong = violations(found)
    plain = [*found["null"], *found["margin"], *found["effect"]]
    parts = [
        head.replace("SEED", str(found["seed"])),
        "\n".join(["Worse than nominal:", "", *(f"- {words}" for words in wrong)]) if wrong else text.NO_VIOLATION,
        "## Tests under a true null hypothesis",
        text.NULL_TEXT,
        _errors(found["null"]),
        "## Equivalence at a true effect equal to the margin",
        text.MARGIN_TEXT,
        _errors(found["margin"]),
        "## Coverage of the 95 % interval of ΔEvi",
        text.COVERAGE_TEXT,
        _coverage(plain),
        "## The other shuffles",
        text.SHUFFLE_TEXT,
        _errors(found["shuffles"]),
        _coverage(found["shuffles"]),
        *(["## The worst cells, drawn again", text.AGAIN_TEXT, _again(found["again"])] if "again" in found else []),
        "## Coverage of the other intervals",
        text.OTHER_TEXT,
        _other(found["other"]),
        "## Few groups",
        text.FEW_TEXT,
        _few(found["few_groups"]),
        "## Few seeds",
        text.SEED_TEXT,
        _seeds(found["seeds"]),
        "## Power against the predicted minimum detectable effect",
        text.POWER_TEXT,
        _power(found["power"]),
        "## Regions",
        text.REGION_TEXT,
        _regions(found["regions"]),
        *(["### Whole audits", text.AUDIT_TEXT, _audits(found["audits"])] if "audits" in found else []),
        "## What the study changed, and what stays weak",
        text.CHANGES,
    ]
    path.write_text("\n\n".join(part.strip("\n") for part in parts) + "\n", encoding="utf-8")


def violations(found: dict[str, Any]) -> list[str]:
    """Rates that are worse than nominal by more than chance (99.9 % exact bound), in words.

    A cell that was drawn again is judged by its fresh samples: the worst of some hundred cells was chosen for looking
    bad.
    """
    fresh = {_key(row): row for row in found.get("again", [])}
    cells = [row for part in ("null", "margin", "effect", "shuffles") for row in found[part]]
    wrong = []
    for row in (fresh.get(_key(row), row) for row in cells):
        for error in ERRORS[row["kind"]]:
            if _too_often(row.get(error, 0), row["repeats"]):
                wrong.append(f"{WORDS[error]} in {row.get(error, 0)} of {row['repeats']}: {_design(row)}")
        wrong += [f"{words}: {_design(row)}" for words in _uncovered(row, ("exact", "shuffles"))]
    for row in found["other"]:
        wrong += [f"{words}: {row['grouping']}, n = {row['n']:,}" for words in _uncovered(row, tuple(INTERVALS))]
        if _too_often(row["below"], row["repeats"]):
            wrong.append(f"query-only said to be nearer than it is in {row['below']} of {row['repeats']}: "
                         f"{row['grouping']}, n = {row['n']:,}")  # fmt: skip
    for row in found["few_groups"]:
        wrong += [f"{words}: {row['groups']} groups" for words in _uncovered(row, ("exact", "shuffles", *INTERVALS))]
    for row in found["seeds"]:
        if row["world"] == "normal":
            wrong += [f"{words}: {row['seeds']} seeds" for words in _uncovered(row, ("sd",))]
    return wrong


def _uncovered(row: dict[str, Any], names: tuple[str, ...]) -> Iterator[str]:
    for name in names:
        given, covers = row.get(f"given_{name}", 0), row.get(f"covers_{name}", 0)
        if given and at_most(covers, given) < 1 - ALPHA:
            yield f"interval ({INTERVALS.get(name, ('', name))[1]}) covers in {covers} of {given}"


def _too_often(errors: int, samples: int) -> bool:
    return at_least(errors, samples) > ALPHA


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["kind"], row["grouping"], row["name"], row["n"]


def _errors(rows: list[dict[str, Any]]) -> str:
    sizes = sorted({row["n"] for row in rows})
    lines = _head(["grouping", "world", "error", *(f"n = {n:,}" for n in sizes)])
    for kind, grouping, name in dict.fromkeys(_key(row)[:3] for row in rows):
        for error in ERRORS[kind]:
            cells = []
            for n in sizes:
                row = next(r for r in rows if _key(r) == (kind, grouping, name, n))
                cells.append(_marked_rate(row, error))
            lines.append(f"| {grouping} | {name} | {WORDS[error]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _coverage(rows: list[dict[str, Any]]) -> str:
    sizes = sorted({row["n"] for row in rows})
    lines = _head(["grouping", "true ΔEvi", "from", "world", *(f"n = {n:,}" for n in sizes)])
    for kind, grouping, name in dict.fromkeys(_key(row)[:3] for row in rows):
        here = {row["n"]: row for row in rows if _key(row)[:3] == (kind, grouping, name)}
        for way, words in (("exact", "all pairs"), ("shuffles", "20 shuffles")):
            cells = " | ".join(_covered(here[n], way) for n in sizes)
            lines.append(f"| {grouping} | {abs(here[sizes[0]]['truth']):.3f} | {words} | {name} | {cells} |")
    return "\n".join(lines)


def _covered(row: dict[str, Any], way: str) -> str:
    given, covers, marked = (row.get(f"{what}_{way}", 0) for what in ("given", "covers", "degenerate"))
    notes = [f"{marked / row['repeats']:.0%} marked"] if marked else []
    if not given:
        return f"none given{f' ({notes[0]})' if notes else ''}"
    if given + marked < row["repeats"]:
        notes.append(f"{1 - (given + marked) / row['repeats']:.0%} withheld")
    worse = " **!**" if at_most(covers, given) < 1 - ALPHA else ""
    return f"{covers / given:.3f}{worse}" + (f" ({', '.join(notes)})" if notes else "")


def _again(rows: list[dict[str, Any]]) -> str:
    lines = _head(["grouping", "world", "true ΔEvi", "items", "samples", "covers, all pairs", "covers, 20 shuffles",
                   "error"])  # fmt: skip
    for row in rows:
        errors = [f"{WORDS[error]}: {_marked_rate(row, error)}" for error in ERRORS[row["kind"]]]
        lines.append(
            f"| {row['grouping']} | {row['name']} | {abs(row['truth']):.3f} | {row['n']:,} | {row['repeats']:,} | "
            f"{_covered(row, 'exact')} | {_covered(row, 'shuffles')} | {', '.join(errors) or '–'} |"
        )
    return "\n".join(lines)


def _other(rows: list[dict[str, Any]]) -> str:
    sizes = sorted({row["n"] for row in rows})
    lines = _head(["grouping", "interval", *(f"n = {n:,}" for n in sizes)])
    for grouping in GROUPINGS:
        here = {row["n"]: row for row in rows if row["grouping"] == grouping}
        for key, (_, name) in INTERVALS.items():
            lines.append(f"| {grouping} | {name} | {' | '.join(_covered(here[n], key) for n in sizes)} |")
        below = " | ".join(f"{_rate(here[n], 'below'):.3f}" for n in sizes)
        lines.append(f"| {grouping} | error: query-only said to be within the margin, at which it is | {below} |")
    return "\n".join(lines)


def _few(rows: list[dict[str, Any]]) -> str:
    lines = _head(["interval", *(f"{row['groups']} groups" for row in rows)])
    names = {"exact": "ΔEvi, all pairs", "shuffles": "ΔEvi, 20 shuffles"}
    for key, name in [*names.items(), *((key, words) for key, (_, words) in INTERVALS.items())]:
        lines.append(f"| {name} | {' | '.join(_covered(row, key) for row in rows)} |")
    return "\n".join(lines)


def _seeds(rows: list[dict[str, Any]]) -> str:
    lines = _head(
        ["seeds", "values", "interval of the SD covers", "SD over the true SD, 5 to 95 % of samples", "warned"]
    )
    for row in rows:
        low, high = row["spread"]
        covers, warned = row["covers_sd"] / row["given_sd"], "yes" if row.get("warned") else "no"
        lines.append(f"| {row['seeds']} | {row['world']} | {covers:.3f} | {low:.2f} to {high:.2f} | {warned} |")
    return "\n".join(lines)


def _power(rows: list[dict[str, Any]]) -> str:
    ratios = sorted({row["ratio"] for row in rows})
    lines = _head(["K", "items", *(f"{ratio:g} MDE" for ratio in ratios)])
    lines.append(f"| predicted | | {' | '.join(f'{predicted_power(ratio):.2f}' for ratio in ratios)} |")
    for k, n in dict.fromkeys((row["k"], row["n"]) for row in rows):
        cells = []
        for ratio in ratios:
            row = next(r for r in rows if (r["k"], r["n"], r["ratio"]) == (k, n, ratio))
            cells.append(f"{row['hits'] / row['repeats']:.2f}")
        lines.append(f"| {k} | {n:,} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _regions(rows: list[dict[str, Any]]) -> str:
    sizes = sorted({row["n"] for row in rows})
    lines = _head(["readers", "true region", *(f"n = {n:,}" for n in sizes)])
    for strong in (False, True):
        for true in SHORT:
            cells = []
            for n in sizes:
                counts: dict[str, int] = defaultdict(int)
                for row in rows:
                    if (row["strong"], row["true"], row["n"]) == (strong, true, n):
                        for name, number in row["found"].items():
                            counts[name] += number
                total = sum(counts.values())
                cells.append(
                    ", ".join(f"{SHORT[k]} {v / total:.2f}" for k, v in sorted(counts.items(), key=lambda c: -c[1]))
                )
            if any(cells):
                readers = "additive and ideal" if strong else "additive"
                lines.append(f"| {readers} | {SHORT[true]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _audits(rows: list[dict[str, Any]]) -> str:
    lines = _head(["world", "true region", "found", "true ΔEvi", "mean ΔEvi found"])
    for world in dict.fromkeys(row["world"] for row in rows):
        here = [row for row in rows if row["world"] == world]
        counts: dict[str, int] = defaultdict(int)
        for row in here:
            counts[row["found"]] += 1
        words = ", ".join(f"{SHORT[name]} {number}/{len(here)}" for name, number in counts.items())
        mean = np.mean([row["delta_evi"] for row in here])
        lines.append(f"| {world} | {SHORT[here[0]['true']]} | {words} | {here[0]['true_delta_evi']:.3f} | {mean:.3f} |")
    return "\n".join(lines)


def _head(columns: list[str]) -> list[str]:
    return [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]


def _rate(row: dict[str, Any], name: str) -> float:
    return float(row.get(name, 0)) / float(row["repeats"])


def _marked_rate(row: dict[str, Any], name: str) -> str:
    return f"{_rate(row, name):.3f}{' **!**' if _too_often(row.get(name, 0), row['repeats']) else ''}"


def _design(row: dict[str, Any]) -> str:
    return f"{row['name']}, {row['grouping']}, n = {row['n']:,}"
