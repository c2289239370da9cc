"""Packets that a visitor drops: read, shown, compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evidence_space import limits, plots, result_view
from evidence_space.uploads import shown_name
from evidep.audit.packet import AuditPacket, check_document
from evidep.errors import EvidepError, PacketError
from evidep.report.card import audit_card


def read_packet(path: str | Path | None) -> AuditPacket:
    """A packet from an uploaded file.

    Raises:
        PacketError: No file, too large, no packet, or one that cannot be shown.
    """
    if not path:
        raise PacketError("no packet yet: choose the packet.json of an audit")
    file, name = Path(path), shown_name(path)
    size = file.stat().st_size
    if size > limits.MAX_PACKET_BYTES:
        raise PacketError(
            f"{name} is {size / 1024**2:.0f} MB; a packet has at most {limits.MAX_PACKET_BYTES // 1024**2}"
        )
    try:
        packet = AuditPacket(AuditPacket.load(file).document)
    except PacketError as error:
        raise PacketError(str(error).replace(str(file), name)) from error
    return _showable(packet, name)


def packet_of(document: Any, name: str = "packet") -> AuditPacket:
    """A packet from a document that came through the API.

    Raises:
        PacketError: It is none, or cannot be shown.
    """
    try:
        size = len(json.dumps(document))
    except (TypeError, ValueError, RecursionError) as error:
        raise PacketError(f"{name} is no JSON document: {error}") from error
    if size > limits.MAX_PACKET_BYTES:
        raise PacketError(f"{name} is larger than {limits.MAX_PACKET_BYTES // 1024**2} MB")
    check_document(document, name)
    return _showable(AuditPacket(document), name)


def _showable(packet: AuditPacket, name: str) -> AuditPacket:
    """The packet, once everything that the page shows of it could be made.

    A foreign one may fit the schema and yet contradict itself.
    """
    try:
        plots.diagnostic_map(packet)
        plots.arms(packet)
        plots.shuffles(packet)
        plots.ladder(packet)
        for part in (
            result_view.verdict,
            result_view.numbers,
            result_view.explanation,
            result_view.warnings,
            audit_card,
        ):
            part(packet)
    except EvidepError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        raise PacketError(
            f"{name} fits the schema of packets but contradicts itself ({type(error).__name__}: {str(error)[:100]}): "
            "it was not written by this evidep, or was changed by hand"
        ) from error
    return packet


def comparison(old: AuditPacket, new: AuditPacket) -> str:
    """Two packets side by side, as Markdown.

    Raises:
        PacketError: They cannot be compared.
    """
    from evidep.audit.compare import compare
    from evidep.report.comparison import comparison_markdown

    try:
        return comparison_markdown(compare(old, new))
    except EvidepError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise PacketError(f"the packets cannot be compared ({type(error).__name__}: {str(error)[:100]})") from error
