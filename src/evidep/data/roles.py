"""From column names to the parts they play: query, evidence, label, metadata, group."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from evidep.errors import DataError
from evidep.types import ColumnRoles

_PAIRS: Final = (
    ("evidence", "query"),
    ("premise", "hypothesis"),
    ("context", "question"),
    ("passage", "question"),
    ("document", "question"),
    ("article", "question"),
    ("paragraph", "question"),
    ("evidence", "claim"),
    ("document", "claim"),
    ("abstract", "claim"),
    ("justification", "statement"),
    ("document", "query"),
    ("passage", "query"),
    ("context", "query"),
    ("sentence1", "sentence2"),
    ("sentencea", "sentenceb"),
    ("text", "textpair"),
    ("text1", "text2"),
)
"""(evidence, query) as benchmarks call them: in a premise-hypothesis pair the premise is the evidence."""

_EVIDENCE: Final = tuple(dict.fromkeys(pair[0] for pair in _PAIRS))
_QUERY: Final = tuple(dict.fromkeys(pair[1] for pair in _PAIRS))
_LABEL: Final = (("label", "labels", "goldlabel"), ("verdict", "target", "answer", "answers", "class", "relation"))
_SINGLE: Final = ("query", "evidence", "label", "group")
EVIDENCE_COUNT: Final = "evidence_count"
"""Metadata column that exists where evidence values are lists: how many texts the list held."""


def infer_roles(columns: Sequence[str], given: Mapping[str, Any] | None = None) -> ColumnRoles:
    """Fill in the roles that were not given, from conventional column names (case and underscores do not matter).

    A complete conventional pair (premise with hypothesis, context with question ...) wins over lone names.
    Metadata and group are never inferred: a leaking column must be chosen, not found.

    Args:
        columns: The dataset's column names.
        given: Any of query, evidence, label, metadata (a name or several) and group.

    Raises:
        DataError: If a given column is absent, a column would play two parts, or a role has no candidate or several.
    """
    given = {role: column for role, column in (given or {}).items() if column is not None}
    if unknown := sorted(set(given) - {*_SINGLE, "metadata"}):
        raise DataError(
            f"roles has the unknown key {', '.join(map(repr, unknown))}; known are query, evidence, label, metadata, "
            "group"
        )
    metadata = given.get("metadata", ())
    metadata = (metadata,) if isinstance(metadata, str) else tuple(dict.fromkeys(metadata))
    chosen: dict[str, str] = {}
    for role in _SINGLE:
        if role in given:
            chosen[role] = _existing(given[role], role, columns)
    for column in metadata:
        if column != EVIDENCE_COUNT:
            _existing(column, "metadata", columns)
    taken = {*chosen.values(), *metadata} - ({"query", "evidence", "label"} - set(chosen.values()))
    free = [column for column in columns if column not in taken]
    if "evidence" not in chosen or "query" not in chosen:
        chosen = _with_pair(chosen, free, columns)
    if "label" not in chosen:
        free = [column for column in free if column not in chosen.values()]
        tiers = [[column for column in free if column == "label"]]
        tiers += [[column for column in free if key_of(column) in tier] for tier in _LABEL]
        chosen["label"] = _only("label", next(filter(None, tiers), []), columns)
    roles = ColumnRoles(chosen["query"], chosen["evidence"], chosen["label"], metadata, chosen.get("group"))
    _check_distinct(roles)
    return roles


def inferred(roles: ColumnRoles, given: Mapping[str, Any]) -> str | None:
    """One sentence that names the roles found by name alone, or None where all were given."""
    found = [f"{role} = {getattr(roles, role)!r}" for role in ("query", "evidence", "label") if given.get(role) is None]
    return f"Columns were chosen by their names: {', '.join(found)}." if found else None


def check_columns(roles: ColumnRoles, columns: Sequence[str], place: str = "") -> None:
    """Raise a DataError unless every column of `roles` is among `columns`; `place` begins the message."""
    for role in _SINGLE:
        if (column := getattr(roles, role)) is not None:
            _existing(column, role, columns, place)
    for column in roles.metadata:
        if column != EVIDENCE_COUNT:
            _existing(column, "metadata", columns, place)
    _check_distinct(roles)


def suggestion(wrong: str, known: Iterable[str]) -> str:
    """Words to end an error with: the known name that is close to the wrong one, or nothing."""
    by_key = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(wrong.casefold(), by_key, n=1)
    return f"; did you mean {by_key[close[0]]!r}?" if close else ""


def _with_pair(chosen: dict[str, str], free: list[str], columns: Sequence[str]) -> dict[str, str]:
    def named(role: str, conventional: str) -> list[str]:
        """Columns that may play the role under that conventional name: the chosen one, else free ones."""
        pool = [chosen[role]] if role in chosen else free
        return [column for column in pool if key_of(column) == conventional]

    pairs = [
        (evidence, query)
        for evidence_name, query_name in _PAIRS
        for evidence in named("evidence", evidence_name)
        for query in named("query", query_name)
    ]
    exact = [(evidence, query) for evidence, query in pairs if (key_of(evidence), key_of(query)) == _PAIRS[0]]
    pairs = exact or pairs
    if len(pairs) == 1:
        return {**chosen, "evidence": pairs[0][0], "query": pairs[0][1]}
    result = dict(chosen)
    for role, names, at in (("evidence", _EVIDENCE, 0), ("query", _QUERY, 1)):
        if role not in result:
            candidates = list(dict.fromkeys(pair[at] for pair in pairs)) or [c for c in free if key_of(c) in names]
            result[role] = _only(role, candidates, columns)
    return result


def _only(role: str, candidates: list[str], columns: Sequence[str]) -> str:
    if len(candidates) == 1:
        return candidates[0]
    option = f"add --{role} COLUMN (in Python roles={{{role!r}: COLUMN}})"
    if candidates:
        raise DataError(f"several columns may be the {role}: {', '.join(candidates)}; {option}")
    raise DataError(f"no column is named like the {role}; the columns are {', '.join(columns)}; {option}")


def _existing(column: Any, role: str, columns: Sequence[str], place: str = "") -> str:
    if not isinstance(column, str):
        raise DataError(f"the {role} column must be given by name, got {type(column).__name__}")
    if column not in columns:
        raise DataError(
            f"{place}no column {column!r} for --{role}; the columns are {', '.join(columns)}"
            f"{suggestion(column, columns)}"
        )
    return column


def _check_distinct(roles: ColumnRoles) -> None:
    parts: dict[str, str] = {}
    for role in _SINGLE:
        column = getattr(roles, role)
        if column in parts:
            raise DataError(
                f"column {column!r} cannot be both {parts[column]} and {role}; give another --{role} COLUMN"
            )
        if column is not None:
            parts[column] = role
    for column in roles.metadata:
        if parts.get(column, "group") != "group":
            raise DataError(
                f"column {column!r} is the {parts[column]} and cannot be metadata: metadata predicts the label without "
                "the texts; leave it out of --metadata"
            )


def key_of(column: str) -> str:
    """The name without case, spaces and punctuation, as names are compared for roles."""
    return re.sub(r"[\W_]+", "", column).casefold()
