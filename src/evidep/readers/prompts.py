"""Prompts for causal language models: a template, its texts, and the token ids of both."""

from __future__ import annotations

import string
from collections.abc import Sequence
from typing import Any, Final

from evidep.errors import ReaderError, SettingError

FIELDS: Final = ("query", "evidence", "labels")
Texts = tuple[str | None, str | None]
"""(query, evidence); None is a side that is not shown."""


class Prompts:
    """A template whose {query} and {evidence} are filled with texts.

    Raises:
        SettingError: The template lacks a field or has an unknown one, or query and evidence share a line or end it.
    """

    def __init__(self, template: str) -> None:
        try:
            found = [name for _, name, _, _ in string.Formatter().parse(template) if name is not None]
        except ValueError as error:
            raise SettingError(f"template: {error} in {template!r}; write {{{{ for a brace") from error
        if sorted(set(found) & {"query", "evidence"}) != ["evidence", "query"] or set(found) - set(FIELDS):
            raise SettingError(
                f"template: expected {{query}} and {{evidence}}, and {{labels}} if wanted, got {template!r}"
            )
        lines = template.split("\n")
        if any("{query}" in line and "{evidence}" in line for line in lines):
            raise SettingError(
                "template: {query} and {evidence} must stand on different lines, so that each can be left out"
            )
        if template.rstrip().endswith(("{query}", "{evidence}")):
            raise SettingError("template: text must follow {query} and {evidence}, for example a last line 'Answer:'")
        self.template = template
        self._lines = lines

    def text(self, query: str | None, evidence: str | None, words: Sequence[str]) -> str:
        """The prompt; a side that is None takes its line with it."""
        hidden = [field for field, value in (("{query}", query), ("{evidence}", evidence)) if value is None]
        shown = "\n".join(line for line in self._lines if not any(field in line for field in hidden))
        return shown.format(query=query, evidence=evidence, labels=", ".join(word.strip() for word in words))

    def label_ids(self, tokenizer: Any, words: Sequence[str]) -> tuple[list[int], list[list[int]]]:
        """Ids that the tokenizer puts before every text, and the ids of each word as the prompt's continuation.

        Raises:
            SettingError: A word merges with the template's end, or two words have the same ids.
        """
        probe = self.text("a", "a", words)
        plain = _ids(tokenizer, [probe])[0]
        special = list(tokenizer(probe, verbose=False)["input_ids"])
        first = next((special[:at] for at in range(len(special)) if special[at : at + len(plain)] == plain), [])
        found = []
        for word in words:
            joined = _ids(tokenizer, [probe + word])[0]
            if joined[: len(plain)] != plain or len(joined) == len(plain):
                raise SettingError(
                    f"verbalisers: the tokenizer merges {word!r} with the end of the template; "
                    "let the template end with punctuation or a line break"
                )
            found.append(joined[len(plain) :])
        if len({tuple(ids) for ids in found}) < len(found):
            raise SettingError(f"verbalisers: the tokenizer cannot tell {list(words)} apart; choose other words")
        return first, found

    def token_ids(
        self, tokenizer: Any, texts: Sequence[Texts], words: Sequence[str], first: list[int], room: int
    ) -> tuple[list[list[int]], int]:
        """Ids of each prompt, at most `room` of them, and how many prompts had their evidence cut.

        Raises:
            ReaderError: A prompt does not fit even without evidence.
        """
        room -= len(first)
        ids = _ids(tokenizer, [self.text(query, evidence, words) for query, evidence in texts])
        cut = 0
        for at, (query, evidence) in enumerate(texts):
            if len(ids[at]) > room:
                ids[at] = self._cut(tokenizer, query, evidence, words, room, len(ids[at]))
                cut += 1
        return [first + own for own in ids], cut

    def _cut(
        self, tokenizer: Any, query: str | None, evidence: str | None, words: Sequence[str], room: int, size: int
    ) -> list[int]:
        """Shorten the evidence by whole tokens until the prompt fits; a lone query is shortened in the same way."""
        text = evidence if evidence is not None else query or ""
        ends = [
            end for _, end in tokenizer(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
        ]
        keep = len(ends) - (size - room)
        while keep > 0:
            part = text[: ends[keep - 1]]
            prompt = self.text(query, part, words) if evidence is not None else self.text(part, None, words)
            ids = _ids(tokenizer, [prompt])[0]
            if len(ids) <= room:
                return ids
            keep -= len(ids) - room
        raise ReaderError(
            f"no room for evidence after truncation: a prompt of {size} tokens does not fit into {room} even with its "
            "evidence cut away; raise max_length, shorten the template or drop items with such queries"
        )


def _ids(tokenizer: Any, texts: list[str]) -> list[list[int]]:
    if not texts:
        return []
    found: list[list[int]] = tokenizer(texts, add_special_tokens=False, return_attention_mask=False, verbose=False)[
        "input_ids"
    ]
    return found
