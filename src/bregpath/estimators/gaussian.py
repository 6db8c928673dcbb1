"""Gaussian graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from bregpath import _validation
from bregpath._typing import Array
from bregpath.estimators.graph import AbstractGraph
from bregpath.graphs.data import check_nodes, read_numbers
from bregpath.graphs.layouts import AbstractLayout, GaussianLayout
from bregpath.graphs.path import GraphPath
from bregpath.selection.graphs import covariance, graph_deviance

__all__ = ["GaussianGraph"]

SMALLEST = 1e-140  # difference whose square is still a number of full precision, as is that of its inverse
MANY_NODES = 500  # from which on factorising a matrix is worth several threads


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
    stop, gamma, cv, mask, edge_weights, kappa, step, tol, t, t_ratio, n_times, max_sparsity, screening
        See `AbstractGraph`; gamma is 0.5 by default. From a covariance only "ebic", "bic" and times are possible.
    stars_beta, n_subsamples, n_jobs, random_state, progress
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

    _losses = ("likelihood", "composite")
    _rules = ("ebic", "bic", "cv", "cv-1se", "stars")

    def __init__(
        self,
        loss: str = "likelihood",
        *,
        input: str = "data",
        n_samples: int | None = None,
        stop: str | float = "ebic",
        gamma: float = 0.5,
        cv: Any = 5,
        mask: Any = None,
        edge_weights: Any = None,
        kappa: float = 10.0,
        step: float | str = "adaptive",
        tol: float = 0.05,
        t: Any = None,
        t_ratio: float = 100.0,
        n_times: int = 100,
        max_sparsity: float | None = None,
        screening: bool = True,
        stars_beta: float = 0.05,
        n_subsamples: int = 20,
        n_jobs: int | None = None,
        random_state: Any = 0,
        progress: bool | None = False,
    ) -> None:
        super().__init__(
            stop=stop, gamma=gamma, cv=cv, mask=mask, edge_weights=edge_weights, kappa=kappa, step=step, tol=tol,
            t=t, t_ratio=t_ratio, n_times=n_times, max_sparsity=max_sparsity, saturation=None, screening=screening,
            stars_beta=stars_beta, n_subsamples=n_subsamples, n_jobs=n_jobs, random_state=random_state,
            progress=progress,
        )  # fmt: skip
        self.loss = loss
        self.input = input
        self.n_samples = n_samples

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianGraph:
        """Trace the path of graphs and choose one.

        Parameters
        ----------
        X : array or data frame of shape (n, p)
            One column a node; or a covariance matrix, with ``input="covariance"``. Missing values are refused.
        y : ignored
        sample_weight : array-like of shape (n,), optional
            Weight k equals k copies of a row.

        Returns
        -------
        self
        """
        # Threads of BLAS wait for each other longer than small matrices take.
        many = np.ndim(X) == 2 and np.shape(X)[1] >= MANY_NODES
        with threadpool_limits(None if many else 1, user_api="blas"):
            return super().fit(X, y, sample_weight)

    def _prepare(self, X: Any, w: Any) -> tuple[AbstractLayout, Array, Array]:
        if self.input not in ("data", "covariance"):
            raise ValueError(f'`input` must be "data" or "covariance", found {self.input!r}.')
        values, names = read_numbers(X, least_rows=2)
        names = names or tuple(f"x{j}" for j in range(values.shape[1]))
        if self.input == "covariance":
            return self._from_covariance(values, names, w)
        weights = _validation.check_counts(w, len(values))
        _check_squares(values, names)
        mean = weights @ values / weights.sum()
        scale = np.sqrt(np.diagonal(covariance(values, weights, mean)))
        constant = np.flatnonzero(scale <= 1e-13 * np.abs(mean))
        if len(constant):
            raise ValueError(f"`X` is constant in column {names[constant[0]]!r}; drop it.")
        return GaussianLayout(names, scale, mean, self.loss), values, weights

    def _from_covariance(self, S: Array, names: tuple[str, ...], w: Any) -> tuple[AbstractLayout, Array, Array]:
        if S.shape[0] != S.shape[1] or not np.allclose(S, S.T, rtol=1e-8, atol=1e-12):
            raise ValueError(
                f'`X` must be a symmetric covariance matrix with input="covariance", found shape {S.shape}.'
            )
        if (np.diagonal(S) <= 0).any() or np.linalg.eigvalsh(S)[0] < -1e-8 * np.trace(S):
            raise ValueError("`X` is not a covariance matrix: it has a negative eigenvalue, or a variance of zero.")
        if w is not None:
            raise ValueError('`sample_weight` needs rows; with input="covariance" weigh the covariance itself.')
        if self.stop in ("cv", "cv-1se", "stars"):
            raise ValueError(f'`stop`={self.stop!r} needs rows; with input="covariance" use "ebic", "bic" or a time.')
        if self.n_samples is None and not self._is_time:
            raise ValueError(f"`stop`={self.stop!r} needs the number of rows behind the covariance: pass n_samples.")
        scale = np.sqrt(np.diagonal(S))
        n = float(len(S)) if self.n_samples is None else _validation.check_number("n_samples", self.n_samples)
        # Rows whose covariance is S: the columns of its root, so that everything else need not know the difference.
        eigenvalues, vectors = np.linalg.eigh(S)
        rows = (vectors * np.sqrt(np.maximum(eigenvalues, 0.0) * len(S))) @ vectors.T
        return GaussianLayout(names, scale, np.zeros(len(S)), self.loss), rows, np.full(len(S), n / len(S))

    def _trace(self, layout: Any, rows: Array, w: Array, times: Any = None, stop: Any = None) -> GraphPath:
        # The path of a fold knows the mean of its own rows, about which it scores others.
        if self.input == "data":
            layout = replace(layout, mean=w @ rows / w.sum())
        return super()._trace(layout, rows, w, times, stop)

    def _distinct(self, layout: AbstractLayout, rows: Array, w: Array) -> tuple[Any, Array]:
        share = w / w.sum()
        mean = share @ rows if self.input == "data" else np.zeros(rows.shape[1])
        return covariance(rows, w, mean), share

    def _encode(self, X: Any) -> Array:
        values, names = read_numbers(X)
        check_nodes(values.shape[1], names, self.path_.layout.names)
        return values

    def _set_time(self, t: float) -> None:
        super()._set_time(t)
        self.precision_ = self.path_.at(t).coef
        self.covariance_ = np.linalg.inv(self.precision_)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of the rows of ``X``, as in scikit-learn's covariance estimators; larger is better.

        Composite if the loss is: the sum over nodes of the log-densities given all others. After a fit to a
        covariance, rows are deviations from the mean.
        """
        check_is_fitted(self)
        rows = self._encode(X)
        w = _validation.check_counts(sample_weight, len(rows))
        deviance = float(graph_deviance(self.path_, rows, w, np.array([self.t_]))[0])
        # From the correlation scale to that of the data.
        jacobian = np.sum(np.log(self.path_.layout.scale))  # type: ignore[attr-defined]
        constant = 0.5 * self.n_features_in_ * np.log(2 * np.pi)
        return -0.5 * deviance - jacobian - constant


def _check_squares(values: Array, names: tuple[str, ...]) -> None:
    """Refuse columns of numbers whose squares are infinite, or whose variance would be zero though they differ."""
    largest, spread = np.abs(values).max(axis=0), np.ptp(values, axis=0)
    wrong = np.flatnonzero((largest > 1 / SMALLEST) | ((spread > 0) & (spread < SMALLEST)))
    if len(wrong):
        j = int(wrong[0])
        raise ValueError(
            f"`X` has numbers like {largest[j]:.3g} in column {names[j]!r}, too large or too small to be squared; "
            "rescale it."
        )
