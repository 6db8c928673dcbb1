"""Which rows are held out together, and what cannot be split."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import bregpath
from bregpath.selection.cross_validation import cross_validate
from bregpath.selection.folds import make_folds


@pytest.fixture(scope="module")
def linear():
    return bregpath.datasets.make_linear(80, 8, 3, seed=4)


@pytest.fixture(scope="module")
def logistic():
    return bregpath.datasets.make_logistic(120, 8, 3, seed=4)


def test_splitters_iterables_masks_and_groups(linear):
    from sklearn.model_selection import KFold, RepeatedKFold

    folds = list(KFold(4).split(linear.X))
    by_splitter = cross_validate(linear.X, linear.y, cv=KFold(4), n_times=10)
    by_list = cross_validate(linear.X, linear.y, cv=iter(folds), n_times=10)
    masks = [(~np.isin(np.arange(80), te), np.isin(np.arange(80), te)) for _, te in folds]
    assert_array_equal(by_splitter.mean, by_list.mean)
    assert_array_equal(by_splitter.mean, cross_validate(linear.X, linear.y, cv=masks, n_times=10).mean)
    twice = cross_validate(linear.X, linear.y, cv=RepeatedKFold(n_splits=2, n_repeats=2, random_state=0), n_times=10)
    assert np.isfinite(twice.out_of_fold).all() and len(twice.fold_scores) == 4
    groups = np.repeat(np.arange(8), 10)
    for _, test in make_folds(4, None, linear.y, np.ones(80), groups):
        assert all(np.isin(test, np.flatnonzero(groups == g)).sum() in (0, 10) for g in range(8))


def test_folds_are_stratified(logistic):
    y = np.r_[np.zeros(100), np.ones(20)]
    for _, test in make_folds(5, None, y, np.ones(120), stratify=True):
        assert y[test].sum() == 4


def test_single_split_has_no_standard_error(linear):
    selection = cross_validate(linear.X, linear.y, cv=[(np.arange(60), np.arange(60, 80))], n_times=20)
    assert np.isnan(selection.se).all() and selection.t_1se == selection.t_min
    assert "1-fold" in repr(selection)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(cv=1), "`cv`=1 is not possible with 80 rows"),
        (dict(cv=81), "`cv`=81 is not possible with 80 rows"),
        (dict(cv=[]), "`cv` gives no folds"),
        (dict(cv=[([0, 1], [99])]), "`cv`: fold 0 is not a pair"),
        (dict(cv=[([0, 1], [])]), "`cv`: fold 0 has no test rows"),
        (dict(cv=5, cv_groups=[1, 2]), "`cv_groups` must have one label"),
        (dict(scoring="auc"), '`scoring`="auc" needs loss="logistic"'),
        (dict(scoring="misclassification"), '`scoring`="misclassification" needs a classifier'),
        (dict(scoring="r2"), "`scoring` must be one of"),
        (dict(n_jobs=0), "`n_jobs` must be"),
    ],
)
def test_errors_name_the_argument(linear, options, message):
    with pytest.raises(ValueError, match=message):
        cross_validate(linear.X, linear.y, n_times=5, **options)


def test_more_errors(linear, logistic):
    with pytest.raises(TypeError, match="`cv` must be a number of folds"):
        cross_validate(linear.X, linear.y, n_times=5, cv="five")
    with pytest.raises(TypeError, match="kapa"):
        cross_validate(linear.X, linear.y, kapa=5)
    y = np.array(["a"] * 50 + ["b"] * 69 + ["c"])
    with pytest.raises(ValueError, match="needs two rows of each class, found one of class 'c'"):
        cross_validate(logistic.X, y, loss="multinomial", n_times=5)
    with pytest.raises(ValueError, match="fold 0 have no row of class 'c'"):
        cross_validate(logistic.X, y, loss="multinomial", n_times=5, cv=[(np.arange(110), np.arange(110, 120))])
    with pytest.raises(ValueError, match="held-out rows of both classes"):
        cross_validate(logistic.X, logistic.y, loss="logistic", scoring="auc", n_times=5, cv=[(np.arange(100), [118])])


@pytest.mark.parametrize("stratify", [False, True])
def test_folds_are_even_and_shuffled_by_the_seed(stratify):
    y = np.random.default_rng(0).integers(3, size=83)
    folds = make_folds(5, None, y, np.ones(83), stratify=stratify)
    held_out = [test for _, test in folds]
    assert_array_equal(np.sort(np.concatenate(held_out)), np.arange(83))
    assert {len(test) for test in held_out} == {16, 17}
    for train, test in folds:
        assert_array_equal(np.sort(np.r_[train, test]), np.arange(83))
        if stratify:
            share = np.bincount(y, minlength=3) / 5
            assert (np.abs(np.bincount(y[test], minlength=3) - share) < 1).all()
    again = make_folds(5, None, y, np.ones(83), stratify=stratify)
    other = make_folds(5, None, y, np.ones(83), stratify=stratify, seed=1)
    assert all((a[1] == b[1]).all() for a, b in zip(folds, again, strict=True))
    assert any(len(a[1]) != len(b[1]) or (a[1] != b[1]).any() for a, b in zip(folds, other, strict=True))


def test_seeds_of_all_kinds():
    y = np.arange(20.0)
    for seed in (None, 3, np.random.default_rng(0), np.random.RandomState(0)):
        assert len(make_folds(4, None, y, np.ones(20), seed=seed)) == 4


def test_groups_of_classes_are_stratified_where_possible():
    groups = np.repeat(np.arange(20), 6)
    y = np.repeat(np.arange(20) % 4 == 0, 6)  # five groups of the rare class
    for train, test in make_folds(5, None, y, np.ones(120), groups, stratify=True):
        assert not set(groups[train]) & set(groups[test])
        assert y[test].sum() == 6


def test_rows_of_weight_zero_are_in_no_fold():
    w = np.ones(30)
    w[:10] = 0
    for train, test in make_folds(3, None, np.arange(30.0), w):
        assert min(train.min(), test.min()) >= 10


def test_groups_that_cannot_be_split(linear, logistic):
    from sklearn.model_selection import GroupKFold

    three = np.arange(80) % 3
    with pytest.raises(ValueError, match="`cv`=5 is not possible with 3 different `cv_groups`; use .* from 2 to 3"):
        cross_validate(linear.X, linear.y, n_times=5, cv_groups=three)
    with pytest.raises(ValueError, match="`cv`=5 is not possible with 1 different `cv_groups`; it takes two"):
        cross_validate(linear.X, linear.y, n_times=5, cv_groups=np.ones(80))
    with pytest.raises(ValueError, match="`cv`: GroupKFold.* cannot split these 80 rows.*given as `cv_groups`"):
        cross_validate(linear.X, linear.y, n_times=5, cv=GroupKFold(3))
    y = np.array(["a"] * 70 + ["b"] * 50)
    groups = np.r_[np.arange(70) % 7, np.full(50, 7)]  # all of class b in one group
    with pytest.raises(ValueError, match="have no row of class 'b'; use .*spread every class"):
        cross_validate(logistic.X, y, loss="logistic", n_times=5, cv=4, cv_groups=groups)


def test_splitter_that_cannot_split(linear):
    from sklearn.model_selection import KFold

    with pytest.raises(ValueError, match=r"`cv`: KFold.* cannot split these 80 rows: .*n_splits=100"):
        cross_validate(linear.X, linear.y, n_times=5, cv=KFold(100))


def test_leave_one_out(linear):
    from sklearn.model_selection import LeaveOneOut

    selection = cross_validate(linear.X[:20], linear.y[:20], cv=LeaveOneOut(), n_times=20, t_ratio=10)
    by_number = cross_validate(linear.X[:20], linear.y[:20], cv=20, n_times=20, t_ratio=10)
    assert len(selection.folds) == 20
    np.testing.assert_allclose(selection.mean, by_number.mean, rtol=1e-9)


def test_estimators_take_groups_and_stop_early():
    data = bregpath.datasets.make_logistic(120, 60, 4, seed=1)
    groups = np.arange(120) // 4
    model = bregpath.BregmanClassifier().fit(data.X, data.y, cv_groups=groups)
    for train, test in model.selection_.folds:
        assert not set(groups[train]) & set(groups[test])
    same = cross_validate(data.X, data.y, loss="logistic", cv_groups=groups)
    assert same.stopped_early and model.t_ == same.t_min
    assert len(model.path_.t) < 100 and model.path_.extend(2 * model.path_.t[-1]).t[-1] > model.path_.t[-1]
    linear = bregpath.BregmanRegressor(cv=3).fit(data.X, data.X[:, 0], cv_groups=groups)
    assert all(len(np.unique(groups[test])) == 10 for _, test in linear.selection_.folds)
    with pytest.raises(ValueError, match="`cv`=5 is not possible with 3 different `cv_groups`"):
        bregpath.BregmanRegressor().fit(data.X, data.X[:, 0], cv_groups=groups % 3)


@pytest.mark.parametrize("loss", ["gaussian", "multinomial"])
def test_table_of_a_model_without_variables(loss):
    pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    y = rng.normal(size=30) if loss == "gaussian" else rng.integers(3, size=30)
    selection = cross_validate(np.ones((30, 2)), y, loss=loss)
    frame = selection.to_frame()
    assert len(frame) == 0 and "share_of_folds" in frame
