"""From results to the packet's document and per-item table. The one place that decides what a packet says."""

from __future__ import annotations

import importlib.metadata
import math
import platform
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evidep.audit.diagnosis import contrasts, denominator, diagnose_results, key
from evidep.audit.packet import SCHEMA_VERSION, AuditPacket, plain
from evidep.audit.results import AblationResult, ArmResult, AuditResults, ReaderResult, detectable_effect
from evidep.stats.calibration import seed_spread
from evidep.stats.multiplicity import holm
from evidep.stats.region_evidence import value_of
from evidep.types import Interval
from evidep.version import __version__

PACKAGES: Final = (
    "evidep", "numpy", "scipy", "scikit-learn", "datasets", "pyarrow", "torch", "transformers", "accelerate",
)  # fmt: skip


def assemble(results: AuditResults, *, name: str) -> AuditPacket:
    """The packet of an audit. `name` is what the dataset is called in signature, tables and figures."""
    settings = results.settings
    document = {
        "schema_version": SCHEMA_VERSION,
        "signature": signature(results, name),
        "data": _data(results, name),
        "settings": {
            "readers": [result.spec for result in results.readers if result.seed == settings.seed],
            "shuffles": results.shuffles,
            "k": settings.k,
            "seed": settings.seed,
            "reader_seeds": settings.reader_seeds,
            "margin": settings.margin,
            "alpha": settings.alpha,
            "mpds_high": settings.mpds_high,
            "ablations": settings.ablations,
            "n_folds": None if results.folds is None else int(results.folds.max()) + 1,
            "controls": settings.controls,
            "diagnostics": settings.diagnostics,
            "auto_metadata": settings.auto_metadata,
        },
        "majority_rate": results.majority_rate,
        "majority": {
            "label": results.data.evaluation.label_names[results.majority.train_majority_label],
            "train_majority_on_evaluation": results.majority.train_majority,
            "evaluation_majority_share": results.majority.evaluation_majority,
        },
        "metadata": _metadata(results),
        "readers": [_reader(result) for result in results.readers],
        "delta_evi": _delta_evi(results),
        "ablations": [_ablation(result, ablation) for result in results.readers for ablation in result.ablations],
        "information": [_information(result) for result in results.readers if result.information is not None],
        "calibration": _calibration(results),
        "diagnosis": plain(_as_dict(diagnose_results(results))),
        **results.extras,
        "environment": environment(),
    }
    cleaned = plain(document)
    assert isinstance(cleaned, dict)
    return AuditPacket(cleaned, items_table(results))


def signature(results: AuditResults, name: str) -> str:
    """One line that pins the numbers: version, data, readers, shuffles, K, seed, margin and alpha."""
    settings, data = results.settings, results.data
    readers = ",".join(dict.fromkeys(result.spec for result in results.readers))
    seeds = f"{settings.seed}" if settings.reader_seeds == 1 else f"{settings.seed}x{settings.reader_seeds}"
    fit = "out-of-fold" if data.train is None else f"train@{data.train.fingerprint[:8]}"
    return (
        f"evidep:{__version__}|data:{name}@{data.evaluation.fingerprint[:8]}|{fit}|readers:{readers}|"
        f"shuffles:{','.join(results.shuffles)}|K:{settings.k}|seed:{seeds}|margin:{settings.margin:g}|"
        f"alpha:{settings.alpha:g}"
    )


def environment() -> dict[str, Any]:
    """Versions that decide the numbers. No host name, user name or path."""
    packages = {}
    for package in PACKAGES:
        try:
            packages[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    packages["evidep"] = __version__
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "packages": packages,
    }


def interval(ci: Interval) -> list[float] | None:
    """[low, high], or None where the interval is undefined."""
    return [ci.low, ci.high] if math.isfinite(ci.low) and math.isfinite(ci.high) else None


def _reasons(*reasons: str | None) -> str | None:
    """Several reasons as one text, each once."""
    return "; ".join(dict.fromkeys(reason for reason in reasons if reason)) or None


def _data(results: AuditResults, name: str) -> dict[str, Any]:
    data = results.data
    table = data.evaluation
    counts = np.bincount(table.labels, minlength=table.n_classes).tolist()
    report = data.report.to_dict()
    notes = [*report.pop("notes", ()), *results.fold_warnings]
    roles = data.roles
    return {
        "name": name,
        "rows": len(table),
        "train_rows": None if data.train is None else len(data.train),
        "dropped": {split: report[split]["dropped"] for split in ("evaluation", "train") if report[split]},
        "labels": table.label_names,
        "label_counts": dict(zip(table.label_names, counts, strict=True)),
        "groups": len(np.unique(table.groups)),
        "components": len(np.unique(table.components)),
        "fingerprint": table.fingerprint,
        "train_fingerprint": None if data.train is None else data.train.fingerprint,
        "roles": {
            "query": roles.query,
            "evidence": roles.evidence,
            "label": roles.label,
            "metadata": roles.metadata,
            "group": roles.group,
        },
        "report": report,
        "notes": notes,
    }


def _metadata(results: AuditResults) -> dict[str, Any]:
    metadata = results.metadata
    if metadata is None:
        return {
            "schema": [], "reader": None, "accuracy": None, "mpds": None, "mpds_chance_corrected": None, "ci": None,
            "n_cells": None, "by_reader": [],
            "reason": "no metadata columns were declared (--metadata); MPDS is not defined without them",
        }  # fmt: skip
    best = denominator(results)
    rows = []
    for result in results.readers:
        value = metadata.by_reader[key(result)]
        rows.append(
            {
                "reader": result.info.name,
                "seed": result.seed,
                "accuracy_full": value.accuracy_full,
                "mpds": value.mpds,
                "mpds_chance_corrected": value.mpds_chance_corrected,
                "ci": interval(value.ci),
                "reason": _reasons(*value.reasons.values(), value.ci.reason),
            }
        )
    chosen = next(row for row in rows if (row["reader"], row["seed"]) == (best.info.name, best.seed))
    value = metadata.by_reader[key(best)]
    return {
        "schema": metadata.columns,
        "reader": best.info.name,
        "accuracy": value.accuracy_metadata,
        "mpds": value.mpds,
        "mpds_chance_corrected": value.mpds_chance_corrected,
        "ci": chosen["ci"],
        "n_cells": value.n_cells,
        "by_reader": rows,
        "reason": chosen["reason"],
    }


def _reader(result: ReaderResult) -> dict[str, Any]:
    return {
        "reader": result.info.name,
        "seed": result.seed,
        "strength": result.info.strength,
        "interaction": result.info.interaction,
        "accuracy_full": float(result.correct.mean()),
        "ci": interval(result.ci),
        "works": result.works.works,
        "p_above_majority": result.works.p_value,
        "contamination": result.info.contamination,
        "fingerprint": result.fingerprint,
        "notes": result.notes,
        "reason": _reasons(result.works.reason, result.ci.reason),
    }


def _delta_evi(results: AuditResults) -> list[dict[str, Any]]:
    cells = [(result, arm) for result in results.readers for arm in result.arms]
    adjusted = holm(np.array([arm.delta.p_value for _, arm in cells]))
    rows = []
    for (result, arm), p_holm in zip(cells, np.asarray(adjusted).tolist(), strict=True):
        rows.append(_arm(result, arm, results.settings.k) | {"p_value_holm": p_holm})
    return rows


def _arm(result: ReaderResult, arm: ArmResult, k: int) -> dict[str, Any]:
    delta = arm.delta
    values = {
        "reader": result.info.name,
        "seed": result.seed,
        "shuffle": arm.arm,
        "k": k,
        "mean": delta.mean,
        "sd_population": delta.sd_population,
        "exact": delta.exact,
        "sd_permutation": delta.sd_permutation,
        "standard_error": delta.standard_error,
        "ci": interval(delta.ci),
        "ci_equivalence": interval(delta.ci_equivalence),
        "p_value": delta.p_value,
        "p_method": delta.p_method,
        "verdict": delta.verdict,
        "negligible": delta.negligible,
        "unchanged_rate": delta.unchanged_rate,
        "unmovable_share": delta.unmovable_share,
        "truncated_share": delta.truncated_share,
        "unchanged_after_truncation": delta.unchanged_after_truncation,
        "minimum_detectable_effect": detectable_effect(delta),
        "items_needed": delta.items_needed,
        "accuracy_full": delta.accuracy_full,
        "accuracy_shuffled": delta.accuracy_shuffled,
        "n_items": delta.n_items,
        "n_groups": delta.n_groups,
    }
    reason = _reasons(delta.reason, delta.ci.reason, delta.ci_equivalence.reason)
    if reason is None and math.isnan(delta.exact):
        reason = "exact: this reader scores one pair at a time, so the mean over the K shuffles stands"
    return values | {"reason": reason}


def _ablation(result: ReaderResult, ablation: AblationResult) -> dict[str, Any]:
    return {
        "reader": result.info.name,
        "seed": result.seed,
        "arm": ablation.arm,
        "how": ablation.how,
        "accuracy": ablation.accuracy,
        "ci": interval(ablation.ci),
        "reason": ablation.ci.reason,
    }


def _information(result: ReaderResult) -> dict[str, Any]:
    value = result.information
    assert value is not None
    return {
        "reader": result.info.name,
        "seed": result.seed,
        "v_information_bits": value.v_information,
        "standard_error": value.standard_error,
        "ci": interval(value.ci),
        "reason": _reasons(value.reason, value.ci.reason),
    }


def _calibration(results: AuditResults) -> dict[str, Any]:
    """Readers of the ladder compared on the same items and shuffles, and the spread between seeds."""
    rows = [
        {
            "reader": contrast.stronger,
            "against": contrast.lighter,
            "difference": contrast.mean,
            "ci": interval(contrast.ci),
            "accuracy_difference": contrast.accuracy,
            "accuracy_ci": None if contrast.accuracy_ci is None else interval(contrast.accuracy_ci),
            "reason": contrast.ci.reason,
        }
        for contrast in contrasts(results)
    ]
    spreads = []
    for name in dict.fromkeys(result.info.name for result in results.readers):
        mine = [result for result in results.readers if result.info.name == name]
        arms = [result.arm("global") for result in ([r for r in mine if r.works.works] or mine)]
        values = [value_of(arm.delta) for arm in arms if arm is not None]
        if values:
            spread = seed_spread(np.array(values))
            constant = _no_spread(mine, results.settings.reader_seeds)
            sd, reason = (spread.sd, spread.reason) if constant is None else (math.nan, constant)
            spreads.append({"reader": name, "seeds": spread.n_seeds, "mean": spread.mean, "sd": sd, "reason": reason})
    return {"contrasts": rows, "seed_spread": spreads}


def _no_spread(fits: list[ReaderResult], asked: int) -> str | None:
    """Why an SD over these fits of one reader would say nothing of seeds, or None."""
    first = fits[0]
    if not first.trainable and asked > 1:
        return "nothing is fitted, so no seed changes anything: run once"
    right = "right_when_shuffled"
    if len(fits) > 1 and all(
        np.array_equal(fit.predictions, first.predictions)
        and all(np.array_equal(getattr(a, right), getattr(b, right)) for a, b in zip(fit.arms, first.arms, strict=True))
        for fit in fits[1:]
    ):
        return f"all {len(fits)} fits give the same answers: the seed changes nothing in this reader's fit"
    return None


def _as_dict(value: Any) -> Mapping[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__}


def items_table(results: AuditResults) -> pa.Table:
    """One row per reader, seed and item: what was predicted, how often it stayed right, and PVI. Holds no text."""
    table = results.data.evaluation
    names = np.array(table.label_names, dtype=object)
    parts = []
    for result in results.readers:
        n = len(table)
        columns: dict[str, Any] = {
            "id": table.ids,
            "reader": pa.array([result.info.name] * n).dictionary_encode(),
            "seed": pa.array(np.full(n, result.seed, dtype=np.int64)),
            "group": pa.array(table.groups),
            "label": pa.array(names[table.labels]).dictionary_encode(),
            "prediction": pa.array(names[result.predictions]).dictionary_encode(),
            "log_probability": pa.array(
                result.log_probability if result.log_probability is not None else np.full(n, np.nan), from_pandas=True
            ),
        }
        for arm in results.shuffles:
            found = result.arm(arm)
            assert found is not None
            columns[f"right_share_{arm}"] = pa.array(found.right_when_shuffled)
        for ablation in result.ablations:
            columns[f"right_{ablation.arm}_{ablation.how}"] = pa.array(ablation.correct)
        if result.information is not None:
            columns["pvi_bits"] = pa.array(result.information.pointwise)
        if results.metadata is not None:
            columns["metadata_prediction"] = pa.array(names[results.metadata.predictions]).dictionary_encode()
        parts.append(pa.table(columns))
    return pa.concat_tables(parts, promote_options="default")
