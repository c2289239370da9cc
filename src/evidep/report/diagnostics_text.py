"""Controls, diagnostics and automatic metadata in sentences, for terminal and card alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from evidep.audit.packet import AuditPacket
from evidep.report.numerals import UNDEFINED, interval, number, percent

Quote = Callable[[object], str]
"""Makes a stranger's text (a name, a value, a word) safe where it is shown."""


def extra_sections(packet: AuditPacket, quote: Quote) -> Iterator[tuple[str, list[str]]]:
    """(heading, sentences) of each part that the packet has; nothing where none was asked for."""
    document = packet.document
    if document.get("automatic_metadata"):
        yield "What surface features predict", list(_automatic(document["automatic_metadata"], quote))
    if document.get("controls"):
        yield "Planted controls: the same texts under known labels", list(_controls(document["controls"], quote))
    if document.get("diagnostics"):
        yield "Metadata shift, flip and filtering", list(_diagnostics(document["diagnostics"], quote))


def _automatic(found: dict[str, Any], quote: Quote) -> Iterator[str]:
    screen = UNDEFINED if found["upper_screen"] is None else number(found["upper_screen"])
    against = "" if found["reader"] is None else f", {screen} of the accuracy of {quote(found['reader'])}"
    yield (
        f"A joint model of {len(found['features'])} features ({found['fit']}) reaches {number(found['accuracy'])} "
        f"{interval(found['ci'])}{against}; majority rate {number(found['majority_rate'])}."
    )
    for rule in found["rules"]:
        examples = ", ".join(quote(name) for name in rule["examples"])
        yield (
            f"Where {quote(rule['feature'])} {quote(rule['condition'])}, the label is {quote(rule['label'])} in "
            f"{percent(rule['share'])} of {rule['items']} items ({percent(rule['base_share'])} of all): {examples}."
        )
    if found["rules"]:
        yield f"Rules were chosen on {found['rules_chosen_on']}."


def _controls(found: dict[str, Any], quote: Quote) -> Iterator[str]:
    for row in found["rows"]:
        expected = "a reader that follows the labels has" if row["control"] == "evidence" else "the truth is"
        outcome = "as it should be" if row["passed"] else "NOT as it should be"
        reason = "" if row["reason"] is None else f" ({quote(row['reason'])})"
        yield (
            f"Labels from the {row['control']}, {quote(row['reader'])} (accuracy {number(row['accuracy_full'])}): "
            f"ΔEvi {number(row['delta_evi'])} {interval(row['ci'])}, {expected} {number(row['truth'])}; "
            f"{row['verdict'].replace('_', ' ')}: {outcome}{reason}."
        )
    for reason in found["reasons"]:
        yield quote(reason)


def _diagnostics(found: dict[str, Any], quote: Quote) -> Iterator[str]:
    for row in found["shift"]:
        yield (
            f"Shift: {quote(row['reader'])}, fitted without {quote(row['column'])} = {quote(row['value'])}, has "
            f"{number(row['accuracy_in_distribution'])} on the other items and {number(row['accuracy_shifted'])} on "
            f"these {row['items_shifted']}, gap {number(row['gap'])} {interval(row['gap_ci'])}; against a reader "
            f"fitted on equally many random items they lose {number(row['loss'])} {interval(row['loss_ci'])}."
        )
    for row in found["filtering"]:
        if row["gap_after"] is None:
            yield f"Filtering by metadata, {quote(row['column'])}: {quote(row['reason'])}."
            continue
        yield (
            f"Filtering: {quote(row['reader'])} without the {percent(row['dropped_share'])} of the training items that "
            f"metadata predict has the gap {number(row['gap_after'])} at {quote(row['column'])} = "
            f"{quote(row['value'])}, before {number(row['gap_before'])}, fitted on equally few random items "
            f"{number(row['gap_same_size'])}: change {number(row['change'])} {interval(row['change_ci'])}."
        )
    for row in found["flip"]:
        yield (
            f"Flip: with another value of {quote(row['column'])}, {percent(row['changed_share'])} of the answers of "
            f"{quote(row['reader'])} change {interval(row['ci'])}."
        )
    if found["split"] is not None:
        yield f"Readers were {found['split']}."
    for reason in found["reasons"]:
        yield quote(reason)
