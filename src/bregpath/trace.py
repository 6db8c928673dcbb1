"""`trace_path`: from data and wishes to a Path."""

from __future__ import annotations

from typing import Any

from bregpath.path import Path
from bregpath.run import SATURATION
from bregpath.structures.path import StructuredPath
from bregpath.structures.study import read_study

__all__ = ["trace_path"]


def trace_path(
    X: Any,
    y: Any = None,
    *,
    loss: Any = "gaussian",
    penalty: Any = "l1",
    groups: Any = None,
    penalty_factor: Any = None,
    lower: Any = None,
    upper: Any = None,
    kappa: float = 10.0,
    step: float | str = "adaptive",
    tol: float = 0.01,
    t: Any = None,
    t_ratio: float = 100.0,
    n_times: int = 100,
    flow: Any = "glbi",
    structure: Any = None,
    nu: float | None = None,
    average: str | None = None,
    feature_names: Any = None,
    sample_weight: Any = None,
    offset: Any = None,
    fit_intercept: bool = True,
    standardize: bool | str = True,
    stop: Any = None,
    saturation: float | None = SATURATION,
    screening: bool = True,
    progress: bool | None = False,
) -> Path | StructuredPath:
    r"""Trace a whole sparse regularisation path.

    Integrates, from the exact time ``t0`` at which the first variable enters,

    .. math:: \dot\alpha = -\kappa \nabla_\alpha \ell, \qquad \dot z = -\nabla_\beta \ell, \qquad
              \beta = \kappa\, \mathrm{shrink}(z).

    Parameters
    ----------
    X : array, scipy.sparse matrix, data frame, or store of shape (n, p), or None
        Dense X (float32 or float64, any order) is not copied. Categorical columns of a frame become indicators, one
        group each. A `bregpath.stores.AbstractStore` of your own says where columns live that are not in memory. With a
        ``structure`` None means that y is a signal: every row has a coefficient of its own, and there is no intercept.
    y : array-like of shape (n,)
        Response: numbers, or labels of any kind for the logistic and multinomial losses.
    loss : str or object, default "gaussian"
        "gaussian", "logistic", "multinomial", "poisson", "huber", or any object with ``value(eta, y, w)`` and
        ``gradient(eta, y, w)``.
    penalty : {"l1", "group", "group-sqrt"}, class or object, default "l1"
        How coefficients are held at zero; "group-sqrt" weighs a group by the square root of its size. Without
        ``groups`` a group is one column over all classes. An `AbstractPenalty` of your own is taken as well.
    groups : array-like of shape (p,), optional
        Group label of each column.
    penalty_factor : array-like, optional
        Relative threshold of each column (or group): 0 is never penalised, ``inf`` never enters.
    lower, upper : float or array-like of shape (p,), optional
        Limits of the coefficients, ``lower <= 0 <= upper``; ``lower=0`` is non-negativity.
    kappa : float, default 10
        Damping. Larger is less biased and costs more; with ``standardize=True`` it is in standard deviations of y.
        ``inf`` is ``flow="giss"``.
    step : "adaptive" or float, default "adaptive"
        Adaptive steps meet ``tol``; a number is the paper's iteration with that fixed step (in the path's own time).
    tol : float, default 0.01
        Error of the coefficients allowed to adaptive steps, relative to the largest coefficient.
    t : array-like, optional
        Times to report; by default ``n_times`` log-spaced times from ``t0`` to ``t_ratio * t0``.
    t_ratio : float, default 100
    n_times : int, default 100
    flow : {"glbi", "giss"} or class, default "glbi"
        The dynamics. "giss" is the limit of infinite kappa, inverse scale space: coefficients are unpenalised fits with
        given signs, constant between the exact times at which one enters or leaves (penalty "l1" only; kappa, step and
        tol have no meaning). An `AbstractFlow` of your own is taken as well.
    structure : str, tuple or matrix of shape (m, p), optional
        What is sparse in place of the coefficients: a linear map D of them (Split LBI). "fused" (differences of
        neighbours), "trend" or ("trend", order) (second or other differences), ("grid", shape) (total variation of an
        image, or of an array of any dimension), ("graph", edges), or any array or scipy.sparse matrix D. The loss gets
        a term ``mu / (2 nu) |D alpha - gamma|^2``; penalty, groups, factors, limits and entry times are those of gamma,
        one entry a row of D. The path is a `bregpath.structures.StructuredPath`.
    nu : float, optional
        How freely ``D alpha`` may differ from the sparse gamma. By default 0.001 for "fused" (``0.001 ** order``
        for trends), 0.1 for all else. Small is needed where noise hides the structure, large tells close changes apart.
    average : {"linear", "uniform"}, optional
        Read the path as its mean over time, which is shrunken: the model of time s counts in that of time t in
        proportion to s, or as much as any other. In terms of thresholds of a coefficient the path is a hard one, its
        linear mean Breiman's garrote and its uniform mean the soft one of the lasso. A variable that has entered stays.
        Stop rules see the mean, but the deviance of the path itself. Not with a ``structure``.
    feature_names : sequence of p strings, optional
        What the columns of an array are called in tables and figures; a data frame has names of its own.
    sample_weight : array-like of shape (n,), optional
        Weight k equals k copies of a row, weight 0 its absence.
    offset : array-like of shape (n,) or (n, q), optional
        Known part of the linear predictor.
    fit_intercept : bool, default True
    standardize : {True, "X", False}, default True
        True scales X, and y where the loss has its units; "X" scales X only; False uses the data as given. Results
        are always in the units of the data. With a ``structure`` all columns are scaled by one number, so that D
        compares what it did.
    stop : optional
        A time, a stop rule (`StopAtVariables`, `StopAtDevianceRatio`, `StopWhenWorse`, ...) or any callable of a
        `Progress`.
    saturation : float or None, default 0.999
        Share of the deviance at which the path ends, because coefficients only grow from there on; None goes on.
    screening : bool, default True
        Work on few columns where X is large. The path is the same.
    progress : bool or None, default False
        Show a progress bar (needs rich); None shows it on a terminal.

    Returns
    -------
    Path, or StructuredPath with a ``structure``
        Interrupted by Ctrl-C, as far as it is valid (`Result.INTERRUPTED`); KeyboardInterrupt is raised only where no
        block of steps was done.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_logistic(200, 20, 4, seed=1)
    >>> path = bregpath.trace_path(data.X, data.y, loss="logistic")
    >>> path.support(3 * path.t[0]).tolist()
    [0, 1, 2, 3]
    """
    study = read_study(
        X, y, loss=loss, penalty=penalty, groups=groups, penalty_factor=penalty_factor, lower=lower, upper=upper,
        kappa=kappa, sample_weight=sample_weight, offset=offset, fit_intercept=fit_intercept, standardize=standardize,
        flow=flow, step=step, tol=tol, t=t, t_ratio=t_ratio, n_times=n_times, stop=stop, saturation=saturation,
        screening=screening, progress=progress, structure=structure, nu=nu, average=average,
        feature_names=feature_names,
    )  # fmt: skip
    return study.trace()  # type: ignore[no-any-return]
