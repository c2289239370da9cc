"""Small pieces of HTML. Every text that is not ours goes through `text`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from evidep.report.escape import markup, one_line

_IN_BRACKETS: Final = re.compile(r"\s*\((--|in Python )[^)]*\)")
_OPTION: Final = re.compile(r"(?<![\w-])--([a-z][a-z-]*)( [A-Z][A-Z_]+)?")


def text(value: object, limit: int | None = None) -> str:
    """A stranger's text between tags or inside a quoted attribute."""
    return markup(one_line(value, limit)).replace("$", "&#36;").replace("{", "&#123;").replace("}", "&#125;")


def page_words(message: str) -> str:
    """A sentence of the package in the page's words: options of the command line have no place here."""
    message = _IN_BRACKETS.sub("", message)
    return _OPTION.sub(r"the setting \1", message)


def notice(message: str, *, kind: str = "note") -> str:
    """A sentence in a box: kind is note, error or done. Errors are announced at once by screen readers."""
    role = "alert" if kind == "error" else "status"
    return f'<div class="ev-notice ev-{kind}" role="{role}">{text(page_words(message))}</div>'


def table(caption: str, heads: Sequence[str], rows: Iterable[Sequence[object]], numeric: Iterable[int] = ()) -> str:
    """A table with a caption and column headings; `numeric` names the columns set to the right."""
    right = set(numeric)

    def cell(at: int, value: object) -> str:
        side = ' class="ev-num"' if at in right else ""
        return f'<th scope="row"{side}>{text(value)}</th>' if at == 0 else f"<td{side}>{text(value)}</td>"

    head = "".join(
        f'<th scope="col"{" class=ev-num" if at in right else ""}>{text(name)}</th>' for at, name in enumerate(heads)
    )
    body = "".join(f"<tr>{''.join(cell(at, value) for at, value in enumerate(row))}</tr>" for row in rows)
    return (
        f'<div class="ev-scroll" tabindex="0" role="region" aria-label="{text(caption)}"><table class="ev-table">'
        f"<caption>{text(caption)}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def bullets(heading: str, sentences: Iterable[object]) -> str:
    """A heading and a list, or nothing where there are no sentences."""
    items = "".join(f"<li>{text(page_words(str(sentence)))}</li>" for sentence in sentences)
    return f"<h3>{text(heading)}</h3><ul>{items}</ul>" if items else ""


def progress(stage: str, done: int, total: int, seconds: float) -> str:
    """A progress bar with words."""
    share = done / total if total else 0.0
    return (
        f'<div class="ev-progress" role="status" aria-live="polite"><progress max="1" value="{share:.3f}" '
        f'aria-label="progress of the audit"></progress><span>{text(stage)} ({share:.0%}, {seconds:.0f} s)</span></div>'
    )


def image(data_uri: str, alternative: str) -> str:
    """A picture that is part of the page."""
    return f'<img class="ev-figure" src="{data_uri}" alt="{text(alternative)}">'
