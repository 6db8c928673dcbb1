"""Classification at one time of a Bregman path."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from bregpath._typing import Array
from bregpath.estimators.base import AbstractBregmanEstimator
from bregpath.losses.base import distinct_labels
from bregpath.path import Point

__all__ = ["BregmanClassifier"]


class BregmanClassifier(ClassifierMixin, AbstractBregmanEstimator):
    r"""Sparse logistic and multinomial regression.

    Probabilities are :math:`1 / (1 + e^{-\eta})` of the second class, or :math:`e^{\eta_l} / \sum_m
    e^{\eta_m}` of each of several, with :math:`\eta = a + X b` at the chosen time t of the path

    .. math:: \dot a = -\kappa \nabla_a \ell, \qquad \dot z = -\nabla_b \ell, \qquad b = \kappa\, \mathrm{shrink}(z).

    Parameters
    ----------
    loss : {"auto", "logistic", "multinomial"} or object, default "auto"
        "auto" is logistic for two classes and multinomial for more.
    stop, cv, penalty, groups, penalty_factor, lower, upper, kappa, flow, step, tol, t_ratio, n_times
        See `AbstractBregmanEstimator`. ``penalty="group"`` takes a column for all classes or for none.
    fit_intercept, standardize, saturation, screening, structure, nu, average, scoring, gamma, n_jobs, random_state
        See `AbstractBregmanEstimator`.

    Attributes
    ----------
    classes_ : ndarray of shape (q,)
        Sorted labels.
    coef_ : ndarray of shape (1, p) for two classes, else (q, p)
        For two classes the coefficients of the log-odds of the second, whatever the loss.
    intercept_ : ndarray of shape (1,) or (q,)
    t_, kappa_, path_, selection_, n_iter_, n_features_in_, feature_names_in_
        See `AbstractBregmanEstimator`.

    Examples
    --------
    >>> import numpy as np
    >>> import bregpath
    >>> from bregpath.estimators import BregmanClassifier
    >>> data = bregpath.datasets.make_logistic(200, 20, 4, seed=1)
    >>> model = BregmanClassifier(stop="cv-1se").fit(data.X, data.y)
    >>> np.flatnonzero(model.coef_).tolist()
    [0, 1, 2, 3]
    """

    _takes_labels = True

    def _usual_loss(self, y: Array) -> str:
        classes, _ = distinct_labels(y)
        check_classification_targets(y)
        if len(classes) < 2:
            raise ValueError(f"`y` has one class only ({classes.tolist()}); a classifier needs at least two classes.")
        return "logistic" if len(classes) == 2 else "multinomial"

    def _set_model(self, point: Point, y: Array) -> None:
        self.classes_ = np.unique(y)
        self.intercept_, self.coef_ = np.atleast_1d(point.intercept), np.atleast_2d(point.coef.T)
        if len(self.coef_) == 2:  # two outputs for two classes: only their difference counts
            self.intercept_, self.coef_ = np.diff(self.intercept_), np.diff(self.coef_, axis=0)

    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Linear predictor: log-odds of the second class, shape (n,), or one column for each class, (n, q)."""
        return self._linear_predictor(X, offset)

    def predict_proba(self, X: Any, offset: Any = None) -> Array:
        """Probability of each class, shape (n, q)."""
        eta = self._linear_predictor(X, offset)
        if eta.ndim == 2:
            return softmax(eta, axis=1)
        positive = expit(eta)
        return np.column_stack([1.0 - positive, positive])

    def predict(self, X: Any, offset: Any = None) -> Array:
        """The most probable label of each row."""
        eta = self._linear_predictor(X, offset)
        return self.classes_[eta.argmax(axis=1) if eta.ndim == 2 else (eta > 0).astype(int)]
