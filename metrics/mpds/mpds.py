"""MPDS: how far metadata alone reach the accuracy of the full reader."""

import datasets
import evaluate

from evidep.audit.from_predictions import mpds_from_predictions  # From: evidep[evaluate]
from evidep.metric_input import check_label_pair

_CITATION = """\
@misc{shao2026metadata,
  title  = {Metadata Predictability Is Not Evidence Dependence: An Intervention-Based Audit for Weak-Label Benchmarks},
  author = {Shao},
  year   = {2026},
  note   = {arXiv:2605.23701}
}
"""

_DESCRIPTION = """\
Metadata Prior Dominance Score: the accuracy of a predictor that sees only metadata, divided by the accuracy of the
system that sees query and evidence. Near 1, metadata alone nearly reach the system; above 1, they beat it.
"""

_KWARGS_DESCRIPTION = """
Args:
    predictions (list of int or str): answers of the full system.
    references (list of int or str): gold labels.
    metadata (dict of str to list): one list of n values per metadata column; None is a value of its own.
    train_references (list of int or str, optional): labels that the metadata predictor learns from.
    train_metadata (dict of str to list, optional): metadata of those. Without train data the metadata predictor is
        scored out of fold on the given items.
    groups (list, optional): n group names; items of a group are not independent (one source, one claim).
    alpha (float): the interval has level 1 - alpha. seed (int): seed of the resamples and folds.
Returns:
    mpds, accuracy_metadata, accuracy_full, majority_rate, mpds_chance_corrected, ci ([low, high] of mpds), n_cells,
    reasons (why a value is nan).
Examples:
    >>> import evaluate, evidep
    >>> mpds = evaluate.load(evidep.metric_path("mpds"))
    >>> result = mpds.compute(
    ...     predictions=[0, 0, 1, 1], references=[0, 0, 1, 0], metadata={"source": ["a", "a", "b", "b"]},
    ...     train_references=[0, 0, 1, 1], train_metadata={"source": ["a", "a", "b", "b"]})
    >>> result["accuracy_metadata"], result["accuracy_full"], result["mpds"]
    (0.75, 0.75, 1.0)
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class Mpds(evaluate.Metric):
    """Thin shell around evidep.stats.mpds."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=[
                datasets.Features({"predictions": datasets.Value(kind), "references": datasets.Value(kind)})
                for kind in ("int64", "string")
            ],
            homepage="https://arxiv.org/abs/2605.23701",
        )

    def add_batch(self, *, predictions=None, references=None, **kwargs):
        """Check the labels before they are coerced to a feature."""
        check_label_pair(predictions, references)
        super().add_batch(predictions=predictions, references=references, **kwargs)

    def add(self, *, prediction=None, reference=None, **kwargs):
        """Check the labels before they are coerced to a feature."""
        check_label_pair([prediction], [reference])
        super().add(prediction=prediction, reference=reference, **kwargs)

    def _compute(
        self,
        predictions,
        references,
        metadata=None,
        train_references=None,
        train_metadata=None,
        groups=None,
        alpha=0.05,
        seed=0,
        shuffled_predictions=None,
        donors=None,
        margin=None,
    ):
        """The last three belong to delta_evi: evaluate.combine hands every module the same arguments."""
        result = mpds_from_predictions(
            predictions,
            references,
            metadata,
            train_references=train_references,
            train_metadata=train_metadata,
            groups=groups,
            alpha=alpha,
            seed=seed,
        )
        return {
            "mpds": result.mpds,
            "accuracy_metadata": result.accuracy_metadata,
            "accuracy_full": result.accuracy_full,
            "majority_rate": result.majority_rate,
            "mpds_chance_corrected": result.mpds_chance_corrected,
            "ci": [result.ci.low, result.ci.high],
            "n_cells": result.n_cells,
            "reasons": dict(result.reasons),
        }
