"""Settings are refused before anything is computed, each in one line."""

from __future__ import annotations

import pytest

from evidep.audit.plan import AuditSettings
from evidep.errors import SettingError


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"k": 0}, "k must be a whole number of at least 1, got 0"),
        ({"k": True}, "k must be a whole number"),
        ({"k": 20.0}, "k must be a whole number"),
        ({"seed": -1}, "seed must be a whole number of at least 0"),
        ({"seed": None}, "seed must be a whole number"),
        ({"alpha": 0.0}, "alpha must be a number above 0"),
        ({"alpha": 0.5}, "below 0.5"),
        ({"margin": -0.02}, "margin must be a number above 0"),
        ({"margin": 1.0}, "margin must be a number"),
        ({"readers": ()}, "readers is empty"),
        ({"shuffles": ("globl",)}, "'globl' is unknown; choose from global, within-label"),
        ({"shuffles": ("global", "global")}, "names one of them twice"),
        ({"ablations": ("none",)}, "choose from query-only, evidence-only, shuffled-training"),
        ({"reader_seeds": 0}, "reader_seeds must be"),
        ({"n_folds": 1}, "n_folds must be"),
    ],
)
def test_a_bad_setting_names_itself(settings, words):
    with pytest.raises(SettingError) as caught:
        AuditSettings(**settings)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    # The add-one p-value cannot fall below 1/(K+1): 1/20 = 0.05 needs K = 19, 1/100 needs 99, 1/1000 needs 999.
    ("alpha", "smallest"),
    [(0.05, 19), (0.01, 99), (0.1, 9), (0.001, 999), (0.2, 4), (0.07, 14)],
)
def test_alpha_needs_enough_shuffles_and_the_error_names_how_many(alpha, smallest):
    AuditSettings(alpha=alpha, k=smallest)
    with pytest.raises(SettingError, match=f"the smallest k is {smallest}$"):
        AuditSettings(alpha=alpha, k=smallest - 1)


def test_seed_zero_is_a_seed():
    assert AuditSettings(seed=0).seed == 0


def test_families_follow_the_data_unless_they_are_named():
    assert AuditSettings().shuffle_families(has_metadata=False) == ("global", "within-label")
    assert AuditSettings().shuffle_families(has_metadata=True) == ("global", "within-label", "within-metadata")
    assert AuditSettings(shuffles=("near-miss",)).shuffle_families(has_metadata=True) == ("near-miss",)
    with pytest.raises(SettingError, match="--metadata"):
        AuditSettings(shuffles=("within-metadata",)).shuffle_families(has_metadata=False)
