"""Metadata that nobody declared: simple features of the texts that might give the label away, by name.

Each feature is a function of the query, of the evidence, or of both. `register_feature` adds one. Values are numbers,
or texts for categories. None of them looks at labels.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from evidep.errors import SettingError
from evidep.types import BLANK, MISSING, FloatArray, PairTable, StringColumn

Value = float | str
Side = Literal["query", "evidence", "pair", "table"]
_EXPECTED: Final = "expected texts alone, or finite numbers alone with nan where undefined"
_WORD: Final = re.compile(r"\w+")
_NEGATION_WORDS: Final = (
    "no not never none nobody nothing nor neither without cannot n't isn't aren't wasn't weren't don't doesn't didn't "
    "won't can't couldn't hasn't haven't nicht kein keine pas jamais ne"
)
_NEGATION: Final = frozenset(_NEGATION_WORDS.split())
_QUESTION_WORDS: Final = frozenset(("who", "whom", "whose", "what", "which", "when", "where", "why", "how"))
_AUXILIARY_WORDS: Final = "is are was were do does did has have had can could will would should may might"
_AUXILIARIES: Final = frozenset(_AUXILIARY_WORDS.split())
_ANSWER_TYPES: Final = {
    "who": "person", "whom": "person", "whose": "person", "where": "place", "when": "time", "why": "reason",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Feature:
    """One feature.

    Attributes:
        name: How reports call it.
        side: What `compute` is given: distinct queries, distinct evidence texts, (queries, evidence) item by item, or
            the table.
        compute: Returns one value per text (or item).
    """

    name: str
    side: Side
    compute: Callable[..., Sequence[Value]]


@dataclass(frozen=True, slots=True, eq=False)
class FeatureTable:
    """Feature values of n items.

    Attributes:
        columns: Name to [n] values: float64, nan where undefined, or texts.
        seconds: Name to what computing it cost.
    """

    columns: Mapping[str, FloatArray | list[str]]
    seconds: Mapping[str, float] = field(default_factory=dict)


_FEATURES: dict[str, Feature] = {}


def register_feature(name: str, side: Side, compute: Callable[..., Sequence[Value]], *, replace: bool = False) -> None:
    """Make a feature known, for this process.

    Args:
        name: Letters, digits and underscores.
        side: "query" or "evidence": compute(texts) -> one value per text (a missing text is ""); "pair":
            compute(queries, evidence) -> one value per item; "table": compute(table) -> one value per item.
        compute: Must give all numbers (nan where undefined) or all texts, and the same value for the same input.
        replace: Allow a known name.

    Raises:
        SettingError: The name is taken or malformed, the side is unknown, or compute cannot be called.
    """
    if not isinstance(name, str) or not name.isidentifier():
        raise SettingError(f"name: expected letters, digits and underscores, got {name!r}")
    if side not in ("query", "evidence", "pair", "table"):
        raise SettingError(f"side: expected query, evidence, pair or table, got {side!r}")
    if not callable(compute):
        raise SettingError(f"compute: expected a function that gives one value per text or item, got {compute!r}")
    if name in _FEATURES and not replace:
        raise SettingError(f"name: a feature {name!r} exists already; choose another, or pass replace=True")
    _FEATURES[name] = Feature(name, side, compute)


def feature_names() -> tuple[str, ...]:
    """Names of all known features."""
    return tuple(_FEATURES)


def derive_features(table: PairTable, names: Sequence[str] | None = None) -> FeatureTable:
    """Compute features of every item; each distinct text is looked at once. A missing text is "".

    Args:
        table: The items.
        names: Features, all known ones by default.

    Raises:
        SettingError: A feature is unknown, fails, or gives another number of values than it was asked for, values of
            mixed kinds, or values that are neither finite numbers, nan nor texts.
    """
    columns: dict[str, FloatArray | list[str]] = {}
    seconds: dict[str, float] = {}
    for name in feature_names() if names is None else names:
        if name not in _FEATURES:
            raise SettingError(f"feature {name!r} is unknown; choose from {', '.join(_FEATURES)}")
        feature = _FEATURES[name]
        started = time.perf_counter()
        columns[name] = _column(name, _compute(feature, table), len(table))
        seconds[name] = time.perf_counter() - started
    return FeatureTable(columns, seconds)


def _compute(feature: Feature, table: PairTable) -> list[Any]:
    if feature.side == "table":
        return _ask(feature, table)
    if feature.side == "pair":
        return _ask(feature, _texts(table.queries), _texts(table.evidence))
    column = table.queries if feature.side == "query" else table.evidence
    distinct = _ask(feature, [*column.texts.to_pylist(), ""])
    if len(distinct) != len(column.texts) + 1:
        raise SettingError(f"feature {feature.name!r} gave {len(distinct)} values for {len(column.texts) + 1} texts")
    return [distinct[at] for at in column.index.tolist()]  # NULL is -1: the last


def _ask(feature: Feature, *given: Any) -> list[Any]:
    try:
        return list(feature.compute(*given))
    except Exception as error:  # a stranger's function may raise anything
        raise SettingError(
            f"feature {feature.name!r} failed with {type(error).__name__}: {error}; it must give one value for every "
            'text or item, also for the text ""'
        ) from error


def _column(name: str, values: list[Any], n: int) -> FloatArray | list[str]:
    """Values of one feature, all numbers or all texts."""
    if len(values) != n:
        raise SettingError(f"feature {name!r} gave {len(values)} values for {n} items")
    texts = [isinstance(value, str) for value in values]
    if values and all(texts):
        return [str(value) for value in values]
    for at, value in enumerate(values):
        if texts[at] != texts[0]:
            raise SettingError(
                f"feature {name!r} gave {values[0]!r} for item 0 and {value!r} for item {at}; {_EXPECTED}"
            )
        if not isinstance(value, int | float | np.number | np.bool_) or np.isinf(value):
            raise SettingError(f"feature {name!r} gave {value!r} for item {at}; {_EXPECTED}")
    return np.array(values, dtype=np.float64)


def _texts(column: StringColumn) -> list[str]:
    return [text or "" for text in column.to_list()]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _length(texts: Sequence[str]) -> list[Value]:
    """Number of words; of characters where a script puts no spaces between words."""
    return [float(max(text.count(" ") + 1, len(text) / 12)) if text else 0.0 for text in texts]


def _negation(texts: Sequence[str]) -> list[Value]:
    return ["yes" if _NEGATION.intersection(text.lower().replace("n't", " n't").split()) else "no" for text in texts]


def _question_word(texts: Sequence[str]) -> list[Value]:
    return [next((word for word in _words(text)[:12] if word in _QUESTION_WORDS), "none") for text in texts]


def _answer_type(texts: Sequence[str]) -> list[Value]:
    """What kind of answer a question asks for, by its words alone."""
    found: list[Value] = []
    for text in texts:
        words = _words(text)[:12]
        asked = next((at for at, word in enumerate(words) if word in _QUESTION_WORDS), None)
        if words and words[0] in _AUXILIARIES:
            found.append("yes/no")
        elif asked is None:
            found.append("none")
        elif words[asked] == "how" and words[asked + 1 : asked + 2] in (["many"], ["much"], ["old"], ["long"]):
            found.append("number")
        else:
            found.append(_ANSWER_TYPES.get(words[asked], "thing"))
    return found


def _first_tokens(texts: Sequence[str]) -> list[Value]:
    return [" ".join(_words(text[:80])[:2]) for text in texts]


def _has_number(texts: Sequence[str]) -> list[Value]:
    return ["yes" if any(character.isdigit() for character in text) else "no" for text in texts]


def _evidence_count(table: PairTable) -> list[Value]:
    """Number of evidence texts: lines, since lists are joined by newlines."""
    lines = [float(text.count("\n") + 1) if text else 0.0 for text in [*table.evidence.texts.to_pylist(), ""]]
    return [lines[at] for at in table.evidence.index.tolist()]


def _evidence_state(table: PairTable) -> list[Value]:
    names = {BLANK: "blank", MISSING: "missing"}
    return [names.get(state, "present") for state in table.evidence_state.tolist()]


def _overlap(queries: Sequence[str], evidence: Sequence[str]) -> list[Value]:
    """Share of the query's words that the evidence has; nan for a query without words."""
    known: dict[str, set[str]] = {}
    values: list[Value] = []
    for query, text in zip(queries, evidence, strict=True):
        if text not in known:
            known[text] = set(_words(text))
        words = set(_words(query))
        values.append(len(words & known[text]) / len(words) if words else float("nan"))
    return values


def _length_ratio(queries: Sequence[str], evidence: Sequence[str]) -> list[Value]:
    return [(len(query) + 1) / (len(text) + 1) for query, text in zip(queries, evidence, strict=True)]


def _position(queries: Sequence[str], evidence: Sequence[str]) -> list[Value]:
    """Where the query's longest word first stands in the evidence, as a share of its length; nan where it does not."""
    values: list[Value] = []
    for query, text in zip(queries, evidence, strict=True):
        words = _words(query)
        at = text.lower().find(max(words, key=len)) if words else -1
        values.append(at / len(text) if at >= 0 else float("nan"))
    return values


def _number_mismatch(queries: Sequence[str], evidence: Sequence[str]) -> list[Value]:
    """Whether the query has a number that the evidence lacks."""
    values: list[Value] = []
    for query, text in zip(queries, evidence, strict=True):
        asked = set(re.findall(r"\d+", query))
        values.append("none" if not asked else "missing" if asked - set(re.findall(r"\d+", text)) else "found")
    return values


_BUILT_IN: Final[tuple[tuple[str, Side, Callable[..., Sequence[Value]]], ...]] = (
    ("query_length", "query", _length),
    ("query_negation", "query", _negation),
    ("query_first_tokens", "query", _first_tokens),
    ("query_has_number", "query", _has_number),
    ("question_word", "query", _question_word),
    ("answer_type", "query", _answer_type),
    ("evidence_length", "evidence", _length),
    ("evidence_negation", "evidence", _negation),
    ("evidence_first_tokens", "evidence", _first_tokens),
    ("evidence_count", "table", _evidence_count),
    ("evidence_state", "table", _evidence_state),
    ("overlap", "pair", _overlap),
    ("length_ratio", "pair", _length_ratio),
    ("position", "pair", _position),
    ("number_mismatch", "pair", _number_mismatch),
)
for _entry in _BUILT_IN:
    register_feature(*_entry)
