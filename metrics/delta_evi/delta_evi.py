"""ΔEvi: how far accuracy falls when the evidence is swapped between items."""

import datasets
import evaluate

from evidep.audit.from_predictions import delta_evi_from_predictions, delta_evi_values  # From: evidep[evaluate]
from evidep.audit.from_texts import delta_evi_from_texts
from evidep.metric_input import check_label_pair, check_labels, check_texts, text_lists

_CITATION = """\
@misc{shao2026metadata,
  title  = {Metadata Predictability Is Not Evidence Dependence: An Intervention-Based Audit for Weak-Label Benchmarks},
  author = {Shao},
  year   = {2026},
  note   = {arXiv:2605.23701}
}
"""

_DESCRIPTION = """\
ΔEvi: accuracy with the true evidence minus mean accuracy over K shuffles in which every item keeps its query and label
and gets another item's evidence. Near 0: this system's answers do not depend on the evidence. A weak system's near-zero
says nothing about the benchmark.
"""

_KWARGS_DESCRIPTION = """
Args (default configuration: answers that you already have):
    predictions (list of int or str): answers with the true evidence.
    references (list of int or str): gold labels.
    shuffled_predictions (K lists of n): answers to the same items, in the same order, under K evidence shuffles.
    donors (K lists of n int, optional): whose evidence was shown; the interval then covers the evidence pool too.
    groups (list, optional): n group names; items of a group are not independent.
    alpha (float), margin (float): level of the test; largest ΔEvi that counts as none.
Args (configuration "reader": the whole job from texts):
    queries, evidence, references (lists): the items.
    reader (str): registry name, default "tfidf_lr".
    train (dict of lists, optional): queries, evidence, references to fit on; without it the fit is out of fold.
    k, seed, shuffle, groups, alpha, margin: as in `evidep audit`.
Returns:
    delta_evi, accuracy_full, accuracy_shuffled (K values), sd_population, p_value, ci ([low, high]), verdict
    (sensitive, equivalent, inconclusive, not_applicable), standard_error, minimum_detectable_effect, reason.
    "reader" adds exact, region, reasons and packet.
    Any keyword argument of the mpds module is accepted and ignored, so that evaluate.combine can serve both.
Examples:
    >>> import evaluate, evidep
    >>> delta_evi = evaluate.load(evidep.metric_path("delta_evi"))
    >>> references = [0, 1] * 20
    >>> result = delta_evi.compute(
    ...     predictions=references, references=references, shuffled_predictions=[[1, 0] * 20, [0, 1] * 20] * 10)
    >>> result["accuracy_full"], result["delta_evi"], result["sd_population"]
    (1.0, 0.5, 0.5)
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class DeltaEvi(evaluate.Metric):
    """Thin shell around evidep.stats.delta_evi and evidep.audit."""

    def _info(self):
        texts = {"queries": datasets.Value("string"), "evidence": datasets.List(datasets.Value("string"))}
        features = []
        for kind in ("int64", "string"):
            label = datasets.Value(kind)
            first = texts if self.config_name == "reader" else {"predictions": label}
            features.append(datasets.Features({**first, "references": label}))
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=features,
            homepage="https://arxiv.org/abs/2605.23701",
        )

    def add_batch(self, *, predictions=None, references=None, queries=None, evidence=None):
        """Check labels and texts before they are coerced to a feature."""
        if self.config_name == "reader":
            check_labels(references, "references")
            evidence = text_lists(evidence, "evidence")
            super().add_batch(queries=check_texts(queries, "queries"), evidence=evidence, references=references)
        else:
            check_label_pair(predictions, references)
            super().add_batch(predictions=predictions, references=references)

    def add(self, **example):
        """Check one example before it is coerced to a feature."""
        names = {"prediction": "predictions", "reference": "references", "query": "queries"}
        self.add_batch(**{names.get(name, name): [value] for name, value in example.items()})

    def _compute(
        self, references, predictions=None, queries=None, evidence=None, shuffled_predictions=None, donors=None,
        reader="tfidf_lr", train=None, k=20, seed=0, shuffle="global", groups=None, alpha=0.05, margin=0.02,
        metadata=None, train_references=None, train_metadata=None,
    ):  # fmt: skip
        """The last three belong to mpds: evaluate.combine hands every module the same arguments."""
        if self.config_name == "reader":
            return delta_evi_from_texts(
                queries, evidence, references, reader=reader, train=train, k=k, seed=seed, shuffle=shuffle,
                groups=groups, alpha=alpha, margin=margin,
            )  # fmt: skip
        result = delta_evi_from_predictions(
            predictions, references, shuffled_predictions, donors=donors, groups=groups, alpha=alpha, margin=margin
        )
        return delta_evi_values(result)
