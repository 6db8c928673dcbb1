"""Names of the columns of arrays."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse

import bregpath


@pytest.fixture(scope="module", name="data")
def make_data():
    return bregpath.datasets.make_linear(60, 3, 1, seed=0)


NAMES = ["weight", "age", "dose"]


@pytest.mark.parametrize("kind", [np.asarray, np.ndarray.tolist, scipy.sparse.csc_array])
def test_columns_of_arrays_have_the_names_given(data, kind, tmp_path):
    X = kind(data.X)
    path = bregpath.trace_path(X, data.y, feature_names=NAMES)
    assert path.feature_names == NAMES and "weight" in repr(path.at(path.t[-1]))
    np.testing.assert_array_equal(path.coef, bregpath.trace_path(X, data.y).coef)
    np.testing.assert_allclose(path.predict(X, path.t[5]), bregpath.trace_path(X, data.y).predict(X, path.t[5]))
    path.save(tmp_path / "path.npz")
    assert bregpath.load_path(tmp_path / "path.npz").feature_names == NAMES


def test_selections_show_them(data):
    selection = bregpath.cross_validate(data.X, data.y, kappa=[1.0, 10.0], feature_names=np.array(NAMES))
    assert "weight" in repr(selection) and "weight" in repr(selection.sparse())


@pytest.mark.parametrize("names", [NAMES[:2], "abc", ["a", "a", "b"], [1, 2, 3]])
def test_names_that_do_not_fit_are_refused(data, names):
    with pytest.raises(ValueError, match="`feature_names` must be 3 different strings"):
        bregpath.trace_path(data.X, data.y, feature_names=names)


def test_a_frame_has_names_of_its_own(data):
    pd = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="rename its columns"):
        bregpath.trace_path(pd.DataFrame(data.X, columns=NAMES), data.y, feature_names=NAMES)
