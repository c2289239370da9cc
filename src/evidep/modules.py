"""The bundled evaluate modules: where they lie, and how `evaluate.load("delta_evi")` finds them offline.

evaluate looks for a bare name in the working directory, on the Hub, and then in its modules cache. `register_modules`
writes that cache entry. Nothing here imports evaluate (which takes seconds and pulls torch).
"""

from __future__ import annotations

import hashlib
import importlib.resources
import os
import shutil
import tempfile
from pathlib import Path

from evidep.errors import CacheError, SettingError


def module_names() -> tuple[str, ...]:
    """Names of the bundled evaluate modules."""
    root = _root()
    return tuple(sorted(entry.name for entry in root.iterdir() if (entry / f"{entry.name}.py").is_file()))


def metric_path(name: str) -> str:
    """Absolute path of a bundled module, for `evaluate.load(evidep.metric_path("delta_evi"))`; never asks a network.

    Raises:
        SettingError: No module of that name.
    """
    if name not in module_names():
        raise SettingError(f"no evaluate module {name!r}; the bundled ones are {', '.join(module_names())}")
    return str(_root() / name)


def modules_cache() -> Path:
    """Evaluate's modules cache: HF_MODULES_CACHE, else HF_HOME/modules, else under the user's cache folder."""
    cache_home = os.environ.get("XDG_CACHE_HOME", "~/.cache")
    hf_home = Path(os.environ.get("HF_HOME", str(Path(cache_home) / "huggingface"))).expanduser()
    return Path(os.environ.get("HF_MODULES_CACHE", str(hf_home / "modules"))).expanduser()


def register_modules(*names: str) -> list[Path]:
    """Make bundled modules loadable by bare name from any directory, offline, and return their cache folders.

    Several processes may register at once. The newest registration wins where an older release left one.

    Raises:
        SettingError: No module of that name.
        CacheError: The cache cannot be written.
    """
    return [_register(Path(metric_path(name)), name) for name in names or module_names()]


def _root() -> Path:
    return Path(str(importlib.resources.files("evidep.metrics")))


def _register(source: Path, name: str) -> Path:
    files = [file for file in sorted(source.glob("*.py")) if file.name not in ("app.py", "__init__.py")]
    digest = hashlib.sha256(b"\0".join(file.name.encode() + b"\0" + file.read_bytes() for file in files)).hexdigest()
    cache = modules_cache()
    # evaluate keeps every kind of module under "metrics" and takes the folder's name for a 64-digit hash.
    root = cache / "evaluate_modules" / "metrics"
    module = root / f"evaluate-metric--{name}"
    target = module / digest
    try:
        module.mkdir(parents=True, exist_ok=True)
        for package in (cache, root.parent, root, module):
            (package / "__init__.py").touch()
        if (target / f"{name}.py").is_file():
            os.utime(target / f"{name}.py")
            return target
        partial = Path(tempfile.mkdtemp(dir=module, prefix=".partial-"))
        for file in files:
            shutil.copyfile(file, partial / file.name)
        (partial / "__init__.py").touch()
        try:
            partial.rename(target)
        except OSError:  # another process was first; its files are the same
            shutil.rmtree(partial, ignore_errors=True)
            if not (target / f"{name}.py").is_file():
                raise
    except OSError as error:
        raise CacheError(
            f"cannot register {name} under {module}: {error.strerror}; set HF_MODULES_CACHE to a folder you can write"
        ) from error
    return target
