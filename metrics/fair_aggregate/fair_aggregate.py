"""Fair aggregate: scores of several systems on several tasks, aggregated in every way, with what each way hides."""

import datasets
import evaluate

from evidep.data.score_columns import check_score_columns, scores_from_columns  # From: evidep[evaluate]
from evidep.stats.aggregate import Settings, analyse, summary, to_dict

_CITATION = """\
@misc{shao2026metadata,
  title  = {Metadata Predictability Is Not Evidence Dependence: An Intervention-Based Audit for Weak-Label Benchmarks},
  author = {Shao},
  year   = {2026},
  note   = {arXiv:2605.23701}
}
@inproceedings{agarwal2021deep,
  title     = {Deep Reinforcement Learning at the Edge of the Statistical Precipice},
  author    = {Agarwal, Rishabh and Schwarzer, Max and Castro, Pablo Samuel and Courville, Aaron and
               Bellemare, Marc G.},
  booktitle = {NeurIPS},
  year      = {2021}
}
"""

_DESCRIPTION = """\
Averages over tasks mislead. This module puts many aggregates side by side (macro, micro, z-score, chance-normalised,
mean rank, Borda, Kemeny, interquartile mean, optimality gap, weighted means), each with an interval and the chance of
being first, tests whether systems differ, and says when tasks conflict so that no single order is true.
"""

_KWARGS_DESCRIPTION = """
Args (one entry per score):
    systems (list of str): whose score it is.
    tasks (list of str): on which task.
    scores (list of float): the score; nan is a gap.
    declared (dict, optional): task name, or "*" for all, to its metric's name ("accuracy", "accuracy%", "rmse", ...) or
        to a dict with metric, direction ("higher" or "lower"), low, high, chance, n_items. A direction must be known.
    seeds, items (lists, optional): which run, which evaluation item; items are the same for all systems.
    stderr (list of float, optional): standard error of each score.
    missing (str): what to do with gaps: "refuse" (default), "drop-systems", "drop-tasks", "rank".
    baseline (list of str), weights (dict), compare (two names), resample, seed_design, n_draws, seed, alpha: see
        evidep.stats.aggregate.Settings (seed_design is its `seeds`).
    full (bool): also return the whole result under "result".
Returns:
    verdict (sentences), single_order (False where tasks conflict), covers (what the intervals cover), aggregates (name
    to system to value, ci, rank, rank_ci, p_first), winners, undefined (name to reason), pareto, friedman_p,
    critical_difference, opposed_tasks, redundant_tasks, notes, signature. Undefined numbers are nan.
Examples:
    >>> import evaluate, evidep
    >>> fair = evaluate.load(evidep.metric_path("fair_aggregate"))
    >>> result = fair.compute(
    ...     systems=["A", "A", "A", "B", "B", "B"], tasks=["x", "y", "z"] * 2,
    ...     scores=[0.9, 0.5, 0.5, 0.6, 0.6, 0.6], declared={"*": "accuracy"}, n_draws=200)
    >>> result["winners"]["macro"], result["winners"]["mean_rank"]
    (['A'], ['B'])
"""


@evaluate.utils.file_utils.add_start_docstrings(_DESCRIPTION, _KWARGS_DESCRIPTION)
class FairAggregate(evaluate.Metric):
    """Thin shell around evidep.stats.aggregate."""

    def _info(self):
        return evaluate.MetricInfo(
            description=_DESCRIPTION,
            citation=_CITATION,
            inputs_description=_KWARGS_DESCRIPTION,
            features=datasets.Features(
                {
                    "systems": datasets.Value("string"),
                    "tasks": datasets.Value("string"),
                    "scores": datasets.Value("float64"),
                }
            ),
            homepage="https://arxiv.org/abs/2605.23701",
        )

    def add_batch(self, *, systems=None, tasks=None, scores=None):
        """Check names and numbers before they are coerced to a feature."""
        check_score_columns(systems, tasks, scores)
        super().add_batch(systems=systems, tasks=tasks, scores=scores)

    def add(self, *, systems=None, tasks=None, scores=None):
        """Check one score before it is coerced to a feature."""
        self.add_batch(systems=[systems], tasks=[tasks], scores=[scores])

    def _compute(
        self, systems, tasks, scores, declared=None, seeds=None, items=None, stderr=None, missing="refuse", merge=None,
        baseline=(), weights=None, compare=None, resample="auto", seed_design="per-cell", n_draws=10_000, seed=0,
        alpha=0.05, full=False,
    ):  # fmt: skip
        table = scores_from_columns(
            systems,
            tasks,
            scores,
            seeds=seeds,
            items=items,
            stderr=stderr,
            declared=declared,
            missing=missing,
            merge=merge,
        )
        settings = Settings(
            n_draws=n_draws, seed=seed, alpha=alpha, baseline=tuple(baseline), weights=weights, resample=resample,
            seeds=seed_design, compare=None if compare is None else tuple(compare),
        )  # fmt: skip
        result = analyse(table, settings)
        return summary(result) | ({"result": to_dict(result)} if full else {})
