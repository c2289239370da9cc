"""The card as files: what `evidep card --out` and a pull request to a dataset contain."""

from __future__ import annotations

import json
from pathlib import Path

from evidep.audit.packet import ITEMS_FILE, PACKET_FILE, AuditPacket
from evidep.errors import CacheError, SettingError
from evidep.report.badge import badge_endpoint, badge_svg
from evidep.report.card import FIGURE_FOLDER, HEADING, audit_card


def write_card(packet: AuditPacket, out: Path, *, badge: bool = False, front_matter: bool = False) -> list[Path]:
    """Write card, packet and figures (and badge) and return their paths, the card's first.

    Args:
        packet: The audit. Its per-item results are not written.
        out: A folder (made if missing), or a file whose name ends in .md.
        badge: Whether to write badge.svg and badge.json too.
        front_matter: Whether the card begins with YAML front matter.

    Raises:
        SettingError: A file would be replaced that is no audit card, or a packet that belongs to another audit.
        CacheError: A file cannot be written.
    """
    from evidep.report.figures import save_figures

    card = out if out.suffix.lower() == ".md" else out / "README.md"
    folder = card.parent
    try:
        _check_replaceable(packet, card)
        AuditPacket(packet.document).save(folder)
        card.write_text(audit_card(packet, figures=True, front_matter=front_matter), encoding="utf-8")
        written = [card, folder / PACKET_FILE, *save_figures(packet, folder / FIGURE_FOLDER, ("png",))]
        if badge:
            svg, endpoint = folder / "badge.svg", folder / "badge.json"
            svg.write_text(badge_svg(packet), encoding="utf-8")
            endpoint.write_text(json.dumps(badge_endpoint(packet), ensure_ascii=False) + "\n", encoding="utf-8")
            written += [svg, endpoint]
    except OSError as error:
        raise CacheError(f"cannot write the card to {folder}: {error.strerror or error}") from error
    return written


def _check_replaceable(packet: AuditPacket, card: Path) -> None:
    if card.is_file() and HEADING not in card.read_text(encoding="utf-8", errors="replace"):
        raise SettingError(f"{card} exists and is no audit card; name another file, such as {card.parent / 'AUDIT.md'}")
    items, theirs = card.parent / ITEMS_FILE, card.parent / PACKET_FILE
    if items.is_file() and theirs.is_file() and theirs.read_text(encoding="utf-8").strip() != packet.to_json():
        raise SettingError(f"{card.parent} holds another audit; name another folder with --out")
