"""Page and figure of the validity study, from its results."""
# ruff: noqa: E501 (rows of a Markdown table)

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from validity_checks import ALPHA, GROUPINGS, MARGIN, at_least, at_most, predicted_power

from evidep.report.style import BLUE, GREEN, GREY, VERMILION, label, sheet, styled

COLOURS = dict(zip(GROUPINGS, ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^")), strict=True))
SHORT = {
    "direct_coupling": "direct", "latent_coupling": "latent", "question_dominant": "question", "reader_limited":
    "reader-limited", "evidence_sensitive": "sensitive", "inconclusive": "inconclusive", "not_applicable": "n/a",
}  # fmt: skip


def write_page(found: dict[str, Any], path: Path) -> None:
    """docs/validity.md."""
    samples = ", ".join(f"{row['repeats']} of {row['n']:,} items" for row in found["null"][:4])
    parts = [
        HEAD.replace("SAMPLES", samples).replace("SCALE", f"{found['scale']:g}").replace("SEED", str(found["seed"])),
        "## Tests under a true null hypothesis",
        NULL_TEXT,
        _errors(found["null"], ("p", "sensitive")),
        "## Equivalence at a true effect equal to the margin",
        MARGIN_TEXT,
        _errors(found["margin"], ("equivalent",)),
        "## Coverage of the 95 % interval of ΔEvi",
        COVERAGE_TEXT,
        _coverage([*found["null"], *found["margin"], *found["effect"]]),
        "## Coverage of the other intervals",
        OTHER_TEXT,
        _other(found["other"]),
        "## Power against the predicted minimum detectable effect",
        POWER_TEXT,
        _power(found["power"]),
        "## Regions",
        REGION_TEXT,
        _regions(found["regions"]),
        *(["### Whole audits", AUDIT_TEXT, _audits(found["audits"])] if "audits" in found else []),
        "## What the study changed, and what stays weak",
        CHANGES,
    ]
    path.write_text("\n\n".join(part.strip("\n") for part in parts) + "\n", encoding="utf-8")


def violations(found: dict[str, Any]) -> list[str]:
    """Rates that are worse than nominal by more than chance (99.9 % exact bound), in words."""
    wrong = []
    for kind, errors in (("null", ("p", "sensitive")), ("margin", ("equivalent",))):
        for row in found[kind]:
            for error in errors:
                if at_least(row.get(error, 0), row["repeats"]) > ALPHA:
                    wrong.append(f"{kind}: {error} in {row.get(error, 0)} of {row['repeats']}, {_design(row)}")
    for row in [*found["null"], *found["margin"], *found["effect"]]:
        for way in ("exact", "shuffles"):
            given, covers = row.get(f"given_{way}", 0), row.get(f"covers_{way}", 0)
            if given and at_most(covers, given) < 1 - ALPHA:
                wrong.append(f"interval ({way}) covers in {covers} of {given}, {_design(row)}")
    for row in found["other"]:
        for name in ("accuracy", "mpds", "contrast", "information"):
            given, covers = row.get(f"given_{name}", 0), row.get(f"covers_{name}", 0)
            if given and at_most(covers, given) < 1 - ALPHA:
                wrong.append(f"interval of {name} covers in {covers} of {given}, n = {row['n']}, {row['grouping']}")
    return wrong


@styled
def write_figure(found: dict[str, Any], path: Path) -> None:
    """Four panels: errors, coverage, power, regions."""
    page = sheet(
        7.4,
        "The audit audited: errors, coverage, power, regions",
        "Planted worlds with known truth, no reader fits. Grey lines are nominal values, bars exact 99 % binomial intervals.",
        "Error rates: share of samples; largest over the designs of one way of grouping. Coverage: smallest over the "
        "designs; its colours also hold for the errors. Regions: 1,000 items a sample, additive and ideal reader, rows true, columns found.",
    )
    figure = page.figure
    grid = figure.add_gridspec(
        2, 2, left=0.09, right=0.98, bottom=page.bottom + 0.09, top=page.top - 0.05, hspace=0.42, wspace=0.25
    )
    _panel_errors(figure.add_subplot(grid[0, 0]), found)
    _panel_coverage(figure.add_subplot(grid[0, 1]), found)
    _panel_power(figure.add_subplot(grid[1, 0]), found["power"])
    _panel_regions(figure.add_subplot(grid[1, 1]), found["regions"])
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)


def _panel_errors(axes: Any, found: dict[str, Any]) -> None:
    axes.set_title("Errors, worst design", fontsize=10)
    for number, (grouping, (colour, marker)) in enumerate(COLOURS.items()):
        for kind, error, style in (("null", "p", "-"), ("null", "sensitive", ":"), ("margin", "equivalent", "--")):
            sizes = sorted({row["n"] for row in found[kind]})
            worst = [
                max((r for r in found[kind] if (r["n"], r["grouping"]) == (n, grouping)), key=lambda r: _rate(r, error))
                for n in sizes
            ]
            x = np.array(sizes) * 1.06**number
            axes.plot(x, [_rate(r, error) for r in worst], style, color=colour, marker=marker, ms=4, lw=1.2)
    for error, style in (("p ≤ 0.05", "-"), ("sensitive", ":"), ("equivalent", "--")):
        axes.plot([], [], style, color=GREY, label=label(error))
    axes.axhline(ALPHA, color=GREY, lw=0.8)
    axes.set(xscale="log", xlabel="items", ylabel="share of samples", ylim=(0, 0.15))
    axes.legend(fontsize=8, loc="upper right")


def _panel_coverage(axes: Any, found: dict[str, Any]) -> None:
    axes.set_title("Coverage of ΔEvi, worst design", fontsize=10)
    rows = [*found["null"], *found["margin"], *found["effect"]]
    for number, (grouping, (colour, marker)) in enumerate(COLOURS.items()):
        sizes = sorted({row["n"] for row in rows})
        worst = []
        for n in sizes:
            here = [r for r in rows if (r["n"], r["grouping"]) == (n, grouping) and r.get("given_exact")]
            worst.append(min(here, key=lambda r: r["covers_exact"] / r["given_exact"]))
        rate = np.array([r["covers_exact"] / r["given_exact"] for r in worst])
        bounds = np.array([_binomial(r["covers_exact"], r["given_exact"]) for r in worst])
        axes.errorbar(
            np.array(sizes) * 1.08**number, rate, np.abs(bounds.T - rate), color=colour, marker=marker, ms=4, lw=1.2,
            elinewidth=0.8, label=label(grouping),
        )  # fmt: skip
    axes.axhline(1 - ALPHA, color=GREY, lw=0.8)
    axes.set(xscale="log", xlabel="items", ylim=(0.8, 1.005))
    axes.legend(fontsize=8, loc="lower left")


def _panel_power(axes: Any, rows: list[dict[str, Any]]) -> None:
    axes.set_title("Power against the predicted MDE", fontsize=10)
    x = np.linspace(0, 1.6, 60)
    axes.plot(x, [predicted_power(v) for v in x], color=GREY, lw=1, label="predicted")
    styles = {(20, 200): (BLUE, "o", ":"), (20, 1000): (BLUE, "s", "-"), (99, 200): (VERMILION, "o", ":"),
              (99, 1000): (VERMILION, "s", "-")}  # fmt: skip
    for (k, n), (colour, marker, style) in styles.items():
        here = [r for r in rows if (r["k"], r["n"]) == (k, n)]
        axes.plot([r["ratio"] for r in here], [r["hits"] / r["repeats"] for r in here], style, color=colour,
                  marker=marker, ms=4, lw=1.2, label=f"K = {k}, n = {n}")  # fmt: skip
    axes.axvline(1, color=GREY, lw=0.5)
    axes.axhline(0.8, color=GREY, lw=0.5)
    axes.set(xlabel="true ΔEvi / predicted MDE", ylabel="share found", ylim=(0, 1.02))
    axes.legend(fontsize=8, loc="lower right")


def _panel_regions(axes: Any, rows: list[dict[str, Any]]) -> None:
    axes.set_title("Regions found, with a strong reader", fontsize=10)
    table, true, seen = _confusion(rows, 1000, strong=True)
    axes.imshow(table, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for i, j in np.ndindex(table.shape):
        if table[i, j] > 0:
            axes.text(j, i, f"{table[i, j]:.2f}", ha="center", va="center", fontsize=8,
                      color="white" if table[i, j] > 0.6 else "black")  # fmt: skip
    axes.set_xticks(range(len(seen)), [SHORT[name] for name in seen], rotation=20, ha="right", fontsize=8)
    axes.set_yticks(range(len(true)), [SHORT[name] for name in true], fontsize=8)


def _confusion(rows: list[dict[str, Any]], n: int, *, strong: bool) -> tuple[Any, list[str], list[str]]:
    counts: dict[str, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        if row["n"] == n and row["strong"] is strong:
            for name, number in row["found"].items():
                counts[row["true"]][name] += number
    true = [name for name in SHORT if name in counts]
    seen = [name for name in SHORT if any(name in found for found in counts.values())]
    table = np.array([[counts[t][s] / sum(counts[t].values()) for s in seen] for t in true])
    return table, true, seen


def _errors(rows: list[dict[str, Any]], errors: tuple[str, ...]) -> str:
    sizes = sorted({row["n"] for row in rows})
    names = {"p": "p ≤ 0.05", "sensitive": "sensitive", "equivalent": "equivalent"}
    lines = _head(["grouping", "world", "error", *(f"n = {n:,}" for n in sizes)])
    for grouping in GROUPINGS:
        for name in dict.fromkeys(row["name"] for row in rows if row["grouping"] == grouping):
            for error in errors:
                cells = []
                for n in sizes:
                    row = next(r for r in rows if (r["grouping"], r["name"], r["n"]) == (grouping, name, n))
                    worse = at_least(row.get(error, 0), row["repeats"]) > ALPHA
                    cells.append(f"{_rate(row, error):.3f}{' **!**' if worse else ''}")
                lines.append(f"| {grouping} | {name} | {names[error]} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _coverage(rows: list[dict[str, Any]]) -> str:
    sizes = sorted({row["n"] for row in rows})
    lines = _head(["grouping", "true ΔEvi", "from", "world", *(f"n = {n:,}" for n in sizes)])
    for grouping in GROUPINGS:
        for kind in ("null", "margin", "effect"):
            here = [r for r in rows if (r["grouping"], r["kind"]) == (grouping, kind)]
            for name in dict.fromkeys(row["name"] for row in here):
                for way, words in (("exact", "all pairs"), ("shuffles", "20 shuffles")):
                    cells = []
                    for n in sizes:
                        row = next(r for r in here if (r["name"], r["n"]) == (name, n))
                        cells.append(_covered(row, way))
                    truth = next(r["truth"] for r in here if r["name"] == name)
                    lines.append(f"| {grouping} | {truth:.3f} | {words} | {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _covered(row: dict[str, Any], way: str) -> str:
    given, covers = row.get(f"given_{way}", 0), row.get(f"covers_{way}", 0)
    if not given:
        return "none given"
    worse = " **!**" if at_most(covers, given) < 1 - ALPHA else ""
    marked = row.get(f"degenerate_{way}", 0)
    share = f" ({marked / row['repeats']:.0%} marked)" if marked else ""
    return f"{covers / given:.3f}{worse}{share}"


def _other(rows: list[dict[str, Any]]) -> str:
    names = {"accuracy": "accuracy", "mpds": "MPDS", "contrast": "difference of ΔEvi", "information": "V-information"}
    sizes = sorted({row["n"] for row in rows})
    lines = _head(["grouping", "interval", *(f"n = {n:,}" for n in sizes)])
    for grouping in GROUPINGS:
        for key, name in names.items():
            cells = [_covered(next(r for r in rows if (r["grouping"], r["n"]) == (grouping, n)), key) for n in sizes]
            lines.append(f"| {grouping} | {name} | {' | '.join(cells)} |")
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


def _binomial(hits: int, n: int) -> tuple[float, float]:
    return at_least(hits, n, 0.995), at_most(hits, n, 0.995)


def _design(row: dict[str, Any]) -> str:
    return f"{row['name']}, {row['grouping']}, n = {row['n']}"


HEAD = f"""
# Validity: the audit audited

Samples are drawn from the tables of the planted worlds (`evidep.data.synthetic`), where the true ΔEvi, MPDS and region
are known, and given to the package's own statistics. No reader is fitted, except in the last table. alpha is {ALPHA},
the margin {MARGIN}, K = 20 shuffles. **!** marks a rate that is worse than nominal by more than chance (exact binomial
bound, 99.9 %, one-sided; a few of several hundred cells may be marked by chance at lower levels, none should be here).

Reproduce: `python scripts/validate.py measure --out study.json && python scripts/validate.py audits --out study.json &&
python scripts/validate.py report --out study.json` (about an hour on one core; here `measure --scale SCALE --seed SEED`). A short
version runs in the tests. Samples for each cell: SAMPLES.

![Errors, coverage, power and regions](figures/validity.png)

Three ways of grouping: each item has its own evidence text; four items share a text, a query state and a label; one
text and label in a fifth of all items.
"""
NULL_TEXT = """
The reader follows the evidence, but the evidence was dealt out at random, so ΔEvi is 0. "p" is the printed p-value,
"sensitive" the verdict, which also asks for an interval above 0. Both must stay at or below 0.05.
"""
MARGIN_TEXT = """
ΔEvi is exactly 0.02, so "equivalent to zero" is an error. "spread": the evidence of all but about 4 % of the items was
dealt out at random. "few items": about 4 % of the items need the evidence, the others never change, which is the
hardest case for a standard error.
"""
COVERAGE_TEXT = """
Share of the printed intervals that hold the true ΔEvi; at least 0.95 is promised. "marked": samples without any
variance, whose interval [x, x] is printed with the word "degenerate" and counted apart.
"""
OTHER_TEXT = """
World mismatch_detector with 20 % of the labels replaced. "none given": V-information has an interval from 50 groups on.
"""
POWER_TEXT = """
"matching", with the evidence dealt out in all but a share of the items, so that ΔEvi is a multiple of the predicted
minimum detectable effect (MDE, 80 % power). Found: the interval lies above 0 and p <= 0.05. The MDE is that of the
interval; the permutation p-value of few shuffles costs power on top.
"""
REGION_TEXT = """
Readers know the train split's distribution exactly: the additive one alone, or the ideal one beside it. Rows: the
region that is true; cells: the regions found.
"""
AUDIT_TEXT = """
`evidep.audit` on generated texts, 1,000 train and 600 evaluation items, reader tfidf_lr; the truth is that of an
additive reader that has learnt all it can. Where tfidf_lr has not (latent_coupling: its accuracy falls short of 1, so
MPDS = 0.7 / accuracy may pass 0.9), the region is that of a weaker reader.
"""
CHANGES = """
The first run of this study found five faults, which were then repaired; the table shows the repaired package.

| fault | measured | repair |
|---|---|---|
| the permutation p-value takes items as exchangeable one by one, also where they share text and label | p <= 0.05 in 18 % of null samples with groups of four, in 40 to 50 % with one text in a third of the items | where groups hold several items, p is not below the one-sided cluster p-value |
| few items carry the effect: a small sample misses them, and its standard error with them | 50 items: interval covers in 82 %, equivalence at the margin claimed in 23 % | no interval is narrower than what a sample of that many groups may have missed (3.6 / G); room for skewness (Johnson 1978) |
| one large group either shows a rare effect or not | a fifth of the items with one text, 500 items: coverage 88 to 92 %, equivalence claimed in 14 to 19 % | the interval also holds that of the items outside the largest group; above a quarter of the items no interval is given |
| where evidence alone decides and labels are balanced, the first-order variance of ΔEvi vanishes | 25 groups of four: coverage 62 % | the second-order part of the variance is added |
| V-information: log-losses are skewed | 20 groups: coverage 87 % | degrees of freedom from the groups that carry the variance; below 50 groups no interval |

What stays weak:

- The minimum detectable effect is that of the interval. With K = 20 the permutation test needs all 20 shuffles below the
  full accuracy, which costs power: see the rows of K = 20 and 99. Raise `--k` where a verdict is open.
- Intervals where one text fills many items, and those of very small samples, are wider than they would have to be.
- An interval [x, x] marked "degenerate" is no interval: it says that no group differed. Equivalence is then decided by
  the zero-event bound.
- Samples come from the planted worlds. Other shapes of data can break what holds here.
"""
