"""The deviance of a path is found when somebody asks for it, and is by then what it had been."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import trace_path
from tests.helpers import ALL_LOSSES, make_data

FORMS = {
    "by columns": np.asfortranarray,
    "by rows": np.ascontiguousarray,
    "float32": lambda X: np.asfortranarray(X, dtype=np.float32),
    "sparse": lambda X: sp.csc_array(X),
}


def values_of(X):
    return X.data if sp.issparse(X) else X


@pytest.fixture(params=["whole", "screened"])
def screening(request):
    if request.param == "screened":
        request.getfixturevalue("always_screen")


class Squares:
    """Squared loss as a user would write it."""

    def value(self, eta, y, w):
        return 0.5 * float(np.dot(w, (eta - y) ** 2))

    def gradient(self, eta, y, w):
        return w * (eta - y)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("standardize", [True, "X", False])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "loss",
    ["gaussian", "logistic", "poisson", "huber", Squares()],
    ids=["gaussian", "logistic", "poisson", "huber", "own"],
)
def test_data_that_change_after_the_path_do_not_change_it(loss, form, standardize, fit_intercept, screening):
    X, y = make_data(loss if isinstance(loss, str) else "gaussian", 60, 12)
    X, y, offset, w = FORMS[form](X), np.array(y, dtype=float), 0.1 * y, np.ones(len(y))
    options = {"loss": loss, "standardize": standardize, "fit_intercept": fit_intercept, "n_times": 12, "t_ratio": 6.0}
    options |= {"offset": offset, "sample_weight": w}
    expected = trace_path(X, y, **options).deviance
    path = trace_path(X, y, **options)
    assert "deviance" not in vars(path)
    values_of(X)[:] += 1.0
    y[:], offset[:], w[:5] = 0.0, 1.0, 9.0
    assert_array_equal(path.deviance, expected)


@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_it_is_kept_where_the_data_are_not(loss, tmp_path):
    X, y = make_data(loss, 60, 8)
    path, asked = (trace_path(X, y, loss=loss, n_times=20, t_ratio=10.0) for _ in range(2))
    unpickled = pickle.loads(pickle.dumps(path))
    assert_array_equal(unpickled.deviance, asked.deviance)
    assert "models" not in vars(unpickled)
    trace_path(X, y, loss=loss, n_times=20, t_ratio=10.0).save(tmp_path / "path.npz")
    assert_array_equal(bregpath.load_path(tmp_path / "path.npz").deviance, asked.deviance)


@pytest.mark.parametrize("average", [None, "linear"])
def test_a_path_that_goes_on_leaves_that_of_its_beginning(average):
    X, y = make_data("logistic", 60, 8)
    options = {"loss": "logistic", "n_times": 12, "average": average}
    path, whole = trace_path(X, y, t_ratio=5.0, **options), trace_path(X, y, t_ratio=20.0, **options)
    longer = path.extend(float(whole.t[-1]))
    known = trace_path(X, y, t_ratio=5.0, **options).deviance
    assert_allclose(longer.deviance[: len(known)], known, rtol=1e-9)
    assert_allclose(longer.deviance[-1], whole.deviance[-1], rtol=1e-9)
    assert_array_equal(path.deviance, known)  # asked last, of the shorter one


def test_folds_without_data_have_theirs():
    data = bregpath.datasets.make_logistic(120, 12, 3, seed=0)
    selection = bregpath.cross_validate(data.X, data.y, loss="logistic", t_ratio=10.0, n_times=20)
    for fold in selection.fold_paths:
        assert len(fold.deviance) == len(fold.t) and 0 < fold.deviance[-1] < fold.null_deviance
