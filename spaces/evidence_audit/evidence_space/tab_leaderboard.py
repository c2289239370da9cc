"""The tab "Fair leaderboard": scores of systems on tasks, aggregated in every way."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gradio as gr

from evidence_space import leaderboard, limits
from evidence_space.markup import notice
from evidep.errors import EvidepError


def build() -> None:
    """Add the components and events of the tab to the open page."""
    if not leaderboard.available():
        gr.Markdown(
            "This Space runs an evidep without the aggregation of scores. Install a release that has it: "
            "`pip install -U 'evidep[space]'`."
        )
        return
    gr.Markdown(
        "Upload scores, one row each: **system, task, score** and, where there are several, **seed** or **item** (a "
        "wide table with one row per system works too). You get all ways to aggregate side by side, with intervals, "
        "and what each hides: no winner is named where tasks conflict."
    )
    file = gr.File(label="csv, tsv, json, jsonl or parquet", height=150, elem_id="scores-upload")
    with gr.Row():
        direction = gr.Radio(
            list(leaderboard.DIRECTIONS), value="higher is better", label="Direction", elem_id="scores-direction"
        )
        metric = gr.Textbox(
            label="Metric", placeholder="accuracy, f1, accuracy% ...",
            info="its range and chance level; without it means over tasks are undefined",
            elem_id="scores-metric",
        )  # fmt: skip
    run = gr.Button("Aggregate", variant="primary", elem_id="scores-run")
    status = gr.HTML(notice("No scores yet."), elem_id="scores-status")
    with gr.Column(visible=False, elem_id="scores-result") as result:
        verdict = gr.HTML(elem_id="scores-verdict")
        figures = gr.HTML(elem_id="scores-figures", elem_classes="ev-html")
        report = gr.Markdown(latex_delimiters=[], elem_id="scores-report", elem_classes="ev-report")
        files = gr.File(label="Downloads: report, result as JSON", file_count="multiple", interactive=False,
                        elem_id="scores-files")  # fmt: skip

    def aggregate(upload: str | None, way: str, name: str) -> Iterator[dict[Any, Any]]:
        try:
            board = leaderboard.from_file(upload, way, name or "")
        except EvidepError as error:
            yield {status: notice(str(error), kind="error"), result: gr.update(visible=False)}
            return
        with tempfile.TemporaryDirectory(prefix="evidep-space-") as folder:
            written = [Path(folder) / "aggregate.md", Path(folder) / "aggregate.json"]
            written[0].write_text(board.markdown, encoding="utf-8")
            written[1].write_text(json.dumps(board.document, ensure_ascii=False, indent=1), encoding="utf-8")
            yield {
                status: notice("Done.", kind="done"),
                result: gr.update(visible=True),
                verdict: board.verdict,
                figures: board.figures,
                report: board.markdown,
                files: [str(path) for path in written],
            }

    run.click(
        aggregate, [file, direction, metric], [status, result, verdict, figures, report, files],
        concurrency_id="audit", concurrency_limit=limits.CONCURRENT_RUNS, api_visibility="private",
    )  # fmt: skip
