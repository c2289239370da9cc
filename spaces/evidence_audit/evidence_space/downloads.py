"""Files of one result, in a folder that lives as long as the answer is written."""

from __future__ import annotations

import zipfile
from pathlib import Path

from evidep.audit.packet import ITEMS_FILE, PACKET_FILE, AuditPacket
from evidep.report.badge import badge_svg
from evidep.report.card import audit_card
from evidep.report.figures import save_figures


def result_files(packet: AuditPacket, folder: str | Path, *, everything: bool = True) -> list[str]:
    """Write packet, card, badge, figures and all of them as one zip; the paths, the packet first.

    Args:
        packet: The audit.
        folder: Where to write.
        everything: Whether to draw the figures (some seconds) and zip everything.
    """
    target = Path(folder)
    packet.save(target)
    figures = save_figures(packet, target / "figures", ("png",)) if everything else []
    (target / "card.md").write_text(audit_card(packet, figures=bool(figures), front_matter=True), encoding="utf-8")
    (target / "badge.svg").write_text(badge_svg(packet), encoding="utf-8")
    files = [target / PACKET_FILE, target / "card.md", target / "badge.svg", *figures]
    if packet.items is not None:
        files.insert(1, target / ITEMS_FILE)
    if everything:
        archive = target / "audit.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for file in files:
                packed.write(file, file.relative_to(target))
        files.append(archive)
    return [str(file) for file in files]
