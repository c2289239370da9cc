"""The Space for programs: typed endpoints, which are also the tools of the MCP server.

Docstrings are read by programs and language models; every argument is described there.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar

import gradio as gr

from evidence_space import leaderboard, limits, packets, predictions, result_view
from evidence_space.auditing import Choices, audit_origin
from evidence_space.origins import Origin, hub_origin, world_origin
from evidence_space.runs import Run
from evidence_space.uploads import check_cells
from evidep.data.loading import open_splits
from evidep.data.sources import as_source
from evidep.errors import DataError, EvidepError

P = ParamSpec("P")
R = TypeVar("R")
World = Literal[
    "triviaqa", "nq", "hotpotqa", "question_dominant_skewed", "matching", "evidence_only_shortcut", "question_dominant",
    "mismatch_detector", "reader_limited", "base_rate_collapse",
]  # fmt: skip


def told(function: Callable[P, R]) -> Callable[P, R]:
    """Turn errors that the caller can mend into gradio's, whose message reaches the client."""

    @wraps(function)
    def inside(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except EvidepError as error:
            raise gr.Error(str(error), print_exception=False) from error

    return inside


def _audited(origin: Origin, choices: Choices, split: str | None = None) -> dict[str, Any]:
    run: Run[Any] = Run()
    packet, _ = audit_origin(origin, choices, run.progress, split=split)
    return result_view.plain_summary(packet) | {"packet": packet.to_dict()}


@told
def audit_rows(
    rows: list[dict[str, Any]],
    query: str,
    evidence: str,
    label: str,
    metadata: list[str] | None = None,
    readers: list[str] | None = None,
    k: int = 20,
    seed: int = 0,
) -> dict[str, Any]:
    """Audit whether the labels of a dataset depend on its evidence: swap evidence between items, see if accuracy falls.

    Args:
        rows: One object per item, all with the same columns. A column "split" with train and test is respected.
        query: Name of the column with the question, claim or hypothesis.
        evidence: Name of the column with the passage or premise.
        label: Name of the column with the gold label.
        metadata: Names of columns that might give the label away without the texts.
        readers: Readers to fit, among majority, tfidf_lr and tfidf_lr_overlap. Default: tfidf_lr.
        k: Number of shuffles of each kind, from 19 to 200.
        seed: Seed of shuffles and fits.

    Returns:
        region, verdict in words, reasons, signature, and the whole audit packet.
    """
    if not isinstance(rows, list) or not rows:
        raise DataError("rows: expected a list of objects, one per item")
    limits.check_shape(len(rows), [], "rows")
    source = as_source(rows)
    limits.check_shape(source.n_rows, source.columns, "rows")
    check_cells(source, "rows")
    choices = Choices(
        query, evidence, label, tuple(metadata or ()), None, (), tuple(readers or ("tfidf_lr",)), k, seed
    )  # fmt: skip
    return _audited(Origin("rows", open_splits(source)), choices)


@told
def audit_planted_world(world: World = "triviaqa", items: int = 200, k: int = 20, seed: int = 0) -> dict[str, Any]:
    """Audit a planted example whose true answer is known, to see what each kind of result looks like.

    Args:
        world: Name of the example.
        items: Number of training and of evaluation items, from 50 to 2000.
        k: Number of shuffles of each kind, from 19 to 200.
        seed: Seed of the example, shuffles and fits.

    Returns:
        region, verdict in words, reasons, signature, the whole audit packet, and what was planted.
    """
    if not 50 <= items <= 2000:
        raise DataError(f"items: expected 50 to 2000, got {items}")
    origin = world_origin(world, items, limits.check_seed(seed))
    roles = origin.roles
    assert roles is not None
    choices = Choices(roles.query, roles.evidence, roles.label, roles.metadata, k=k, seed=seed)
    return _audited(origin, choices) | {"planted": origin.truth}


@told
def audit_hub_dataset(
    dataset_id: str,
    query: str,
    evidence: str,
    label: str,
    config: str = "",
    split: str = "",
    metadata: list[str] | None = None,
    k: int = 20,
    seed: int = 0,
) -> dict[str, Any]:
    """Audit a public dataset of the Hugging Face Hub (its first rows, see the limits on the page).

    Args:
        dataset_id: Id of the dataset, such as stanfordnlp/snli.
        query: Name of the column with the question, claim or hypothesis.
        evidence: Name of the column with the passage or premise.
        label: Name of the column with the gold label.
        config: Name of the configuration, or empty.
        split: Split to audit, or empty for test, else validation.
        metadata: Names of columns that might give the label away without the texts.
        k: Number of shuffles of each kind, from 19 to 200.
        seed: Seed of shuffles and fits.

    Returns:
        region, verdict in words, reasons, signature, and the whole audit packet.
    """
    origin = hub_origin(dataset_id, config, split)
    return _audited(origin, Choices(query, evidence, label, tuple(metadata or ()), k=k, seed=seed), split or None)


@told
def score_predictions(
    predictions_full: list[str],
    references: list[str],
    shuffled_predictions: list[list[str]],
    metadata: dict[str, list[str]] | None = None,
    donors: list[list[int]] | None = None,
    groups: list[str] | None = None,
    margin: float = 0.02,
) -> dict[str, Any]:
    """ΔEvi, and MPDS where metadata are given, of a system's predictions with true and with swapped evidence.

    Args:
        predictions_full: One answer per item, with the item's own evidence.
        references: One gold label per item.
        shuffled_predictions: K lists (19 to 200) of one answer per item, each with another shuffle of the evidence.
        metadata: Column name to one value per item.
        donors: K lists of item numbers from 0: whose evidence each item was shown.
        groups: One name per item; items with one name are not independent.
        margin: Largest ΔEvi that counts as none.

    Returns:
        delta_evi and mpds with intervals, p-value, verdict and reasons.
    """
    predictions.check_rows({"predictions_full": predictions_full, "references": references})
    limits.check_k(len(shuffled_predictions) if isinstance(shuffled_predictions, list) else None)
    filled = predictions.Filled(
        "predictions", references, predictions_full, shuffled_predictions, donors, groups, metadata or {}
    )
    return predictions.as_dict(predictions.score(filled, margin=margin))


@told
def read_packet(packet: dict[str, Any]) -> dict[str, Any]:
    """Read an audit packet: its verdict in words, its card in Markdown, one sentence to share.

    Args:
        packet: The JSON document that an audit wrote as packet.json.

    Returns:
        region, verdict in words, reasons, signature, card and sentence.
    """
    from evidep.report.card import audit_card

    found = packets.packet_of(packet)
    return result_view.plain_summary(found) | {"card": audit_card(found), "sentence": result_view.share_line(found)}


@told
def compare_packets(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Compare two audit packets: which values differ by more than noise.

    Args:
        old: The earlier packet.
        new: The later packet.

    Returns:
        The comparison in Markdown and as values.
    """
    from evidep.audit.compare import compare

    first, second = packets.packet_of(old, "old"), packets.packet_of(new, "new")
    return {"markdown": packets.comparison(first, second), "comparison": compare(first, second).to_dict()}


@told
def aggregate_scores(
    rows: list[dict[str, Any]],
    direction: Literal["higher is better", "lower is better", "as the file's metric says"] = "higher is better",
    metric: str = "",
) -> dict[str, Any]:
    """Aggregate scores of systems over tasks in every way, with intervals, tests and conflicts between tasks.

    Args:
        rows: One object per score with system, task, score and, where there are several, seed or item.
        direction: Whether higher or lower scores are better.
        metric: Name of the metric, which gives scores a range; or empty.

    Returns:
        The report in Markdown and all values.
    """
    if not isinstance(rows, list):
        raise DataError("rows: expected a list of objects with system, task, score")
    board = leaderboard.from_rows(rows, direction, metric)
    return {"markdown": board.markdown, "result": board.document}


ENDPOINTS: tuple[Callable[..., Any], ...] = (
    audit_rows, audit_planted_world, audit_hub_dataset, score_predictions, read_packet, compare_packets,
    aggregate_scores,
)  # fmt: skip


def build() -> None:
    """Add the endpoints to the open page."""
    for function in ENDPOINTS:
        gr.api(
            function, api_name=function.__name__, concurrency_id="audit", concurrency_limit=limits.CONCURRENT_RUNS
        )  # fmt: skip
