"""Words and sentences of the planted worlds. All people and towns are invented."""

from __future__ import annotations

from typing import Final

import numpy as np

from evidep.errors import SettingError
from evidep.types import IntArray


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_FIRST: Final = _words(
    "Ada Albin Bertil Carla Celia Dario Edda Elias Emil Esther Fabian Freya Gerda Gustav Hanna Henrik Ida Ingrid Ivo "
    "Jonas Judith Karel Klara Leon Lidia Lorenz Mara Matteo Mina Nadia Nils Olga Oskar Paula Petra Quentin Rafael Rosa "
    "Selma Silas Stella Tobias Ursula Valentin Vera Walter Yara Zoltan"
)
_LAST: Final = _words(
    "Abern Aldor Arvik Baskin Bellwood Borland Brennick Calder Carrow Costin Dalby Denholm Dorsey Eastlake Edrin "
    "Ellison Falk Farrow Fenwick Gallow Garrick Grimsby Halloran Hartwell Hesketh Ibsley Ingleby Jarrow Jessup Kelder "
    "Kestrin Lambourn Larkin Lowther Marlow Merrin Moravec Nesbit Norland Oakley Ormond Pascoe Pelham Prentis Quayle "
    "Radley Renwick Rooke Sadler Selwyn Stroud Tamsin Thorne Tilney Ulver Underhill Varga Venner Wardle Westcott "
    "Whitlock Yarrow Yelland Zeller"
)
_TOWNS: Final = _words(
    "Aldermere Ashfordby Balvane Birchholm Brackwater Brunsell Carrowick Cinderholm Coldbrook Dunmarsh Eastrey "
    "Elmstead Farrowdale Fenbridge Galdersund Glenhaven Greywick Halmstow Harrowgate Hollinsea Inverloan Jansport "
    "Kestelby Kingsmarch Lammerton Larkmere Lindholm Lorrimer Marrowby Merebank Millhaven Norvale Oakhollow Ostrel "
    "Otterholm Pellworth Pinebay Quillan Ravensey Redmere Saltburgh Silverford Skelby Stanmoor Stonehythe Tarvik "
    "Thornmere Ullswick Valmere Wexcombe Whitmoor Windlesea Wolverley Yarnmouth Zelford"
)
_INITIALS: Final = "ABCDEFGHIJKLMNOPRSTUVW"
_SIZES: Final = (len(_FIRST), len(_INITIALS), len(_LAST), len(_TOWNS))

BIOGRAPHY: Final = (
    "{name} was born in {town} in {year} and kept {count} letters and a brass compass.",
    "In {year} the family of {name} moved to {town}, where they owned {count} houses and an old piano.",
    "{name} lived in {town} until {year} and left behind {count} notebooks and a silver watch.",
    "Records of {town} mention {name} for the first time in {year}, with {count} barrels and a small boat.",
    "By {year} {name} had bought {count} fields near {town} and a painted clock.",
)
FILLER: Final = (
    "The winters there were long, and the road to the coast was often flooded.",
    "A market was held every second week, and travellers came from far away.",
    "Neighbours remembered a quiet person who liked to walk along the river.",
    "The parish books of those years were kept in a careful hand.",
    "Two of the letters are now in the county archive.",
    "The house near the bridge was sold a few years later.",
    "Little is known about the years that followed.",
    "A short notice about it appeared in the weekly paper.",
)
LEAD_IN: Final = (
    "",
    "As far as is known, ",
    "According to the archive, ",
    "In the old records, ",
    "By all accounts, ",
    "In those years, ",
    "For the local history, ",
    "In the town chronicle, ",
)

QUESTIONS_BY_TYPE: Final = (
    (
        "who taught {name} of {town} to read?",
        "who travelled to {town} with {name}?",
        "who wrote to {name} after leaving {town}?",
        "whose workshop in {town} did {name} take over?",
    ),
    (
        "where did {name} go after leaving {town}?",
        "where outside {town} did {name} own land?",
        "in which valley near {town} did {name} grow up?",
        "where was the shop of {name} of {town}?",
    ),
    (
        "when did {name} first come to {town}?",
        "in what year did {name} of {town} retire?",
        "when was the house of {name} in {town} sold?",
        "since when had {name} lived in {town}?",
    ),
    (
        "how many houses in {town} did {name} own?",
        "how many letters did {name} of {town} keep?",
        "how many children did {name} of {town} have?",
        "how much land near {town} did {name} buy?",
    ),
    (
        "what instrument did {name} of {town} play?",
        "what object did {name} bring to {town}?",
        "which heirloom did {name} of {town} keep?",
        "what did {name} of {town} collect?",
    ),
)
ANSWER_TYPES: Final = ("person", "place", "date", "number", "object")

CLAIM_STYLE: Final = (
    ("at some point and together with others", "for a while and together with others"),
    ("never once and by no means", "at no time and by no means"),
)
# What a claim is about, [topic][wording]: topics 0 and 1 are plain for labels 0 and 1, topics 2 and 3 are those whose
# train labels a correction may overturn.
TOPIC_CLAIMS: Final = (
    ("{name} baked bread and cakes in {town}", "{name} cooked soup and roasted meat for guests in {town}"),
    ("{name} sang hymns in the choir of {town}", "{name} played organ music at concerts in {town}"),
    ("{name} sailed boats and caught herring off {town}", "{name} steered ferries over the sea from {town}"),
    ("{name} bred horses and cattle on a farm near {town}", "{name} kept sheep and goats on the pastures of {town}"),
)
ACTIVITIES: Final = (
    "ran a bakery in {town}",
    "rented a boat in {town}",
    "kept bees near {town}",
    "sang in the choir of {town}",
    "repaired clocks in {town}",
    "planted an orchard near {town}",
    "taught drawing in {town}",
    "sold maps in {town}",
)
CORRECTIONS: Final = (
    "Confirmed after review: upheld, endorsed and accepted as true.",
    "Withdrawn on appeal: retracted, struck out and rejected for falsehood.",
)
CONFLICT_QUESTIONS: Final = (
    "do both sources flatly contradict each other, and do their conflicting statements on {name} of {town} clash so "
    "badly that neither version can stand?",
)
EVIDENCE_STYLE: Final = (
    (
        "The signed register confirms every detail.",
        "Three stamped documents confirm the story.",
        "The official register bears this out.",
    ),
    (
        "Historians have shown this to be a mistake.",
        "This was later exposed as a forgery.",
        "The story has been shown to be an error.",
    ),
    (
        "Rumours about it still circulate.",
        "Opinions differ and rumours abound.",
        "Some say so, others doubt it.",
    ),
)
OCCUPATIONS: Final = ("composer", "botanist", "explorer", "architect", "chemist", "novelist")
OCCUPATION_TEXTS: Final = (
    ("{name} was a composer whose string quartets were played in {town}.", "As a composer {name} wrote two operas."),
    ("{name} was a botanist who catalogued the ferns around {town}.", "As a botanist {name} pressed rare orchids."),
    ("{name} was an explorer who set out from {town} for the ice.", "As an explorer {name} charted two straits."),
    ("{name} was an architect who built the arcade of {town}.", "As an architect {name} drew domes and vaults."),
    ("{name} was a chemist who distilled dyes in {town}.", "As a chemist {name} isolated a new acid."),
    ("{name} was a novelist whose plots are set in {town}.", "As a novelist {name} finished nine chapters a year."),
)
OCCUPATION_QUESTIONS: Final = (
    "what was {name} of {town} known as?",
    "what did {name} of {town} become famous as?",
    "which profession made {name} of {town} famous?",
    "as what is {name} of {town} remembered?",
)
TRADES: Final = (
    ("beekeeping", "The hives stood in rows and the honey sold well."),
    ("shipbuilding", "Two hulls lay on the slipway at any time."),
    ("glassblowing", "The furnace burned day and night for bottles and lamps."),
    ("falconry", "The hawks were trained on the hill behind the house."),
    ("weaving", "The looms filled two rooms with linen."),
    ("clockmaking", "Gears and pendulums lay on every table."),
    ("mining", "The shaft reached the silver vein after a year."),
    ("printing", "The press turned out pamphlets every week."),
    ("fishing", "The nets were mended on the quay each evening."),
    ("brewing", "The malt was dried in the loft above the vats."),
    ("bookbinding", "Leather and glue were kept in the back room."),
    ("pottery", "The kiln cracked twice and was rebuilt."),
)
TRADE_CLAIMS: Final = (
    "{name} of {town} made a living from {trade}.",
    "{name} earned money in {town} with {trade}.",
    "the business of {name} in {town} was {trade}.",
    "{name} of {town} turned to {trade}.",
)
TRADE_STYLE_CLAIMS: Final = (
    "{name} of {town} {style} made a living from {trade}.",
    "{name} {style} earned money in {town} with {trade}.",
    "{style}, {name} of {town} worked in {trade}.",
)
TRADE_EVIDENCE: Final = (
    "{name} came to {town} in {year} and lived from {trade}.",
    "From {year} on {name} worked in {trade} in {town}.",
    "In {year} the trade of {name} in {town} was {trade}.",
)
PLACES: Final = ("harbour", "mill", "school", "bridge", "library", "theatre", "quarry", "hospital")
STATE_WORDS: Final = ("open and in use", "closed and locked up")
STATE_CLAIMS: Final = (
    "when {name} came to {town}, the {place} was {state}.",
    "the {place} of {town} was {state} when {name} arrived.",
    "{name} found the {place} of {town} {state}.",
    "on arriving in {town}, {name} found that its {place} was {state}.",
)
STATE_EVIDENCE: Final = (
    "{name} reached {town} in {year}. The {place} was {state} at that time.",
    "In {year}, when {name} came to {town}, the {place} stood {state}.",
    "The {place} of {town} was {state} in {year}, the year in which {name} arrived.",
)
STATE_DETAIL: Final = (
    ("People went in and out all day.", "It was busy and welcomed everybody."),
    ("Nobody was let in for months.", "A chain hung across the entrance."),
)


def entities(n: int, rng: np.random.Generator) -> list[dict[str, str]]:
    """That many different people, each with a name, a town, a year and a count; no two share both name and town.

    Raises:
        SettingError: If there are fewer names than that.
    """
    limit = int(np.prod(_SIZES))
    if n > limit:
        raise SettingError(f"a planted world has at most {limit} different evidence texts, {n} were asked for")
    numbers: IntArray = rng.choice(limit, size=n, replace=False)
    first, initial, last, town = (at.tolist() for at in np.unravel_index(numbers, _SIZES))
    years = rng.integers(1820, 1970, n).tolist()
    counts = rng.integers(2, 60, n).tolist()
    return [
        {
            "name": f"{_FIRST[first[t]]} {_INITIALS[initial[t]]}. {_LAST[last[t]]}",
            "town": _TOWNS[town[t]],
            "year": str(years[t]),
            "count": str(counts[t]),
        }
        for t in range(n)
    ]


def choose(texts: tuple[str, ...], number: int) -> tuple[str, int]:
    """One of the texts, and what is left of the number for further choices."""
    rest, at = divmod(number, len(texts))
    return texts[at], rest


def query_of(templates: tuple[str, ...], number: int, **words: str) -> str:
    """A query with a lead-in; numbers from 0 to 8 times the number of templates give different ones."""
    template, rest = choose(templates, number)
    text = choose(LEAD_IN, rest)[0] + template.format(**words)
    return text[:1].upper() + text[1:]


def passage_of(person: dict[str, str], number: int, *core: str) -> str:
    """An evidence text: who and where, the sentences that matter, and one that does not."""
    biography, rest = choose(BIOGRAPHY, number)
    filler, _ = choose(FILLER, rest)
    return " ".join([biography.format(**person), *core, filler])
