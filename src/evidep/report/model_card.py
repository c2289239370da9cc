"""The card of a fine-tuned reader: what it learned from, how well it reads, and whether it reads the evidence."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from evidep.readers.saved import Fitted, Notes
from evidep.report.escape import cell, code, fenced, one_line, prose
from evidep.report.numerals import UNDEFINED, count, interval, number, p_value, percent
from evidep.version import __version__

CITATION: Final = "Shao, *Metadata Predictability Is Not Evidence Dependence*, arXiv 2605.23701"


def model_card(
    reader: Any,
    packet: Mapping[str, Any] | None,
    *,
    train_name: str | None = None,
    train_licence: str | None = None,
    datasets: Sequence[str] = (),
    language: str | None = None,
) -> str:
    """A Markdown model card with model-index metadata that `huggingface_hub.ModelCard` parses.

    Names, labels and notes come from strangers' data and are escaped. Without an audit packet the card says that
    evidence dependence has not been measured.

    Args:
        reader: A fitted TransformerReader, or the notes of a saved one.
        packet: The document of an audit of this very fit, or None. Numbers of another fit (its reader, train data or
            seed differ) are left out, and the card says so.
        train_name: What the training data is called.
        train_licence: Its licence.
        datasets: Its ids on the Hub, for the metadata.
        language: Language code for the metadata.
    """
    about: Notes = reader if isinstance(reader, Notes) else reader.describe()
    name, given = about.settings["name"], packet is not None
    rows = [] if packet is None else _audited(packet, about, reader)
    packet = packet if rows else None
    remarks = rows[0].get("notes", ()) if rows else getattr(reader, "notes", ())
    deltas, ablations = _own(packet, "delta_evi", rows), _own(packet, "ablations", rows)
    parts = [
        _metadata(about, packet, rows, deltas, datasets, language),
        f"# {prose(name)}",
        f"A sequence classifier ({code(about.base_model)}, fine-tuned) that reads a query with its evidence and "
        f"answers {_labels(about.label_names)}. It is a reader of [evidep](https://pypi.org/project/evidep), which "
        f"asks whether a benchmark's labels depend on its evidence ({CITATION}).",
        "## Use",
        _use(about),
        "## Training data",
        _bullets(_training_data(about, train_name, train_licence)),
        "## Recipe",
        _table(("setting", "value"), "ll", [(code(k), cell(v)) for k, v in _recipe(about).items()]),
        _bullets(_course(about)),
        "## How well it reads",
        *_accuracy(packet, rows, given),
        "## Does it read the evidence?",
        *_dependence(deltas, packet),
        *_ablations(ablations),
        "## Limits",
        _bullets(_limits(about, rows, train_name, remarks)),
        "## Environment",
        _bullets(_environment(packet)),
    ]
    if packet is not None:
        parts += ["## Signature", fenced(one_line(packet["signature"]))]
    return "\n\n".join(parts) + "\n"


def _audited(packet: Mapping[str, Any], about: Notes, reader: Any) -> list[Mapping[str, Any]]:
    """The packet's row of this very fit, in a list that is empty where the audit is of other weights.

    A row belongs to the fit if reader, train data and seed are the fit's, or if the saved weights were audited as they
    are.
    """
    found = [] if about.fitted is None else audited_fit(packet, about.fitted)
    if not found and not getattr(reader, "trainable", True):
        found = [row for row in packet["readers"] if row["fingerprint"] == reader.fingerprint]
    return found[:1]


def audited_fit(packet: Mapping[str, Any], fitted: Fitted) -> list[Mapping[str, Any]]:
    """The rows of a packet's readers that come from a fit."""
    if packet["data"].get("train_fingerprint") != fitted.train:
        return []
    return [r for r in packet["readers"] if (r["fingerprint"], r["seed"]) == (fitted.reader, fitted.seed)]


def _metadata(
    about: Notes,
    packet: Mapping[str, Any] | None,
    rows: Sequence[Any],
    deltas: Sequence[Any],
    datasets: Sequence[str],
    language: str | None,
) -> str:
    from huggingface_hub import EvalResult, ModelCardData

    called = "" if packet is None else one_line(packet["data"]["name"], 200)

    def result(kind: str, label: str, value: float) -> EvalResult:
        return EvalResult(
            task_type="text-classification",
            dataset_type=called,
            dataset_name=called,
            metric_type=kind,
            metric_name=label,
            metric_value=round(float(value), 6),
        )

    results = [result("accuracy", f"Accuracy, seed {r['seed']}", r["accuracy_full"]) for r in rows]
    results += [
        result("delta_evi", f"ΔEvi, {d['shuffle']} shuffle, seed {d['seed']}", d["mean"])
        for d in deltas
        if d["mean"] is not None
    ]
    base = about.base_model
    values = ModelCardData(
        model_name=one_line(about.settings["name"], 200),
        eval_results=results or None,
        license=about.settings["licence"],
        language=language,
        library_name="transformers",
        pipeline_tag="text-classification",
        base_model=base if "/" in base else None,
        datasets=[one_line(each, 200) for each in datasets] or None,
        metrics=["accuracy"],
        tags=["evidep", "evidence-dependence"],
    )
    return f"---\n{values.to_yaml()}\n---"


def _own(packet: Mapping[str, Any] | None, key: str, rows: Sequence[Any]) -> list[Mapping[str, Any]]:
    """Rows of another table of the packet that belong to the same reader and seed."""
    own = {(row["reader"], row["seed"]) for row in rows}
    return [] if packet is None else [row for row in packet[key] if (row["reader"], row["seed"]) in own]


def _labels(names: Sequence[str]) -> str:
    return ", ".join(code(name) for name in names)


def _use(about: Notes) -> str:
    lines = [
        "from transformers import pipeline",
        "",
        'classify = pipeline("text-classification", model=FOLDER_OR_HUB_ID)',
        'classify({"text": query, "text_pair": evidence})',
    ]
    longest = "the model's limit" if about.settings["max_length"] is None else f"{about.settings['max_length']} tokens"
    note = (
        f"The query comes first. Inputs were cut at {longest}, always at the evidence: for the same inputs "
        'pass `truncation="only_second"` and that `max_length`.'
    )
    return fenced("\n".join(lines), "python") + "\n\n" + note


def _training_data(about: Notes, name: str | None, licence: str | None) -> Iterable[str]:
    yield f"Data: {code(name) if name else 'not named'}"
    if about.fitted is not None:
        yield f"Fingerprint of the training items: {code(about.fitted.train)}; seed of the fit: {about.fitted.seed}"
    yield f"Licence of the data: {prose(licence) if licence else 'not stated; check it before you publish this model'}"
    report = about.report
    if report is not None:
        held = (
            f"{count(report.held_out)} of them held out" if report.held_out else f"none held out ({prose(report.note)})"
        )
        yield f"Items: {count(report.items + report.held_out)}, {held} to choose the best step"


def _recipe(about: Notes) -> dict[str, Any]:
    shown = {"model": about.base_model, "revision": about.base_revision, "max_length": about.settings["max_length"]}
    return {**{k: v for k, v in shown.items() if v is not None}, **asdict(about.recipe)}


def _course(about: Notes) -> Iterable[str]:
    report = about.report
    if report is None:
        yield "No record of the fit was kept."
        return
    yield (
        f"{count(report.steps)} steps in {report.precision} on {report.world_size} process(es) with {report.threads} "
        "thread(s) each; bit for bit the same only with the same numbers of both"
    )
    accuracy = report.held_out_accuracy
    if not math.isnan(accuracy):
        yield (
            f"Kept: step {count(report.best_step)}, held-out accuracy {number(accuracy)} (commonest label "
            f"{number(report.held_out_majority)})"
        )
    if report.collapsed:
        yield "**Collapsed:** it gave one label to every item that the fit checked it on"


def _accuracy(packet: Mapping[str, Any] | None, rows: Sequence[Any], given: bool) -> Iterable[str]:
    if packet is None:
        yield "Not evaluated on a test set."
        if given:
            yield (
                "The audit that was given is of another fit (reader, training data or seed differ), so its numbers are "
                "left out."
            )
        return
    data = packet["data"]
    yield (
        f"Evaluated on {code(data['name'])}: {count(data['rows'])} items in {count(data['groups'])} groups "
        f"(fingerprint {code(data['fingerprint'])})."
    )
    found = [(str(r["seed"]), number(r["accuracy_full"]), _ends(r), "yes" if r["works"] else "**no**") for r in rows]
    yield _table(("seed", "accuracy", "interval", "beats the majority"), "rrll", found)
    yield f"The commonest label alone is right in {percent(packet['majority_rate'])} of the items."


def _dependence(deltas: Sequence[Any], packet: Mapping[str, Any] | None) -> Iterable[str]:
    if not deltas:
        yield "Not measured: this model has not been audited with swapped evidence."
        return
    yield (
        "ΔEvi is how far accuracy falls when items are given the evidence of other items. An interval that contains 0 "
        "is no proof that the evidence is ignored; only the verdict *equivalent* claims that, within the margin."
    )
    columns = (
        "seed",
        "shuffle",
        "K",
        "ΔEvi",
        "SD over K",
        "exact",
        "interval",
        "p",
        "least detectable",
        "unchanged",
        "cut",
        "unchanged once cut",
        "verdict",
    )
    found = [
        (
            str(d["seed"]),
            cell(d["shuffle"]),
            count(d["k"]),
            number(d["mean"]),
            number(d["sd_population"], 4),
            number(d["exact"]),
            _ends(d),
            p_value(d["p_value"]),
            number(d["minimum_detectable_effect"]),
            percent(d["unchanged_rate"]),
            percent(d.get("truncated_share")),
            percent(d.get("unchanged_after_truncation")),
            prose(d["verdict"].replace("_", " ")),
        )
        for d in deltas
    ]
    yield _table(columns, "rlrrrrlrrrrrl", found)
    if packet is not None:
        diagnosis = packet["diagnosis"]
        yield f"The benchmark's region in that audit: **{prose(diagnosis['region'].replace('_', ' '))}**."
        yield _bullets(prose(reason) for reason in diagnosis["reasons"])


def _ablations(rows: Sequence[Any]) -> Iterable[str]:
    if rows:
        yield "Accuracy on partial input, retrained on it or masked at test time:"
        yield _table(
            ("input", "how", "accuracy", "interval"),
            "llrl",
            [(cell(a["arm"]), cell(a["how"]), number(a["accuracy"]), _ends(a)) for a in rows],
        )


def _limits(about: Notes, rows: Sequence[Any], name: str | None, remarks: Iterable[str]) -> Iterable[str]:
    if about.contamination:
        yield f"Contamination: {prose(about.contamination)}"
    if any(not row["works"] for row in rows):
        yield "It does not beat the commonest label by more than noise: its ΔEvi says nothing"
    yield f"Trained on {code(name) if name else 'the data above'} alone; numbers hold for items like those"
    yield "Evidence that does not fit into the window is not read"
    for note in remarks:
        yield prose(note)


def _environment(packet: Mapping[str, Any] | None) -> Iterable[str]:
    import importlib.metadata
    import platform

    if packet is not None:
        environment = packet["environment"]
        yield code(f"Python {environment.get('python', UNDEFINED)}")
        for package, version in environment.get("packages", {}).items():
            yield code(f"{package} {version}")
        return
    yield code(f"Python {platform.python_version()}")
    yield code(f"evidep {__version__}")
    for package in ("torch", "transformers", "accelerate"):
        yield code(f"{package} {importlib.metadata.version(package)}")


def _ends(row: Mapping[str, Any]) -> str:
    """The interval, or why there is none."""
    reason = f" ({prose(row['reason'])})" if row["ci"] is None and row.get("reason") else ""
    return interval(row["ci"]) + reason


def _table(head: Sequence[str], align: str, rows: Iterable[Sequence[str]]) -> str:
    rule = ["---:" if side == "r" else "---" for side in align]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *rows])


def _bullets(lines: Iterable[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
