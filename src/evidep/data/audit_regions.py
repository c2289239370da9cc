"""Regions of audit packets, by task."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from evidep.errors import PacketError


def read_audit_regions(audits: Mapping[str, str | Path]) -> dict[str, tuple[str, str]]:
    """Region and source of audit packets, by task.

    Args:
        audits: Task name to the path of its audit packet (JSON with diagnosis.region and a data block).

    Returns:
        Task name to (region, what was audited).

    Raises:
        PacketError: If a file is no audit packet.
    """
    from typing import get_args, get_type_hints

    from evidep.types import Diagnosis

    regions = get_args(get_type_hints(Diagnosis)["region"])
    out = {}
    for task, name in audits.items():
        path = Path(name)
        try:
            packet = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise PacketError(f"{path}: cannot be read as JSON ({str(error).splitlines()[0]})") from error
        region = packet.get("diagnosis", {}).get("region") if isinstance(packet, dict) else None
        if not isinstance(region, str) or region not in regions:
            raise PacketError(
                f"{path}: expected an audit packet with diagnosis.region among {', '.join(regions)}, got {region!r}"
            )
        data = packet.get("data")
        if not isinstance(data, dict):
            raise PacketError(f"{path}: an audit packet has a 'data' block that says what was audited; this has none")
        label = next((str(data[key]) for key in ("name", "dataset", "path", "id", "fingerprint") if data.get(key)), "")
        out[task] = (region, label or path.name)
    return out
