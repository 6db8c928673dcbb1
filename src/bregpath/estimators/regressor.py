"""Regression at one time of a Bregman path."""

from __future__ import annotations

from typing import Any

from sklearn.base import RegressorMixin

from bregpath._typing import Array
from bregpath.estimators.base import AbstractBregmanEstimator
from bregpath.losses import as_loss

__all__ = ["BregmanRegressor"]


class BregmanRegressor(RegressorMixin, AbstractBregmanEstimator):
    r"""Sparse regression: gaussian, Poisson or Huber.

    The model :math:`\eta = a + X b` at the chosen time t of the path

    .. math:: \dot a = -\kappa \nabla_a \ell, \qquad \dot z = -\nabla_b \ell, \qquad b = \kappa\, \mathrm{shrink}(z).

    Coefficients are far less biased than those of the lasso, because they grow to their unpenalised size once
    they have entered.

    Parameters
    ----------
    loss : {"gaussian", "poisson", "huber"} or object, default "gaussian"
        The loss. `predict` returns the mean response, so rates for "poisson".
    stop, cv, penalty, groups, penalty_factor, lower, upper, kappa, step, tol, t_ratio, n_times
        See `AbstractBregmanEstimator`.
    fit_intercept, standardize, screening, scoring, gamma, n_jobs, random_state
        See `AbstractBregmanEstimator`.

    Attributes
    ----------
    coef_ : ndarray of shape (p,)
    intercept_ : float
    t_, path_, selection_, n_iter_, n_features_in_, feature_names_in_
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

    def __init__(
        self,
        loss: Any = "gaussian",
        *,
        stop: str | float = "cv",
        cv: Any = 5,
        penalty: str = "l1",
        groups: Any = None,
        penalty_factor: Any = None,
        lower: Any = None,
        upper: Any = None,
        kappa: float = 10.0,
        step: float | str = "adaptive",
        tol: float = 0.01,
        t_ratio: float = 100.0,
        n_times: int = 100,
        fit_intercept: bool = True,
        standardize: bool | str = True,
        screening: bool = True,
        scoring: Any = None,
        gamma: float = 0.5,
        n_jobs: int | None = None,
        random_state: Any = 0,
    ) -> None:
        super().__init__(
            loss, stop=stop, cv=cv, penalty=penalty, groups=groups, penalty_factor=penalty_factor,
            lower=lower, upper=upper, kappa=kappa, step=step, tol=tol, t_ratio=t_ratio, n_times=n_times,
            fit_intercept=fit_intercept, standardize=standardize, screening=screening, scoring=scoring,
            gamma=gamma, n_jobs=n_jobs, random_state=random_state,
        )  # fmt: skip

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = isinstance(self.loss, str) and self.loss == "poisson"
        return tags

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> BregmanRegressor:
        """Trace the path and choose a model on it.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, p)
        y : array-like of shape (n,)
        sample_weight : array-like of shape (n,), optional
            Weight 0 equals the absence of a row.
        offset : array-like of shape (n,), optional
            Known part of the linear predictor.

        Returns
        -------
        self
        """
        if as_loss(self.loss).is_classifier:
            raise ValueError(f"`loss`={self.loss!r} is for class labels; use BregmanClassifier.")
        X, y = self._read(X, y, reset=True, y_numeric=True)
        self._fit_path(X, y, self.loss, sample_weight, offset)
        _, self.intercept_, self.coef_ = self.path_.at(self.t_)
        return self

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Mean response, shape (n,); ``offset`` is added to the linear predictor."""
        eta = self._linear_predictor(X, offset)
        return self.path_.loss.predict(eta)
