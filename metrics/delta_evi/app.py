"""Space of the metric: a csv of answers in, ΔEvi out.

evaluate's own widget does not run with gradio 6.
"""

import csv

import gradio as gr

from evidep.audit.from_predictions import delta_evi_from_predictions, delta_evi_values
from evidep.errors import EvidepError


def measure(path: str | None) -> list[list[str]]:
    """Columns prediction, reference, shuffled_0 ... shuffled_(K-1) and, if wanted, group."""
    if path is None:
        raise gr.Error("Upload a csv with the columns prediction, reference, shuffled_0, shuffled_1, ...")
    with open(path, newline="", encoding="utf-8-sig") as file:  # noqa: PTH123
        rows = list(csv.DictReader(file))
    columns = list(rows[0]) if rows else []
    shuffled = [name for name in columns if name.startswith("shuffled")]
    missing = [name for name in ("prediction", "reference") if name not in columns]
    if missing or not shuffled:
        raise gr.Error(
            f"Missing column: {', '.join(missing) or 'shuffled_0, ...'}; found {', '.join(columns) or 'none'}"
        )
    try:
        result = delta_evi_from_predictions(
            [row["prediction"] for row in rows],
            [row["reference"] for row in rows],
            [[row[name] for row in rows] for name in shuffled],
            groups=[row["group"] for row in rows] if "group" in columns else None,
        )
    except EvidepError as error:
        raise gr.Error(str(error)) from error
    values = delta_evi_values(result)
    values.pop("accuracy_shuffled")
    return [[name, str(value)] for name, value in values.items()]


demo = gr.Interface(
    measure,
    gr.File(label="Answers (csv)", file_types=[".csv"]),
    gr.Dataframe(headers=["value", "result"], label="ΔEvi"),
    title="ΔEvi",
    description="How far accuracy falls when the evidence is swapped between items. One row per item; columns "
    "prediction (with the true evidence), reference, shuffled_0 ... (one per evidence shuffle, at least 19), group.",
)

if __name__ == "__main__":
    demo.launch()
