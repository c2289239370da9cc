"""The tab "Audit a dataset": wiring of components to the functions that do the work."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, Final

import gradio as gr

from evidence_space import downloads, limits, plots, result_view
from evidence_space.auditing import DEFAULT_READERS, READER_WORDS, Choices, audit_origin, reader_choices
from evidence_space.markup import notice, progress
from evidence_space.origins import FILE, HUB, ORIGINS, WORLD, WORLD_NAMES, guess_roles, open_origin, preview
from evidence_space.runs import Run, Stopped, Visitors
from evidep.audit.plan import SHUFFLES
from evidep.errors import EvidepError
from evidep.report.card import audit_card

VISITORS: Final = Visitors()
FAMILIES: Final = ("global", "within-label", "near-miss")
SHUFFLE_WORDS: Final = {
    "global": "global: any other item's evidence",
    "within-label": "within-label: of an item with the same label",
    "within-metadata": "within-metadata: of an item with the same metadata",
    "near-miss": "near-miss: the most similar other evidence",
}


def build() -> dict[str, Any]:
    """Add the components and events of the tab to the open page; the components that a deep link sets."""
    gr.Markdown(
        "Choose rows, check which column is what, press **Run the audit**. Nothing needs to be installed, and the "
        "planted examples show what each kind of result looks like."
    )
    kind = gr.Radio(list(ORIGINS), value=WORLD, label="What to audit", elem_id="origin")
    with gr.Group(visible=True) as world_box:
        world = gr.Dropdown(
            [(f"{name}: {said}", name) for name, said in WORLD_NAMES.items()],
            value="triviaqa",
            label="Planted example",
            info="Made on the spot, with a known answer. Contains no data of the benchmarks of these names.",
            elem_id="world",
        )
    with gr.Group(visible=False) as file_box:
        file = gr.File(label="csv, tsv, json, jsonl or parquet (text kinds also .gz)", elem_id="upload", height=150)
    with gr.Group(visible=False) as hub_box, gr.Row():
        hub_id = gr.Textbox(label="Dataset id", placeholder="owner/name", elem_id="hub-id")
        config = gr.Textbox(label="Configuration", placeholder="none", elem_id="hub-config")
        split = gr.Textbox(label="Split", placeholder="test, else validation", elem_id="hub-split")
    show = gr.Button("Show rows", size="sm", elem_id="show-rows")
    message = gr.HTML(elem_id="rows-message", elem_classes="ev-html")
    rows = gr.Dataframe(
        label="First rows", interactive=False, wrap=True, elem_id="rows", max_height=300, datatype="str", visible=False
    )
    with gr.Row():
        query = gr.Dropdown([], label="Query column", info="question, claim, hypothesis", elem_id="query")
        evidence = gr.Dropdown([], label="Evidence column", info="passage, premise, context", elem_id="evidence")
        label = gr.Dropdown([], label="Label column", info="the gold answer", elem_id="label")
    with gr.Row():
        metadata = gr.Dropdown(
            [], multiselect=True, label="Metadata columns", elem_id="metadata",
            info="might give the label away; without any there is no MPDS",
        )  # fmt: skip
        group = gr.Dropdown([], label="Group column", info="items of one group are not independent", elem_id="group")
    with gr.Accordion("Shuffles, readers, seed", open=False):
        offered = reader_choices()
        shuffles = gr.CheckboxGroup(
            [(SHUFFLE_WORDS[name], name) for name in SHUFFLES],
            label="Shuffles",
            info="None ticked: global, within-label, and within-metadata where metadata are named.",
            elem_id="shuffles",
        )
        readers = gr.CheckboxGroup(
            [(READER_WORDS[name], name) for name in offered],
            value=list(DEFAULT_READERS),
            label="Readers",
            info="A light reader's near-zero ΔEvi is a reason to run a stronger one."
            + ("" if "minilm" in offered else " Strong readers need evidep[transformers], which this Space lacks."),
            elem_id="readers",
        )
        with gr.Row():
            k = gr.Number(20, label="Shuffles of each kind, K", precision=0, minimum=limits.MIN_K, elem_id="k")
            seed = gr.Number(0, label="Seed", precision=0, minimum=0, elem_id="seed")
            margin = gr.Number(0.02, label="Margin", info="largest ΔEvi that counts as none", elem_id="margin")
    with gr.Row():
        run = gr.Button("Run the audit", variant="primary", elem_id="run")
        cancel = gr.Button("Stop", interactive=False, elem_id="cancel")
    status = gr.HTML(notice("No audit yet: press Run the audit."), elem_id="status")
    with gr.Column(visible=False, elem_id="result") as result:
        verdict = gr.HTML(elem_id="verdict")
        figure_map = gr.Plot(label="Diagnostic map", elem_id="map")
        gr.HTML(result_view.map_key(), elem_classes="ev-html")
        figure_arms = gr.Plot(label="Accuracy of every arm", elem_id="arms")
        figure_shuffles = gr.Plot(label="One dot per shuffle, bar: own evidence", elem_id="shuffle-plot")
        figure_ladder = gr.Plot(label="ΔEvi along the ladder of readers", elem_id="ladder")
        with gr.Accordion("All numbers", open=False):
            numbers = gr.HTML(elem_id="numbers", elem_classes="ev-html")
        explanation = gr.HTML(elem_id="explanation", elem_classes="ev-html")
        warnings = gr.HTML(elem_id="warnings", elem_classes="ev-html")
        with gr.Accordion("Items that change, and items that do not", open=True):
            items = gr.HTML(elem_id="items", elem_classes="ev-html")
        files = gr.File(label="Downloads: packet, card, badge, figures", file_count="multiple", interactive=False,
                        elem_id="files")  # fmt: skip
        share = gr.Textbox(label="The result in a sentence, to share", interactive=False, buttons=["copy"], lines=3,
                           elem_id="share")  # fmt: skip
        with gr.Accordion("Card, as it would stand on the dataset's page", open=False):
            card = gr.Markdown(latex_delimiters=[], buttons=["copy"], elem_id="card", elem_classes="ev-card")

    where = [kind, file, world, hub_id, config, split]
    columns = [query, evidence, label, metadata, group]

    def boxes(chosen: str) -> list[Any]:
        return [gr.update(visible=chosen == name) for name in (WORLD, FILE, HUB)]

    def look(*values: Any) -> dict[Any, Any]:
        try:
            origin = open_origin(values[0], file=values[1], world=values[2], hub_id=values[3] or "",
                                 config=values[4] or "", split=values[5] or "")  # fmt: skip
            guess = guess_roles(origin)
            heads, cells = preview(origin.first)
        except EvidepError as error:
            return {
                message: notice(str(error), kind="error"),
                rows: gr.update(visible=False),
                **{column: gr.update(choices=[], value=[] if column is metadata else None) for column in columns},
            }
        sizes = ", ".join(f"{name or 'rows'}: {len(source):,}" for name, source in origin.splits.items())
        said = " ".join(filter(None, [origin.truth, guess.message, *origin.notes]))
        listed = list(guess.columns)
        return {
            message: notice(f"{origin.name} ({sizes}). {said}"),
            rows: gr.update(value={"headers": heads, "data": cells}, visible=True),
            query: gr.update(choices=listed, value=guess.query),
            evidence: gr.update(choices=listed, value=guess.evidence),
            label: gr.update(choices=listed, value=guess.label),
            metadata: gr.update(choices=listed, value=list(guess.metadata)),
            group: gr.update(choices=[("none", ""), *((name, name) for name in listed)], value=guess.group or ""),
        }

    def execute(request: gr.Request, *values: Any) -> Iterator[dict[Any, Any]]:
        visitor = str(request.session_hash)
        try:
            current = VISITORS.start(visitor)
        except EvidepError as error:
            yield {status: notice(str(error), kind="error")}
            return
        try:
            yield from _execute(current, *values)
        except Stopped:
            yield {status: notice("Stopped. Nothing was kept.")} | idle
        except EvidepError as error:
            yield {status: notice(str(error), kind="error")} | idle
        finally:
            VISITORS.finish(visitor)

    idle = {run: gr.update(interactive=True), cancel: gr.update(interactive=False)}

    def _execute(current: Run[Any], *values: Any) -> Iterator[dict[Any, Any]]:
        chosen = Choices(
            values[6], values[7], values[8], tuple(values[9] or ()), values[10] or None,
            tuple(values[11] or ()), tuple(values[12] or ()), values[13], values[14], _margin(values[15]),
        )  # fmt: skip
        yield {
            status: progress("reading the data", 0, 0, 0.0),
            result: gr.update(visible=False),
            run: gr.update(interactive=False),
            cancel: gr.update(interactive=True),
        }

        def work(step: Any) -> Any:
            step("reading the data", 0, 0)
            origin = open_origin(values[0], file=values[1], world=values[2], hub_id=values[3] or "",
                                 config=values[4] or "", split=values[5] or "")  # fmt: skip
            packet, results = audit_origin(origin, chosen, step, split=values[5] if values[0] == HUB else None)
            step("drawing figures", 1, 1)
            return origin, packet, results, downloads.result_files(packet, folder)

        with tempfile.TemporaryDirectory(prefix="evidep-space-") as folder:
            for stage in current.follow(work):
                yield {status: progress(*stage)}
            origin, packet, results, written = current.result()
            yield {
                status: notice(f"Done in {current.elapsed:.0f} seconds.", kind="done"),
                result: gr.update(visible=True),
                verdict: result_view.verdict(packet),
                figure_map: plots.diagnostic_map(packet),
                figure_arms: plots.arms(packet),
                figure_shuffles: plots.shuffles(packet),
                figure_ladder: plots.ladder(packet),
                numbers: result_view.numbers(packet),
                explanation: result_view.explanation(packet),
                warnings: result_view.warnings(packet, origin.notes),
                items: result_view.example_cards(results, packet),
                files: written,
                share: result_view.share_line(packet),
                card: audit_card(packet),
            } | idle

    def halt(request: gr.Request) -> str:
        found = VISITORS.stop(str(request.session_hash))
        return notice("Stopping after the current step." if found else "There is no audit to stop.")

    private: dict[str, Any] = {"api_visibility": "private"}
    shown = [message, rows, *columns]
    kind.change(boxes, kind, [world_box, file_box, hub_box], show_progress="hidden", **private)
    for event in (show.click, world.change, file.change, kind.change):
        event(look, where, shown, **private)
    hub_id.submit(look, where, shown, **private)
    outputs = [status, result, run, cancel, verdict, figure_map, figure_arms, figure_shuffles, figure_ladder, numbers,
               explanation, warnings, items, files, share, card]  # fmt: skip
    run.click(
        execute, [*where, *columns, shuffles, readers, k, seed, margin], outputs, concurrency_id="audit",
        concurrency_limit=limits.CONCURRENT_RUNS, show_progress="hidden", scroll_to_output=False, **private,
    )  # fmt: skip
    cancel.click(halt, None, status, show_progress="hidden", queue=False, **private)
    return {"kind": kind, "world": world, "look": look, "where": where, "shown": shown, "boxes": boxes,
            "box_outputs": [world_box, file_box, hub_box], "query": query, "k": k, "seed": seed}  # fmt: skip


def _margin(value: float | None) -> float:
    return 0.02 if value is None else float(value)
