"""Text that came with the data, made harmless for the place where it is shown.

Names of datasets, columns, labels and readers are strangers' text. Every one of them passes through a function of
this file before it enters Markdown, HTML, YAML, a shell line, a figure or a terminal.
"""

from __future__ import annotations

import html
import re
import shlex
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_KEPT_FORMATS: Final = frozenset("\u200c\u200d")
"""The joiners: Persian, Indic scripts and emoji are misspelt without them."""
_REPLACEMENT: Final = "\ufffd"
_FIRST_STRONG_ISOLATE, _POP_ISOLATE = "\u2068", "\u2069"
_INLINE: Final = re.compile(r"([\\`*_\[\]|~$])")
_BLOCK_START: Final = re.compile(r"^(\d{0,9})([#+\-=:.)])")
_LINK_STARTS: Final = re.compile(r"(?i)(https?:|ftp:|www\.|mailto:|xmpp:|@)")
_ZERO_WIDTH_SPACE: Final = "\u200b"


def one_line(text: object, limit: int | None = None) -> str:
    """The text on one line, without characters that act instead of showing.

    Whitespace of every kind becomes a space. Control characters (the escape that colours a terminal), direction
    overrides, zero-width and private characters and lone surrogates become U+FFFD.

    Args:
        text: Any value; its `str` is used.
        limit: Most characters to keep; the last of them is then an ellipsis.
    """
    line = " ".join(str(text).split())
    line = "".join(_REPLACEMENT if _acts(character) else character for character in line)
    return shorten(line, limit) if limit is not None else line


def shorten(text: str, limit: int) -> str:
    """The text in at most `limit` characters, its middle left out where it is longer (both ends tell names apart)."""
    if len(text) <= limit:
        return text
    head = limit // 2
    tail = limit - 1 - head
    return text[:head] + "…" + (text[-tail:] if tail > 0 else "")


def code(text: object) -> str:
    """A Markdown code span that holds the text literally: nothing inside is markup, the fence outruns any backticks.

    HTML comment marks are split by a zero-width space, so that a search for a marker in the file never finds one here.
    """
    line = one_line(text) or " "
    line = line.replace("<!--", f"<!{_ZERO_WIDTH_SPACE}--").replace("-->", f"--{_ZERO_WIDTH_SPACE}>")
    fence = "`" * (1 + max((len(run) for run in re.findall(r"`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{_isolated(line)}{pad}{fence}"


def cell(text: object) -> str:
    """A code span for a table cell: the pipe, which ends a cell even inside a code span, becomes a broken bar."""
    return code(one_line(text).replace("|", "¦"))


def prose(text: object) -> str:
    """A sentence for Markdown: reads the same, and nothing in it becomes a link, an image, a tag or a new block."""
    line = html.escape(one_line(text), quote=False)
    line = _LINK_STARTS.sub(lambda match: match[0][:-1] + _ZERO_WIDTH_SPACE + match[0][-1], line)
    return _isolated(_BLOCK_START.sub(r"\1\\\2", _INLINE.sub(r"\\\1", line)))


def markup(text: object) -> str:
    """Text for HTML, XML or SVG, between tags or inside a quoted attribute."""
    return html.escape(one_line(text), quote=True)


@dataclass(frozen=True, slots=True)
class Quoting:
    """How strangers' text is written into sentences of ours: names and values, and whole sentences."""

    name: Callable[[object], str]
    sentence: Callable[[object], str]


PLAIN: Final = Quoting(one_line, one_line)
MARKDOWN: Final = Quoting(code, prose)
MARKDOWN_CELL: Final = Quoting(cell, prose)


def front_matter(values: Mapping[str, Any]) -> str:
    """YAML front matter, fences included. Strings are quoted by the YAML library, so none can end it early."""
    import yaml

    body = yaml.safe_dump(dict(values), sort_keys=False, allow_unicode=False, default_flow_style=False, width=10_000)
    return f"---\n{body}---\n"


def fenced(text: str, language: str = "") -> str:
    """A Markdown code block whose fence is longer than any run of backticks inside."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall(r"`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def shell(text: str) -> str:
    """One word for a POSIX shell; text with invisible or controlling characters in the $'...' form of bash and zsh."""
    if not any(_acts(character) or character in "\n\r\t\v\f" for character in text):
        return shlex.quote(text)
    return "$'" + "".join(_shell_character(character) for character in text) + "'"


def figure_text(text: object, limit: int | None = None) -> str:
    """Text for matplotlib: dollar signs stay dollar signs."""
    return one_line(text, limit).replace("$", r"\$")


def _acts(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn"} and character not in _KEPT_FORMATS


def _isolated(text: str) -> str:
    """Text with right-to-left letters, fenced so that it cannot reorder the text around it."""
    if any(unicodedata.bidirectional(character) in {"R", "AL", "AN"} for character in text):
        return f"{_FIRST_STRONG_ISOLATE}{text}{_POP_ISOLATE}"
    return text


def _shell_character(character: str) -> str:
    if character in "\\'":
        return "\\" + character
    if character.isprintable() and not _acts(character):
        return character
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x80 else (f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}")
