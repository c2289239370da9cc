"""The command that repeats an audit, built from its packet."""

from __future__ import annotations

from dataclasses import dataclass

from evidep.audit.packet import AuditPacket
from evidep.readers.registry import split_specs
from evidep.report.escape import shell

DEFAULT_MPDS_HIGH = 0.9
DEFAULT_FOLDS = 5


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A command, ready for a POSIX shell, and what it cannot say. `command` is None where no command line can."""

    command: str | None
    notes: tuple[str, ...]


def reproduction(packet: AuditPacket) -> Reproduction:
    """The `evidep audit` line with every column and setting spelled out, so that later defaults do not matter."""
    data, settings = packet["data"], packet["settings"]
    roles, report = data["roles"], data.get("report") or {}
    for column in roles["metadata"]:
        if "," in column or column != column.strip() or not column:
            return _only_in_python(f"metadata column {column}")
    readers = tuple(settings["readers"])
    if split_specs(",".join(readers)) != readers:
        return _only_in_python(f"readers {', '.join(readers)}")
    words = ["evidep", "audit", _operand(data["name"])]
    words += _option("--split", (report.get("evaluation") or {}).get("name"))
    words += _option("--train-split", (report.get("train") or {}).get("name") if data["train_rows"] else "none")
    for role in ("query", "evidence", "label", "group"):
        words += _option(f"--{role}", roles[role])
    words += _option("--metadata", ",".join(roles["metadata"]) or None)
    words += _option("--readers", ",".join(readers))
    words += _option("--reader-seeds", settings.get("reader_seeds", 1))
    words += _option("--shuffles", ",".join(settings["shuffles"]))
    words += _option("--ablations", ",".join(settings.get("ablations", ())) or "none")
    for name in ("k", "seed", "margin", "alpha"):
        words += _option(f"--{name}", settings[name])
    words += [
        f"--{name.replace('_', '-')}" for name in ("controls", "diagnostics", "auto_metadata") if settings.get(name)
    ]
    return Reproduction(" ".join(words), tuple(_notes(packet)))


def _only_in_python(what: str) -> Reproduction:
    return Reproduction(None, (f"No command line can name the {what}: use evidep.audit in Python.",))


def _notes(packet: AuditPacket) -> list[str]:
    data, settings = packet["data"], packet["settings"]
    notes = ["The data is named as in the packet: put the path or Hub id in its place where that is another one."]
    if data["train_rows"] is not None:
        notes.append("Readers were fitted on a train split: add --train where it came from other data.")
    if settings["mpds_high"] != DEFAULT_MPDS_HIGH:
        notes.append(f"mpds_high was {settings['mpds_high']:g}: it is set in Python, evidep.audit(mpds_high=...).")
    if settings.get("n_folds") not in (None, DEFAULT_FOLDS):
        notes.append(f"{settings['n_folds']} folds were made.")
    return notes


def _operand(text: str) -> str:
    """A positional argument; one that starts with a dash is kept from being read as an option."""
    return shell(f"./{text}" if text.startswith("-") else text)


def _option(name: str, value: object) -> list[str]:
    if value is None:
        return []
    text = str(value)
    return [f"{name}={shell(text)}"] if text.startswith("-") else [name, shell(text)]
