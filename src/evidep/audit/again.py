"""Auditing other data, or another revision, in the way of an existing packet."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from evidep.audit.packet import PACKET_FILE, AuditPacket
from evidep.data.files import is_data_file
from evidep.errors import PacketError

if TYPE_CHECKING:
    from evidep.audit.runner import Progress

_AT_REVISION: Final = re.compile(r"([\w.-]+/[\w.-]+)(?:@([\w./-]+))?")


def settings_of(packet: AuditPacket) -> dict[str, Any]:
    """The keyword arguments of `evidep.audit` that a packet's numbers were made with, data and train data left out.

    Left out too are screens that change no number that is compared (controls, diagnostics, automatic metadata).
    Readers that were objects of the caller's own come back as their names and need to be registered.
    """
    settings, data = packet["settings"], packet["data"]
    report = data.get("report") or {}
    return {
        "roles": {role: column for role, column in data["roles"].items() if column},
        "readers": tuple(settings["readers"]),
        "shuffles": tuple(settings["shuffles"]),
        "k": settings["k"],
        "seed": settings["seed"],
        "reader_seeds": settings.get("reader_seeds", 1),
        "margin": settings["margin"],
        "alpha": settings["alpha"],
        "mpds_high": settings["mpds_high"],
        "ablations": tuple(settings.get("ablations", ())),
        **({"n_folds": settings["n_folds"]} if settings.get("n_folds") else {}),
        "split": (report.get("evaluation") or {}).get("name"),
        "train_split": (report.get("train") or {}).get("name") if data["train_rows"] else "none",
    }


def is_packet(text: str) -> bool:
    """Whether a name from the command line is an audit folder or a packet file (and not data to be audited)."""
    path = Path(text)
    if path.is_dir():
        return (path / PACKET_FILE).is_file()
    if path.suffix != ".json" or not path.is_file():
        return False
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        return False
    return isinstance(document, dict) and "schema_version" in document


def data_and_revision(text: str) -> tuple[str, str | None]:
    """A file or folder as it is; ORG/NAME@REVISION as id and revision.

    Raises:
        PacketError: Neither a packet nor anything that could be data.
    """
    path = Path(text)
    if path.is_dir() and not any((path / name).is_file() for name in ("state.json", "dataset_dict.json")):
        raise PacketError(f"{text} holds neither a packet.json nor a dataset written by save_to_disk")
    if path.exists():
        return text, None
    found = _AT_REVISION.fullmatch(text)
    if found is None or is_data_file(Path(text).name):
        raise PacketError(
            f"{text} is no audit folder, packet.json or data file here, and no Hub dataset such as ORG/NAME@REVISION"
        )
    return found[1], found[2]


def audit_operand(
    text: str, settings: Mapping[str, Any], *, out: Path | None = None, progress: Progress | None = None
) -> AuditPacket:
    """The packet that a name stands for: read where it is one, else made by auditing the data that it names.

    Args:
        text: Audit folder, packet.json, data file, saved dataset, or ORG/NAME@REVISION.
        settings: Keyword arguments of `evidep.audit`, used where an audit has to be run.
        out: Folder for that audit.
        progress: Called with (stage, steps done, steps in all).

    Raises:
        EvidepError: Whatever reading or auditing raises.
    """
    if is_packet(text):
        return AuditPacket.load(text)
    from evidep.audit.api import audit

    data, revision = data_and_revision(text)
    return audit(data, revision=revision, out=out, progress=progress, **settings)
