"""The audit audited: error rates, coverage, power and regions over samples whose truth is known.

    python scripts/validate.py measure --out study.json   # 20 minutes on one core; --scale 0.1: a quick look
    python scripts/validate.py again   --out study.json   # its worst cells once more, with many fresh samples
    python scripts/validate.py audits  --out study.json   # whole audits of planted worlds with tfidf_lr
    python scripts/validate.py report  --out study.json   # docs/validity.md and docs/figures/validity.png

Every rate is compared with its nominal value by an exact binomial bound (99.9 %, one-sided). `report` names the rates
that are worse than that and then ends with exit code 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import validity_checks as checks
from scipy import stats
from validity_figure import write_figure
from validity_rare import rare_intervals, seed_coverage
from validity_report import ERRORS, PARTS, violations, write_page

from evidep.data.synthetic import WORLDS, planted_world

ROOT = Path(__file__).resolve().parents[1]
SIZES = ((50, 400), (200, 400), (1000, 200), (10_000, 60))
"""Items a sample, samples."""
SHUFFLE_SIZES = ((50, 200), (200, 200), (1000, 100))
REGION_SIZES = ((50, 60), (200, 60), (1000, 40), (10_000, 10))
FEW_GROUPS, FEW_SAMPLES = (4, 6, 8, 10, 12, 16), 400
SEED_SAMPLES = 2000
WORST = 4
"""Cells of each kind that are drawn again."""
AGAIN, AGAIN_LARGE = 2000, 300
"""Fresh samples of each, and of those with 10,000 items."""
RATIOS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)


def measure(scale: float, seed: int) -> Iterator[dict[str, Any]]:
    """All parts that need no reader fit, one after the other."""
    yield {"seed": seed, "scale": scale}
    for part in ("null", "margin", "effect", "shuffles"):
        yield {part: _errors(part, scale, seed)}
    yield {"other": _intervals(scale, seed), "few_groups": _few_groups(scale, seed)}
    yield {"seeds": seed_coverage(_scaled(SEED_SAMPLES, scale), seed)}
    yield {"power": _power(scale, seed)}
    yield {"regions": _regions(scale, seed)}


def _errors(part: str, scale: float, seed: int) -> list[dict[str, Any]]:
    rows = []
    for of, kind, grouping, design in checks.all_designs():
        if of != part:
            continue
        for n, repeats in SHUFFLE_SIZES if part == "shuffles" else SIZES:
            row = checks.errors_and_coverage(design, n, _scaled(repeats, scale), seed)
            rows.append({"kind": kind, "grouping": grouping, **row})
        _progress(f"{part}: {design.name}, {grouping}")
    return rows


def _power(scale: float, seed: int) -> list[dict[str, Any]]:
    rows = []
    for k, n, repeats in ((20, 50, 300), (20, 200, 300), (20, 1000, 200), (20, 10_000, 60), (99, 200, 150),
                          (99, 1000, 150)):  # fmt: skip
        for row in checks.power_curve(n, _scaled(repeats, scale), RATIOS, seed, k):
            rows.append({"k": k, **row})
        _progress(f"power: K = {k}, n = {n}")
    return rows


def _regions(scale: float, seed: int) -> list[dict[str, Any]]:
    rows = []
    for strong in (False, True):
        for world in WORLDS:
            for n, repeats in REGION_SIZES:
                counts = checks.regions(world, n, _scaled(repeats, scale), seed, strong=strong)
                true = checks.true_region(world, strong=strong)
                rows.append({"world": world, "strong": strong, "n": n, "true": true, "found": dict(counts)})
            _progress(f"regions: {world}")
    return rows


def _intervals(scale: float, seed: int) -> list[dict[str, Any]]:
    rows = []
    for grouping, settings in checks.GROUPINGS.items():
        for n, repeats in SIZES:
            both = [measured(n, _scaled(repeats, scale), seed, settings)
                    for measured in (checks.other_intervals, rare_intervals)]  # fmt: skip
            rows.append({"grouping": grouping, **both[0], **both[1]})
            _progress(f"other intervals: {grouping}, n = {n}")
    return rows


def _few_groups(scale: float, seed: int) -> list[dict[str, Any]]:
    """The same where 4 to 16 groups of four items are all there is, and ΔEvi of the same samples' worlds."""
    rows = []
    for groups in FEW_GROUPS:
        n, repeats = 4 * groups, _scaled(FEW_SAMPLES, scale)
        delta = checks.errors_and_coverage(checks.design_of("matching", 4, True), n, repeats, seed)
        both = [measured(n, repeats, seed, (4, True)) for measured in (checks.other_intervals, rare_intervals)]
        rows.append({"groups": groups, **delta, **both[0], **both[1]})
        _progress(f"few groups: {groups}")
    return rows


def again(found: dict[str, Any], scale: float, seed: int) -> list[dict[str, Any]]:
    """The cells whose rates look worst for their number of samples, with fresh samples: chance goes back to nominal."""
    designs = {(kind, grouping, d.name): d for _, kind, grouping, d in checks.all_designs()}
    cells = [row for part in ("null", "margin", "effect", "shuffles") for row in found[part]]
    covered = [row for row in cells if row.get("given_exact")]
    wrong = [(row, error) for row in cells for error in ERRORS[row["kind"]]]
    worst = [
        *sorted(covered, key=lambda row: stats.binom.cdf(row["covers_exact"], row["given_exact"], 0.95))[:WORST],
        *(row for row, _ in sorted(wrong, key=lambda w: stats.binom.sf(w[0][w[1]] - 1, w[0]["repeats"], 0.05))[:WORST]),
    ]
    rows = []
    for kind, grouping, name, n in dict.fromkeys((r["kind"], r["grouping"], r["name"], r["n"]) for r in worst):
        samples = _scaled(AGAIN_LARGE if n > 1000 else AGAIN, scale)
        row = checks.errors_and_coverage(designs[kind, grouping, name], n, samples, seed)
        rows.append({"kind": kind, "grouping": grouping, **row})
        _progress(f"again: {name}, {grouping}, n = {n}")
    return rows


def audits(seeds: int, n_train: int, n_eval: int) -> list[dict[str, Any]]:
    """Whole audits of planted worlds with the light reader: texts, fits, ablations, regions."""
    import evidep

    rows = []
    for world in WORLDS:
        for seed in range(seeds):
            made = planted_world(world, n_train=n_train, n_eval=n_eval, seed=seed)
            packet = evidep.audit(made.evaluation, train=made.train, roles=made.roles, seed=seed, name=world)
            delta = next(row for row in packet["delta_evi"] if row["shuffle"] == "global")
            rows.append({"world": world, "seed": seed, "n_train": n_train, "n_eval": n_eval,
                         "true": made.truth["region_light"], "found": packet.region, "delta_evi": delta["exact"],
                         "true_delta_evi": made.truth["delta_evi_additive"], "ci": delta["ci"]})  # fmt: skip
        _progress(f"audits: {world}")
    return rows


def _scaled(repeats: int, scale: float) -> int:
    return max(2, round(repeats * scale))


def _progress(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _share(text: str) -> float:
    value = float(text)
    if not 0.0 < value <= 10.0:
        raise argparse.ArgumentTypeError(f"expected a number above 0 and at most 10, got {text}")
    return value


def main() -> int:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("measure", "again", "audits", "report"))
    parser.add_argument("--out", type=Path, required=True, help="JSON file with the results")
    parser.add_argument("--scale", type=_share, default=1.0, help="share of the samples that are drawn, above 0")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    arguments = parser.parse_args()
    found: dict[str, Any] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    missing = [part for part in PARTS if part not in found]
    if missing and arguments.part in ("again", "report"):
        parser.error(f"--out {arguments.out}: lacks {', '.join(missing)}; run `measure` to its end first")
    if arguments.part == "report":
        write_figure(found, arguments.docs / "figures" / "validity.png")
        write_page(found, arguments.docs / "validity.md")
        wrong = violations(found)
        _progress("\n".join(["worse than nominal:", *wrong] if wrong else ["no rate is worse than nominal"]))
        return 1 if wrong else 0
    parts = measure(arguments.scale, arguments.seed)
    if arguments.part == "again":
        parts = iter([{"again": again(found, arguments.scale, arguments.seed + 1)}])
    if arguments.part == "audits":
        parts = iter([{"audits": audits(max(1, round(5 * arguments.scale)), 1000, 600)}])
    for part in parts:
        found |= part
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
