"""What would have to be different for another verdict, in the numbers of the audit itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evidep.audit.packet import AuditPacket
from evidep.report import facts
from evidep.report.escape import PLAIN, Quoting
from evidep.report.numerals import confidence, count, interval, number

SMALL_EFFECT = 5
"""An effect whose interval stays within this many margins is called small, and the margin that would hide it named."""
RUNGS = ("minilm_lr", "minilm", "bert")
"""Readers to try next, weakest first."""


def would_change(packet: AuditPacket, quote: Quoting = PLAIN) -> list[str]:
    """Sentences that say how near another verdict is, and what to run to find out."""
    writers: dict[str, Callable[[AuditPacket, Quoting], list[str]]] = {
        "evidence_sensitive": _sensitive,
        "direct_coupling": _coupled,
        "latent_coupling": _coupled,
        "question_dominant": _coupled,
        "reader_limited": _limited,
        "inconclusive": _inconclusive,
        "not_applicable": _not_applicable,
    }
    return [*writers[packet["diagnosis"]["region"]](packet, quote), *_without_metadata(packet, quote)]


def _working(packet: AuditPacket) -> list[facts.Row]:
    """Rows of the main shuffle family, first seed, of readers that work, weakest first."""
    family = facts.main_shuffle(packet)
    working = [row for row in facts.readers(packet) if facts.counts(row)]
    return [
        row
        for reader in working
        for row in facts.delta_rows(packet, reader=reader["reader"], seed=reader["seed"], shuffle=family)
    ]


def _bound(row: facts.Row) -> float | None:
    """The smallest margin that would still hold the row's equivalence interval."""
    ci = row.get("ci_equivalence")
    return None if ci is None else max(abs(ci[0]), abs(ci[1]))


def _sensitive(packet: AuditPacket, quote: Quoting) -> list[str]:
    row = facts.headline(packet)
    if row is None or row["ci"] is None:
        return []
    name, margin = quote.name(row["reader"]), packet["settings"]["margin"]
    sentences = [
        f"The interval of {name} starts at {number(row['ci'][0])}: the verdict stands while that end stays above 0."
    ]
    supporters = {other["reader"] for other in packet["delta_evi"] if other["verdict"] == "sensitive"}
    others = {other["reader"] for other in _working(packet)} - supporters
    if len(supporters) == 1 and others:
        sentences.append(f"It rests on {name} alone: no effect is shown by {_names(others, quote)}.")
    bound = _bound(row)
    if bound is not None and bound < SMALL_EFFECT * margin:
        sentences.append(
            f"The effect is small: a margin above {_rounded_up(bound)}, instead of the declared {margin:g}, would have "
            "called it equivalent to zero."
        )
    return sentences


def _coupled(packet: AuditPacket, quote: Quoting) -> list[str]:
    settings = packet["settings"]
    margin, strongest = settings["margin"], facts.readers(packet)[-1]
    sentences = [
        f"One working reader whose ΔEvi interval lies above 0 and leaves ±{margin:g} would make it evidence-sensitive. "
        f"The strongest reader run was {quote.name(strongest['reader'])} ({strongest.get('strength', 'light')})."
    ]
    bounds = [(bound, row["reader"]) for row in _working(packet) if (bound := _bound(row)) is not None]
    if bounds:
        bound, reader = max(bounds, key=lambda pair: pair[0])
        sentences.append(
            f"A margin below {_rounded_up(bound)}, instead of {margin:g}, would leave it inconclusive: so far from 0 "
            f"does the {confidence(2 * settings['alpha'])} interval of {quote.name(reader)} reach."
        )
    return [*sentences, *_mpds_border(packet, quote), *_query_border(packet, quote)]


def _mpds_border(packet: AuditPacket, quote: Quoting) -> list[str]:
    metadata, region = packet["metadata"], packet["diagnosis"]["region"]
    high = packet["settings"]["mpds_high"]
    if metadata["mpds"] is None or region == "question_dominant":
        return []
    other = f"below {high:g} it would read latent"
    if region != "direct_coupling":
        other = f"from {high:g} up it would read direct"
    ends = interval(metadata["ci"])
    if metadata["ci"] is None:
        ends = f"without an interval ({quote.sentence(metadata.get('reason') or 'none was given')})"
    sentences = [f"MPDS is {number(metadata['mpds'])} {ends}; {other} coupling."]
    if metadata["ci"] is not None and metadata["ci"][0] < high <= metadata["ci"][1]:
        sentences.append("That interval holds the border: which of the two couplings it is is not settled.")
    return sentences


def _query_border(packet: AuditPacket, quote: Quoting) -> list[str]:
    if packet["diagnosis"]["region"] == "direct_coupling":
        return []
    margin = packet["settings"]["margin"]
    working = [row for row in facts.readers(packet) if facts.counts(row)]
    queries = [row for row in packet["ablations"] if (row["arm"], row["how"]) == ("query-only", "retrained")]
    if not queries or not working:
        return ["No reader was retrained on the query alone: whether the query explains the accuracy is not known."]
    best = max(working, key=lambda row: row["accuracy_full"])
    query = max(queries, key=lambda row: row["accuracy"])
    if packet["diagnosis"]["region"] == "question_dominant":
        border = f"a gap above {margin:g} would read latent or direct coupling"
    else:
        border = f"a gap of {margin:g} or less would count as explained by the query"
    return [
        f"On the query alone {quote.name(query['reader'])} reaches {number(query['accuracy'])}, "
        f"{number(best['accuracy_full'] - query['accuracy'])} below the best full accuracy "
        f"({quote.name(best['reader'])}); {border}."
    ]


def _limited(packet: AuditPacket, quote: Quoting) -> list[str]:
    option = quote.name(f"--readers {','.join([*packet['settings']['readers'], _stronger(packet)])}")
    failed = [row["reader"] for row in facts.readers(packet) if not row["works"]]
    sentences = [
        f"Run a stronger reader beside these, for example {option}. If its ΔEvi interval lies above 0 the benchmark is "
        "evidence-sensitive; if it is equivalent to zero too, the benchmark is coupled."
    ]
    if failed:
        sentences.append(f"Not above the majority rate, so its ΔEvi says nothing: {_names(failed, quote)}.")
    return sentences


def _stronger(packet: AuditPacket) -> str:
    """A reader above all that were run: of the named rungs the next one, beyond them any model of the Hub."""
    names = {spec.partition(":")[0] for spec in packet["settings"]["readers"]}
    above = 1 + max((RUNGS.index(name) for name in names & set(RUNGS)), default=-1)
    if any(row.get("strength") == "strong" for row in facts.readers(packet)):
        above = max(above, RUNGS.index("minilm") + 1)
    return RUNGS[above] if above < len(RUNGS) else "hf:MODEL"


def _inconclusive(packet: AuditPacket, quote: Quoting) -> list[str]:
    sentences = []
    for row in _working(packet):
        if row["verdict"] != "inconclusive":
            continue
        needed, smallest = row.get("items_needed"), row["minimum_detectable_effect"]
        if _hidden(row):
            text = "truncation hides most swaps from it, so a larger max_length would tell more than more items"
        elif needed is None:
            text = "more items like these would not settle it, should its present ΔEvi be the truth"
        else:
            text = f"about {count(needed)} items instead of {count(row.get('n_items'))} would settle it"
        if smallest is not None:
            text += f"; this audit finds effects from {number(smallest)} up"
        sentences.append(f"{quote.name(row['reader'])}: {text}.")
    return sentences or ["A reader that beats the majority rate by more than noise: none of those run does."]


def _hidden(row: Mapping[str, Any]) -> bool:
    return row["verdict"] == "inconclusive" and (row.get("unchanged_after_truncation") or 0.0) > 0.5


def _not_applicable(packet: AuditPacket, quote: Quoting) -> list[str]:
    reasons = dict.fromkeys(row["reason"] for row in packet["delta_evi"] if row.get("reason"))
    sentences = (f"{quote.sentence(str(reason).rstrip('.'))}." for reason in reasons)
    return ["Evidence whose text differs between items.", *sentences]


def _without_metadata(packet: AuditPacket, quote: Quoting) -> list[str]:
    if packet["metadata"]["schema"]:
        return []
    candidates = packet["data"].get("report", {}).get("candidate_metadata") or []
    option = quote.name(f"--metadata {','.join(candidates[:3])}" if candidates else "--metadata")
    return [f"No metadata column was declared ({option}): whether metadata gives the labels away is not known."]


def _names(names: Iterable[str], quote: Quoting) -> str:
    return ", ".join(quote.name(name) for name in sorted(names))


def _rounded_up(bound: float) -> str:
    """Three decimals, rounded so that "above" and "below" stay true."""
    return f"{math.ceil(bound * 1000 - 1e-9) / 1000:.3f}"
