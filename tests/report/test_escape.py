from __future__ import annotations

import re
import subprocess
import unicodedata

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from report.report_packets import HOSTILE

from evidep.report.escape import cell, code, fenced, figure_text, front_matter, markup, one_line, prose, shell, shorten

NASTY = [
    HOSTILE,
    "a|b",
    "a\\|b",
    "`", "``x`", " ` ", "x`",
    "<script>alert(1)</script>", "<!-- evidep:end -->", "<b>", "&lt;b&gt;",
    "![i](http://evil.example/p.png)", "[a](javascript:x)", "[a][b]", "<http://a.example>", "www.evil.example",
    "me@evil.example", "https://evil.example/x_y_z",
    "---", "# x", "> x", "1. x", "- x", "+ x", "=== ", "    x", "\tx",
    "*a* _b_ **c** ~~d~~ $e$ $$f$$",
    "a\nb", "a\r\n\r\nb", "a\u2028b", "a\x85b", "a\x0bb",
    ": - {}", "{{ x }}", "{% x %}", "%TAG", "!!python/object:x", "&anchor *alias", "yes", "null", "1e3", "2020-01-01",
    "\u202eabc\u202c", "\u2066x", "\u200b", "\ufeff", "\x1b[31mred", "\x00", "\ud800", "\ue000",
    "שלום", "سلام | دنیا", "می‌خواهم",
    "'; rm -rf ~ #", "$(id)", "`id`", "$HOME", "!!", "a'b\"c", "\\", "\\\\'", "", " ",
]  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(NASTY),
    st.text(alphabet=st.sampled_from(list("ab1 \n\t|`*_[]()<>!&;#-+=~$\\\"':/.@{}\u202e\x1b\u0634")), max_size=25),
    st.text(max_size=15),
)
INVISIBLE = "\u2068\u2069\u200b"


def parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def inline(markdown: str) -> list[tuple[str, str]]:
    """Kinds and contents of all inline tokens of a document."""
    return [
        (token.type, token.content)
        for block in parser().parse(markdown)
        if block.type == "inline"
        for token in block.children or []
        if not (token.type == "text" and token.content == "")
    ]


def visible(text: str) -> str:
    return text.translate(dict.fromkeys(map(ord, INVISIBLE)))


def shown(text: str) -> str:
    return visible(one_line(text))


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_one_line_has_no_line_break_and_no_acting_character(text: str) -> None:
    line = one_line(text)
    assert len(line.splitlines()) <= 1
    bad = {c for c in line if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Zl", "Zp")} - {"\u200c", "\u200d"}
    assert not bad
    assert one_line(line) == line


def test_one_line_keeps_letters_and_joiners_and_shows_what_it_removed() -> None:
    assert one_line("  a\n b\t") == "a b"
    assert one_line("می‌خواهم 漢字 é 👩‍🚀") == "می‌خواهم 漢字 é 👩‍🚀"
    assert one_line("a\u202eb\x1b[0m") == "a\ufffdb\ufffd[0m"


@pytest.mark.parametrize(("limit", "expected"), [(9, "abcdefghi"), (8, "abcd…ghi"), (3, "a…i"), (2, "a…"), (1, "…")])
def test_shorten_keeps_both_ends(limit: int, expected: str) -> None:
    assert shorten("abcdefghi", limit) == expected
    assert len(expected) <= limit


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_code_is_one_literal_code_span(text: str) -> None:
    tokens = inline(f"before {code(text)} after")
    assert [kind for kind, _ in tokens] == ["text", "code_inline", "text"]
    assert visible(tokens[1][1]).strip() == (shown(text) or "").strip()


@given(TEXTS, TEXTS)
@settings(max_examples=100, deadline=None)
def test_cells_never_break_a_table(left: str, right: str) -> None:
    table = f"| a | b |\n| --- | --- |\n| {cell(left)} | {cell(right)} |\n| x | y |\n"
    tokens = parser().parse(table)
    assert [token.type for token in tokens].count("td_open") == 4
    cells = [token.children or [] for token in tokens if token.type == "inline"][2:4]
    for children, text in zip(cells, (left, right), strict=True):
        assert [child.type for child in children] == ["code_inline"]
        assert visible(children[0].content).strip() == shown(text).replace("|", "¦").strip()


@given(TEXTS)
@settings(max_examples=100, deadline=None)
@pytest.mark.parametrize("place", ["{}", "- {}", "say {} here"])
def test_prose_stays_plain_text_wherever_it_stands(place: str, text: str) -> None:
    markdown = place.format(prose(text))
    blocks = {token.type for token in parser().parse(markdown)}
    assert blocks <= {
        "paragraph_open", "paragraph_close", "inline", "bullet_list_open", "bullet_list_close", "list_item_open",
        "list_item_close",
    }  # fmt: skip
    tokens = inline(markdown)
    assert {kind for kind, _ in tokens} <= {"text", "text_special"}
    said = visible("".join(content for _, content in tokens))
    assert said.strip() == visible(place.removeprefix("- ").format(shown(text))).strip()


@pytest.mark.parametrize(
    "text", ["see https://evil.example", "www.evil.example", "me@evil.example", "HTTP://X.example"]
)
def test_prose_leaves_nothing_for_link_finders(text: str) -> None:
    assert not re.search(r"(?i)https?://|www\.\w|\w@\w", prose(text))


def test_comment_marks_never_survive() -> None:
    for written in (code("<!-- evidep:end -->"), cell("<!-- x -->"), prose("<!-- x -->"), markup("<!-- x -->")):
        assert "<!--" not in written
        assert "-->" not in written


@given(TEXTS)
@settings(max_examples=100, deadline=None)
def test_front_matter_reads_back(text: str) -> None:
    values = {"pretty_name": one_line(text), "tags": ["x", one_line(text)]}
    written = front_matter(values)
    lines = written.split("\n")
    assert lines[0] == "---"
    assert lines[-2:] == ["---", ""]
    assert "---" not in lines[1:-2]
    assert yaml.safe_load("\n".join(lines[1:-2])) == values


@given(st.lists(TEXTS.filter(lambda text: "\x00" not in text and not re.search("[\ud800-\udfff]", text)), max_size=6))
@settings(max_examples=10, deadline=None)
def test_shell_words_arrive_as_they_were(texts: list[str]) -> None:
    command = "printf '%s\\0' " + " ".join(shell(text) for text in texts) if texts else "printf ''"
    assert "\n" not in command
    got = subprocess.run(["bash", "-c", command], capture_output=True, check=True, env={"LC_ALL": "C.UTF-8"}).stdout
    assert got.decode().split("\x00")[:-1] == texts


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_fences_hold(text: str) -> None:
    tokens = parser().parse(fenced(one_line(text), "bash") + "\n\nafter")
    assert [token.type for token in tokens] == ["fence", "paragraph_open", "inline", "paragraph_close"]
    assert tokens[0].content == one_line(text) + "\n"


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_figure_text_is_never_mathematics(text: str) -> None:
    from matplotlib.cbook import is_math_text

    assert not is_math_text(figure_text(text))
    assert figure_text("a $x$ b").replace(r"\$", "$") == "a $x$ b"


@given(TEXTS)
@settings(max_examples=60, deadline=None)
def test_markup_is_safe_in_text_and_attribute(text: str) -> None:
    import xml.etree.ElementTree as ET

    element = ET.fromstring(f'<t a="{markup(text)}">{markup(text)}</t>')
    assert element.text in (one_line(text), None)
    assert element.get("a") == one_line(text)
    assert len(element) == 0
