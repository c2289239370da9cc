"""A badge for a dataset's page: an SVG to keep beside the card, or the JSON that shields.io draws from."""

from __future__ import annotations

import unicodedata
from typing import Any, Final

from evidep.audit.packet import AuditPacket
from evidep.report import facts
from evidep.report.escape import markup
from evidep.report.numerals import number

LABEL: Final = "evidence"
MESSAGES: Final = {
    "direct_coupling": "not needed: direct coupling",
    "latent_coupling": "not needed: latent coupling",
    "question_dominant": "not needed: question-dominant",
    "reader_limited": "undecided: calibrate first",
    "evidence_sensitive": "needed",
    "inconclusive": "undecided: too few items",
    "not_applicable": "audit not applicable",
}
COLOURS: Final = {
    "direct_coupling": "#9c3d00",
    "latent_coupling": "#9c3d00",
    "question_dominant": "#9c3d00",
    "reader_limited": "#5c5c5c",
    "evidence_sensitive": "#00598c",
    "inconclusive": "#5c5c5c",
    "not_applicable": "#5c5c5c",
}
"""White text on each of them has a contrast above 6; the message alone carries the meaning."""
HEIGHT: Final = 20
PAD: Final = 7


def badge_message(packet: AuditPacket) -> str:
    """The result in a few words; with ΔEvi where it is what the result rests on."""
    message = MESSAGES[packet.region]
    row = facts.headline(packet)
    if packet.region == "evidence_sensitive" and row is not None and facts.effect(row) is not None:
        message += f", ΔEvi {number(facts.effect(row), 2)}"
    return message


def badge_endpoint(packet: AuditPacket) -> dict[str, Any]:
    """The object for https://shields.io/badges/endpoint-badge (schemaVersion 1)."""
    return {
        "schemaVersion": 1,
        "label": LABEL,
        "message": badge_message(packet),
        "color": COLOURS[packet.region].removeprefix("#"),
    }


def badge_svg(packet: AuditPacket) -> str:
    """The badge as a self-contained SVG. Text lengths are fixed, so that every font fills the same space."""
    message = badge_message(packet)
    left, right = _width(LABEL) + 2 * PAD, _width(message) + 2 * PAD
    title = markup(f"{LABEL}: {message}")
    texts = "".join(
        f'<text x="{x + PAD}" y="14" textLength="{_width(text)}">{markup(text)}</text>'
        for x, text in ((0, LABEL), (left, message))
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="{HEIGHT}" role="img" '
        f'aria-label="{title}"><title>{title}</title>'
        f'<clipPath id="r"><rect width="{left + right}" height="{HEIGHT}" rx="3"/></clipPath>'
        f'<g clip-path="url(#r)"><rect width="{left}" height="{HEIGHT}" fill="#333"/>'
        f'<rect x="{left}" width="{right}" height="{HEIGHT}" fill="{COLOURS[packet.region]}"/></g>'
        f'<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">{texts}</g></svg>\n'
    )


def _width(text: str) -> int:
    """About how wide the text is in Verdana of 11 pixels."""
    narrow, wide = "ijl.,:;|'!()[] tfr1", "mwMWΔ@%"
    total = 0.0
    for character in text:
        if unicodedata.east_asian_width(character) in "WF":
            total += 11
        else:
            total += 4.3 if character in narrow else 9.5 if character in wide else 7.0
    return round(total)
