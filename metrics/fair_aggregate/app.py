"""Space of the metric: a table of scores in, the report out.

evaluate's own widget does not run with gradio 6.
"""

import gradio as gr

from evidep.data.scores import read_scores
from evidep.errors import EvidepError
from evidep.report.aggregate_text import markdown
from evidep.stats.aggregate import Settings, analyse


def report(path: str | None, metric: str, missing: str) -> str:
    """The Markdown report of an uploaded table."""
    if path is None:
        raise gr.Error("Upload a csv with the columns system, task, score and, if there are any, seed or item")
    try:
        table = read_scores(path, tasks={"*": metric.strip()}, missing=missing)
        return markdown(analyse(table, Settings(n_draws=2000)))
    except EvidepError as error:
        raise gr.Error(str(error)) from error


demo = gr.Interface(
    report,
    [
        gr.File(label="Scores (csv, json, parquet)", file_types=[".csv", ".tsv", ".json", ".jsonl", ".parquet"]),
        gr.Textbox("accuracy", label="Metric of all tasks (accuracy, accuracy% for per cent, matthews, rmse, ...)"),
        gr.Radio(["refuse", "drop-systems", "drop-tasks", "rank"], value="refuse", label="Missing cells"),
    ],
    gr.Markdown(label="Report"),
    title="Fair aggregate",
    description="Scores of several systems on several tasks, aggregated in every way, with intervals and tests. One "
    "row per score: system, task, score, and optionally seed, item, metric; or a row per system, a column per task.",
)

if __name__ == "__main__":
    demo.launch()
