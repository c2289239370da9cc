"""The audit: plan, cells, packet.

The package is callable: `evidep.audit(dataset, ...)` is `evidep.audit.api.audit(dataset, ...)`. Importing a submodule
binds the package to the name `evidep.audit`, so a plain function of that name would vanish; see docs/decisions.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any


class _CallablePackage(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from evidep.audit.api import audit

        return audit(*args, **kwargs)

    @property
    def __signature__(self) -> Any:
        import inspect

        from evidep.audit.api import audit

        return inspect.signature(audit)


sys.modules[__name__].__class__ = _CallablePackage
