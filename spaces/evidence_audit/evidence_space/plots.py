"""Interactive figures of a packet, from the same numbers as the package's own figures (report/facts.py).

Backgrounds are transparent and colours readable on light and dark pages; the page's style sheet sets the colour of the
letters. Names in a figure go through `markup.text`, because plotly reads tags in its labels.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evidence_space.markup import text
from evidep.audit.packet import AuditPacket
from evidep.report import facts, words
from evidep.report.figures_arms import arm_bars
from evidep.report.figures_shuffles import stacked
from evidep.report.landmarks import LANDMARKS
from evidep.report.numerals import confidence, interval, number
from evidep.types import FloatArray

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

GREY: Final = "#8a8a8a"
_ON_BOTH: Final = {"#12305e": "#3a78c2"}
"""The package's darkest blue cannot be seen on a dark page."""
RUNGS: Final = {
    "baseline": ("#8a8a8a", "cross"),
    "light": ("#56B4E9", "circle"),
    "middle": ("#2f8fd0", "square"),
    "strong": ("#7a8ff0", "diamond"),
}
FAMILIES: Final = {
    "global": ("#2f8fd0", "circle"),
    "within-label": ("#E0702A", "square"),
    "within-metadata": ("#1aa67f", "triangle-up"),
    "near-miss": ("#c267b0", "diamond"),
}
"""Colour and marker; both tell them apart."""


def base_figure(height: int, **layout: Any) -> Figure:
    """An empty figure in the look of the page."""
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.update_layout(
        template="none",
        autosize=True,
        height=height,
        margin={"l": 56, "r": 12, "t": 44, "b": 56},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"size": 12},
        legend={"orientation": "h", "yref": "container", "yanchor": "bottom", "y": 0, "x": 0},
        hoverlabel={"align": "left"},
        dragmode=False,
        **layout,
    )
    return figure


def axis(title: str, **more: Any) -> dict[str, Any]:
    """The settings of an axis."""
    return {
        "title": {"text": title},
        "gridcolor": "rgba(128,128,128,0.25)",
        "zeroline": False,
        "automargin": True,
        **more,
    }


def diagnostic_map(packet: AuditPacket) -> Figure:
    """Every reader as MPDS against ΔEvi with intervals, on shaded regions; published results as numbered diamonds."""
    settings = packet["settings"]
    points = [point for point in facts.points(packet) if point.effect is not None]
    margin, high = settings["margin"], settings["mpds_high"]
    right = max([1.2, high + 0.2, *((point.mpds_ci or (0, 0))[1] + 0.1 for point in points)])
    ends = [end for point in points for end in (*(point.effect_ci or ()), point.effect or 0.0)]
    top = max([*ends, *(mark.delta_evi for mark in LANDMARKS)]) * 1.12
    bottom = min([-0.17 * top, *(end - 0.05 for end in ends)])
    figure = base_figure(
        430,
        showlegend=False,
        xaxis=axis("MPDS", domain=[0, 0.78], range=[0, right]),
        xaxis2=axis(
            "no MPDS", domain=[0.81, 1], range=[-0.6, 1.6], tickvals=[0, 1], ticktext=["paper", "here"]
        ),
        yaxis=axis("ΔEvi", range=[bottom, top]),
        shapes=_regions(margin, high, right, top),
        annotations=[
            _note("evidence-sensitive", 0.01, 0.99, "left", "top"),
            _note("latent coupling or<br>question-dominant", 0.01, 0.0, "left", "bottom"),
            _note("direct<br>coupling", 0.775, 0.0, "right", "bottom"),
        ],
    )  # fmt: skip
    _add_landmarks(figure)
    for point in points:
        _add_point(figure, point, confidence(settings["alpha"]))
    return figure


def _regions(margin: float, high: float, right: float, top: float) -> list[dict[str, Any]]:
    def band(axis: str, x0: float, x1: float, y0: float, y1: float, colour: str) -> dict[str, Any]:
        return {
            "type": "rect", "xref": axis, "yref": "y", "x0": x0, "x1": x1, "y0": y0, "y1": y1, "fillcolor": colour,
            "line": {"width": 0}, "layer": "below",
        }  # fmt: skip

    sensitive, latent, direct, none = (
        "rgba(47,143,208,0.10)", "rgba(214,186,40,0.45)", "rgba(224,112,42,0.5)", "rgba(138,138,138,0.4)",
    )  # fmt: skip
    return [
        band("x", 0, right, margin, top, sensitive),
        band("x2", -0.6, 1.6, margin, top, sensitive),
        band("x", 0, high, -margin, margin, latent),
        band("x", high, right, -margin, margin, direct),
        band("x2", -0.6, 1.6, -margin, margin, none),
    ]


def _note(words_: str, x: float, y: float, anchor: str, side: str) -> dict[str, Any]:
    return {
        "text": words_, "xref": "paper", "yref": "paper", "x": x, "y": y, "xanchor": anchor, "yanchor": side,
        "showarrow": False, "font": {"size": 11},
    }  # fmt: skip


def _add_landmarks(figure: Figure) -> None:
    for at, mark in enumerate(LANDMARKS, 1):
        known = mark.mpds is not None
        figure.add_scatter(
            x=[mark.mpds if known else 0],
            y=[mark.delta_evi],
            xaxis="x" if known else "x2",
            mode="markers+text",
            marker={"symbol": "diamond-open", "size": 10, "color": GREY, "line": {"width": 2}},
            text=[str(at)],
            textposition="middle right",
            hovertext=[f"{at}: {mark.name}<br>MPDS {number(mark.mpds)}, ΔEvi {number(mark.delta_evi)}"],
            hoverinfo="text",
            name=mark.name,
        )


def _add_point(figure: Figure, point: facts.Point, level: str) -> None:
    colour, symbol = RUNGS.get(point.strength, RUNGS["light"]) if point.works else (GREY, "x")
    effect, known = float(point.effect or 0.0), point.mpds is not None
    name = text(point.reader, 40)
    says = "" if point.works else "<br>does not beat the majority rate: its ΔEvi says nothing"
    hover = (
        f"<b>{name}</b> ({text(point.strength)})<br>ΔEvi {number(effect)} {interval(point.effect_ci)}<br>"
        f"MPDS {number(point.mpds)} {interval(point.mpds_ci)}<br>{level} intervals{says}"
    )
    figure.add_scatter(
        x=[point.mpds if known else 1],
        y=[effect],
        xaxis="x" if known else "x2",
        mode="markers+text" if point.main else "markers",
        marker={"symbol": symbol, "size": 13 if point.main else 5, "color": colour},
        error_y=_bar(effect, point.effect_ci, colour) if point.main else None,
        error_x=_bar(float(point.mpds or 0.0), point.mpds_ci, colour) if point.main and known else None,
        text=[f"<b>{name}</b>"] if point.main else None,
        textposition="top left" if known and float(point.mpds or 0) > 0.5 else "top center",
        hovertext=[hover],
        hoverinfo="text",
        name=name,
    )


def _bar(value: float, ci: Sequence[float] | None, colour: str) -> dict[str, Any] | None:
    if ci is None:
        return None
    return {
        "type": "data", "symmetric": False, "array": [ci[1] - value], "arrayminus": [value - ci[0]], "color": colour,
        "thickness": 2, "width": 0,
    }  # fmt: skip


def arms(packet: AuditPacket) -> Figure:
    """Accuracy of every arm, readers side by side."""
    readers = facts.readers(packet)
    bars = {reader["reader"]: arm_bars(packet, reader) for reader in readers}
    names = list(dict.fromkeys(bar.name for found in bars.values() for bar in found))
    shown = list(names)
    if len(readers) == 1:
        values = {bar.name: number(bar.value) for bar in bars[readers[0]["reader"]]}
        shown = [f"{name}  <b>{values[name]}</b>" for name in names]
    figure = base_figure(
        90 + 26 * len(names) * max(1, len(readers)),
        barmode="group",
        showlegend=len(readers) > 1,
        xaxis=axis("accuracy", range=[0, 1.08], fixedrange=True),
        yaxis=axis(
            "", autorange="reversed", categoryorder="array", categoryarray=names, tickvals=names, ticktext=shown
        ),
        shapes=[vertical_line(packet["majority_rate"])],
    )
    for reader in readers:
        found = [bar for bar in bars[reader["reader"]] if bar.value is not None]
        colour = RUNGS.get(reader.get("strength", "light"), RUNGS["light"])[0]
        figure.add_bar(
            y=[bar.name for bar in found],
            x=[bar.value for bar in found],
            orientation="h",
            name=text(reader["reader"], 40),
            marker={"color": colour if len(readers) > 1 else [_ON_BOTH.get(bar.colour, bar.colour) for bar in found]},
            error_x={
                "type": "data", "symmetric": False, "color": GREY, "thickness": 1.5, "width": 3,
                "array": [0 if bar.ci is None else max(0, bar.ci[1] - bar.value) for bar in found],
                "arrayminus": [0 if bar.ci is None else max(0, bar.value - bar.ci[0]) for bar in found],
            },
            hovertext=[f"{bar.name}: {number(bar.value)} {interval(bar.ci)}" for bar in found],
            hoverinfo="text",
        )  # fmt: skip
    return figure


def vertical_line(at: float) -> dict[str, Any]:
    """A dotted line over the whole height."""
    return {
        "type": "line",
        "x0": at,
        "x1": at,
        "yref": "paper",
        "y0": 0,
        "y1": 1,
        "line": {"dash": "dot", "color": GREY},
    }


def shuffles(packet: AuditPacket) -> Figure:
    """One dot per shuffle beside the accuracy with the own evidence."""
    rows = [
        row
        for reader in facts.readers(packet)
        for row in facts.delta_rows(packet, reader=reader["reader"], seed=reader["seed"])
        if facts.accuracy_full(packet, row) is not None and len(_values(row))
    ]
    several = len({row["reader"] for row in rows}) > 1
    names = [f"{text(row['reader'], 24)}<br>{row['shuffle']}" if several else row["shuffle"] for row in rows]
    figure = base_figure(
        110 + 52 * max(1, len(rows)),
        showlegend=False,
        xaxis=axis("accuracy"),
        yaxis=axis("", tickvals=list(range(len(rows))), ticktext=names, range=[len(rows) - 0.4, -0.6]),
        shapes=[vertical_line(packet["majority_rate"])],
    )
    for at, row in enumerate(rows):
        values = _values(row)
        colour, symbol = FAMILIES.get(row["shuffle"], (GREY, "circle"))
        full = facts.accuracy_full(packet, row)
        figure.add_scatter(
            x=values.tolist(),
            y=(at + stacked(values)).tolist(),
            mode="markers",
            marker={"color": colour, "symbol": symbol, "size": 6, "opacity": 0.8},
            hovertext=[f"{row['shuffle']}, shuffle {k}: {number(value)}" for k, value in enumerate(values.tolist())],
            hoverinfo="text",
        )
        figure.add_scatter(
            x=[full],
            y=[at],
            mode="markers",
            marker={"symbol": "line-ns", "size": 26, "line": {"width": 4, "color": "#d62728"}},
            hovertext=[f"own evidence: {number(full)}"],
            hoverinfo="text",
        )
    return figure


def ladder(packet: AuditPacket) -> Figure:
    """ΔEvi of every reader and shuffle family, weakest reader on top."""
    readers, families, margin = facts.readers(packet), facts.shuffles(packet), packet["settings"]["margin"]
    figure = base_figure(
        130 + (26 * max(1, len(families)) + 24) * len(readers),
        xaxis=axis("ΔEvi"),
        yaxis=axis(
            "",
            tickvals=list(range(len(readers))),
            ticktext=[f"{text(row['reader'], 24)}<br>({_state(row)})" for row in readers],
            range=[len(readers) - 0.5, -0.5],
        ),
        shapes=[
            {
                "type": "rect", "x0": -margin, "x1": margin, "yref": "paper", "y0": 0, "y1": 1, "line": {"width": 0},
                "fillcolor": "rgba(138,138,138,0.3)", "layer": "below",
            }
        ],
    )  # fmt: skip
    for number_of, family in enumerate(families):
        colour, symbol = FAMILIES.get(family, (GREY, "circle"))
        offset = (number_of - (len(families) - 1) / 2) * 0.22
        shown = [
            (at + offset, row, facts.effect(row))
            for at, reader in enumerate(readers)
            for row in facts.delta_rows(packet, reader=reader["reader"], seed=reader["seed"], shuffle=family)
            if facts.effect(row) is not None
        ]
        figure.add_scatter(
            x=[value for _, _, value in shown],
            y=[y for y, _, _ in shown],
            mode="markers",
            name=family,
            marker={"color": colour, "symbol": symbol, "size": 11},
            error_x={
                "type": "data", "symmetric": False, "color": colour, "thickness": 2, "width": 0,
                "array": [0 if row["ci"] is None else row["ci"][1] - value for _, row, value in shown],
                "arrayminus": [0 if row["ci"] is None else value - row["ci"][0] for _, row, value in shown],
            },
            hovertext=[
                f"{text(row['reader'], 40)}, {family}: ΔEvi {number(value)} {interval(row['ci'])}, "
                + words.verdict_text(row)
                for _, row, value in shown
            ],
            hoverinfo="text",
        )  # fmt: skip
    return figure


def _state(reader: facts.Row) -> str:
    rung = text(reader.get("strength", ""))
    return rung if reader["works"] else f"{rung}, does not work"


def _values(row: facts.Row) -> FloatArray:
    return np.array([value for value in row.get("accuracy_shuffled") or () if value is not None], dtype=np.float64)
