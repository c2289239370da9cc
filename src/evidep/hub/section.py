"""The audit's section in somebody's README.md. Everything outside its markers stays byte for byte."""

from __future__ import annotations

import re
from typing import Final

from evidep.audit.packet import AuditPacket
from evidep.hub.errors import HubError
from evidep.report.card import audit_card

BEGIN: Final = b"<!-- evidep:begin -->"
END: Final = b"<!-- evidep:end -->"
NOTE: Final = "<!-- Written by evidep push-card; what is changed between these markers is overwritten. -->"
_HEADING: Final = re.compile(r"#{1,5} ")
_FENCE: Final = re.compile(r"(`{3,}|~{3,})")


def audit_section(packet: AuditPacket, figures: str) -> str:
    """The audit card as a section (its headings one level down), markers included.

    Args:
        packet: The audit.
        figures: Folder of the figures, relative to the README.
    """
    # Data that names itself like a marker must not end the section.
    card = audit_card(packet, figures=figures).replace("<!-- evidep:", "<!\u200b-- evidep:")
    return f"{BEGIN.decode()}\n{NOTE}\n\n{_one_level_down(card).strip()}\n\n{END.decode()}\n"


def with_section(readme: bytes | None, section: str) -> bytes:
    """The README with the section in the place of the old one, or at its end where there is none.

    Line ends are those of the README, or of the section that is replaced. Bytes before the begin marker and after the
    end marker are not touched.

    Args:
        readme: Present content, None where there is no README.
        section: The new section, markers included.

    Raises:
        HubError: Markers that do not come as one pair.
    """
    if not readme:
        return section.encode()
    begins, ends = readme.count(BEGIN), readme.count(END)
    if begins == ends == 0:
        newline = b"\r\n" if 2 * readme.count(b"\r\n") > readme.count(b"\n") else b"\n"
        gap = newline if readme.endswith(newline) else newline * 2
        return readme + gap + _lines(section, newline)
    begin, end = readme.find(BEGIN), readme.find(END)
    if begins != 1 or ends != 1 or end < begin:
        raise HubError(
            f"README.md has {begins} begin and {ends} end markers of an audit section, in no order that can be "
            f"replaced; leave one pair {BEGIN.decode()} ... {END.decode()} or none"
        )
    newline = b"\r\n" if readme[begin + len(BEGIN) :].startswith(b"\r\n") else b"\n"
    return readme[:begin] + _lines(section, newline).removesuffix(newline) + readme[end + len(END) :]


def _lines(text: str, newline: bytes) -> bytes:
    return newline.join(text.encode().split(b"\n"))


def _one_level_down(markdown: str) -> str:
    """Headings outside of code blocks with one more #."""
    fence: str | None = None
    lines = []
    for line in markdown.split("\n"):
        found = _FENCE.match(line)
        if fence is None and found:
            fence = found[1]
        elif fence is not None and line.strip() == fence:
            fence = None
        elif fence is None and _HEADING.match(line):
            line = f"#{line}"
        lines.append(line)
    return "\n".join(lines)
