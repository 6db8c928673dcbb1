"""What the regressor and the classifier share: reading data, tracing a path, choosing a point on it."""

from __future__ import annotations

import numbers
import warnings
from abc import abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from bregpath import _frames, _interrupts, _validation
from bregpath._typing import Array
from bregpath.estimators.fixed_time import trace_to
from bregpath.losses import as_loss
from bregpath.path import Path, Point
from bregpath.selection.blending import Blend
from bregpath.selection.criteria import CRITERIA, information_criterion
from bregpath.selection.cross_validation import cross_validate
from bregpath.selection.kappas import (
    BLENDED,
    CV_RULES,
    PRUNED,
    check_average,
    check_kappas,
    check_stop_of_kappas,
    chosen_by,
)
from bregpath.selection.pruning import Pruned
from bregpath.selection.result import Selection
from bregpath.structures.study import read_study
from bregpath.trace import trace_path

__all__ = ["AbstractBregmanEstimator"]

# Constructor arguments that go to trace_path as they are.
_TRACE_OPTIONS = (
    "penalty", "groups", "penalty_factor", "lower", "upper", "kappa", "flow", "step", "tol", "t_ratio",
    "n_times", "fit_intercept", "standardize", "saturation", "screening", "structure", "nu",
)  # fmt: skip


@dataclass(eq=False, repr=False)
class RegressionParameters(BaseEstimator):
    """Parameters that the regressor and the classifier share; see `AbstractBregmanEstimator`."""

    loss: Any = "auto"
    _: KW_ONLY
    stop: str | float = "cv"
    cv: Any = 5
    penalty: str = "l1"
    groups: Any = None
    penalty_factor: Any = None
    lower: Any = None
    upper: Any = None
    kappa: Any = 10.0
    flow: Any = "glbi"
    step: float | str = "adaptive"
    tol: float = 0.01
    t_ratio: float = 100.0
    n_times: int = 100
    fit_intercept: bool = True
    standardize: bool | str = True
    saturation: float | None = 0.999
    screening: bool = True
    structure: Any = None
    nu: float | None = None
    average: str | None = "auto"
    scoring: Any = None
    gamma: float = 0.5
    n_jobs: int | None = None
    random_state: Any = 0


class AbstractBregmanEstimator(RegressionParameters):
    """A model at one time of a Bregman path.

    The parameters below are those of `BregmanRegressor` and `BregmanClassifier` alike.

    Parameters
    ----------
    loss : str or object
        See the class.
    stop : {"cv", "cv-1se", "cv-sparse", "cv-blend", "cv-pruned", "aic", "aicc", "bic", "ebic"} or float, default "cv"
        How the time is chosen: the best of a cross-validation, the sparsest within one standard error of it,
        the best time of the largest kappa within one standard error (of several), the average of the good models of
        all kappas (`Selection.blend`, which predicts best), the model that pruning leaves of the sparse choice (of the
        best, if there is one kappa; see `Selection.prune`), an information criterion, or a given time t.
        If the path ends before that time, because nothing is left to explain, its last model is used, with a warning.
    cv : int, splitter or iterable, default 5
        Folds, as in `cross_validate`. A number larger than the data allow (rows; rows of the smallest class
        for a classifier) is lowered with a warning. Where not even two folds of two rows (two of each class)
        are possible, BIC chooses, on the path of the largest kappa if there are several, with a warning.
    kappa : float, "cv" or list of float, default 10
        As in `trace_path`; several are chosen from by cross-validation, as in `cross_validate`.
    penalty, groups, penalty_factor, lower, upper, flow, step, tol, t_ratio, n_times, fit_intercept, standardize, saturation, screening, structure, nu
        As in `trace_path`; with a ``structure`` the model is the projected estimate.
    average : {"auto", "linear", "uniform"} or None, default "auto"
        As in `trace_path`. "auto" is what `cross_validate` does: a linear mean with kappa="cv", else the path itself.
    scoring : str or callable, or several, optional
        What cross-validation measures; the deviance by default. The first of several chooses. See `cross_validate`.
    gamma : float, default 0.5
        Price of the search in EBIC.
    n_jobs : int, optional
        Threads over the folds.
    random_state : int, RandomState or None, default 0
        How rows are shuffled into folds.

    Attributes
    ----------
    coef_, intercept_
        The model on the original scale. For a frame with categories the coefficients belong to
        ``path_.feature_names``.
    t_, kappa_ : float
        The chosen time, and kappa.
    path_ : Path, or StructuredPath with a ``structure``
        The path. A cross-validation ends it once its curve has clearly turned; ``path_.extend(t_max)`` goes on, until
        the estimator is pickled, because it refers to the data.
    selection_ : Selection or None
        The curve by which the time was chosen; None if ``stop`` is a number.
    blend_, pruned_ : Blend, Pruned, or None
        Of which ``coef_`` are the coefficients, with ``stop="cv-blend"`` or ``"cv-pruned"``; ``t_`` and ``kappa_`` are
        those of the model on a path that was begun with.
    n_iter_ : int
        Number of steps of the path.
    n_features_in_, feature_names_in_
        Columns seen in `fit`; of a data frame, before categories are expanded.
    """  # noqa: E501

    _takes_labels: bool = False
    _encoder: _frames.ColumnEncoder | None
    path_: Path
    selection_: Selection | None
    pruned_: Pruned | None
    blend_: Blend | None
    t_: float
    kappa_: float
    n_iter_: int
    coef_: Array
    intercept_: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # --- data ------------------------------------------------------------------------------------------------

    def _read(self, X: Any, y: Any = None, *, reset: bool, **checks: Any) -> Any:
        """Checked data. Frames with categories go through our own encoder, all else through scikit-learn's checks."""
        X, y = _plain("X", X), _plain("y", y)
        if reset:
            self._encoder = _category_encoder(X)
        encoder = self._encoder
        if encoder is None:
            _validation.check_indices(X)
            checks |= {"accept_sparse": ["csr", "csc"], "dtype": [np.float64, np.float32]}
            if not reset:
                return validate_data(self, X, reset=False, **checks)
            return validate_data(self, X, y, ensure_min_samples=2, **checks)
        if not _frames.is_frame(X):
            raise TypeError(
                f"`X` must be a data frame with the columns seen in fit, because some are categories; "
                f"found {type(X).__name__}."
            )
        if not reset:
            return encoder.encode(X)
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        self.feature_names_in_ = np.array(encoder.feature_names_in, dtype=object)
        self.n_features_in_ = len(self.feature_names_in_)
        return X, _frames.series_to_numpy(y)

    def _linear_predictor(self, X: Any, offset: Any) -> Array:
        """``intercept_ + X @ coef_ + offset``, shape (n,) or (n, q)."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        coef = self.coef_.T if self.coef_.ndim == 2 else self.coef_
        eta = np.asarray(X @ coef) + self.intercept_
        if eta.ndim == 2 and eta.shape[1] == 1:
            eta = eta[:, 0]
        if offset is not None:
            q = self.path_.n_outputs
            shift = _validation.check_offset(offset, len(eta), q)
            # Two classes of a multinomial model are reported as one difference.
            shift = shift[:, 1] - shift[:, 0] if q == 2 and eta.ndim == 1 else shift
            eta = eta + shift.reshape(eta.shape)
        return eta

    def summary(self) -> str:
        """How the model was chosen, and its variables by name, those with the largest effect first.

        Examples
        --------
        >>> import bregpath
        >>> data = bregpath.datasets.make_linear(100, 10, 2, seed=0)
        >>> print(bregpath.BregmanRegressor(stop=3.0).fit(data.X, data.y).summary())
        Model at t = 3: 2 of 10 variables
        ...
        """
        check_is_fitted(self)
        derived = self.pruned_ or self.blend_
        if derived is not None:
            return f"{derived.selection.summary(model=False)}\n{derived!r}"
        return repr(self.path_.at(self.t_) if self.selection_ is None else self.selection_)

    # --- fitting ---------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None, cv_groups: Any = None) -> Any:
        """Trace the path and choose a model on it.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, p)
        y : array-like of shape (n,)
            Numbers, or labels of any kind of at least two classes.
        sample_weight : array-like of shape (n,), optional
            Weight 0 equals the absence of a row.
        offset : array-like of shape (n,), or (n, q) for the multinomial loss, optional
            Known part of the linear predictor.
        cv_groups : array-like of shape (n,), optional
            Rows with the same label stay in the same fold of a cross-validation.

        Returns
        -------
        self
        """
        is_auto = isinstance(self.loss, str) and self.loss == "auto"
        if not is_auto and as_loss(self.loss).is_classifier != self._takes_labels:
            fits, other = ("not for", "BregmanRegressor") if self._takes_labels else ("for", "BregmanClassifier")
            raise ValueError(f"`loss`={self.loss!r} is {fits} class labels; use {other}.")
        X, y = self._read(X, y, reset=True, y_numeric=not self._takes_labels)
        usual = self._usual_loss(y)
        self._fit_path(X, y, usual if is_auto else self.loss, sample_weight, offset, cv_groups)
        derived = self.pruned_ or self.blend_
        self._set_model(self.path_.at(self.t_) if derived is None else derived.model, y)
        return self

    @abstractmethod
    def _usual_loss(self, y: Array) -> str:
        """The loss that "auto" stands for, of a response that is checked."""

    @abstractmethod
    def _set_model(self, point: Point, y: Array) -> None:
        """Take over the intercept and the coefficients of a model of a response."""

    def _fit_path(self, X: Any, y: Array, loss: Any, sample_weight: Any, offset: Any, cv_groups: Any = None) -> None:
        """Trace the path, choose a time, and set all attributes but the coefficients."""
        options = {name: getattr(self, name) for name in _TRACE_OPTIONS}
        # scikit-learn has made an array of a frame of numbers, and kept its names.
        names = getattr(self, "feature_names_in_", None) if self._encoder is None else None
        options |= {"loss": loss, "offset": offset, "feature_names": names}
        several = check_kappas(self.kappa) is not None
        options["average"] = check_average(self.average, isinstance(self.kappa, str), self.structure)
        weights = np.ones(len(y))
        if sample_weight is not None:
            rows = np.empty((len(y), 0))  # of X, which may be a frame, only their number is asked
            weights = _check_sample_weight(_plain("sample_weight", sample_weight), rows, dtype=np.float64)
            weights = _validation.check_counts(weights, len(y))
            options["sample_weight"] = weights
        check_stop_of_kappas(self.stop, several)
        selection = blend = pruned = None
        with _interrupts.all_or_nothing():
            if isinstance(self.stop, numbers.Real) and not isinstance(self.stop, bool):
                path = trace_to(read_study(X, y, **options), float(self.stop))
                t = min(float(self.stop), float(path.t[-1]))
            else:
                selection = self._select(X, y, weights, cv_groups, options)
                path, t = selection.path, selection.t
                if self.stop == BLENDED and selection.fold_paths:  # not where rows are too few for folds
                    blend = selection.blend()
                if self.stop == PRUNED and selection.fold_paths:
                    pruned = selection.prune()
        self.path_, self.t_, self.selection_, self.blend_, self.pruned_ = path, t, selection, blend, pruned
        self.n_iter_, self.kappa_ = self.path_.stats.steps, self.path_.kappa

    def _select(self, X: Any, y: Array, weights: Array, cv_groups: Any, options: dict[str, Any]) -> Selection:
        known = (*CV_RULES, PRUNED, BLENDED, *CRITERIA)
        if self.stop not in known:
            raise ValueError(f"`stop` must be one of {list(known)} or a time t, found {self.stop!r}.")
        n, rule, cv = float(weights.sum()), self.stop, self.cv  # a weight counts copies of its row
        if rule not in CRITERIA and isinstance(cv, numbers.Integral) and cv_groups is None:
            cv = self._possible_folds(y[weights > 0], int(cv))
            rule = "bic" if cv is None else rule
        if rule in CRITERIA:
            if several := check_kappas(options["kappa"]):  # too few rows for folds: the sparsest
                average = check_average(self.average, all_knobs=False)
                options = options | {"kappa": several[-1], "average": average}
            return information_criterion(trace_path(X, y, **options), str(rule), n, self.gamma)
        folds = {"cv": cv, "cv_groups": cv_groups, "seed": self.random_state, "n_jobs": self.n_jobs}
        selection = cross_validate(X, y, scoring=self.scoring, **folds, **options)
        return chosen_by(selection, str(rule))

    def _possible_folds(self, y: Array, cv: int) -> int | None:
        """``cv`` or as many folds as the data allow; None where cross-validation makes no sense."""
        if self._takes_labels:
            most = int(np.unique(y, return_counts=True)[1].min())
            found = f"{most} row(s) in the smallest class"
            possible = most >= 2
        else:
            most, possible = len(y), len(y) >= 4
            found = f"{most} rows"
        if cv <= most and possible:
            return cv
        instead = f"{most} folds are used instead" if possible else "BIC chooses the time instead"
        warnings.warn(f"`cv`={cv} is too large for {found}; {instead}.", UserWarning, stacklevel=5)
        return most if possible else None


def _plain(name: str, values: Any) -> Any:
    """Without masks, of which scikit-learn knows nothing, and as what scikit-learn reads."""
    values = _validation.unmasked(name, values)
    return np.asarray(values) if isinstance(values, np.ndarray) else values


def _category_encoder(X: Any) -> _frames.ColumnEncoder | None:
    """Encoder of a frame that has categories, else None."""
    if not _frames.is_frame(X):
        return None
    try:
        encoder = _frames.ColumnEncoder.from_frame(X)
    except ImportError:  # without narwhals frames of numbers still work: scikit-learn reads them
        return None
    return encoder if encoder.has_categories else None
