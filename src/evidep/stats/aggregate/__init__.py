"""Fair aggregation of scores over tasks: many aggregates side by side, each with an interval, and what they hide.

`score_table` validates, `analyse` computes, `to_dict` makes the result plain for JSON.
"""

from evidep.stats.aggregate.analysis import analyse
from evidep.stats.aggregate.compare import partial_conjunction
from evidep.stats.aggregate.evidence import FAILED_REGIONS
from evidep.stats.aggregate.export import summary, to_dict
from evidep.stats.aggregate.gaps import merge_tasks, without_gaps
from evidep.stats.aggregate.kemeny import kemeny
from evidep.stats.aggregate.results import Aggregate, AggregateResult, Settings
from evidep.stats.aggregate.significance import friedman, nemenyi, wilcoxon_pairs
from evidep.stats.aggregate.table import ScoreTable, Task, score_table

__all__ = [
    "FAILED_REGIONS",
    "Aggregate",
    "AggregateResult",
    "ScoreTable",
    "Settings",
    "Task",
    "analyse",
    "friedman",
    "kemeny",
    "merge_tasks",
    "nemenyi",
    "partial_conjunction",
    "score_table",
    "summary",
    "to_dict",
    "wilcoxon_pairs",
    "without_gaps",
]
