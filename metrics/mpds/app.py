"""Space of the metric: a csv of answers and metadata in, MPDS out.

evaluate's own widget does not run with gradio 6.
"""

import csv

import gradio as gr

from evidep.audit.from_predictions import mpds_from_predictions
from evidep.errors import EvidepError


def measure(path: str | None) -> list[list[str]]:
    """Columns prediction, reference, if wanted group; every other column is metadata."""
    if path is None:
        raise gr.Error("Upload a csv with the columns prediction, reference and one or more metadata columns")
    with open(path, newline="", encoding="utf-8-sig") as file:  # noqa: PTH123
        rows = list(csv.DictReader(file))
    columns = list(rows[0]) if rows else []
    metadata = [name for name in columns if name not in ("prediction", "reference", "group")]
    missing = [name for name in ("prediction", "reference") if name not in columns]
    if missing or not metadata:
        raise gr.Error(
            f"Missing column: {', '.join(missing) or 'a metadata column'}; found {', '.join(columns) or 'none'}"
        )
    try:
        result = mpds_from_predictions(
            [row["prediction"] for row in rows],
            [row["reference"] for row in rows],
            {name: [row[name] for row in rows] for name in metadata},
            groups=[row["group"] for row in rows] if "group" in columns else None,
        )
    except EvidepError as error:
        raise gr.Error(str(error)) from error
    return [
        ["mpds", f"{result.mpds}"],
        ["interval", f"{result.ci.low} to {result.ci.high}"],
        ["accuracy_metadata", f"{result.accuracy_metadata}"],
        ["accuracy_full", f"{result.accuracy_full}"],
        ["majority_rate", f"{result.majority_rate}"],
        ["mpds_chance_corrected", f"{result.mpds_chance_corrected}"],
        *([f"note on {name}", reason] for name, reason in result.reasons.items()),
    ]


demo = gr.Interface(
    measure,
    gr.File(label="Answers and metadata (csv)", file_types=[".csv"]),
    gr.Dataframe(headers=["value", "result"], label="MPDS"),
    title="MPDS",
    description="How far metadata alone reach the accuracy of the full system. One row per item; columns prediction, "
    "reference, group (optional); every other column is metadata. Scored out of fold.",
)

if __name__ == "__main__":
    demo.launch()
