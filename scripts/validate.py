"""The audit audited: error rates, coverage, power and regions over samples whose truth is known.

    python scripts/validate.py measure --out study.json   # about half an hour on one core; --scale 0.1 for a quick look
    python scripts/validate.py audits  --out study.json   # whole audits of planted worlds with tfidf_lr
    python scripts/validate.py report  --out study.json   # docs/validity.md and docs/figures/validity.png

Every rate is compared with its nominal value by an exact binomial bound (99.9 %, one-sided).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import validity_checks as checks
from validity_report import write_figure, write_page

from evidep.data.synthetic import WORLDS, planted_world

ROOT = Path(__file__).resolve().parents[1]
SIZES = ((50, 500), (200, 500), (1000, 400), (10_000, 100))
"""Items a sample, samples."""
REGION_SIZES = ((50, 100), (200, 60), (1000, 40), (5000, 10))
RATIOS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5)


def measure(scale: float, seed: int) -> Iterator[dict[str, Any]]:
    """All parts that need no reader fit, one after the other."""
    yield {"seed": seed, "scale": scale}
    kinds = {"null": checks.null_designs, "margin": checks.margin_designs, "effect": checks.effect_designs}
    for kind, designs in kinds.items():
        rows = []
        for grouping, design in designs():
            for n, repeats in SIZES:
                row = checks.errors_and_coverage(design, n, _scaled(repeats, scale), seed)
                rows.append({"kind": kind, "grouping": grouping, **row})
                _progress(f"{kind}: {design.name}, {grouping}, n = {n}")
        yield {kind: rows}
    rows = []
    for grouping, settings in checks.GROUPINGS.items():
        for n, repeats in SIZES[:3]:
            row = checks.other_intervals(n, _scaled(repeats, scale), seed, settings)
            rows.append({"grouping": grouping, **row})
            _progress(f"other intervals: {grouping}, n = {n}")
    yield {"other": rows}
    rows = []
    for k in (20, 99):
        for n in (200, 1000):
            for row in checks.power_curve(n, _scaled(400 if k == 20 else 150, scale), RATIOS, seed, k):
                rows.append({"k": k, **row})
            _progress(f"power: K = {k}, n = {n}")
    yield {"power": rows}
    rows = []
    for strong in (False, True):
        for world in WORLDS:
            for n, repeats in REGION_SIZES:
                counts = checks.regions(world, n, _scaled(repeats, scale), seed, strong=strong)
                true = checks.true_region(world, strong=strong)
                rows.append({"world": world, "strong": strong, "n": n, "true": true, "found": dict(counts)})
            _progress(f"regions: {world}")
    yield {"regions": rows}


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


def main() -> int:
    """Measure, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("measure", "audits", "report"))
    parser.add_argument("--out", type=Path, required=True, help="JSON file with the results")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the samples that are drawn")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--docs", type=Path, default=ROOT / "docs")
    arguments = parser.parse_args()
    found: dict[str, Any] = json.loads(arguments.out.read_text()) if arguments.out.exists() else {}
    if arguments.part == "report":
        write_figure(found, arguments.docs / "figures" / "validity.png")
        write_page(found, arguments.docs / "validity.md")
        return 0
    parts = measure(arguments.scale, arguments.seed)
    if arguments.part == "audits":
        parts = iter([{"audits": audits(max(1, round(5 * arguments.scale)), 1000, 600)}])
    for part in parts:
        found |= part
        arguments.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
