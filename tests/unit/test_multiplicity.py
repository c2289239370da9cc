import numpy as np
import pytest
from statsmodels.stats.multitest import multipletests

from evidep.errors import DataError
from evidep.stats.multiplicity import benjamini_hochberg, holm


def test_holm_by_hand():
    # sorted .01 .02 .03 .5: times 4 3 2 1 = .04 .06 .06 .5
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    # order is kept: .01 * 3 = .03, then .011 * 2 = .022 is raised to .03
    assert holm([0.01, 0.011, 0.9]) == pytest.approx([0.03, 0.03, 0.9])


def test_benjamini_hochberg_by_hand():
    # sorted .01 .02 .03 .5: times 4/1 4/2 4/3 4/4 = .04 .04 .04 .5
    assert benjamini_hochberg([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.04, 0.04, 0.5, 0.04])


@pytest.mark.parametrize(("ours", "theirs"), [(holm, "holm"), (benjamini_hochberg, "fdr_bh")])
@pytest.mark.parametrize("case", range(8))
def test_agrees_with_statsmodels(ours, theirs, case):
    rng = np.random.default_rng(case)
    p = np.round(rng.random(int(rng.integers(1, 30))) ** 3, 2)  # with ties, zeros and ones
    assert ours(p) == pytest.approx(multipletests(p, method=theirs)[1])


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
def test_tests_that_were_not_made_are_not_counted(adjust):
    with_nan = adjust([0.01, np.nan, 0.04, np.nan])
    assert np.isnan(with_nan).tolist() == [False, True, False, True]
    assert with_nan[[0, 2]] == pytest.approx(adjust([0.01, 0.04]))
    assert adjust([]).tolist() == []
    assert np.isnan(adjust([np.nan])).all()
    assert adjust([0.2]) == pytest.approx([0.2])


@pytest.mark.parametrize("adjust", [holm, benjamini_hochberg])
@pytest.mark.parametrize("bad", [[0.1, 1.2], [-0.1], [[0.1]]])
def test_bad_input_is_named(adjust, bad):
    with pytest.raises(DataError, match="p: expected"):
        adjust(bad)
