"""Write tests/golden/*.json: small worlds with every expected value from plain loops over exact fractions.

This is a second, slow implementation for the tests. It follows the definitions word by word (all pairs, all
permutations, one group left out at a time) and shares no code with the package. Run: python scripts/make_golden.py
"""

from __future__ import annotations

import itertools
import json
import random
from collections import Counter
from fractions import Fraction
from pathlib import Path

GOLDEN = Path(__file__).resolve().parents[1] / "tests" / "golden"


def predict(query: list[int], evidence: list[int]) -> int:
    """Class of the largest sum, the first one of equal sums."""
    best = 0
    for c in range(len(query)):
        if query[c] + evidence[c] > query[best] + evidence[best]:
            best = c
    return best


def world(name: str, n: int, classes: int, texts: int, strata: int, groups: int, seed: int, spread: int = 2) -> dict:
    """Integer scores in a narrow range, so that ties are common; equal texts have equal evidence scores.

    Two items of three have the label that the reader predicts from their own evidence.
    """
    rng = random.Random(seed)
    by_text = [[rng.randint(-spread, spread) for _ in range(classes)] for _ in range(texts)]
    codes = [rng.randrange(texts) for _ in range(n)]
    queries = [[rng.randint(-spread, spread) for _ in range(classes)] for _ in range(n)]
    predicted = [predict(query, by_text[code]) for query, code in zip(queries, codes, strict=True)]
    return {
        "name": name,
        "query_scores": queries,
        "evidence_scores": [by_text[code] for code in codes],
        "labels": [own if rng.random() < 2 / 3 else rng.randrange(classes) for own in predicted],
        "evidence_codes": codes,
        "strata": [rng.randrange(strata) for _ in range(n)],
        "groups": [rng.randrange(groups) for _ in range(n)],
        "donors": [shuffled(rng, n) for _ in range(4)],
    }


def shuffled(rng: random.Random, n: int) -> list[int]:
    """A permutation of 0 .. n-1."""
    order = list(range(n))
    rng.shuffle(order)
    return order


def expected(w: dict) -> dict:
    """Everything that the tests compare, as strings of fractions."""
    n = len(w["labels"])
    items = range(n)
    h = [[int(predict(w["query_scores"][i], w["evidence_scores"][j]) == w["labels"][i]) for j in items] for i in items]
    allowed = [
        [w["strata"][i] == w["strata"][j] and w["evidence_codes"][i] != w["evidence_codes"][j] for j in items]
        for i in items
    ]
    donors = [[j for j in items if allowed[i][j]] for i in items]
    receivers = [[i for i in items if allowed[i][j]] for j in items]
    row_mean = [Fraction(sum(h[i][j] for j in donors[i]), len(donors[i])) if donors[i] else None for i in items]
    column_mean = [
        Fraction(sum(h[i][j] for i in receivers[j]), len(receivers[j])) if receivers[j] else None for j in items
    ]
    effect = [sum(((h[i][j] - row_mean[i]) / len(donors[i]) for i in receivers[j]), Fraction(0)) for j in items]
    movable = [i for i in items if donors[i]]
    result: dict = {
        "h": h,
        "n_donors": [len(d) for d in donors],
        "row_mean": texts(row_mean),
        "column_mean": texts(column_mean),
        "donor_effect": texts(effect),
        "movable": [bool(d) for d in donors],
    }
    if not movable:
        return result
    n_moving = len(movable)
    influence = {i: h[i][i] - row_mean[i] - effect[i] for i in movable}
    result["exact"] = str(sum((h[i][i] - row_mean[i] for i in movable), Fraction(0)) / n_moving)
    result["squared_error"] = text(jackknife(influence, w["groups"]))
    result["shuffles"] = from_shuffles(h, movable, w["donors"], w["groups"])
    result["permutations"] = enumerate_permutations(h, movable, w["strata"])
    return result


def jackknife(influence: dict[int, Fraction], groups: list[int]) -> Fraction | None:
    """Variance of the mean from the means that leave one group out, around the mean of all."""
    names = sorted({groups[i] for i in influence})
    if len(names) < 2:
        return None
    mean = sum(influence.values(), Fraction(0)) / len(influence)
    total = Fraction(0)
    for name in names:
        kept = [value for i, value in influence.items() if groups[i] != name]
        total += (sum(kept, Fraction(0)) / len(kept) - mean) ** 2
    return total * (len(names) - 1) / len(names)


def from_shuffles(h: list, movable: list[int], shuffles: list[list[int]], groups: list[int]) -> dict:
    """Mean, population variance and squared standard error of ΔEvi from K shuffles alone."""
    n, count = len(movable), len(shuffles)
    accuracies = [Fraction(sum(h[i][donor[i]] for i in movable), n) for donor in shuffles]
    mean = sum(accuracies, Fraction(0)) / count
    influence, noise = {}, Fraction(0)
    for i in movable:
        own = [h[i][donor[i]] for donor in shuffles]
        row = Fraction(sum(own), count)
        noise += sum((Fraction(value) - row) ** 2 for value in own) / (count - 1) / count
        effect = Fraction(0)
        for k, donor in enumerate(shuffles):
            for receiver in movable:
                if donor[receiver] == i:
                    others = [h[receiver][shuffles[m][receiver]] for m in range(count) if m != k]
                    effect += (h[receiver][i] - Fraction(sum(others), count - 1)) / count
        influence[i] = h[i][i] - row - effect
    raw = jackknife(influence, groups)
    return {
        "accuracy_shuffled": texts(accuracies),
        "mean": str(Fraction(sum(h[i][i] for i in movable), n) - mean),
        "variance_population": str(sum((a - mean) ** 2 for a in accuracies) / count),
        "squared_error": None if raw is None else str(max(raw - noise / n**2, raw / 10)),
    }


def enumerate_permutations(h: list, movable: list[int], strata: list[int]) -> dict:
    """Mean, variance and p-value of the accuracy over all permutations within strata, one after the other."""
    counts = Counter({0: 1})
    for name in sorted({strata[i] for i in movable}):
        stratum = [i for i in movable if strata[i] == name]
        together: Counter[int] = Counter()
        for order in itertools.permutations(stratum):
            right = sum(h[i][j] for i, j in zip(stratum, order, strict=True))
            for before, number in counts.items():
                together[before + right] += number
        counts = together
    n, total = len(movable), sum(counts.values())
    mean = Fraction(sum(count * number for count, number in counts.items()), total)
    full = sum(h[i][i] for i in movable)
    return {
        "number": total,
        "mean": str(mean / n),
        "variance": str(sum((count - mean) ** 2 * number for count, number in counts.items()) / total / n**2),
        "p_value": str(Fraction(sum(number for count, number in counts.items() if count >= full), total)),
    }


def text(value: Fraction | None) -> str | None:
    """A fraction as text; None stays None."""
    return None if value is None else str(value)


def texts(values: list) -> list:
    """Fractions as texts."""
    return [text(value) for value in values]


WORLDS = (
    world("two classes, all texts differ", n=7, classes=2, texts=40, strata=1, groups=7, seed=1),
    world("three classes, ties", n=7, classes=3, texts=5, strata=1, groups=4, seed=2, spread=1),
    world("five classes by blocks", n=7, classes=5, texts=5, strata=1, groups=5, seed=3, spread=1),
    world("strata of unequal size", n=12, classes=3, texts=6, strata=3, groups=6, seed=4, spread=1),
    world("many strata, most items cannot move", n=12, classes=2, texts=3, strata=8, groups=4, seed=5),
    world("one text fills most", n=8, classes=3, texts=2, strata=1, groups=3, seed=6),
    world("all evidence equal", n=6, classes=2, texts=1, strata=1, groups=3, seed=7),
    world("four classes, strata", n=11, classes=4, texts=4, strata=2, groups=11, seed=9, spread=1),
    world("enough groups for an interval", n=18, classes=3, texts=9, strata=3, groups=14, seed=12),
    world("enough groups, two classes", n=14, classes=2, texts=12, strata=2, groups=30, seed=15),
    world("one group only", n=6, classes=3, texts=6, strata=1, groups=1, seed=10),
)


def metadata_world(columns: int, values: int, classes: int, n_train: int, n_eval: int, seed: int) -> dict:
    """Random metadata codes that tell a label half of the time; some evaluation tuples are new."""
    rng = random.Random(seed)

    def item() -> tuple[list[int], int]:
        codes = [rng.randrange(values) for _ in range(columns)]
        return codes, sum(codes) % classes if rng.random() < 1 / 2 else rng.randrange(classes)

    train, held_out = [item() for _ in range(n_train)], [item() for _ in range(n_eval)]
    return {
        "n_classes": classes,
        "train": [codes for codes, _ in train],
        "train_labels": [label for _, label in train],
        "evaluation": [codes for codes, _ in held_out],
        "labels": [label for _, label in held_out],
        "full": [rng.random() < 3 / 4 for _ in held_out],
    }


def expected_metadata(w: dict) -> dict:
    """The commonest training label of each item's metadata tuple, and what follows from it.

    Where two labels are equally common, or no training item has the tuple, the order of the coarser tuples decides; it
    is fixed here for a single column only (all training items, then the smaller label) and None for several.
    """
    classes = range(w["n_classes"])

    def commonest(labels: list[int]) -> list[int]:
        counts = [labels.count(c) for c in classes]
        return [c for c in classes if counts[c] == max(counts)]

    overall = w["train_labels"]
    answers: list[int | None] = []
    for codes in w["evaluation"]:
        same = [label for other, label in zip(w["train"], overall, strict=True) if other == codes]
        best = commonest(same) if same else list(classes)
        if len(best) > 1 and len(codes) > 1:
            answers.append(None)
            continue
        shared = max(best, key=lambda c: (overall.count(c), -c))
        answers.append(best[0] if len(best) == 1 else shared)
    found: dict = {"answers": answers}
    if None not in answers:
        n = len(answers)
        right = Fraction(sum(a == label for a, label in zip(answers, w["labels"], strict=True)), n)
        full = Fraction(sum(w["full"]), n)
        constant = Fraction(w["labels"].count(commonest(overall)[0]), n)
        found |= {"accuracy": str(right), "accuracy_full": str(full), "constant": str(constant)}
        found |= {"mpds": str(right / full), "chance_corrected": str((right - constant) / (full - constant))}
    return found


METADATA_WORLDS = tuple(
    metadata_world(columns, values, classes, n_train, 120, seed)
    for seed, (columns, values, classes, n_train) in enumerate(
        (
            (1, 4, 2, 30),
            (1, 6, 3, 30),
            (1, 12, 3, 20),
            (1, 3, 5, 60),
            (2, 3, 2, 40),
            (2, 4, 3, 60),
            (3, 3, 3, 90),
            (2, 6, 4, 80),
        ),
        1,
    )
)


def write(name: str, worlds: list[dict]) -> None:
    """One world a line."""
    GOLDEN.mkdir(parents=True, exist_ok=True)
    lines = ",\n".join(json.dumps(w, sort_keys=True) for w in worlds)
    (GOLDEN / name).write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main() -> None:
    """Write the files."""
    write("delta_evi.json", [w | {"expected": expected(w)} for w in WORLDS])
    write("metadata.json", [w | {"expected": expected_metadata(w)} for w in METADATA_WORLDS])


if __name__ == "__main__":
    main()
