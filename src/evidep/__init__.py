"""Evidence dependence: does a benchmark need the evidence that it hands to a system?

The public names are loaded on first use, so that `import evidep` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from evidep.version import __version__

if TYPE_CHECKING:
    from evidep.audit.api import audit
    from evidep.audit.packet import AuditPacket
    from evidep.data.intervene import drop_evidence, permute_evidence
    from evidep.errors import EvidepError
    from evidep.modules import metric_path, register_modules
    from evidep.readers.callable import from_callable
    from evidep.readers.protocol import Reader
    from evidep.readers.registry import register_reader
    from evidep.types import ColumnRoles

_HOMES = {
    "AuditPacket": "evidep.audit.packet",
    "ColumnRoles": "evidep.types",
    "EvidepError": "evidep.errors",
    "Reader": "evidep.readers.protocol",
    "drop_evidence": "evidep.data.intervene",
    "from_callable": "evidep.readers.callable",
    "metric_path": "evidep.modules",
    "permute_evidence": "evidep.data.intervene",
    "register_modules": "evidep.modules",
    "register_reader": "evidep.readers.registry",
}

__all__ = [
    "AuditPacket",
    "ColumnRoles",
    "EvidepError",
    "Reader",
    "__version__",
    "audit",
    "drop_evidence",
    "from_callable",
    "metric_path",
    "permute_evidence",
    "register_modules",
    "register_reader",
]


def __getattr__(name: str) -> Any:
    if name == "audit":
        return importlib.import_module("evidep.audit")  # a callable package
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'evidep' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
