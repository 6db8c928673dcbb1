"""Keeping findings so that few are false: by hand, and how many are."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from bregpath.selection.discoveries import few_false


def test_by_hand():
    p_values = np.array([0.6, 0.01, 0.8, 0.03, 0.7, 0.3])  # 2 (1 + 3) > 6 false ones: plain Benjamini-Hochberg
    assert_array_equal(few_false(p_values, 0.1), [False, True, False, True, False, False])
    assert_array_equal(few_false(p_values, 0.05), [False, False, False, False, False, False])
    p_values = np.array([0.6, 0.01, 0.02, 0.03, 0.049, 0.09, 0.2, 0.16])  # 2 (1 + 1) = 4 false ones
    assert_array_equal(few_false(p_values, 0.1), [False, True, True, True, True, True, False, False])


def test_a_smaller_one_is_kept_with_a_larger_one_that_passes():
    p_values = np.array([0.07, 0.07, 0.07, 0.07])
    assert few_false(p_values, 0.1).all()
    assert not few_false(p_values[:1], 0.05).any()


def test_large_ones_are_never_kept():
    assert_array_equal(few_false(np.array([0.4, 0.6]), 1.0), [True, False])


def test_nothing_to_keep():
    assert few_false(np.zeros(0), 0.1).shape == (0,)


@pytest.mark.parametrize("n_true", [0, 10, 40])
def test_few_are_false(n_true):
    from scipy.special import ndtr

    rng = np.random.default_rng(n_true)
    shares, recall = [], []
    for _ in range(400):
        z = rng.normal(size=50) + 3.0 * (np.arange(50) < n_true)
        kept = few_false(2 * ndtr(-np.abs(z)), 0.1)
        shares.append(kept[n_true:].sum() / max(kept.sum(), 1))
        recall.append(kept[:n_true].mean() if n_true else 1.0)
    assert np.mean(shares) < 0.13  # 0.1, and two standard errors where there is nothing to find
    assert np.mean(recall) > 0.5
