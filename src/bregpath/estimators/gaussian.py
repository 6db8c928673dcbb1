"""Gaussian graphs."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from bregpath import _validation
from bregpath._typing import Array, BoolArray
from bregpath.estimators.graph import AbstractGraph
from bregpath.graphs.data import check_nodes, covariance, read_numbers
from bregpath.graphs.layouts import AbstractLayout, GaussianLayout
from bregpath.graphs.missing import draw_from_margins
from bregpath.graphs.normal_scores import NormalScores
from bregpath.selection.checks import check_choice
from bregpath.selection.kappas import CV_RULES

__all__ = ["GaussianGraph", "check_squares"]

SMALLEST = 1e-140  # difference whose square is still a number of full precision, as is that of its inverse
MANY_NODES = 500  # from which on factorising a matrix is worth several threads


@dataclass(eq=False, repr=False)
class GaussianGraph(AbstractGraph):
    r"""Sparse precision matrix :math:`\Omega` of normal variables: its zeros are conditional independences.

    The path runs on the correlation scale; the diagonal is free. Edges are weighted by partial correlations,
    :math:`-\omega_{jk} / \sqrt{\omega_{jj} \omega_{kk}}`.

    Parameters
    ----------
    loss : {"likelihood", "composite"}, default "likelihood"
        :math:`\operatorname{tr}(S \Omega) - \log\det \Omega`, which also works with fewer rows than nodes; or the
        regressions of every node on all others (pseudo-likelihood). Both are positive definite at every time: where the
        second would not be, its path ends.
    input : {"data", "covariance"}, default "data"
        What `fit` is given: rows, or a covariance matrix.
    n_samples : int, optional
        Rows behind a covariance matrix; the information criteria need it.
    transform : {None, "rank"}, default None
        "rank" replaces every column by its normal scores, so that only the order of its values counts: for columns that
        are skewed or have outliers (nonparanormal graphs). Then `precision_`, `covariance_`, `fields_`, samples and
        scores are those of the normal scores.
    stop, gamma, cv, missing, mask, edge_weights, kappa, flow, step, tol, t, t_ratio, n_times, max_sparsity, screening
        See `AbstractGraph`; gamma is 0.5 by default. From a covariance only "ebic", "bic" and times are possible.
    stable_threshold, stars_beta, n_subsamples, n_jobs, random_state, progress
        See `AbstractGraph`.

    Attributes
    ----------
    precision_, covariance_ : ndarray of shape (p, p)
        At the chosen time, on the original scale.
    weights_ : ndarray of shape (p, p)
        Partial correlations.
    fields_ : ndarray of shape (p,)
        Means.
    adjacency_, t_, path_, selection_, n_features_in_, feature_names_in_
        See `AbstractGraph`.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_gaussian_graph(n=500, p=10, graph="chain", seed=0)
    >>> graph = bregpath.GaussianGraph().fit(data.X)
    >>> bool((graph.adjacency_ == data.adjacency).all())
    True
    """

    _losses = GaussianLayout.choices["loss"]
    _rules = ("ebic", "bic", *CV_RULES, "stars", "stable")

    saturation = None

    loss: str = "likelihood"
    _: KW_ONLY
    input: str = "data"
    n_samples: int | None = None
    transform: str | None = None
    gamma: float = 0.5

    def _limits(self, p: int) -> AbstractContextManager[Any]:
        # Threads of BLAS wait for each other longer than small matrices take.
        return threadpool_limits(None if p >= MANY_NODES else 1, user_api="blas")

    def _read(self, X: Any, w: Any, rng: np.random.Generator) -> tuple[AbstractLayout, Array, Array, BoolArray]:
        check_choice("input", self.input, ("data", "covariance"))
        check_choice("transform", self.transform, (None, "rank"))
        values, names = read_numbers(X, least_rows=2, gaps=self._takes_gaps and self.input == "data")
        names = names or tuple(f"x{j}" for j in range(values.shape[1]))
        if self.input == "covariance":
            return self._from_covariance(values, names, w)
        weights, missing = _validation.check_counts(w, len(values)), np.isnan(values)
        self._normal_scores = NormalScores.learn(values, weights) if self.transform == "rank" else None
        values = self._transformed(values)
        values = draw_from_margins(values, missing, rng)
        check_squares(values, names)
        mean = weights @ values / weights.sum()
        scale = np.sqrt(np.diagonal(covariance(values, weights, mean)))
        constant = np.flatnonzero(scale <= 1e-13 * np.abs(mean))
        if len(constant):
            raise ValueError(f"`X` is constant in column {names[constant[0]]!r}; drop it.")
        return GaussianLayout(names, scale, mean, self.loss), values, weights, missing

    def _from_covariance(
        self, S: Array, names: tuple[str, ...], w: Any
    ) -> tuple[AbstractLayout, Array, Array, BoolArray]:
        if S.shape[0] != S.shape[1] or not np.allclose(S, S.T, rtol=1e-8, atol=1e-12):
            raise ValueError(
                f'`X` must be a symmetric covariance matrix with input="covariance", found shape {S.shape}.'
            )
        if (np.diagonal(S) <= 0).any() or np.linalg.eigvalsh(S)[0] < -1e-8 * np.trace(S):
            raise ValueError("`X` is not a covariance matrix: it has a negative eigenvalue, or a variance of zero.")
        if self.transform is not None:
            raise ValueError('`transform` needs rows; with input="covariance" pass a covariance of ranks.')
        self._normal_scores = None
        if w is not None:
            raise ValueError('`sample_weight` needs rows; with input="covariance" weigh the covariance itself.')
        if self.stop in (*CV_RULES, "stars", "stable"):
            raise ValueError(f'`stop`={self.stop!r} needs rows; with input="covariance" use "ebic", "bic" or a time.')
        if self.n_samples is None and not self._is_time:
            raise ValueError(f"`stop`={self.stop!r} needs the number of rows behind the covariance: pass n_samples.")
        scale = np.sqrt(np.diagonal(S))
        n = float(len(S)) if self.n_samples is None else _validation.check_number("n_samples", self.n_samples)
        # Rows whose covariance is S: the columns of its root, so that everything else need not know the difference.
        eigenvalues, vectors = np.linalg.eigh(S)
        rows = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0) * len(S))) @ vectors.T
        layout = GaussianLayout(names, scale, np.zeros(len(S)), self.loss, knows_mean=True)
        return layout, rows, np.full(len(S), n / len(S)), np.zeros(rows.shape, dtype=bool)

    def _encode(self, X: Any) -> Array:
        values, names = read_numbers(X)
        check_nodes(values.shape[1], names, self.path_.layout.names)
        return self._transformed(values)

    def _transformed(self, values: Array) -> Array:
        return values if self._normal_scores is None else self._normal_scores.apply(values)

    def _set_time(self, t: float) -> None:
        super()._set_time(t)
        self.precision_ = self.path_.at(t).coef
        self.covariance_ = np.linalg.inv(self.precision_)

    def _log_units(self, rows: Array, w: Array) -> float:
        scale = self.path_.layout.scale  # type: ignore[attr-defined]
        return float(np.sum(np.log(scale))) + 0.5 * len(scale) * np.log(2 * np.pi)


def check_squares(values: Array, names: tuple[str, ...]) -> None:
    """Refuse columns of numbers whose squares are infinite, or whose variance would be zero though they differ."""
    largest, spread = np.abs(values).max(axis=0), np.ptp(values, axis=0)
    wrong = np.flatnonzero((largest > 1 / SMALLEST) | ((spread > 0) & (spread < SMALLEST)))
    if len(wrong):
        j = int(wrong[0])
        raise ValueError(
            f"`X` has numbers like {largest[j]:.3g} in column {names[j]!r}, too large or too small to be squared; "
            "rescale it."
        )
