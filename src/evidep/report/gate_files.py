"""A gate's result for the places that show it: a terminal, a JUnit report, a SARIF log, a Markdown summary."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from evidep.audit.gate import Check, GateResult
from evidep.errors import CacheError
from evidep.report.escape import code, one_line, prose
from evidep.version import __version__

RULES: Final = {
    "region": "The audit must end in an allowed region.",
    "forbidden-region": "The audit must not end in a forbidden region.",
    "min-delta-evi": "Accuracy must fall by more than noise when the evidence is swapped.",
    "max-mpds": "Metadata alone must not predict the labels about as well as a reader of the texts.",
    "baseline-region": "Evidence that was needed must still be needed.",
    "baseline-delta-evi": "ΔEvi must not be lower than the baseline's by more than noise.",
    "baseline-mpds": "MPDS must not be higher than the baseline's by more than noise.",
}
_SARIF_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"


def gate_text(result: GateResult) -> str:
    """One line per check, the verdict last."""
    width = max(len(check.name) for check in result.checks)
    lines = [f"{check.status:<7}  {check.name:<{width}}  {one_line(check.message)}" for check in result.checks]
    failed = sum(check.status == "failed" for check in result.checks)
    verdict = "gate passed" if result.passed else f"gate failed: {failed} of {len(result.checks)} checks"
    return "\n".join([*lines, verdict]) + "\n"


def gate_markdown(result: GateResult) -> str:
    """A table for a job summary or a comment."""
    verdict = "passed" if result.passed else "**failed**"
    rows = [f"| {_shown(check)} | {check.name} | {prose(check.message)} |" for check in result.checks]
    return "\n".join(
        [
            f"### Evidence gate of {code(result.data)}: {verdict}",
            "",
            "| result | check | what was found |",
            "| --- | --- | --- |",
            *rows,
            "",
            code(result.signature),
            "",
        ]
    )


def _shown(check: Check) -> str:
    return f"**{check.status}**" if check.status == "failed" else check.status


def gate_junit(result: GateResult) -> str:
    """A JUnit report: one suite, one case per check."""
    counts = {
        "tests": str(len(result.checks)),
        "failures": str(sum(check.status == "failed" for check in result.checks)),
        "errors": "0",
        "skipped": str(sum(check.status == "skipped" for check in result.checks)),
    }
    root = ET.Element("testsuites", {"name": "evidep check", **counts})
    suite = ET.SubElement(root, "testsuite", {"name": one_line(result.data), **counts})
    properties = ET.SubElement(suite, "properties")
    ET.SubElement(properties, "property", {"name": "signature", "value": one_line(result.signature)})
    for check in result.checks:
        case = ET.SubElement(suite, "testcase", {"classname": "evidep.gate", "name": check.name, "time": "0"})
        message = one_line(check.message)
        if check.status == "failed":
            failure = ET.SubElement(case, "failure", {"message": message, "type": "limit"})
            failure.text = RULES[check.name]
        elif check.status == "skipped":
            ET.SubElement(case, "skipped", {"message": message})
        else:
            ET.SubElement(case, "system-out").text = message
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def gate_sarif(result: GateResult, packet_file: Path) -> dict[str, Any]:
    """A SARIF 2.1.0 log with one result per failed check, located in the packet's file.

    Args:
        result: The gate's result.
        packet_file: The checked packet.json; its address is relative where it lies below the working directory.
    """
    file = packet_file.resolve()
    inside = file.is_relative_to(Path.cwd())
    address = file.relative_to(Path.cwd()).as_posix() if inside else file.as_uri()
    failed = [check for check in result.checks if check.status == "failed"]
    rules = [
        {
            "id": check.name,
            "shortDescription": {"text": RULES[check.name]},
            "defaultConfiguration": {"level": "error"},
        }
        for check in result.checks
    ]
    results = [
        {
            "ruleId": check.name,
            "ruleIndex": result.checks.index(check),
            "level": "error",
            "message": {"text": f"{one_line(result.data)}: {one_line(check.message)}"},
            "locations": [{"physicalLocation": {"artifactLocation": {"uri": address}, "region": {"startLine": 1}}}],
            "partialFingerprints": {"check/v1": f"{one_line(result.data)}/{check.name}"},
        }
        for check in failed
    ]
    driver = {"name": "evidep", "version": __version__, "rules": rules}
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def write_gate_files(
    result: GateResult,
    packet_file: Path,
    *,
    junit: str | None = None,
    sarif: str | None = None,
    markdown: str | None = None,
) -> list[Path]:
    """Write the reports that are asked for; folders are made where missing.

    Raises:
        CacheError: A file cannot be written.
    """

    def sarif_text() -> str:
        return json.dumps(gate_sarif(result, packet_file), indent=2, ensure_ascii=False) + "\n"

    wanted: list[tuple[str | None, Callable[[], str]]] = [
        (junit, lambda: gate_junit(result)),
        (sarif, sarif_text),
        (markdown, lambda: gate_markdown(result)),
    ]
    written = []
    for name, make in wanted:
        if name is None:
            continue
        path = Path(name)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(make(), encoding="utf-8")
        except OSError as error:
            raise CacheError(f"cannot write {path}: {error.strerror or error}") from error
        written.append(path)
    return written
