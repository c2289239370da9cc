"""Words of the page of the validity study."""
# ruff: noqa: E501 (rows of a Markdown table)

from __future__ import annotations

from validity_checks import ALPHA, MARGIN
from validity_rare import RARE

SHORT = {
    "direct_coupling": "direct", "latent_coupling": "latent", "question_dominant": "question", "reader_limited":
    "reader-limited", "evidence_sensitive": "sensitive", "inconclusive": "inconclusive", "not_applicable": "n/a",
}  # fmt: skip
INTERVALS = {
    "accuracy": ("accuracy", "accuracy"),
    "mpds": ("MPDS", "MPDS"),
    "contrast": ("two readers", "difference of two readers' ΔEvi"),
    "information": ("V-information", "V-information"),
    "query_gap": ("query-only, rare", RARE["query_gap"]),
    "gap": ("gap, small side", RARE["gap"]),
    "loss": ("loss, small side", RARE["loss"]),
    "rare_mpds": ("MPDS, rare", RARE["rare_mpds"]),
    "flips": ("flips, rare", RARE["flips"]),
}
"""Count name to (words in the figure, words in the table)."""

HEAD = f"""
# Validity: the audit audited

Samples are drawn from the tables of the planted worlds (`evidep.data.synthetic`), where the true ΔEvi, MPDS and region
are known, and given to the package's own statistics. No reader is fitted, except in the last table. alpha is {ALPHA},
the margin {MARGIN}, K = 20 shuffles. **!** marks a rate that is worse than nominal by more than chance (exact binomial
bound, 99.9 %, one-sided; among several hundred cells one may be marked by chance, so the worst are drawn again).

Reproduce: `python scripts/validate.py PART --out study.json` with PART measure, again, audits and report (half an hour on
one core; here `measure --scale SCALE --seed SEED`). `report` ends with exit code 1 where a rate is worse than nominal. A
short version runs in the tests, which also break each repair and see the study fail. Samples for each cell of the first
tables: SAMPLES; so few of 10,000 items show only faults that are large.

![Errors, coverage, power and regions](figures/validity.png)

Three ways of grouping: each item has its own evidence text; four items share a text, a query state and a label; one
text and label in a fifth of all items.
"""
NULL_TEXT = """
The reader follows the evidence, but the evidence was dealt out at random, so ΔEvi is 0. "p" is the printed p-value,
"not zero" any claim that it is not: the verdict "sensitive", which also asks for an interval above 0, or "detectable but
negligible" (equivalent, and yet the interval excludes 0). Both must stay at or below 0.05.
"""
MARGIN_TEXT = """
ΔEvi is exactly 0.02, so "equivalent to zero" is an error. "spread": the evidence of all but about 4 % of the items was
dealt out at random. "few items": about 4 % of the items need the evidence, the others never change, which is the
hardest case for a standard error.
"""
COVERAGE_TEXT = """
Share of the printed intervals that hold the true ΔEvi; at least 0.95 is promised. "marked": samples without any
variance, whose interval [x, x] is printed with the word "degenerate" and counted apart.
"""
SHUFFLE_TEXT = """
Evidence is exchanged among items of one label (within-label), of one value of a metadata column that names the label in
half of the items (within-metadata), inside one of five folds (out of fold), or with one of the five nearest texts
(near-miss: no permutation, so p is that of the sign-flip test). ΔEvi is again 0, the margin in few items, or as planted.
"""
AGAIN_TEXT = """
Among so many cells some look bad by chance. Those whose coverage and whose errors are least likely at their nominal value
once more, with fresh samples.
"""
OTHER_TEXT = """
The first four: world mismatch_detector with 20 % of the labels replaced. The others: few items differ, all in one
direction, and the items of a group together; that is where a small sample misses them. "marked": no variance, an interval
[x, x] that is printed with the word "degenerate". "withheld": no interval is given, with the reason (fewer than ten
groups, on either side of a gap; in bits fewer than 50). Query-only comes within the margin where the interval of accuracy
minus query-only lies below it.
"""
FEW_TEXT = """
Groups of four items with one text, query state and label. Below ten groups no interval is given.
"""
SEED_TEXT = """
The SD over training seeds, its chi-square interval, and whether a warning stands beside it (below five seeds). The
interval is for normal values: where one fit in five fails, it is too short, and the SD of few seeds may be anything.
"""
POWER_TEXT = """
"matching", with the evidence dealt out in all but a share of the items, so that ΔEvi is a multiple of the predicted
minimum detectable effect (MDE, 80 % power). Found: the interval lies above 0 and p <= 0.05. The MDE is that of the
interval; the permutation p-value of few shuffles costs power on top.
"""
REGION_TEXT = """
Readers know the train split's distribution exactly: the additive one alone, or the ideal one beside it. Rows: the
region that is true; cells: the regions found.
"""
AUDIT_TEXT = """
`evidep.audit` on generated texts, 1,000 train and 600 evaluation items, reader tfidf_lr; the truth is that of an
additive reader that has learnt all it can. Where tfidf_lr has not (latent_coupling: its accuracy falls short of 1, so
MPDS = 0.7 / accuracy may pass 0.9), the region is that of a weaker reader.
"""
NO_VIOLATION = """
No rate below is worse than nominal by more than chance.
"""
CHANGES = """
The first runs of this study found these faults, which were then repaired; the tables show the repaired package.

| fault | measured | repair |
|---|---|---|
| the permutation p-value takes items as exchangeable one by one, also where they share text and label | p <= 0.05 in 18 % of null samples with groups of four, in 40 to 50 % with one text in a third of the items | where groups hold several items, p is not below the one-sided cluster p-value |
| few items carry the effect: a small sample misses them, and its standard error with them | 50 items: interval covers in 82 %, equivalence at the margin claimed in 23 % | no interval is narrower than what a sample of that many groups may have missed (3.6 / G); room for skewness (Johnson 1978) |
| one large group either shows a rare effect or not | a fifth of the items with one text, 500 items: coverage 88 to 92 %, equivalence claimed in 14 to 19 % | the interval also holds that of the items outside the largest group; above a quarter of the items no interval is given |
| where evidence alone decides and labels are balanced, the first-order variance of ΔEvi vanishes | 25 groups of four: coverage 62 % | the second-order part of the variance is added |
| V-information: log-losses are skewed | 20 groups: coverage 87 % | degrees of freedom from the groups that carry the variance; below 50 groups no interval |
| accuracy minus query-only, differences of two readers: intervals without room for rare differences in one direction | 1 to 3 % of 100 to 300 items differ: covers in 79 to 81 %, "below the margin" claimed in up to 19 % | the same room as that of ΔEvi |
| gaps between two sets of items: a small side without errors has no variance | 3 to 50 items on the side: covers in 63 to 78 % | ten groups on each side at least; the interval also holds that of the two sides' own intervals |
| MPDS, accuracy and losses had intervals from any number of groups | 4 groups: MPDS covers in 69 to 81 %, 6 groups 85 % | below ten groups none |
| MPDS: percentiles of a few rare failures are too narrow | 250 groups of four with 3 % failures: covers in 86 % | the interval also holds the cluster t interval with room for skewness |

What stays weak:

- The minimum detectable effect is that of the interval. With K = 20 the permutation test needs all 20 shuffles below the
  full accuracy, which costs power: see the rows of K = 20 and 99. Raise `--k` where a verdict is open.
- Regions of few items: with a strong reader and 200 items the truth question_dominant is found as reader-limited in about
  half of the samples, nearly all of them of the world with skewed labels, where no reader is yet shown to beat the
  constant answer. With 50 items audits mostly end inconclusive.
- Whole audits with a light reader may call a latent coupling a direct one (see the rows of latent_coupling): MPDS divides
  by that reader's accuracy, and a reader that has not learnt the task makes metadata look as if they gave the labels
  away. A stronger reader lowers MPDS. "The labels leak" is then false; the reasons of the region name the missing reader.
- Few training seeds: see above. A failing fit in five is missed by three seeds in every second sample.
- Intervals where one text fills many items, and those of very small samples, are wider than they would have to be.
- An interval [x, x] marked "degenerate" is no interval: it says that no group differed. Equivalence is then decided by
  the zero-event bound. With few groups that all agree this is common: see "marked".
- Samples come from the planted worlds. Other shapes of data can break what holds here.
"""
