"""Precision matrices are positive definite wherever a path can be read, also with fewer rows than nodes."""

from __future__ import annotations

import numpy as np
import pytest

from bregpath import GaussianGraph, load_path
from bregpath.flow.stop import Result
from bregpath.graphs.layouts import GaussianLayout
from bregpath.losses import GaussianCompositeLoss, GaussianLikelihoodLoss

LOSSES = ["likelihood", "composite"]


def noise(n: int, p: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, p))


def assert_definite(graph: GaussianGraph, X: np.ndarray, between: int = 200) -> None:
    """At all times of the path and many more; and all that is made of the matrices."""
    path = graph.path_
    for t in np.concatenate([path.t, np.geomspace(0.5 * path.t[0], path.t[-1], between)]):
        precision = path.at(t).coef
        assert np.linalg.eigvalsh(precision)[0] > 0, t
    assert np.isfinite(path.deviance).all()
    assert np.abs(path.all_weights()).max() < 1  # partial correlations
    last = graph.at(float(path.t[-1]))
    for chosen in (graph, last):
        assert np.linalg.eigvalsh(chosen.covariance_)[0] > 0
        assert np.isfinite(chosen.sample(3, seed=0)).all()
        assert np.isfinite(chosen.score(X))
    if graph.selection_ is not None:
        assert np.isfinite(graph.selection_.mean).all()


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(20))
def test_fewer_rows_than_nodes(loss, seed):
    X = noise(10, 16, seed)
    assert_definite(GaussianGraph(loss).fit(X), X)
    assert_definite(GaussianGraph(loss, stop="cv", cv=2, n_times=20).fit(X), X, between=20)


@pytest.mark.parametrize("loss", LOSSES)
def test_half_as_many_rows_as_nodes(loss):
    for seed in range(4):
        X = noise(20, 40, seed)
        assert_definite(GaussianGraph(loss).fit(X), X)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize(("n", "p"), [(2, 3), (3, 3), (5, 10)])
def test_hardly_any_rows(loss, n, p):
    for seed in range(5):
        X = noise(n, p, seed)
        assert_definite(GaussianGraph(loss, n_times=20).fit(X), X, between=50)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("t", [0.3, 1.2, 3.0])
def test_fixed_times(loss, t):
    X = noise(12, 20, 1)
    times = np.array([0.5, 0.9, 1.0, 1.7, 2.9]) * t
    fixed = GaussianGraph(loss, t=times).fit(X)
    assert_definite(fixed, X, between=20)
    assert_definite(fixed.at(float(fixed.path_.t[0])), X, between=20)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("columns", [[0, 0], [0, 1, 2, 0], [0, 1, 2, 0, 1, 2]])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_copies_of_columns(loss, columns, sign):
    X = noise(20, 3, 0)[:, columns]
    X[:, -1] *= sign
    assert_definite(GaussianGraph(loss).fit(X), X)


def test_composite_path_ends_where_the_matrix_would_be_indefinite():
    X = noise(12, 20, 0)
    graph = GaussianGraph("composite").fit(X)
    path = graph.path_
    assert path.result is Result.INDEFINITE
    assert 'loss="likelihood"' in str(path.result)
    smallest = np.linalg.eigvalsh(path.at(path.t[-1]).coef)[0]
    assert 0 < smallest < 1e-6
    with pytest.raises(ValueError, match=r"beyond the end of the path.*likelihood"):
        path.at(2 * path.t[-1])
    further = path.extend(2 * path.t[-1])  # which goes no further
    assert further.result is Result.INDEFINITE
    assert further.t[-1] == path.t[-1]
    with pytest.warns(UserWarning, match=r"`stop`=50 lies beyond the end of the path.*likelihood"):
        late = GaussianGraph("composite", stop=50.0).fit(X)
    assert_definite(late, X)


def test_fixed_steps_end_there_too():
    X = noise(12, 20, 0)
    adaptive = GaussianGraph("composite").fit(X).path_
    graph = GaussianGraph("composite", step=0.002).fit(X)
    assert graph.path_.result is Result.INDEFINITE
    assert abs(graph.path_.t[-1] - adaptive.t[-1]) < 0.02 * adaptive.t[-1]
    assert_definite(graph, X)


def test_the_end_is_saved(tmp_path):
    path = GaussianGraph("composite", n_times=10).fit(noise(12, 20, 0)).path_
    path.save(tmp_path / "path.npz")
    assert load_path(tmp_path / "path.npz").result is Result.INDEFINITE


def test_loss_inside_steps_is_not_above_that_at_their_start():
    X = noise(20, 40, 1)
    path = GaussianGraph().fit(X).path_
    knots = np.concatenate([chunk.t[:-1] for chunk in path.trajectory.chunks] + [path.t[-1:]])
    knots = knots[knots < path.t[-1]]
    begin, length = knots[:-1], np.diff(knots)
    loss, correlation = GaussianLikelihoodLoss(40), np.corrcoef(X.T)
    above = np.triu_indices(40, 1)

    def values(times):
        alpha, columns, beta = path.trajectory.read(times)
        for diagonal, entries in zip(alpha, beta, strict=True):
            precision = np.diag(0.5 * diagonal)
            precision[above[0][columns], above[1][columns]] = entries[:, 0]
            yield loss.value(precision + precision.T, correlation, np.ones(1))

    at_start = np.array(list(values(begin)))
    for share in (0.25, 0.5, 0.75):
        assert np.all(np.array(list(values(begin + share * length))) <= at_start + 1e-9)


def test_indefinite_matrices_are_refused():
    layout = GaussianLayout(("a", "b"), np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="not positive definite at this time; .*`path.t`.*`tol`"):
        layout.parameters(np.ones(2), np.array([1.5]))
    indefinite = np.array([[1.0, 1.5], [1.5, 1.0]])
    for kind in (GaussianLikelihoodLoss, GaussianCompositeLoss):
        assert kind(2).value(indefinite, np.eye(2), np.ones(1)) == np.inf


def test_a_loss_may_be_shared_by_threads():
    """Another thread may use the loss as soon as this one has written what it remembers."""
    other = GaussianLikelihoodLoss(2)
    other.value(np.diag([3.0, 7.0]), np.eye(2), np.ones(1))
    remembered_by_other = other._last

    class Shared(GaussianLikelihoodLoss):
        _record = None

        @property
        def _last(self):
            return self._record

        @_last.setter
        def _last(self, record):
            self._record = remembered_by_other

    matrix, shared = np.array([[2.0, 1.0], [1.0, 2.0]]), Shared(2)
    assert shared.value(matrix, np.eye(2), np.ones(1)) == pytest.approx(4 - np.log(3))
    assert shared.gradient(matrix, np.eye(2), np.ones(1)) == pytest.approx(np.eye(2) - np.linalg.inv(matrix))
