"""The rooms of the project: who may import whom, what stays quick, what the project must not say."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "evidep"
RANK = {"stats": 0, "data": 1, "readers": 2, "audit": 3, "report": 4, "hub": 5, "cli": 6}
"""A room may import rooms of a lower rank, and itself. Files at the top (types, errors, ...) may be imported by all."""
ALLOWED_UP = {
    # print(packet) shows the summary, and the metadata reader wraps a statistic: both import inside a function.
    ("audit", "report"),
}


def imports(path: Path) -> set[str]:
    """evidep modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("evidep"):
            found.add(node.module)
        if isinstance(node, ast.Import):
            found |= {name.name for name in node.names if name.name.startswith("evidep")}
    return found


def room_of(module: str) -> str | None:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 and parts[1] in RANK else None


@pytest.mark.parametrize("room", sorted(RANK))
def test_imports_only_go_down(room):
    files = sorted((SOURCE / room).rglob("*.py")) if (SOURCE / room).is_dir() else [SOURCE / f"{room}.py"]
    assert files
    for path in files:
        if not path.exists():
            continue
        for module in imports(path):
            target = room_of(module)
            if target is None or target == room or (room, target) in ALLOWED_UP:
                continue
            assert RANK[target] < RANK[room], f"{path.relative_to(ROOT)} imports {module}"


def test_statistics_import_numpy_and_scipy_alone():
    """At the top of a file; inside functions statsmodels may be imported too."""
    for path in sorted((SOURCE / "stats").rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            names = []
            if isinstance(node, ast.Import):
                names = [name.name for name in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                top = name.split(".")[0]
                allowed = {"numpy", "scipy", "evidep", "__future__"} | set(sys.stdlib_module_names)
                assert top in allowed, f"{path.name} imports {name}"


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import evidep", ["numpy", "datasets", "sklearn", "torch", "pyarrow"]),
        ("import evidep.cli; evidep.cli.build_parser()", ["datasets", "sklearn", "torch", "matplotlib", "scipy"]),
        ("import evidep.readers.registry", ["sklearn", "torch", "transformers"]),
        ("import evidep.audit.runner", ["torch", "transformers", "evaluate", "matplotlib", "pandas"]),
        ("import evidep.modules", ["evaluate", "torch", "numpy"]),
    ],
)
def test_what_must_stay_quick_imports_nothing_heavy(code, heavy):
    check = f"{code}\nimport sys\nprint([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


@pytest.mark.parametrize(
    "order",
    [
        "import evidep; audit = evidep.audit; from evidep.audit.packet import AuditPacket",
        "from evidep.audit.packet import AuditPacket; import evidep; audit = evidep.audit",
        "from evidep import audit; import evidep.audit.runner",
        "import evidep.audit.api; import evidep; audit = evidep.audit",
    ],
)
def test_audit_can_be_called_in_any_order_of_imports(order):
    code = f"{order}\nimport inspect\nassert callable(audit)\nassert 'margin' in inspect.signature(audit).parameters"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_public_names_resolve():
    import evidep

    for name in evidep.__all__:
        assert getattr(evidep, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        evidep.nothing  # noqa: B018


def test_most_files_are_short():
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCE.rglob("*.py")}
    long = {str(path.relative_to(ROOT)): size for path, size in lengths.items() if size > 400}
    assert not long
    assert sum(size > 300 for size in lengths.values()) <= 0.1 * len(lengths)


def test_generated_documents_are_up_to_date():
    result = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "make_docs.py"), "--check"], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr


def test_every_link_between_documents_leads_somewhere():
    import re

    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "readers").rglob("*.md")]
    assert pages
    for page in pages:
        for target in re.findall(r"\]\(([^)#\s]+)", page.read_text(encoding="utf-8")):
            if "://" not in target and not target.startswith("mailto:"):
                assert (page.parent / target).exists(), f"{page.relative_to(ROOT)} links to {target}"
