"""Token ids of (query, evidence) pairs, assembled from texts that are tokenised once.

A shuffle changes which evidence stands beside which query, never the texts. So each distinct text is tokenised once and
the ids of a pair are put together from the parts, exactly as the tokenizer itself would have built them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evidep.errors import ReaderError
from evidep.readers.layout import Ids, Layout, layouts, plain_ids
from evidep.types import NULL, IntArray, PairTable, StringColumn

VERY_LARGE = 10**9  # tokenizers without a limit report 1e30


@dataclass(frozen=True, slots=True, eq=False)
class TokenStore:
    """The token ids of U distinct texts, without special tokens.

    Attributes:
        ids: The ids of all texts, one after the other. Of a text longer than the reader's window only the end that
            truncation keeps is stored.
        starts: [U + 1] where each text begins in `ids`.
        lengths: [U] number of tokens of each text before any truncation.
    """

    ids: NDArray[np.int32]
    starts: IntArray
    lengths: IntArray

    def kept(self) -> IntArray:
        """[U] number of stored tokens of each text."""
        return np.diff(self.starts)


@dataclass(frozen=True, slots=True, eq=False)
class EncodedPairs:
    """A table's texts, tokenised once.

    Attributes:
        queries: Tokens of the distinct queries.
        query_index: [n] position in `queries` of each item's query, NULL where it has none.
        evidence: Tokens of the distinct evidence texts.
        evidence_index: [n] the same for evidence.
        single: Layout of one text alone.
        pair: Layout of a query and an evidence.
        max_length: Largest number of tokens of an input, special tokens included.
        keep_end: Whether truncation keeps the end of the evidence (tokenizers with truncation_side "left").
        pad: Id of the padding token.
        label_names: The table's labels.
    """

    queries: TokenStore
    query_index: IntArray
    evidence: TokenStore
    evidence_index: IntArray
    single: Layout
    pair: Layout
    max_length: int
    keep_end: bool
    pad: int
    label_names: tuple[str, ...]

    def texts(self, rows: IntArray, donors: IntArray) -> tuple[IntArray, IntArray]:
        """Which distinct texts a condition shows: (query, evidence), each a position, NULL or (evidence only) EMPTY."""
        query = np.where(rows < 0, NULL, _at(self.query_index, rows))
        evidence = np.where(donors < 0, donors, _at(self.evidence_index, donors))
        return query, evidence


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Model input: ids and token types [B, L], and the mask [B, L], or None where nothing is padded."""

    ids: Ids
    types: Ids
    mask: Ids | None


def window(tokenizer: Any, config: Any, asked: int | None) -> int:
    """Largest input in tokens: what is asked, within what tokenizer and model allow.

    Raises:
        ReaderError: More is asked than the model's position embeddings hold.
    """
    limits = [int(min(tokenizer.model_max_length, VERY_LARGE))]
    positions = getattr(config, "max_position_embeddings", None)
    if positions is not None and positions > 0:
        # RoBERTa-like models number positions from pad_token_id + 1, so that many embeddings are never free.
        offset = (config.pad_token_id or 0) + 1 if config.model_type in _OFFSET_POSITIONS else 0
        limits.append(positions - offset)
    limit = min(limits)
    if asked is None:
        return limit
    if asked > limit:
        raise ReaderError(f"max_length: the model holds at most {limit} tokens, got {asked}; lower max_length")
    return asked


_OFFSET_POSITIONS = {"roberta", "xlm-roberta", "camembert", "xlm-roberta-xl", "data2vec-text", "longformer", "mpnet"}


def tokenise(tokenizer: Any, column: StringColumn, limit: int, keep_end: bool) -> TokenStore:
    """Tokenise each distinct text of a column once; `limit` is the most tokens of one text that can ever be shown."""
    parts: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    for texts in column.chunks():
        for ids in plain_ids(tokenizer, texts):
            lengths.append(len(ids))
            parts.append(np.asarray(ids[-limit:] if keep_end else ids[:limit], dtype=np.int32))
    starts = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum([len(part) for part in parts], out=starts[1:])
    flat = np.concatenate(parts) if parts else np.empty(0, dtype=np.int32)
    return TokenStore(flat, starts, np.array(lengths, dtype=np.int64))


def encode_pairs(tokenizer: Any, table: PairTable, max_length: int) -> EncodedPairs:
    """Tokenise a table's distinct queries and evidences once and learn how the tokenizer joins two texts.

    A handful of the table's own pairs is assembled and compared with the tokenizer's own output.

    Raises:
        ReaderError: max_length leaves no room, or the tokenizer builds pairs in a way that parts cannot reproduce.
    """
    single, pair = layouts(tokenizer)
    if max_length <= len(pair) + 1:
        raise ReaderError(
            f"max_length: {len(pair)} special tokens surround a pair, got max_length={max_length}; raise it"
        )
    keep_end = getattr(tokenizer, "truncation_side", "right") == "left"
    queries, evidence = table.queries.compact(), table.evidence.compact()
    limit = max_length - len(single)
    encoded = EncodedPairs(
        tokenise(tokenizer, queries, limit, keep_end),
        queries.index,
        tokenise(tokenizer, evidence, limit, keep_end),
        evidence.index,
        single,
        pair,
        max_length,
        keep_end,
        0 if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id),
        table.label_names,
    )
    _check_against_tokenizer(tokenizer, table, encoded)
    return encoded


def encode_texts(tokenizer: Any, column: StringColumn, max_length: int) -> EncodedPairs:
    """Tokenise a column's distinct texts for reading each alone: as `queries`, beside no evidence."""
    single, pair = layouts(tokenizer)
    keep_end = getattr(tokenizer, "truncation_side", "right") == "left"
    store = tokenise(tokenizer, column, max_length - len(single), keep_end)
    nothing = TokenStore(np.empty(0, dtype=np.int32), np.zeros(1, dtype=np.int64), np.empty(0, dtype=np.int64))
    absent = np.empty(0, dtype=np.int64)
    pad = 0 if tokenizer.pad_token_id is None else int(tokenizer.pad_token_id)
    return EncodedPairs(store, column.index, nothing, absent, single, pair, max_length, keep_end, pad, ())


def pair_lengths(encoded: EncodedPairs, query: IntArray, evidence: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Sizes of pairs of distinct texts (positions, NULL or EMPTY, as `EncodedPairs.texts` returns them).

    Returns:
        Shown query tokens [t], shown evidence tokens [t], and the tokens cut [t].

    Raises:
        ReaderError: A query fills the window, so that none of its evidence would be read.
    """
    query_full, evidence_full = _take(encoded.queries.lengths, query), _take(encoded.evidence.lengths, evidence)
    is_pair = (query != NULL) & (evidence != NULL)
    room = encoded.max_length - np.where(is_pair, len(encoded.pair), len(encoded.single))
    query_shown = np.where(is_pair, query_full, np.minimum(query_full, room))
    left = room - query_shown
    starved = is_pair & (left < np.minimum(evidence_full, 1))
    if starved.any():
        t = int(np.flatnonzero(starved)[0])
        special, longest = len(encoded.pair), int(query_full[starved].max())
        raise ReaderError(
            f"no room for evidence after truncation: in {int(starved.sum())} of {len(query)} pairs the query fills "
            f"max_length={encoded.max_length} (the first has {int(query_full[t])} tokens, and {special} are special); "
            f"set max_length to at least {longest + special + 1}, or drop items with such queries"
        )
    evidence_shown = np.minimum(evidence_full, np.where(is_pair, left, room))
    return query_shown, evidence_shown, query_full - query_shown + evidence_full - evidence_shown


def input_lengths(encoded: EncodedPairs, query: IntArray, evidence: IntArray) -> IntArray:
    """[t] number of tokens of each assembled input, special tokens included."""
    query_shown, evidence_shown, _ = pair_lengths(encoded, query, evidence)
    is_pair = (query != NULL) & (evidence != NULL)
    return query_shown + evidence_shown + np.where(is_pair, len(encoded.pair), len(encoded.single))


def assemble(encoded: EncodedPairs, query: IntArray, evidence: IntArray) -> Batch:
    """The model input of B pairs of distinct texts, padded on the right to the longest of them."""
    query_shown, evidence_shown, _ = pair_lengths(encoded, query, evidence)
    is_pair = (query != NULL) & (evidence != NULL)
    lone = query == NULL
    total = query_shown + evidence_shown + np.where(is_pair, len(encoded.pair), len(encoded.single))
    width = int(total.max(initial=0))
    ids = np.full((len(query), width), encoded.pad, dtype=np.int64)
    types = np.zeros_like(ids)
    for layout, chosen in ((encoded.pair, np.flatnonzero(is_pair)), (encoded.single, np.flatnonzero(~is_pair))):
        if not len(chosen):
            continue
        at = np.zeros(len(chosen), dtype=np.int64)
        at = _put_specials(ids, types, chosen, at, layout.before)
        at = put_text(ids, types, chosen, at, encoded.queries, query, query_shown, layout.a, encoded.keep_end)
        at = _put_specials(ids, types, chosen, at, layout.between)
        kind = np.where(lone[chosen], layout.a, layout.b)
        at = put_text(ids, types, chosen, at, encoded.evidence, evidence, evidence_shown, kind, encoded.keep_end)
        _put_specials(ids, types, chosen, at, layout.after)
    if (total == width).all():
        return Batch(ids, types, None)
    return Batch(ids, types, (np.arange(width) < total[:, None]).astype(np.int64))


def _put_specials(ids: Ids, types: Ids, chosen: IntArray, at: IntArray, part: tuple[Ids, Ids]) -> IntArray:
    for token, kind in zip(*part, strict=True):
        ids[chosen, at] = token
        types[chosen, at] = kind
        at = at + 1
    return at


def put_text(
    ids: Ids,
    types: Ids,
    chosen: IntArray,
    at: IntArray,
    store: TokenStore,
    text: IntArray,
    shown: IntArray,
    kind: int | IntArray,
    keep_end: bool,
) -> IntArray:
    """Write the shown tokens of each chosen pair's text at its column `at`; returns the columns after them."""
    count = shown[chosen]
    total = int(count.sum())
    if total:
        position = np.maximum(text[chosen], 0)
        begin = store.starts[position + 1] - count if keep_end else store.starts[position]
        within = np.arange(total) - np.repeat(np.cumsum(count) - count, count)
        row, column = np.repeat(chosen, count), np.repeat(at, count) + within
        ids[row, column] = store.ids[np.repeat(begin, count) + within]
        types[row, column] = kind if isinstance(kind, int) else np.repeat(kind, count)
    return at + count


def _check_against_tokenizer(tokenizer: Any, table: PairTable, encoded: EncodedPairs, most: int = 8) -> None:
    both = np.flatnonzero((table.queries.index >= 0) & (table.evidence.index >= 0))
    rows = both[np.linspace(0, len(both) - 1, min(most, len(both))).astype(np.int64)] if len(both) else both
    # A huge window: an item without room must be reported when it is scored, and here only the joining is checked.
    roomy = replace(encoded, max_length=VERY_LARGE)
    for row in rows.tolist():
        query, evidence = table.queries[row], table.evidence[row]
        at = np.array([row])
        where = encoded.texts(at, at)
        if _was_shortened(encoded, *where):
            continue
        built = assemble(roomy, *where).ids[0].tolist()
        # As a batch of one: a lone call with an empty second text would be encoded as a single text.
        expected = list(tokenizer([query], [evidence], verbose=False)["input_ids"][0])
        if built != expected:
            raise ReaderError(
                f"the tokenizer {type(tokenizer).__name__} joins the texts of item {row} otherwise than from their "
                f"parts ({len(expected)} tokens, {len(built)} from parts); use one that encodes each text on its own"
            )


def _was_shortened(encoded: EncodedPairs, query: IntArray, evidence: IntArray) -> bool:
    return any(
        int(store.lengths[text[0]]) > int(store.kept()[text[0]])
        for store, text in ((encoded.queries, query), (encoded.evidence, evidence))
    )


def _at(index: IntArray, items: IntArray) -> IntArray:
    return index[np.maximum(items, 0)] if len(index) else np.full(len(items), NULL, dtype=np.int64)


def _take(lengths: IntArray, texts: IntArray) -> IntArray:
    if not len(lengths):
        return np.zeros(len(texts), dtype=np.int64)
    return np.where(texts < 0, 0, lengths[np.maximum(texts, 0)])
