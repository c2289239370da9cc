"""The metadata-majority predictor and MPDS against plain loops over exact fractions (scripts/make_golden.py)."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evidep.stats.mpds import metadata_predictions, mpds

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "metadata.json").read_text(encoding="utf-8"))
SINGLE = [world for world in GOLDEN if "mpds" in world["expected"]]


def answers(world: dict[str, Any]) -> np.ndarray:
    columns = (np.array(world[split]).T for split in ("train", "evaluation"))
    train, evaluation = ([column for column in split] for split in columns)
    return metadata_predictions(train, world["train_labels"], evaluation, world["n_classes"])


@pytest.mark.parametrize("world", GOLDEN)
def test_commonest_training_label_of_the_tuple(world):
    found, expected = answers(world), world["expected"]["answers"]
    known = [at for at, answer in enumerate(expected) if answer is not None]
    assert len(known) >= 20
    assert [int(found[at]) for at in known] == [expected[at] for at in known]


@pytest.mark.parametrize("world", SINGLE)
def test_mpds_and_its_chance_corrected_form(world):
    labels = np.array(world["labels"])
    constant = np.bincount(world["train_labels"], minlength=world["n_classes"]).argmax()
    value = mpds(
        answers(world) == labels,
        world["full"],
        float((labels == constant).mean()),
        correct_majority=labels == constant,
        seed=0,
    )
    expected = {name: float(Fraction(text)) for name, text in world["expected"].items() if name != "answers"}
    assert value.accuracy_metadata == pytest.approx(expected["accuracy"], abs=1e-15)
    assert value.accuracy_full == pytest.approx(expected["accuracy_full"], abs=1e-15)
    assert value.mpds == pytest.approx(expected["mpds"], rel=1e-14)
    assert value.mpds_chance_corrected == pytest.approx(expected["chance_corrected"], rel=1e-12)


def test_both_kinds_of_worlds_are_there():
    assert len(SINGLE) >= 2
    assert len(GOLDEN) - len(SINGLE) >= 2
