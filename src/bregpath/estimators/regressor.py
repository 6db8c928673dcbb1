"""Regression at one time of a Bregman path."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from bregpath._typing import Array
from bregpath.estimators.base import AbstractBregmanEstimator
from bregpath.path import Point

__all__ = ["BregmanRegressor"]


class BregmanRegressor(RegressorMixin, AbstractBregmanEstimator):
    r"""Sparse regression: gaussian, Poisson or Huber.

    The model :math:`\eta = a + X b` at the chosen time t of the path

    .. math:: \dot a = -\kappa \nabla_a \ell, \qquad \dot z = -\nabla_b \ell, \qquad b = \kappa\, \mathrm{shrink}(z).

    Coefficients are far less biased than those of the lasso, because they grow to their unpenalised size once
    they have entered.

    Parameters
    ----------
    loss : {"auto", "gaussian", "poisson", "huber"} or object, default "auto"
        The loss; "auto" is gaussian. `predict` returns the mean response, so rates for "poisson".
    stop, cv, penalty, groups, penalty_factor, lower, upper, kappa, flow, step, tol, t_ratio, n_times
        See `AbstractBregmanEstimator`.
    fit_intercept, standardize, saturation, screening, structure, nu, average, scoring, gamma, n_jobs, random_state
        See `AbstractBregmanEstimator`.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
    intercept_ : float
    t_, kappa_, path_, selection_, n_iter_, n_features_in_, feature_names_in_
        See `AbstractBregmanEstimator`.

    Examples
    --------
    >>> import numpy as np
    >>> import bregpath
    >>> from bregpath.estimators import BregmanRegressor
    >>> data = bregpath.datasets.make_linear(100, 20, 4, seed=0)
    >>> model = BregmanRegressor(stop="cv-1se").fit(data.X, data.y)
    >>> np.flatnonzero(model.coef_).tolist()
    [0, 1, 2, 3]
    """

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = isinstance(self.loss, str) and self.loss == "poisson"
        return tags

    def _usual_loss(self, y: Array) -> str:
        return "gaussian"

    def _set_model(self, point: Point, y: Array) -> None:
        _, self.intercept_, self.coef_ = point

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Mean response, shape (n,); ``offset`` is added to the linear predictor."""
        eta = self._linear_predictor(X, offset)
        return self.path_.loss.predict(eta)
