"""Any function over texts as a reader: an API, a local model, rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from evidep.errors import ReaderError, SettingError
from evidep.readers.baseline import answer_scores
from evidep.readers.settings import check_counts
from evidep.types import BLANK, EMPTY, MISSING, NULL, FloatArray, IntArray, PairTable, ReaderInfo, Strength

PairFunction = Callable[[list[str], list[str | None]], Any]
"""(queries, evidences) of one batch -> scores [n, C], or n labels."""
FitFunction = Callable[[PairTable, int], None]
"""(train table, seed) -> nothing; the function keeps what it learns to itself."""
_STRENGTHS: Final = ("baseline", "light", "middle", "strong")


class CallableReader:
    """A reader made from a function; built by `from_callable`."""

    def __init__(
        self,
        function: PairFunction,
        info: ReaderInfo,
        fingerprint: str,
        label_names: tuple[str, ...] | None,
        batch_size: int,
        fit: FitFunction | None,
    ) -> None:
        self._function = function
        self._info = info
        self._fingerprint = fingerprint
        self._label_names = label_names
        self._batch_size = batch_size
        self._fit = fit
        self.trainable = fit is not None
        self.probabilistic = True

    @property
    def info(self) -> ReaderInfo:
        """As declared to `from_callable`."""
        return self._info

    @property
    def fingerprint(self) -> str:
        """As declared to `from_callable`, with the name."""
        return f"callable/1 {self._info.name} {self._fingerprint}"

    def fit(self, train: PairTable, *, seed: int) -> Self:
        """Call the fit function, where there is one."""
        if self._fit is not None:
            self._fit(train, seed)
        return self

    def encode(self, table: PairTable) -> PairTable:
        """The table itself: a function over texts has nothing to prepare.

        Raises:
            ReaderError: The function's labels are not the table's.
        """
        if self._label_names is not None and set(self._label_names) != set(table.label_names):
            raise ReaderError(
                f"reader {self._info.name}: label_names are {_list(self._label_names)}, the data have "
                f"{_list(table.label_names)}; map the function's answers to the data's labels inside the function"
            )
        return table

    def scores(self, encoded: PairTable, rows: IntArray, donors: IntArray) -> FloatArray:
        """[len(rows), C]; the function is asked once about each distinct pair of texts.

        Raises:
            ReaderError: The function failed, or its answer has a wrong length, shape, value or label.
        """
        n_classes = encoded.n_classes
        queries, evidence = _texts(encoded, rows, donors)
        key = queries * (len(encoded.evidence.texts) - _BLANK) + (evidence - _BLANK)
        _, first, back = np.unique(key, return_index=True, return_inverse=True)
        order = np.argsort(first)  # pairs are asked in order of appearance
        first, back = first[order], np.argsort(order)[back]
        result = np.empty((len(first), n_classes))
        for start in range(0, len(first), self._batch_size):
            at = first[start : start + self._batch_size]
            shown = _take(encoded.queries.texts, queries[at]), _take(encoded.evidence.texts, evidence[at])
            try:
                answer = self._function([text or "" for text in shown[0]], shown[1])
            except Exception as error:
                raise ReaderError(
                    f"reader {self._info.name}: the function failed on a batch of {len(at)} pairs, the first of them "
                    f"{_pair(rows[at[0]], donors[at[0]])}: {type(error).__name__}: {error}"
                ) from error
            result[start : start + len(at)] = self._checked(answer, encoded.label_names, rows[at], donors[at])
        return result[back]

    def _checked(self, answer: Any, names: tuple[str, ...], rows: IntArray, donors: IntArray) -> FloatArray:
        """[batch, C] scores in the table's label order; `rows` and `donors` name the pairs in messages."""
        answer = answer.detach().cpu().numpy() if hasattr(answer, "detach") else answer
        values = np.asarray(answer, dtype=object)
        who, n = f"reader {self._info.name}", len(rows)
        if values.ndim == 0 or len(values) != n:
            came = "a single value" if values.ndim == 0 else f"{len(values)}"
            raise ReaderError(f"{who}: the function must return one answer for each of its {n} pairs, got {came}")
        own = self._label_names if self._label_names is not None else names
        if values.ndim == 1:
            self.probabilistic = False
            return answer_scores(self._labels(values, own, names, rows, donors), len(names))
        if values.shape != (n, len(names)):
            raise ReaderError(
                f"{who}: scores must have shape ({n}, {len(names)}), one column per label of {_list(own)}; "
                f"got {values.shape}"
            )
        try:
            scores = values.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise ReaderError(f"{who}: scores must be numbers: {error}") from None
        bad = np.flatnonzero(~np.isfinite(scores).all(axis=1))
        if len(bad):
            t = int(bad[0])
            raise ReaderError(
                f"{who}: the scores of {_pair(rows[t], donors[t])} are {scores[t].tolist()}; expected finite "
                "log-probabilities or logits"
            )
        return scores[:, [own.index(name) for name in names]]

    def _labels(
        self,
        values: NDArray[np.object_],
        own: tuple[str, ...],
        names: tuple[str, ...],
        rows: IntArray,
        donors: IntArray,
    ) -> IntArray:
        """[batch] positions in `names` of answers given as names or as positions in `own`."""
        position = {name: names.index(name) for name in own}
        answers = np.empty(len(values), dtype=np.int64)
        for t, value in enumerate(values.tolist()):
            if isinstance(value, str) and value in position:
                answers[t] = position[value]
            elif isinstance(value, int | np.integer) and not isinstance(value, bool) and 0 <= value < len(own):
                answers[t] = position[own[value]]
            else:
                raise ReaderError(
                    f"reader {self._info.name}: the answer to {_pair(rows[t], donors[t])} is {value!r}; expected one "
                    f"of {_list(own)}, or its position 0 to {len(own) - 1}"
                )
        return answers


def from_callable(
    function: PairFunction,
    *,
    name: str,
    fingerprint: str,
    label_names: Sequence[str] | None = None,
    strength: Strength = "strong",
    interaction: bool = True,
    batch_size: int = 64,
    fit: FitFunction | None = None,
    contamination: str | None = None,
    licence: str | None = None,
) -> CallableReader:
    """Make a reader of a function over texts.

    The function gets the queries and evidences of a batch of pairs, each distinct pair once, in order of appearance. An
    evidence is None where the item has none or none is shown, and "" where it is blank or shown as blank; a query that
    is not shown is "". It returns either scores [n, C] (log-probabilities or logits, one column per label), or n labels
    (names, or positions in `label_names`). Labels carry no probabilities: `probabilistic` then turns False.

    Args:
        function: The function.
        name: Name in reports.
        fingerprint: Names the model, its version and the prompt: whatever decides the answers. Finished answers are
            kept under it, so a changed function with an old fingerprint would be given old answers. It cannot be
            guessed from a function, whose weights live elsewhere.
        label_names: Meaning of the score columns or integer answers; must be the data's labels in any order. None: the
            data's labels in their own order (sorted names, unless the data define an order).
        strength: Rung of the calibration ladder.
        interaction: Whether the function can relate query and evidence to each other.
        batch_size: Most pairs in one call.
        fit: Called with the train table and the seed. None: the function is used as it is, and ablations that need
            retraining are not run.
        contamination: Benchmarks that the model is known to have been trained on, in words.
        licence: Licence of the model's weights.

    Raises:
        SettingError: An argument is not what it must be.
    """
    if not callable(function):
        raise SettingError(f"function: expected something to call with (queries, evidences), got {function!r}")
    for key, value in (("name", name), ("fingerprint", fingerprint)):
        if not isinstance(value, str) or not value.strip():
            raise SettingError(f"{key}: expected a text that is not empty, got {value!r}")
    if strength not in _STRENGTHS:
        raise SettingError(f"strength: expected one of {', '.join(_STRENGTHS)}, got {strength!r}")
    check_counts(batch_size=batch_size)
    names = None
    if label_names is not None:
        names = tuple(label_names)
        if isinstance(label_names, str) or len(set(names)) < len(names) or not all(isinstance(n, str) for n in names):
            raise SettingError(f"label_names: expected distinct names, got {label_names!r}")
    info = ReaderInfo(name, strength, interaction, contamination, licence)
    return CallableReader(function, info, fingerprint, names, batch_size, fit)


_ABSENT: Final = -1
_BLANK: Final = -2


def _texts(table: PairTable, rows: IntArray, donors: IntArray) -> tuple[IntArray, IntArray]:
    """Positions of the distinct texts of each pair; _ABSENT for None, _BLANK for the empty string."""
    queries = np.where(rows < 0, _ABSENT, np.append(table.queries.index, _ABSENT)[rows])
    state = table.evidence_state
    own = np.where(state == MISSING, _ABSENT, np.where(state == BLANK, _BLANK, table.evidence.index))
    evidence = np.append(own, _ABSENT)[np.maximum(donors, -1)]
    return queries, np.where(donors == EMPTY, _BLANK, evidence)


def _take(texts: pa.LargeStringArray, positions: IntArray) -> list[str | None]:
    """The texts at the positions."""
    known = positions >= 0
    found = texts.take(pa.array(np.where(known, positions, 0), mask=~known)).to_pylist()
    return ["" if at == _BLANK else text for at, text in zip(positions.tolist(), found, strict=True)]


def _pair(row: np.int64, donor: np.int64) -> str:
    """The pair in words, for messages."""
    query = "no query" if row < 0 else f"query of item {row}"
    evidence = {NULL: "no evidence", EMPTY: "empty evidence"}.get(int(donor), f"evidence of item {donor}")
    return f"({query}, {evidence})"


def _list(names: tuple[str, ...]) -> str:
    return ", ".join(repr(name) for name in names)
