"""The tab "Audit your predictions": the template, the upload, the scores."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from evidence_space import limits, predictions
from evidence_space.auditing import Choices
from evidence_space.markup import notice
from evidence_space.origins import FILE, WORLD, WORLD_NAMES, guess_roles, open_origin
from evidence_space.uploads import read_upload, shown_name
from evidep.errors import EvidepError

NO_WORLD = "my own file"


def build() -> None:
    """Add the components and events of the tab to the open page."""
    gr.Markdown(
        "For a system that you run yourself. **1.** Get the template: every item with an empty prediction, and K "
        "shuffles that say whose evidence to show instead. **2.** Let your system answer. **3.** Upload the filled "
        "file: ΔEvi, and MPDS where metadata columns are named."
    )
    with gr.Accordion("1. Get the template", open=True):
        with gr.Row():
            world = gr.Dropdown(
                [NO_WORLD, *WORLD_NAMES], value=NO_WORLD, label="Items from", info="a planted example, or your file",
                elem_id="template-world",
            )  # fmt: skip
            file = gr.File(label="csv, tsv, json, jsonl or parquet", height=150, elem_id="template-upload")
        with gr.Row():
            query = gr.Dropdown([], label="Query column", elem_id="template-query")
            evidence = gr.Dropdown([], label="Evidence column", elem_id="template-evidence")
            label = gr.Dropdown([], label="Label column", elem_id="template-label")
            metadata = gr.Dropdown([], multiselect=True, label="Metadata columns", elem_id="template-metadata")
        with gr.Row():
            k = gr.Number(20, label="Shuffles, K", precision=0, minimum=limits.MIN_K, elem_id="template-k")
            seed = gr.Number(0, label="Seed", precision=0, minimum=0, elem_id="template-seed")
            kind = gr.Radio(["csv", "jsonl"], value="csv", label="File", elem_id="template-kind")
            texts = gr.Checkbox(True, label="Write the swapped evidence texts into it", elem_id="template-texts")
        make = gr.Button("Make the template", elem_id="template-make")
        told = gr.HTML(elem_id="template-status", elem_classes="ev-html")
        template = gr.File(label="Template", interactive=False, visible=False, elem_id="template-file")
    with gr.Accordion("2. Upload the filled template", open=True):
        filled = gr.File(
            label="with the columns label, prediction, prediction_1 to prediction_K",
            height=150,
            elem_id="filled-upload",
        )
        with gr.Row():
            more = gr.Dropdown(
                [], multiselect=True, label="Further metadata columns", elem_id="filled-metadata",
                info="columns named meta:... are metadata already",
            )  # fmt: skip
            margin = gr.Number(0.02, label="Margin", info="largest ΔEvi that counts as none", elem_id="filled-margin")
        run = gr.Button("Score the predictions", variant="primary", elem_id="filled-run")
    status = gr.HTML(notice("No predictions yet."), elem_id="filled-status")
    with gr.Column(visible=False, elem_id="filled-result") as result:
        verdict = gr.HTML(elem_id="filled-verdict")
        plot = gr.Plot(label="One dot per shuffle", elem_id="filled-plot")
        numbers = gr.HTML(elem_id="filled-numbers", elem_classes="ev-html")

    roles = [query, evidence, label, metadata]

    def source_of(chosen: str, upload: str | None) -> Any:
        if chosen == NO_WORLD:
            return open_origin(FILE, file=upload)
        return open_origin(WORLD, world=chosen)

    def look(chosen: str, upload: str | None) -> dict[Any, Any]:
        empty = {c: gr.update(choices=[], value=[] if c is metadata else None) for c in roles}
        if chosen == NO_WORLD and not upload:
            return {told: ""} | empty
        try:
            guess = guess_roles(source_of(chosen, upload))
        except EvidepError as error:
            return {told: notice(str(error), kind="error")} | empty
        listed = list(guess.columns)
        return {
            told: notice(guess.message) if guess.message else "",
            query: gr.update(choices=listed, value=guess.query),
            evidence: gr.update(choices=listed, value=guess.evidence),
            label: gr.update(choices=listed, value=guess.label),
            metadata: gr.update(choices=listed, value=list(guess.metadata)),
        }

    def write(*values: Any) -> Iterator[dict[Any, Any]]:
        chosen, upload, q, e, y, columns, shuffles, number, suffix, with_texts = values
        with tempfile.TemporaryDirectory(prefix="evidep-space-") as folder:
            try:
                origin = source_of(chosen, upload)
                path = Path(folder) / f"predictions_template.{'jsonl' if suffix == 'jsonl' else 'csv'}"
                made = predictions.write_template(
                    origin, Choices(q, e, y, tuple(columns or ())).roles, path, k=limits.check_k(shuffles),
                    seed=limits.check_seed(number), with_texts=bool(with_texts),
                )  # fmt: skip
            except EvidepError as error:
                yield {told: notice(str(error), kind="error"), template: gr.update(visible=False)}
                return
            yield {
                told: notice(predictions.summary_line(made), kind="done"),
                template: gr.update(value=str(path), visible=True),
            }

    def columns_of(upload: str | None) -> Any:
        if not upload:
            return gr.update(choices=[], value=[])
        try:
            columns = read_upload(upload).columns
        except EvidepError:
            return gr.update(choices=[], value=[])
        taken = ("item", "donor_", "evidence_", "prediction", "label", "meta:", "group", "id")
        return gr.update(choices=[c for c in columns if not c.startswith(taken)], value=[])

    def assess(upload: str | None, columns: list[str] | None, width: float | None) -> dict[Any, Any]:
        try:
            source = read_upload(upload)
            filled_in = predictions.read_filled(source, shown_name(str(upload)), columns or ())
            scores = predictions.score(filled_in, margin=0.02 if width is None else width)
        except EvidepError as error:
            return {status: notice(str(error), kind="error"), result: gr.update(visible=False)}
        return {
            status: notice("Done.", kind="done"),
            result: gr.update(visible=True),
            verdict: predictions.verdict(scores),
            plot: predictions.figure(scores),
            numbers: predictions.numbers(scores),
        }

    private: dict[str, Any] = {"api_visibility": "private"}
    for event in (world.change, file.change):
        event(look, [world, file], [told, *roles], **private)
    make.click(write, [world, file, *roles, k, seed, kind, texts], [told, template], **private)
    filled.change(columns_of, filled, more, **private)
    run.click(
        assess, [filled, more, margin], [status, result, verdict, plot, numbers], concurrency_id="audit",
        concurrency_limit=limits.CONCURRENT_RUNS, **private,
    )  # fmt: skip
