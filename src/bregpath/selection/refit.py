"""Relaxed refit: the unpenalised model on the support that a path has chosen."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bregpath import _frames, _validation
from bregpath._typing import Array, IntArray
from bregpath.losses import AbstractLoss
from bregpath.path import Path
from bregpath.penalties import build_penalty
from bregpath.problem import NullModel, null_model
from bregpath.regression import Regression
from bregpath.run import SATURATION
from bregpath.selection.checks import check_share
from bregpath.selection.damped import DampedFit, contrasts

__all__ = ["Refit", "relaxed_refit"]

LIKELIHOODS = ("gaussian", "logistic", "multinomial", "poisson")
SINGULAR = 1e-10  # smallest eigenvalue, relative to the largest, below which a matrix counts as singular
CAVEAT = "Standard errors ignore that the same data chose the support: they are too small, and z too large."


@dataclass(frozen=True, eq=False, repr=False)
class Refit:
    """An unpenalised fit on a chosen support.

    Attributes
    ----------
    t : float
        The time at which the support was read.
    support : ndarray of shape (k,)
        The columns that were refitted.
    intercept : float or ndarray of shape (q,)
    coef : ndarray of shape (p,) or (p, q)
        Exactly zero off the support.
    standard_errors : ndarray of shape (p,) or (p, q)
        Naive: as if the support had been known beforehand. NaN off the support.
    intercept_error : float or ndarray of shape (q,)
        NaN without an intercept.
    covariance : ndarray of shape (m, m)
        Of intercept(s), then the coefficients of the support, column by column.
    errors : {"fisher", "sandwich"}
        How the standard errors were computed.
    dispersion : float
        Residual variance of a gaussian model; 1 for others.
    deviance : float
        Mean over rows.
    n : float
        Number of rows, or the sum of their weights.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 20, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y)
    >>> bregpath.relaxed_refit(path, path.t[40], data.X, data.y).n
    100.0
    """

    t: float
    support: IntArray
    intercept: Any
    coef: Array
    standard_errors: Array
    intercept_error: Any
    covariance: Array
    errors: str
    dispersion: float
    deviance: float
    n: float
    loss: AbstractLoss
    names: list[str]
    encoder: _frames.ColumnEncoder | None = None

    def intervals(self, level: float = 0.95) -> tuple[Array, Array]:
        """Lower and upper ends of naive normal intervals; NaN off the support."""
        from scipy.special import ndtri

        width = ndtri(0.5 + 0.5 * check_share("level", level)) * self.standard_errors
        return self.coef - width, self.coef + width

    def decision_function(self, X: Any, offset: Any = None) -> Array:
        """Linear predictor of new rows."""
        if self.encoder is not None and _frames.is_frame(X):
            X = self.encoder.encode(X)
        X = _validation.check_design(X)
        if X.shape[1] != len(self.coef):
            raise ValueError(f"`X` has {X.shape[1]} columns, the model was fitted on {len(self.coef)}.")
        return _validation.add_offset(np.asarray(X @ self.coef) + self.intercept, offset, np.size(self.intercept))

    def predict(self, X: Any, offset: Any = None) -> Array:
        """Mean response of new rows, as `Path.predict`."""
        return self.loss.predict(self.decision_function(X, offset))

    def __repr__(self) -> str:
        width = max([len("(intercept)"), *(len(self.names[j]) for j in self.support)])
        q = np.size(self.intercept)
        lines = [f"{'':>{width}}{'coef':>11}{'se':>11}{'z':>8}"]
        values = np.vstack([np.reshape(self.intercept, (1, q)), self.coef[self.support].reshape(-1, q)])
        errors = np.vstack(
            [np.reshape(self.intercept_error, (1, q)), self.standard_errors[self.support].reshape(-1, q)]
        )
        for name, row, deviations in zip(
            ["(intercept)", *(self.names[j] for j in self.support)], values, errors, strict=True
        ):
            for value, error in zip(row, deviations, strict=True):
                z = f"{round(value / error, 2) + 0.0:>8.2f}" if error > 0 else f"{'-':>8}"
                lines.append(f"{name:>{width}}{value:>11.4g}{error:>11.4g}{z}")
        how = f"{self.loss.name}, {self.errors} errors"
        head = f"Refit of {len(self.support)} columns ({how}), support at t = {self.t:.4g}"
        return "\n".join([head, *lines, CAVEAT])


def relaxed_refit(
    path: Path,
    t: float,
    X: Any,
    y: Any,
    *,
    sample_weight: Any = None,
    offset: Any = None,
    errors: str | None = None,
    ridge: float = 0.0,
) -> Refit:
    r"""Fit the columns in the model at t again, without any penalty, or with a small ridge.

    With S the support at t,

    .. math:: (\hat\alpha, \hat\beta_S) = \arg\min \sum_i w_i\, \ell_i(\alpha + x_{iS}^\top \beta_S), \qquad
              \widehat{\mathrm{cov}} = \hat\phi \Big( \sum_i w_i\, \ell_i''\, \tilde x_i \tilde x_i^\top \Big)^{-1},

    :math:`\tilde x_i = (1, x_{iS})`; :math:`\hat\phi = \mathrm{RSS} / (n - |S| - 1)` for the gaussian loss and 1 for
    other likelihoods. So standard errors come from the inverse Fisher information.

    **They are naive.** They hold for a support that was fixed before the data were seen. Here the same data chose it:
    the errors are too small, and z is too large, most of all for weak columns. For an honest statement refit on rows
    that did not choose the support, or use `knockoff_select` or `stability_selection`.

    Parameters
    ----------
    path : Path
    t : float
        Where the support is read.
    X, y
        The data of the path, or other rows (then the errors are honest).
    sample_weight, offset
        As in `trace_path`; they belong to the rows given here.
    errors : {"fisher", "sandwich"}, optional
        "sandwich", :math:`H^{-1} (\sum_i w_i g_i g_i^\top) H^{-1} n / (n - |S| - 1)`, does not need the loss to be a
        likelihood: it is the default for Huber's and users' losses, "fisher" for the others.
    ridge : float, default 0
        :math:`\rho` in :math:`\arg\min \sum_i w_i \ell_i / \sum_i w_i + \frac{\rho}{2} |\beta_S|^2`, with columns (and
        y, if the path scaled it) in standard deviations. A little of it, such as 0.01, gives a finite model where
        columns separate classes, depend on each other, or are as many as the rows.

    Notes
    -----
    A column is refitted in all classes of a multinomial model, with coefficients that sum to zero over the classes.
    The levels of a categorical column (of a data frame) have effects that sum to zero as well; a level without a row
    has effect zero and no error. Columns that separate classes have no finite unpenalised coefficients, and are
    refused: the model is that of an earlier t, or that of the path. Limits (``lower``, ``upper``) are not kept.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(100, 10, 3, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y)
    >>> refit = bregpath.relaxed_refit(path, path.t[30], data.X, data.y)
    >>> refit.support.tolist(), bool((refit.standard_errors[refit.support] > 0).all())
    ([0, 1, 2], True)
    """
    if errors not in (None, "fisher", "sandwich"):
        raise ValueError(f'`errors` must be "fisher" or "sandwich", found {errors!r}.')
    ridge = 0.0 if ridge == 0 else _validation.check_number("ridge", ridge)
    if not isinstance(path, Path):
        raise TypeError(
            f"`path` must be a Path of trace_path, found {type(path).__name__}; the order is "
            "relaxed_refit(path, t, X, y)."
        )
    t = _validation.check_time(t)
    support, q = path.support(t), path.n_outputs
    matrix = path.encode(X)[:, support]
    block = matrix.toarray() if _validation.is_sparse(matrix) else np.asarray(matrix, dtype=float)
    has_intercept = bool(path.intercept.any())
    counted = _validation.check_counts(sample_weight, len(block)) > 0
    effects = _effects(path, support, block[counted], has_intercept)
    chosen = errors or ("fisher" if path.loss.name in LIKELIHOODS else "sandwich")
    fit = _Fit(path, t, block @ effects, y, has_intercept, ridge, sample_weight=sample_weight, offset=offset)
    covariance, dispersion = fit.covariance(chosen)
    to_columns = np.kron(_beside(np.eye(int(has_intercept)), effects), np.eye(q))
    covariance = to_columns @ covariance @ to_columns.T
    of_all = np.sqrt(np.diagonal(covariance)).reshape(-1, q)
    of_intercept = of_all[0] if has_intercept else np.full(q, np.nan)
    has_rows = effects.any(axis=1, keepdims=True)  # levels may have none
    deviations = np.where(has_rows, of_all[int(has_intercept) :], np.nan)
    return Refit(
        t=t,
        support=support,
        intercept=float(fit.intercept[0]) if q == 1 else fit.intercept,
        coef=_of_all_columns(path, support, effects @ fit.coef, 0.0),
        standard_errors=_of_all_columns(path, support, deviations, np.nan),
        intercept_error=float(of_intercept[0]) if q == 1 else of_intercept,
        covariance=covariance,
        errors=chosen,
        dispersion=dispersion,
        deviance=fit.deviance,
        n=fit.n,
        loss=path.loss,
        names=path.feature_names,
        encoder=path.encoder,
    )


def _of_all_columns(path: Path, support: IntArray, values: Array, others: float) -> Array:
    """Numbers (k, q) of the support, and those of the others."""
    full = np.full((path.n_features, path.n_outputs), others)
    full[support] = values
    return full[:, 0] if path.n_outputs == 1 else full


def _effects(path: Path, support: IntArray, block: Array, has_intercept: bool) -> Array:
    """Coefficients of the support from free parameters: where all levels of a categorical column are in, they sum to 0.

    The indicators of all levels add up to one, as the intercept does. (Without an intercept the first of the
    categorical columns takes its place.)
    """
    if path.encoder is None:
        return np.eye(len(support))
    columns, parts = path.encoder.groups[support], []
    is_pinned = has_intercept
    for column in np.unique(columns):
        levels = block[:, columns == column]
        if path.encoder.columns[column].levels is None or not np.all(levels.sum(axis=1) == 1.0):
            parts.append(np.eye(levels.shape[1]))
            continue
        occurs = np.eye(levels.shape[1])[:, levels.any(axis=0)]
        parts.append(occurs @ contrasts(occurs.shape[1]) if is_pinned else occurs)
        is_pinned = True
    return _beside(*parts)


def _beside(*blocks: Array) -> Array:
    """A block-diagonal matrix."""
    from scipy.linalg import block_diag

    return block_diag(*blocks) if blocks else np.zeros((0, 0))


class _Fit:
    """The optimum on some columns: without a ridge, where a path on which all are free would start, and stay."""

    def __init__(
        self, path: Path, t: float, block: Array, y: Any, has_intercept: bool, ridge: float, **data: Any
    ) -> None:
        self.path, self.t, self.k, self.has_intercept, self.ridge = path, t, block.shape[1], has_intercept, ridge
        columns = block if self.k else np.zeros((len(block), 1))  # the null model: a column of zeros never enters
        study = Regression.read(
            columns, y, loss=path.loss, penalty_factor=np.zeros(columns.shape[1]), fit_intercept=has_intercept,
            standardize=True if path.units.y_unit != 1.0 else "X", **data,
        )  # fmt: skip
        found = study.loss.classes
        if path.classes is not None and found is not None and not np.array_equal(path.classes, found):
            raise ValueError(f"`y` must hold the classes of the path, {path.classes.tolist()}, found {found.tolist()}.")
        self.n = float(study.w.sum())
        self.problem, self.units, _ = study.on()
        design = self._check_rank()
        self.fit = DampedFit(self.problem, design, np.where(np.arange(design.shape[1]) < has_intercept, 0.0, ridge))
        try:
            alpha, beta, self.eta = self._damped_optimum() if ridge else null_model(self.problem)
        except ValueError as error:
            if not isinstance(error, np.linalg.LinAlgError) and "no finite optimum" not in str(error):
                raise
            raise self._no_optimum() from None
        intercept, coef = self.units.restore(alpha, np.arange(columns.shape[1]), beta)
        self.intercept, self.coef = intercept + 0.0, coef[: self.k] + 0.0
        self.deviance = self._deviance(self.eta)
        nothing = replace(self.problem, penalty=build_penalty("l1", *self.problem.beta_shape))
        share = 1.0 - self.deviance / max(self._deviance(null_model(nothing).eta), np.finfo(float).tiny)
        if path.loss.is_classifier and self.k and share >= SATURATION and not ridge:
            raise self._no_optimum()

    def _damped_optimum(self) -> NullModel:
        self.fit.optimise()
        by_column, free = self.fit.by_column(), int(self.has_intercept)
        beta = np.zeros(self.problem.beta_shape)
        beta[: self.k] = by_column[free:]
        alpha = by_column[0] if free else np.zeros(self.problem.n_alpha)
        return NullModel(alpha, beta, self.fit.predictor(self.fit.theta))

    def _deviance(self, eta: Array) -> float:
        problem, unit = self.problem, self.units.y_unit
        excess = problem.value(eta) - problem.floor
        return float(problem.loss.deviance_factor * unit**2 * excess)

    def _check_rank(self) -> Array:
        """The columns inside, after one of ones; refuse what least squares could not fit either."""
        columns = self.problem.store.fetch(np.arange(self.k)).matvec(np.eye(self.k))
        design = np.column_stack([np.ones(len(columns)), columns]) if self.has_intercept else columns
        if self.ridge:
            return design
        if self.k + self.has_intercept >= self.n:
            raise ValueError(
                f"`t`={self.t:g}: the support has {self.k} columns, too many to be fitted on {self.n:g} rows without a "
                "penalty; choose an earlier t, or a small `ridge`."
            )
        values = np.linalg.eigvalsh((design * self.problem.w[:, None]).T @ design)
        if len(values) and values[0] <= SINGULAR * values[-1]:
            raise ValueError(
                f"`t`={self.t:g}: columns of the support depend on each other linearly (one is constant, a copy, or a "
                "sum of others) on these rows, so that an unpenalised model is not unique; drop such columns of X, "
                "choose an earlier t, or a small `ridge`."
            )
        return design

    def _no_optimum(self) -> ValueError:
        separates = self.path.loss.is_classifier
        why = "separate classes of `y`" if separates else "fit some rows of `y` ever better as they grow"
        return ValueError(
            f"`t`={self.t:g}: the columns of the support {why}, so that unpenalised coefficients have no finite "
            "optimum; choose an earlier t, where the support is smaller, a small `ridge`, or use the model of the path "
            "itself, path.at(t)."
        )

    def covariance(self, errors: str) -> tuple[Array, float]:
        """Covariance of intercept and coefficients, and the dispersion, in the units of the data."""
        problem, units, design, n = self.problem, self.units, self.fit.design, self.n
        loss, m = problem.loss, design.shape[1]
        if not m:
            return np.zeros((0, 0)), 1.0
        to_user = np.diag(np.concatenate([np.ones(int(self.has_intercept)), 1.0 / units.scale[: self.k]]))
        if self.has_intercept:
            to_user[0, 1:] = -(units.center / units.scale)[: self.k]
        back = units.y_unit * np.kron(to_user, self.fit.contrasts)
        hessian = n * self.fit.hessian(self.eta)
        values, vectors = np.linalg.eigh(hessian + n * np.diag(self.fit.ridge))
        if values[0] <= SINGULAR * values[-1]:
            raise self._no_optimum()
        inverse = (vectors / values) @ vectors.T
        spare = n - float(np.trace(inverse @ hessian))  # parameters, less what the ridge holds back
        squares = np.sum(problem.w @ (self.eta[:, 0] - problem.y) ** 2) if loss.name == "gaussian" else 0.0
        dispersion = float(n * squares) / spare if loss.name == "gaussian" else 1.0
        if errors == "fisher":
            return back @ (dispersion * inverse @ hessian @ inverse) @ back.T, dispersion * units.y_unit**2
        of_rows = replace(problem, w=np.ones(len(design))).residual(self.eta)
        scores = (design[:, :, None] * (of_rows @ self.fit.contrasts)[:, None]).reshape(len(design), -1)
        meat = n * ((scores * problem.w[:, None]).T @ scores)
        return back @ (inverse @ meat @ inverse * n / spare) @ back.T, dispersion * units.y_unit**2
