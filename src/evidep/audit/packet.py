"""The audit packet: one JSON document that every table, figure, card and gate is derived from."""

from __future__ import annotations

import importlib.resources
import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from evidep.errors import CacheError, PacketError

SCHEMA_VERSION: Final = "1.0"
PACKET_FILE: Final = "packet.json"
ITEMS_FILE: Final = "items.parquet"


@dataclass(frozen=True, slots=True, eq=False)
class AuditPacket:
    """The result of an audit.

    Attributes:
        document: The packet as plain JSON values (see docs/formats.md); undefined numbers are None beside a `reason`.
        items: Per-item results (one row per reader, seed and item), or None for a packet read without them.
    """

    document: Mapping[str, Any]
    items: pa.Table | None = None

    @property
    def region(self) -> str:
        """The region that the audit ends in."""
        return str(self.document["diagnosis"]["region"])

    @property
    def signature(self) -> str:
        """One line that pins the numbers."""
        return str(self.document["signature"])

    def __getitem__(self, key: str) -> Any:
        return self.document[key]

    def __str__(self) -> str:
        from evidep.report.text import summary

        return summary(self)

    def to_dict(self) -> dict[str, Any]:
        """A deep copy of the document, ready for `json.dumps`."""
        copy: dict[str, Any] = json.loads(self.to_json())
        return copy

    def to_json(self) -> str:
        """The document as it is saved: indented, keys in the order of the schema, no NaN."""
        return json.dumps(self.document, indent=2, ensure_ascii=False, allow_nan=False)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write packet.json and items.parquet into `folder` (made if missing) and return the folder.

        Raises:
            CacheError: The folder cannot be written.
        """
        target = Path(folder)
        try:
            target.mkdir(parents=True, exist_ok=True)
            if self.items is not None:
                import pyarrow.parquet as pq

                partial = target / f".{ITEMS_FILE}.{os.getpid()}.tmp"
                pq.write_table(self.items, partial)
                partial.replace(target / ITEMS_FILE)
            partial = target / f".{PACKET_FILE}.{os.getpid()}.tmp"
            partial.write_text(self.to_json() + "\n", encoding="utf-8")
            partial.replace(target / PACKET_FILE)
        except OSError as error:
            raise CacheError(f"cannot write the packet to {target}: {error.strerror or error}") from error
        return target

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> AuditPacket:
        """Read a packet from its folder or its JSON file, checked against the schema.

        Raises:
            PacketError: No such file, no JSON, no packet, or a schema version that this release cannot read.
        """
        file = Path(path)
        if file.is_dir():
            file = file / PACKET_FILE
        try:
            document = json.loads(file.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise PacketError(f"no audit packet at {file}; `evidep audit ... --out DIR` writes one") from error
        except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
            raise PacketError(f"{file} is no audit packet: {error}") from error
        check_document(document, str(file))
        items = None
        if file.with_name(ITEMS_FILE).is_file() and file.name == PACKET_FILE:
            import pyarrow.parquet as pq

            try:
                items = pq.read_table(file.with_name(ITEMS_FILE))
            except (OSError, pa.ArrowException) as error:
                raise PacketError(f"cannot read {file.with_name(ITEMS_FILE)}: {error}") from error
        return cls(document, items)


@cache
def packet_schema() -> dict[str, Any]:
    """The published JSON Schema of the packet."""
    text = (importlib.resources.files("evidep.audit") / "packet.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


def check_document(document: Any, name: str = "packet") -> None:
    """Raise PacketError, in one line, where a document is no packet that this release understands."""
    import jsonschema

    if not isinstance(document, dict) or "schema_version" not in document:
        raise PacketError(f"{name} is no audit packet: it has no schema_version")
    version = str(document["schema_version"])
    if version.split(".")[0] != SCHEMA_VERSION.split(".")[0]:
        raise PacketError(
            f"{name} has schema version {version}; this evidep reads {SCHEMA_VERSION.split('.')[0]}.x: "
            "install the evidep release that wrote it, or audit again"
        )
    errors = sorted(jsonschema.Draft202012Validator(packet_schema()).iter_errors(document), key=lambda e: list(e.path))
    if errors:
        where = "/".join(str(part) for part in errors[0].absolute_path) or "(top)"
        raise PacketError(f"{name} breaks the packet schema at {where}: {errors[0].message[:200]}")


def plain(value: Any) -> Any:
    """A value as plain JSON: numpy scalars unpacked, tuples as lists, non-finite numbers as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return [plain(item) for item in value.tolist()]
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bool | np.bool_):
        return bool(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    return value
