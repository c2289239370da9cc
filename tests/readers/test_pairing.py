"""Pairs assembled from parts are the tokenizer's own pairs, token for token."""

from __future__ import annotations

import numpy as np
import pytest
from tiny_models import bert_tokenizer, byte_tokenizer, random_texts, table

from evidep.errors import ReaderError
from evidep.readers.layout import layouts
from evidep.readers.pairing import assemble, encode_pairs, input_lengths, pair_lengths
from evidep.readers.truncation import same_input, seen
from evidep.types import EMPTY, NULL

pytest.importorskip("transformers")

KINDS = {
    "bert": lambda folder: bert_tokenizer(folder),
    "bert-left": lambda folder: bert_tokenizer(folder, truncation_side="left"),
    "without token types": lambda folder: bert_tokenizer(folder, typed=False),
    "roberta": lambda folder: byte_tokenizer(folder),
    "gpt": lambda folder: byte_tokenizer(folder, roberta=False),
}


@pytest.fixture(params=KINDS)
def tokenizer(request, tmp_path):
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(KINDS[request.param](tmp_path))


def conditions(n: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Every kind of pair: true, shuffled, one side alone, empty second text."""
    rows, nothing = np.arange(n), np.full(n, NULL)
    return [(rows, rows), (rows, rows[::-1]), (rows, nothing), (nothing, rows), (rows, np.full(n, EMPTY))]


def expected(tokenizer, query, evidence, max_length):
    """What the tokenizer itself gives for one pair, one text alone, or nothing."""
    options = {"return_token_type_ids": True, "max_length": max_length, "padding": False}
    if query is None or evidence is None:
        return tokenizer(query or evidence or "", truncation=True, **options)
    batch = tokenizer([query], [evidence], truncation="only_second", **options)  # a lone call drops an empty text
    return {key: values[0] for key, values in batch.items()}


@pytest.mark.parametrize("max_length", [64, 20])
def test_assembled_pairs_are_the_tokenizers_own(tokenizer, max_length):
    n = 40
    tricky = ["", "  two  spaces ", "Émile's naïve café", "[SEP] inside", "tab\tand\nnewline", "日本語", "no"]
    queries = random_texts(n, 1, longest=3)
    evidence = random_texts(n - len(tricky), 2, longest=25) + tricky
    data = table(queries, evidence, [0] * n)
    encoded = encode_pairs(tokenizer, data, max_length)
    everyone = np.arange(n)
    cut = pair_lengths(encoded, *encoded.texts(everyone, everyone))[2]
    assert (cut > 0).any() == (max_length == 20)  # the short window is there to cut
    for rows, donors in conditions(n):
        where = encoded.texts(rows, donors)
        batch = assemble(encoded, *where)
        lengths = input_lengths(encoded, *where)
        for t in range(n):
            query = None if rows[t] == NULL else queries[rows[t]]
            text = None if donors[t] == NULL else "" if donors[t] == EMPTY else evidence[donors[t]]
            own = expected(tokenizer, query, text, max_length)
            size = int(lengths[t])
            assert batch.ids[t, :size].tolist() == own["input_ids"], (query, text)
            assert (batch.ids[t, size:] == tokenizer.pad_token_id).all()
            if "token_type_ids" in own:
                assert batch.types[t, :size].tolist() == own["token_type_ids"], (query, text)
            if batch.mask is not None:
                assert batch.mask[t].tolist() == [1] * size + [0] * (batch.ids.shape[1] - size)


def test_neither_side_is_the_empty_input(tokenizer):
    data = table(["a cat"], ["a dog"], [0])
    encoded = encode_pairs(tokenizer, data, 32)
    nothing = np.array([NULL])
    batch = assemble(encoded, *encoded.texts(nothing, nothing))
    assert batch.ids[0].tolist() == tokenizer("")["input_ids"]


def test_query_is_kept_and_evidence_is_cut(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bert_tokenizer(tmp_path))
    data = table(["red blue green"], ["cat dog bird runs sleeps sits"], [0])
    encoded = encode_pairs(tokenizer, data, 10)
    at = np.array([0])
    query, evidence, cut = pair_lengths(encoded, *encoded.texts(at, at))
    # 10 tokens = 3 special + 3 of the query + 4 of the evidence, so 6 - 4 = 2 are cut
    assert (query[0], evidence[0], cut[0]) == (3, 4, 2)
    text = tokenizer.convert_ids_to_tokens(assemble(encoded, *encoded.texts(at, at)).ids[0])
    assert text == ["[CLS]", "red", "blue", "green", "[SEP]", "cat", "dog", "bird", "runs", "[SEP]"]


def test_no_room_for_evidence_is_an_error(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bert_tokenizer(tmp_path))
    data = table(["red " * 9, "red"], ["cat", "dog"], [0, 1])
    encoded = encode_pairs(tokenizer, data, 12)
    with pytest.raises(ReaderError, match=r"no room for evidence.*in 1 of 2 pairs.*max_length=12.*at least 13"):
        input_lengths(encoded, *encoded.texts(np.arange(2), np.arange(2)))
    # alone, the query is cut like any text, and beside an empty evidence it fits exactly
    assert input_lengths(encoded, *encoded.texts(np.array([0]), np.array([NULL]))).tolist() == [11]
    assert input_lengths(encoded, *encoded.texts(np.array([0]), np.array([EMPTY]))).tolist() == [12]


def test_a_window_smaller_than_the_special_tokens_is_an_error(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bert_tokenizer(tmp_path))
    with pytest.raises(ReaderError, match="3 special tokens surround a pair, got max_length=4"):
        encode_pairs(tokenizer, table(["red"], ["cat"], [0]), 4)


def test_layouts_of_bert(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bert_tokenizer(tmp_path))
    single, pair = layouts(tokenizer)
    assert (len(single), len(pair), pair.a, pair.b) == (2, 3, 0, 1)
    assert pair.between[1].tolist() == [0]
    assert pair.after[1].tolist() == [1]


def test_truncation_of_pairs(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bert_tokenizer(tmp_path))
    beginning = "cat dog bird runs"
    data = table(["red", "blue", "green"], [f"{beginning} yes", f"{beginning} no", "tree"], [0, 1, 0])
    rows, cycle = np.arange(3), np.array([1, 2, 0])
    cut = encode_pairs(tokenizer, data, 8)  # 3 special + 1 + 4: the fifth token of the evidence is cut
    assert [part.tolist() for part in seen(cut, rows, rows)] == [[True, True, False], [True, True, True]]
    # Item 0 sees text 1, cut, which begins like its own; item 1 the tree; item 2 text 0, cut.
    assert [part.tolist() for part in seen(cut, rows, cycle)] == [[True, False, True], [True, False, False]]
    assert same_input(cut, rows, np.array([1, 0, 0])).tolist() == [True, True, False]
    roomy = encode_pairs(tokenizer, data, 9)
    assert [part.tolist() for part in seen(roomy, rows, cycle)] == [[False] * 3, [False] * 3]


def test_items_without_query_or_evidence(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bert_tokenizer(tmp_path))
    data = table(["red", "blue"], ["cat", "dog"], [0, 1])
    everyone, nothing = np.arange(2), np.full(2, NULL)
    query_only = encode_pairs(tokenizer, data.under(everyone, nothing, name="query-only"), 16)
    evidence_only = encode_pairs(tokenizer, data.under(nothing, everyone, name="evidence-only"), 16)
    assert (
        assemble(query_only, *query_only.texts(everyone, everyone)).ids.tolist()
        == tokenizer(["red", "blue"])["input_ids"]
    )
    assert (
        assemble(evidence_only, *evidence_only.texts(everyone, everyone)).ids.tolist()
        == tokenizer(["cat", "dog"])["input_ids"]
    )


def test_a_tokenizer_that_merges_across_texts_is_refused(tmp_path):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(bert_tokenizer(tmp_path))

    class Merging:
        """Swaps the two texts of every pair but the probe: parts cannot reproduce that."""

        def __init__(self, inner):
            self.inner = inner
            self.pad_token_id, self.truncation_side = 0, "right"

        def __call__(self, text, pair=None, **options):
            if pair is None:
                return self.inner(text, **options)
            return self.inner(pair, text, **options)

    with pytest.raises(ReaderError, match="joins the texts of item 0 otherwise than from their parts"):
        encode_pairs(Merging(tokenizer), table(["red"], ["cat"], [0]), 16)
