"""Relaxed refit: the unpenalised model on the support that a path has chosen."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from bregpath import _frames, _validation
from bregpath._typing import Array, IntArray
from bregpath.losses import AbstractLoss
from bregpath.path import Path
from bregpath.run import SATURATION
from bregpath.selection.checks import check_share
from bregpath.trace import trace_path

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
    >>> refit = bregpath.relaxed_refit(path, path.t[40], data.X, data.y)
    >>> bool((refit.coef[refit.support] != 0).all()), refit.n
    (True, 100.0)
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
        eta = np.asarray(X @ self.coef) + self.intercept
        if offset is not None:
            eta = eta + _validation.check_offset(offset, len(eta), np.size(self.intercept)).reshape(eta.shape)
        return eta

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
) -> Refit:
    r"""Fit the columns in the model at t again, without any penalty.

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

    Returns
    -------
    Refit

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
    support = path.support(t)
    matrix = path.encode(X)[:, support]
    block = matrix.toarray() if _validation.is_sparse(matrix) else np.asarray(matrix, dtype=float)
    y = _frames.series_to_numpy(y)
    if len(y) != len(block):
        raise ValueError(f"`X` and `y` differ in length: {len(block)} rows and {len(y)} responses.")
    n = float(len(y) if sample_weight is None else np.sum(sample_weight))
    weights = _validation.check_weights(sample_weight, len(y)) * n
    has_intercept = bool(path.intercept.any())
    effects = _effects(path, support, block[weights > 0], has_intercept)
    block, q = block @ effects, path.n_outputs
    _check_rank(path, t, block, weights, has_intercept)
    fit = _unpenalised(path, block, y, sample_weight, offset, has_intercept, float(t))
    point = fit.at(1.0)
    intercept, free = np.reshape(point.intercept, q), np.reshape(point.coef, (-1, q))[: block.shape[1]]
    chosen = errors or ("fisher" if path.loss.name in LIKELIHOODS else "sandwich")
    eta = intercept + block @ free + _validation.check_offset(offset, len(y), q)
    covariance, dispersion = _covariance(fit, block, y, weights, eta, has_intercept, chosen, float(t))
    to_columns = np.kron(_beside(np.eye(int(has_intercept)), effects), np.eye(q))
    covariance = to_columns @ covariance @ to_columns.T
    deviations = np.sqrt(np.diagonal(covariance)).reshape(-1, q)
    deviations[int(has_intercept) :][~effects.any(axis=1)] = np.nan  # levels without a row
    full, full_errors = np.zeros((path.n_features, q)), np.full((path.n_features, q), np.nan)
    full[support], full_errors[support] = effects @ free, deviations[int(has_intercept) :]
    intercept_error = deviations[0] if has_intercept else np.full(q, np.nan)
    shape = (path.n_features,) if q == 1 else (path.n_features, q)
    return Refit(
        t=float(t),
        support=support,
        intercept=point.intercept,
        coef=full.reshape(shape),
        standard_errors=full_errors.reshape(shape),
        intercept_error=float(intercept_error[0]) if q == 1 else intercept_error,
        covariance=covariance,
        errors=chosen,
        dispersion=dispersion,
        deviance=float(fit.deviance[-1]),
        n=n,
        loss=path.loss,
        names=path.feature_names,
        encoder=path.encoder,
    )


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
        parts.append(occurs @ _contrasts(occurs.shape[1]) if is_pinned else occurs)
        is_pinned = True
    return _beside(*parts)


def _beside(*blocks: Array) -> Array:
    """A block-diagonal matrix."""
    from scipy.linalg import block_diag

    return block_diag(*blocks) if blocks else np.zeros((0, 0))


def _check_rank(path: Path, t: float, block: Array, weights: Array, has_intercept: bool) -> None:
    """Refuse what least squares could not fit either."""
    n, k = weights.sum(), block.shape[1]
    if k + has_intercept >= n:
        raise ValueError(
            f"`t`={float(t):g}: the support has {k} columns, too many to be fitted on {n:g} rows without a "
            "penalty; choose an earlier t."
        )
    design, _ = _scaled_design(block, weights, has_intercept)
    values = np.linalg.eigvalsh((design * weights[:, None]).T @ design)
    if len(values) and values[0] <= SINGULAR * values[-1]:
        raise ValueError(
            f"`t`={float(t):g}: columns of the support depend on each other linearly (one is constant, a copy, or a "
            "sum of others) on these rows, so that an unpenalised model is not unique; drop such columns of X, or "
            "choose an earlier t."
        )


def _unpenalised(
    path: Path, block: Array, y: Array, sample_weight: Any, offset: Any, has_intercept: bool, t: float
) -> Path:
    """The unpenalised optimum, as a path of free columns: it starts there, and stays."""
    columns = block if block.shape[1] else np.zeros((len(y), 1))  # the null model: a column of zeros never enters
    standardize = True if path.units.y_unit != 1.0 else "X"
    try:
        fit = trace_path(
            columns, y, loss=path.loss, penalty_factor=np.zeros(columns.shape[1]), t=[1.0], sample_weight=sample_weight,
            offset=offset, fit_intercept=has_intercept, standardize=standardize,
        )  # fmt: skip
    except ValueError as error:
        if not isinstance(error, np.linalg.LinAlgError) and "no finite optimum" not in str(error):
            raise
        raise _no_optimum(path, t) from None
    if path.classes is not None and fit.classes is not None and not np.array_equal(path.classes, fit.classes):
        raise ValueError(
            f"`y` must hold the classes of the path, {path.classes.tolist()}, found {fit.classes.tolist()}."
        )
    if path.loss.is_classifier and block.shape[1] and fit.deviance_ratio[-1] >= SATURATION:
        raise _no_optimum(path, t)
    return fit


def _no_optimum(path: Path, t: float) -> ValueError:
    why = "separate classes of `y`" if path.loss.is_classifier else "fit some rows of `y` ever better as they grow"
    return ValueError(
        f"`t`={t:g}: the columns of the support {why}, so that unpenalised coefficients have no finite optimum; choose "
        "an earlier t, where the support is smaller, or use the model of the path itself, path.at(t)."
    )


def _covariance(
    fit: Path, block: Array, y: Array, weights: Array, eta: Array, has_intercept: bool, errors: str, t: float
) -> tuple[Array, float]:
    """Covariance of intercept and coefficients, and the dispersion, in the units of the data."""
    loss, q, n = fit.loss, fit.n_outputs, weights.sum()
    unit = fit.units.y_unit if loss.has_units else 1.0
    coded = copy(loss).encode(y, weights / n)
    coded, eta = (coded / unit, eta / unit) if loss.has_units else (coded, eta)
    eta = eta[:, 0] if q == 1 else eta
    design, to_user = _scaled_design(block, weights, has_intercept)
    contrasts = _contrasts(q) if loss.is_classifier and q > 1 else np.eye(q)
    back = unit * np.kron(to_user, contrasts)
    if not design.shape[1]:
        return np.zeros((0, 0)), 1.0
    # A parameter is a column and a contrast; eta moves with it by their product.
    moves = (design[:, None, :, None] * contrasts[None, :, None, :]).reshape(len(y), q, -1)
    flat = moves[:, 0] if q == 1 else moves
    bent = np.stack([loss.curvature(eta, coded, weights, move) for move in np.moveaxis(flat, -1, 0)], axis=-1)
    hessian = moves.reshape(len(y) * q, -1).T @ bent.reshape(len(y) * q, -1)
    values, vectors = np.linalg.eigh(hessian)
    if values[0] <= SINGULAR * values[-1]:
        raise _no_optimum(fit, t)
    inverse, spare = (vectors / values) @ vectors.T, n - len(values)
    dispersion = float(weights @ (eta - coded) ** 2) / spare if loss.name == "gaussian" else 1.0
    if errors == "fisher":
        return back @ (dispersion * inverse) @ back.T, dispersion * unit**2
    scores = np.einsum("iq,iqj->ij", loss.gradient(eta, coded, np.ones(len(y))).reshape(-1, q), moves)
    meat = (scores * weights[:, None]).T @ scores
    return back @ (inverse @ meat @ inverse * n / spare) @ back.T, dispersion * unit**2


def _scaled_design(block: Array, weights: Array, has_intercept: bool) -> tuple[Array, Array]:
    """Centred and scaled columns after one of ones, and the map from their parameters to those of the data."""
    mean = weights @ block / weights.sum() if has_intercept else np.zeros(block.shape[1])
    scale = np.sqrt(weights @ (block - mean) ** 2 / weights.sum())
    scale = np.where(scale > 0, scale, 1.0)
    design = (block - mean) / scale
    if not has_intercept:
        return design, np.diag(1.0 / scale)
    to_user = np.diag(np.concatenate([[1.0], 1.0 / scale]))
    to_user[0, 1:] = -mean / scale
    return np.column_stack([np.ones(len(block)), design]), to_user


def _contrasts(q: int) -> Array:
    """Orthonormal contrasts of q classes: only differences of their predictors count."""
    return np.linalg.svd(np.eye(q) - 1.0 / q)[0][:, : q - 1]
