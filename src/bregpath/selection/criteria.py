"""Information criteria: a point on a path without refitting anything."""

from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._typing import Array
from bregpath.path import Path, percent
from bregpath.selection.result import Selection

if TYPE_CHECKING:
    from bregpath.graphs.path import GraphPath
    from bregpath.structures.path import StructuredPath

__all__ = ["CRITERIA", "choose_by_criterion", "information_criterion"]

# Share of the deviance beyond which a model with p > n repeats its rows: classes, and numbers without noise.
INTERPOLATES = 0.95, 0.9999
CRITERIA = ("aic", "aicc", "bic", "ebic", "gic")


def information_criterion(
    path: Path | GraphPath | StructuredPath, kind: str = "bic", n: float | None = None, gamma: float = 0.5
) -> Selection:
    r"""Choose t by an information criterion.

    With k parameters in the model at t, p candidate coefficients and n rows,

    .. math::
        \mathrm{AIC} &= -2 \log L + 2 k, &
        \mathrm{AICc} &= \mathrm{AIC} + 2 k (k + 1) / (n - k - 1), \\
        \mathrm{BIC} &= -2 \log L + k \log n, &
        \mathrm{EBIC} &= \mathrm{BIC} + 2 \gamma\, d \log p, \\
        \mathrm{GIC} &= -2 \log L + a_n k, & a_n &= \log(\log n) \log p.

    :math:`-2 \log L` is n times the mean deviance for losses that are likelihoods (logistic, multinomial,
    Poisson). Where the loss has the units of y (gaussian, huber) the unknown variance is profiled out:
    :math:`n \log(\mathrm{RSS} / n)` with the mean deviance in place of RSS / n. Constants that do not depend
    on t are left out.

    Degrees of freedom are counted: d is the number of non-zero coefficients and k adds the intercepts (q - 1
    for a multinomial model of q classes, because only differences count). The variance is not counted. This
    is exact for an unshrunk fit on a fixed support, which a path of large kappa is close to, and ignores the
    search for the support. EBIC and GIC pay for the search and are the ones to use when p is not small against
    n; GIC is Fan and Tang's choice of the price of a parameter, for p that may grow exponentially with n (with
    p = 1 there is no search, and its price is zero).

    A graph of p nodes with d edges of k independent parameters (those of the nodes are not counted) has in place of k
    the number c k, and :math:`p^2` candidates. c = 1 for the likelihood (Foygel and Drton) and for node-wise
    regressions, whose two coefficients an edge are counted both; c = 2 for a composite likelihood with one coefficient
    an edge, because the edge is seen from both of its ends and noise gains twice as much.

    With many more columns than rows criteria tend to choose one of the two ends: nothing, because the price of a
    variable is higher than what the first ones gain, or a model that repeats its rows, because a perfect fit pays any
    price. Both are said by a warning; `cross_validate` is the rule to use there. Models with as many parameters as rows
    are never chosen. Parameters of small kappa are shrunk and count too much.

    Parameters
    ----------
    path : Path, GraphPath or StructuredPath
    kind : {"bic", "aic", "aicc", "ebic", "gic"}, default "bic"
    n : int
        Number of rows the path was traced on; with sample weights their sum, since weight k stands for k rows.
        GIC needs at least 3.
    gamma : float, default 0.5
        Price of the search in EBIC, between 0 (BIC) and 1. :math:`2 \gamma d \log p` stands for Chen and
        Chen's :math:`2 \gamma \log \binom{p}{d}`, which it bounds from above.

    Returns
    -------
    Selection
        Without standard errors; ``curves`` holds "df" (d), "parameters" (k) and "fit" (-2 log L).

    References
    ----------
    Chen and Chen, Biometrika 2008 (EBIC); Fan and Tang, JRSS B 2013 (GIC).

    Examples
    --------
    >>> import bregpath
    >>> from bregpath.selection.criteria import information_criterion
    >>> data = bregpath.datasets.make_linear(100, 20, 4, seed=0)
    >>> path = bregpath.trace_path(data.X, data.y)
    >>> path.support(information_criterion(path, "ebic", n=100).t).tolist()
    [0, 1, 2, 3]
    """
    if not path.has_likelihood:
        raise ValueError(
            f"`path` has the loss {path.loss.name!r}, which is no likelihood; its estimator chooses by the composite "
            'likelihood of the rows: IsingGraph("mpf", stop="bic").'
        )
    return choose_by_criterion(path, kind, n, gamma, path.deviance)


def choose_by_criterion(path: Any, kind: str, n: Any, gamma: Any, deviance: Array) -> Selection:
    """See `information_criterion`; the deviance at the times of the path may be another than its own."""
    kind, n, gamma = _check(kind, n, gamma)
    found, size, n_sightings, log_candidates = path.complexity
    fit = _minus_two_log_likelihood(path, n, deviance)
    price = {"aic": 2.0, "aicc": 2.0, "gic": np.log(np.log(n)) * log_candidates if kind == "gic" else 0.0}
    values = fit + n_sightings * size * price.get(kind, np.log(n))
    if kind == "aicc":
        with np.errstate(divide="ignore"):
            spare = np.maximum(n - size - 1.0, 0.0)
            values = values + 2.0 * size * (size + 1.0) / spare
    elif kind == "ebic":
        values = values + 2.0 * gamma * found * log_candidates
    if path.counts != "edges":  # of which a graph may have more than there are rows
        # A model with as many parameters as rows is no summary of them, and its degrees of freedom mean nothing.
        full = size >= n
        values = values if full.all() else np.where(full, np.inf, values)
    # argmin takes the first of equals, the sparsest; with infinities everywhere that is the null model.
    best = int(np.argmin(values))
    if path.counts == "variables":
        _warn_if_useless(path, kind, n, found, values, best)
    name = {"aic": "AIC", "aicc": "AICc", "bic": "BIC", "ebic": f"EBIC (gamma={gamma:g})", "gic": "GIC"}[kind]
    curves = {"df": found, "parameters": size, "fit": fit}
    return Selection.without_folds(name, path, best, values, kind, curves)


def _warn_if_useless(path: Any, kind: str, n: float, found: Array, values: Array, best: int) -> None:
    """Say so where a criterion tells more about n and p than about the data: at both ends of a path with p > n."""
    if path.n_features <= n or len(values) < 2:
        return
    if path.deviance_ratio[best] > (INTERPOLATES[0] if path.loss.is_classifier else INTERPOLATES[1]):
        share = percent(path.deviance_ratio[best])
        what = f"a model that explains {share} % of the deviance: a perfect fit pays any price"
    elif found[best] == 0 and found.max() > 0:
        what = "the null model: no variable pays its price"
    else:
        return
    warnings.warn(
        f'`kind`="{kind}" chooses {what}. With {path.n_features} columns and {n:g} rows that says little about the '
        "data; choose by cross_validate().",
        UserWarning,
        stacklevel=4,
    )


def _check(kind: Any, n: Any, gamma: Any) -> tuple[str, float, float]:
    lowered = kind.lower() if isinstance(kind, str) else kind
    if lowered not in CRITERIA:
        raise ValueError(f"`kind` must be one of {list(CRITERIA)}, found {kind!r}.")
    if isinstance(n, bool) or not isinstance(n, numbers.Real) or not float(n) > 0:
        raise ValueError(f"`n` must be the number of rows the path was traced on, found {n!r}; pass n=len(y).")
    if lowered == "gic" and not float(n) >= 3:
        raise ValueError(f'`n` must be at least 3 for kind="gic", whose price holds log(log n), found {n!r}.')
    if isinstance(gamma, bool) or not isinstance(gamma, numbers.Real) or not 0.0 <= float(gamma) <= 1.0:
        raise ValueError(f"`gamma` must be a number from 0 (BIC) to 1, found {gamma!r}.")
    return lowered, float(n), float(gamma)


def _minus_two_log_likelihood(path: Path | GraphPath | StructuredPath, n: float, deviance: Array) -> Array:
    if not path.loss.has_units:
        return n * deviance
    # RSS = 0 (a constant y, or an interpolating model) must not win by log 0: the floor is rounding error.
    floor = max(path.null_deviance * np.finfo(float).eps, np.finfo(float).tiny)
    return n * np.log(np.maximum(deviance, floor))
