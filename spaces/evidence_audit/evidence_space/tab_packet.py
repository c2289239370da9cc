"""The tab "Read a packet": one packet shown, or two compared."""

from __future__ import annotations

from typing import Any

import gradio as gr

from evidence_space import packets, plots, result_view
from evidence_space.markup import notice
from evidep.errors import EvidepError
from evidep.report.card import audit_card


def build() -> None:
    """Add the components and events of the tab to the open page."""
    gr.Markdown(
        "Drop the **packet.json** that an audit wrote, here or with `evidep audit`, to see it again. Drop an earlier "
        "one beside it to see what changed by more than noise."
    )
    with gr.Row():
        new = gr.File(label="Packet", height=150, elem_id="packet-new")
        old = gr.File(label="Earlier packet, to compare with (optional)", height=150, elem_id="packet-old")
    status = gr.HTML(notice("No packet yet."), elem_id="packet-status")
    with gr.Column(visible=False, elem_id="packet-result") as result:
        verdict = gr.HTML(elem_id="packet-verdict")
        comparison = gr.Markdown(
            latex_delimiters=[], visible=False, elem_id="packet-comparison", elem_classes="ev-card"
        )
        figure_map = gr.Plot(label="Diagnostic map", elem_id="packet-map")
        gr.HTML(result_view.map_key(), elem_classes="ev-html")
        figure_arms = gr.Plot(label="Accuracy of every arm", elem_id="packet-arms")
        figure_ladder = gr.Plot(label="ΔEvi along the ladder of readers", elem_id="packet-ladder")
        with gr.Accordion("All numbers", open=False):
            numbers = gr.HTML(elem_id="packet-numbers", elem_classes="ev-html")
        explanation = gr.HTML(elem_id="packet-explanation", elem_classes="ev-html")
        warnings = gr.HTML(elem_id="packet-warnings", elem_classes="ev-html")
        with gr.Accordion("Card", open=False):
            card = gr.Markdown(latex_delimiters=[], buttons=["copy"], elem_id="packet-card", elem_classes="ev-card")

    def show(first: str | None, earlier: str | None) -> dict[Any, Any]:
        if not first:
            return {status: notice("No packet yet."), result: gr.update(visible=False)}
        try:
            packet = packets.read_packet(first)
            told = packets.comparison(packets.read_packet(earlier), packet) if earlier else ""
        except EvidepError as error:
            return {status: notice(str(error), kind="error"), result: gr.update(visible=False)}
        return {
            status: notice(packet.signature, kind="done"),
            result: gr.update(visible=True),
            verdict: result_view.verdict(packet),
            comparison: gr.update(value=told, visible=bool(told)),
            figure_map: plots.diagnostic_map(packet),
            figure_arms: plots.arms(packet),
            figure_ladder: plots.ladder(packet),
            numbers: result_view.numbers(packet),
            explanation: result_view.explanation(packet),
            warnings: result_view.warnings(packet),
            card: audit_card(packet),
        }

    outputs = [status, result, verdict, comparison, figure_map, figure_arms, figure_ladder, numbers, explanation,
               warnings, card]  # fmt: skip
    for event in (new.change, old.change):
        event(show, [new, old], outputs, api_visibility="private")
