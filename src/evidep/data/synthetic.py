"""Planted worlds: benchmarks whose dependence on evidence is known because it was put there.

`planted_world("matching", n_train=1000, n_eval=1000, seed=0)` makes one; `WORLDS` names them all. How each is built,
and why its numbers are what they are, stands in the docstrings of `world_plans` and `world_pairs`. The worlds nq,
hotpotqa and triviaqa are built to the end points that Shao (arXiv 2605.23701) reports for synthetic sets of these
names; they contain no data of those benchmarks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evidep.data import world_pairs as pairs
from evidep.data import world_plans as plans
from evidep.data.world_plans import Plan
from evidep.data.world_texts import entities
from evidep.data.world_truth import Truth, truth_of
from evidep.errors import SettingError
from evidep.types import ColumnRoles, FloatArray, IntArray

if TYPE_CHECKING:
    import datasets

__all__ = ["WORLDS", "Truth", "World", "planted_world"]


@dataclass(frozen=True, slots=True)
class Kind:
    """A named world.

    Attributes:
        build: Plan from the number of classes and the label shares.
        summary: What is planted, in one sentence.
        n_classes: Default number of labels.
        most_classes: Largest number of labels.
        least_classes: Smallest number of labels.
        skew: Default share of the first label; None for equal shares.
        most_skew: Largest share of the first label that leaves the stated region true; None where the shares are fixed.
        exact: Whether the shares are met to the item instead of on average.
    """

    build: Callable[[FloatArray], Plan]
    summary: str
    n_classes: int
    most_classes: int
    least_classes: int = 2
    skew: float | None = None
    most_skew: float | None = None
    exact: bool = False


WORLDS: Final[Mapping[str, Kind]] = {
    "direct_coupling": Kind(
        plans.direct_coupling, "the question word gives the label away, also to the metadata", 3, 5, most_skew=0.8
    ),
    "latent_coupling": Kind(
        plans.latent_coupling, "weak train labels follow corrections, the evaluation has none", 2, 2
    ),
    "question_dominant": Kind(plans.question_dominant, "the question word gives the label away", 3, 5, most_skew=0.8),
    "question_dominant_skewed": Kind(
        plans.question_dominant_skewed,
        "nearly all labels are equal, the query knows a third of the rest",
        2,
        2,
        skew=578 / 600,
        most_skew=0.99,
        exact=True,
    ),
    "evidence_only_shortcut": Kind(
        plans.evidence_only_shortcut, "the evidence's style gives the label away", 2, 3, most_skew=0.8
    ),
    "mismatch_detector": Kind(pairs.mismatch_detector, "evidence matters only by not fitting", 3, 3, 3),
    "matching": Kind(pairs.matching, "the label says whether query and evidence agree", 2, 2, most_skew=0.8),
    "reader_limited": Kind(pairs.reader_limited, "an exclusive or that additive readers cannot learn", 2, 2),
    "base_rate_collapse": Kind(plans.no_signal, "nothing but a base rate", 2, 3, skew=0.9, most_skew=0.99),
    "no_signal": Kind(plans.no_signal, "nothing at all", 3, 3),
    "nq": Kind(plans.direct_coupling, "synthetic NQ: MPDS 1.0, ΔEvi 0", 4, 4, 4, exact=True),
    "hotpotqa": Kind(plans.hotpotqa, "synthetic HotpotQA: MPDS 0.643, ΔEvi 0", 2, 2, exact=True),
    "triviaqa": Kind(plans.triviaqa, "synthetic TriviaQA: ΔEvi 0.808", 6, 6, 6, skew=plans.TRIVIA_SHARE, exact=True),
}
"""Every planted world by name."""


@dataclass(frozen=True, slots=True, eq=False)
class World:
    """One planted benchmark.

    Attributes:
        name: Its name in `WORLDS`.
        train: Rows with id, query, evidence, label and the metadata columns.
        evaluation: Rows with the same columns.
        metadata: Names of the metadata columns.
        label_names: The labels; hidden answers are positions in it.
        truth: What an audit should find.
        query_state: [n_eval] hidden state that each query shows.
        evidence_state: [n_eval] hidden state that each evidence shows.
        rule: [Q, E] the ideal answer to a query state with an evidence state.
        additive_rule: [Q, E] the additive reader's answer.
    """

    name: str
    train: list[dict[str, Any]]
    evaluation: list[dict[str, Any]]
    metadata: tuple[str, ...]
    label_names: tuple[str, ...]
    truth: Truth
    query_state: IntArray
    evidence_state: IntArray
    rule: IntArray
    additive_rule: IntArray

    @property
    def roles(self) -> ColumnRoles:
        """Which column plays which part."""
        return ColumnRoles("query", "evidence", "label", self.metadata)

    @property
    def labels(self) -> IntArray:
        """[n_eval] gold labels as positions in `label_names`."""
        position = {name: at for at, name in enumerate(self.label_names)}
        return np.array([position[row["label"]] for row in self.evaluation], dtype=np.int64)

    def ideal(self, rows: IntArray, donors: IntArray) -> IntArray:
        """The ideal reader's answers to the queries of `rows` with the evidence of `donors`."""
        return self.rule[self.query_state[rows], self.evidence_state[donors]]

    def additive(self, rows: IntArray, donors: IntArray) -> IntArray:
        """The additive reader's answers to the queries of `rows` with the evidence of `donors`."""
        return self.additive_rule[self.query_state[rows], self.evidence_state[donors]]

    def dataset(self) -> datasets.DatasetDict:
        """The rows as a DatasetDict with the splits train (where there is one) and test."""
        import datasets

        splits = {"train": self.train, "test": self.evaluation}
        return datasets.DatasetDict({name: datasets.Dataset.from_list(rows) for name, rows in splits.items() if rows})


def planted_world(
    name: str,
    *,
    n_train: int,
    n_eval: int,
    seed: int,
    n_classes: int | None = None,
    noise: float = 0.0,
    skew: float | None = None,
    group_size: int = 1,
) -> World:
    """Make a planted world.

    Items are independent draws (groups of items where group_size > 1), except that the worlds of the paper's end
    points meet their label and metadata shares to the item (`Kind.exact`). No evidence text is in both splits.

    Args:
        name: A key of `WORLDS`.
        n_train: Train items; 0 for none.
        n_eval: Evaluation items, at least 1.
        seed: Any whole number from 0.
        n_classes: Number of labels, where the world has a choice.
        noise: Share of labels, in both splits, that are replaced by a uniformly drawn one, in [0, 0.5]. Every accuracy
            a becomes (1 - noise) a + noise / C.
        skew: Share of the first label, where the world has a choice.
        group_size: Items that share one evidence text.

    Returns:
        The rows and what an audit of them should find.

    Raises:
        SettingError: For an unknown world or a setting out of its range.
    """
    if not isinstance(name, str) or name not in WORLDS:
        raise SettingError(f"name: there is no planted world {name!r}; choose from {', '.join(WORLDS)}")
    for argument, value, least in (
        ("n_train", n_train, 0),
        ("n_eval", n_eval, 1),
        ("seed", seed, 0),
        ("group_size", group_size, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
            raise SettingError(f"{argument}: expected a whole number of at least {least}, got {value!r}")
    if isinstance(noise, bool) or not isinstance(noise, int | float) or not 0 <= noise <= 0.5:
        raise SettingError(f"noise: expected a share of replaced labels in [0, 0.5], got {noise!r}")
    kind = WORLDS[name]
    plan = kind.build(_shares_of(kind, name, n_classes, skew))
    rng = np.random.default_rng([int(seed), int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "little")])
    groups = [-(-n // group_size) for n in (n_train, n_eval)]
    people = entities(sum(groups), rng)
    train, _, _ = _rows(plan, kind, plan.train, n_train, group_size, noise, people[: groups[0]], f"{name}-train", rng)
    evaluation, query_state, evidence_state = _rows(
        plan, kind, plan.evaluation, n_eval, group_size, noise, people[groups[0] :], f"{name}-test", rng
    )
    return World(
        name,
        train,
        evaluation,
        tuple(column.name for column in plan.metadata),
        plan.labels,
        truth_of(plan, noise),
        query_state,
        evidence_state,
        plan.rule,
        plan.additive_rule,
    )


def _shares_of(kind: Kind, name: str, n_classes: int | None, skew: float | None) -> FloatArray:
    """The label shares of a world: the first has `skew`, the others are equal.

    Raises:
        SettingError: If the world does not come with that many labels or that skew.
    """
    size = kind.n_classes if n_classes is None else n_classes
    least = kind.least_classes
    if isinstance(size, bool) or not isinstance(size, int) or not least <= size <= kind.most_classes:
        allowed = str(least) if least == kind.most_classes else f"{least} to {kind.most_classes}"
        raise SettingError(f"n_classes: the world {name} has {allowed} classes, got {n_classes!r}")
    if skew is not None and kind.most_skew is None:
        raise SettingError(f"skew: the label shares of the world {name} are fixed; leave skew out")
    if skew is not None and (isinstance(skew, bool) or not isinstance(skew, int | float)):
        raise SettingError(f"skew: expected the share of the first label, a number, got {skew!r}")
    if skew is not None and kind.most_skew is not None and not 1 / size <= skew <= kind.most_skew:
        raise SettingError(
            f"skew: the share of the first of {size} labels must be in [{1 / size:.3g}, {kind.most_skew:g}] in the "
            f"world {name}, got {skew!r}"
        )
    first = kind.skew if skew is None else skew
    if first is None:
        return np.full(size, 1 / size)
    return np.array([first, *[(1 - first) / (size - 1)] * (size - 1)])


def _rows(
    plan: Plan,
    kind: Kind,
    joint: FloatArray,
    n: int,
    group_size: int,
    noise: float,
    people: list[dict[str, str]],
    prefix: str,
    rng: np.random.Generator,
) -> tuple[list[dict[str, Any]], IntArray, IntArray]:
    """The rows of one split and the states that their texts show."""
    of_evidence = joint.sum(axis=(0, 2))
    group = np.arange(n) // group_size
    evidence_state = _draw(of_evidence, len(people), rng, kind.exact)[group]
    query_state, label = np.zeros(n, np.int64), np.zeros(n, np.int64)
    for state in range(len(of_evidence)):
        at = np.flatnonzero(evidence_state == state)
        if len(at):
            cells = _draw((joint[:, state, :] / of_evidence[state]).ravel(), len(at), rng, kind.exact)
            query_state[at], label[at] = np.divmod(cells, joint.shape[2])
    columns = {}
    for column in plan.metadata:
        value = np.zeros(n, np.int64)
        for name in range(len(plan.labels)):
            at = np.flatnonzero(label == name)
            value[at] = _draw(column.given_label[name], len(at), rng, kind.exact)
        columns[column.name] = [column.values[v] for v in value.tolist()]
    replaced = rng.random(n) < noise
    label = np.where(replaced, rng.integers(0, len(plan.labels), n), label)
    wording = rng.integers(0, 2**31, len(people)).tolist()
    first = rng.integers(0, 2**31, len(people)).tolist()
    passages = [
        plan.write_evidence(person, state, number)
        for person, state, number in zip(people, evidence_state[::group_size].tolist(), wording, strict=True)
    ]
    rows = [
        {
            "id": f"{prefix}-{i:06d}",
            "query": plan.write_query(people[g], q, first[g] + i % group_size),
            "evidence": passages[g],
            "label": plan.labels[y],
            **{name: values[i] for name, values in columns.items()},
        }
        for i, (g, q, y) in enumerate(zip(group.tolist(), query_state.tolist(), label.tolist(), strict=True))
    ]
    return rows, query_state, evidence_state


def _draw(probabilities: FloatArray, n: int, rng: np.random.Generator, exact: bool) -> IntArray:
    """Categories of n draws: independent ones, or a random order of counts within 1 of the expected ones."""
    if not exact:
        return rng.choice(len(probabilities), size=n, p=probabilities / probabilities.sum())
    expected = probabilities / probabilities.sum() * n
    counts = np.floor(expected + 1e-9).astype(np.int64)
    short = n - int(counts.sum())
    counts[np.argsort(counts - expected, kind="stable")[:short]] += 1
    return rng.permutation(np.repeat(np.arange(len(counts)), counts))
