"""Controls, diagnostics and automatic metadata in sentences, for terminal and card alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evidep.audit.packet import AuditPacket
from evidep.report.numerals import count, interval, number, percent

Quote = Callable[[object], str]
"""Makes a stranger's text (a name, a value, a word) safe where it is shown."""


def extra_sections(packet: AuditPacket, quote: Quote) -> Iterator[tuple[str, list[str]]]:
    """(heading, sentences) of each part that the packet has; nothing where none was asked for."""
    document = packet.document
    if document.get("automatic_metadata"):
        yield "What surface features predict", list(_rules(document["automatic_metadata"], quote))
    if document.get("controls"):
        yield "Planted controls: the same texts under known labels", list(_controls(document["controls"], quote))
    if document.get("diagnostics"):
        yield "Metadata shift, flip and filtering", list(_diagnostics(document["diagnostics"], quote))


def surface_screen(packet: AuditPacket, quote: Quote) -> list[str]:
    """What belongs beside MPDS: how far any surface feature goes. Empty where it was not asked for."""
    found = packet.document.get("automatic_metadata")
    if not found:
        return []
    sentence = (
        f"A joint model of {len(found['features'])} surface features and declared columns ({found['fit']}) reaches "
        f"{number(found['accuracy'])}{_ends(found['ci'])}"
    )
    screen = found["upper_screen"]
    if screen is None:
        return [f"{sentence}{_because(found, quote, 'ci')}."]
    better = found.get("upper_screen_from", "joint model")
    return [
        f"{sentence}; upper screen {number(screen)}: the better of that and of metadata alone (here the {better}) over "
        f"the accuracy of {quote(found['reader'])}{_because(found, quote, 'ci')}."
    ]


def _rules(found: Mapping[str, Any], quote: Quote) -> Iterator[str]:
    for rule in found["rules"]:
        examples = ", ".join(quote(name) for name in rule["examples"])
        same = ", ".join(quote(words) for words in rule.get("same_artefact", ()))
        same = f" The same artefact: {same}." if same else ""
        yield (
            f"Where {quote(rule['feature'])} {quote(rule['condition'])}, the label is {quote(rule['label'])} in "
            f"{percent(rule['share'])}{_ends(rule.get('ci'))} of {rule['items']} items, "
            f"{percent(rule['base_share'])} of all{_because(rule, quote, 'ci')}: {examples}.{same}"
        )
    if found["rules"]:
        yield f"Rules were chosen on {found['rules_chosen_on']}."
    else:
        yield "No value of a single feature goes with a label clearly more often than among all items."
    if found.get("rules_not_confirmed"):
        yield (
            f"Left out: {found['rules_not_confirmed']} of the training items' rules, whose label is not commoner than "
            "among all evaluation items by more than noise."
        )


def _controls(found: Mapping[str, Any], quote: Quote) -> Iterator[str]:
    for row in found["rows"]:
        expected = "a reader that follows the labels has" if row["control"] == "evidence" else "the truth is"
        yield (
            f"Labels from the {row['control']}, {quote(row['reader'])} (accuracy {number(row['accuracy_full'])}): "
            f"ΔEvi {number(row['delta_evi'])}{_ends(row['ci'])}, {expected} {number(row['truth'])}{_power(row)}; "
            f"{row['verdict'].replace('_', ' ')}: {_outcome(row)}{_because(row, quote)}."
        )
    for reason in found["reasons"]:
        yield quote(reason)


def _power(row: Mapping[str, Any]) -> str:
    smallest = row["minimum_detectable_effect"]
    return "" if smallest is None else f", effects are found from {number(smallest)} up"


def _outcome(row: Mapping[str, Any]) -> str:
    outcome: str = row.get("outcome") or ("as planted" if row["passed"] else "not as planted")
    if outcome != "too few items":
        return outcome.replace("not", "NOT")
    needed = row["items_needed"]
    return "too few items to tell" + ("" if needed is None else f", about {count(needed)} would do")


def _diagnostics(found: Mapping[str, Any], quote: Quote) -> Iterator[str]:
    for row in found["shift"]:
        yield (
            f"Shift: {quote(row['reader'])}, fitted without {quote(row['column'])} = {quote(row['value'])}, has "
            f"{number(row['accuracy_in_distribution'])} on the other items and {number(row['accuracy_shifted'])} on "
            f"these {row['items_shifted']}, gap {number(row['gap'])}{_ends(row['gap_ci'])}; against a reader "
            f"fitted on equally many random items they lose {number(row['loss'])}{_ends(row['loss_ci'])}"
            f"{_because(row, quote, 'gap_ci', 'loss_ci')}."
        )
    for row in found["filtering"]:
        if row["gap_after"] is None:
            yield (
                f"Filtering: {quote(row['reader'])} at {quote(row['column'])} = {quote(row['value'])}: not done, "
                f"{quote(row['reason'])}."
            )
            continue
        yield (
            f"Filtering: {quote(row['reader'])} without the {percent(row['dropped_share'])} of the training items that "
            f"metadata predict has the gap {number(row['gap_after'])} at {quote(row['column'])} = "
            f"{quote(row['value'])}, before {number(row['gap_before'])}, fitted on equally few random items "
            f"{number(row['gap_same_size'])}: change {number(row['change'])}{_ends(row['change_ci'])}"
            f"{_because(row, quote, 'change_ci')}."
        )
    for row in found["flip"]:
        who = "the metadata-majority predictor" if row["reader"] == "metadata" else quote(row["reader"])
        yield (
            f"Flip: with another value of {quote(row['column'])}, {percent(row['changed_share'])} of the answers of "
            f"{who} change{_ends(row['ci'])}{_because(row, quote, 'ci')}."
        )
    if found["split"] is not None:
        yield f"Readers were {found['split']}."
    for reason in found["reasons"]:
        yield quote(reason)


def _ends(ci: Sequence[float] | None) -> str:
    """The interval after a value; nothing where none can be given, which `_because` then says."""
    return "" if ci is None else f" {interval(ci)}"


def _because(row: Mapping[str, Any], quote: Quote, *intervals: str) -> str:
    """Why a value is missing or an interval is degenerate or withheld, in brackets."""
    if not row.get("reason"):
        return ""
    withheld = "no interval: " if any(row.get(name) is None for name in intervals) else ""
    return f" ({withheld}{quote(row['reason'])})"
