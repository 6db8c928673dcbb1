"""Knockoffs: variables that beat a fake copy of themselves along the path."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bregpath import _interrupts
from bregpath._text import shortened
from bregpath._typing import Array, IntArray
from bregpath.path import Path
from bregpath.selection.checks import check_choice, check_share, make_generator
from bregpath.selection.copies import copula_copies, dense_columns, elliptical_copies, gaussian_copies
from bregpath.trace import trace_path

__all__ = ["KnockoffSelection", "knockoff_select", "knockoff_threshold"]

STATISTICS = ("area", "entry")
NORMAL = {"gaussian": "reconstruct", "equicorrelated": "equal"}  # copies, and their spreads
OTHERS = {"copula": copula_copies, "elliptical": elliptical_copies}
TIE = 1e-9  # entry times that differ by less are equal up to rounding


@dataclass(frozen=True, eq=False, repr=False)
class KnockoffSelection:
    """Variables selected with a bound on the false discovery rate.

    Attributes
    ----------
    selected : ndarray of shape (k,)
        Selected columns, in increasing order; none where ``threshold`` is infinite.
    statistics : ndarray of shape (p,)
        W: positive where a column beats its copy, negative where the copy wins, zero where neither matters.
    threshold : float
        Columns with a statistic of at least this are selected; ``inf`` when no threshold keeps to ``fdr``.
    fdr : float
        The wanted level.
    statistic : {"area", "entry"}
    names : list of str
    path : Path
        The path on ``[X, copies]``: column p + j is the copy of column j.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(300, 20, 8, seed=0)
    >>> found = bregpath.knockoff_select(data.X, data.y, fdr=0.2)
    >>> bool((found.statistics[found.selected] >= found.threshold).all())
    True
    """

    selected: IntArray
    statistics: Array
    threshold: float
    fdr: float
    statistic: str
    names: list[str]
    path: Path

    def at_level(self, fdr: float) -> KnockoffSelection:
        """The same statistics at another level."""
        fdr = check_share("fdr", fdr)
        threshold = knockoff_threshold(self.statistics, fdr)
        return replace(self, fdr=fdr, threshold=threshold, selected=np.flatnonzero(self.statistics >= threshold))

    def __repr__(self) -> str:
        head = f"Knockoffs at false discovery rate {self.fdr:g}: {len(self.selected)} of {len(self.statistics)} columns"
        if not len(self.selected):
            return f"{head}\nNo threshold keeps to this rate; at level q at least 1 / q columns must be selected."
        order = self.selected[np.argsort(-self.statistics[self.selected], kind="stable")]
        width = max(len(self.names[j]) for j in order)
        lines = [f"{self.names[j]:>{width}}{self.statistics[j] + 0.0:>11.4g}" for j in order]
        return "\n".join([head, f"statistic ({self.statistic}) >= {self.threshold:.4g}", *shortened(lines, 20)])


def knockoff_select(
    X: Any, y: Any, *, fdr: float = 0.1, copies: Any = "gaussian", covariance: Any = None, statistic: str = "area",
    seed: Any = 0, progress: bool | None = False, **options: Any,
) -> KnockoffSelection:  # fmt: skip
    r"""Select variables with a bounded share of false ones (model-X knockoffs).

    Every column gets a copy that is like it, given the other columns, but knows nothing of y. One path is traced
    on :math:`[X, \tilde X]`, and a column is selected when it beats its copy clearly enough:

    .. math:: W_j = \int_{t_0}^{t_1} \lvert\beta_j\rvert - \lvert\tilde\beta_j\rvert \, d\log t \quad \text{("area")},
              \qquad
              W_j = \operatorname{sign}(\tilde t_j - t_j) \max(1/t_j, 1/\tilde t_j) \quad \text{("entry")},

    with standardised coefficients (norms over classes) and entry times. Swapping a column and its copy turns the sign
    of its W and changes nothing else, so the W of a column without influence is as often positive as negative. The
    threshold is that of knockoff+,

    .. math:: \tau = \min \Big\{ w : \frac{1 + \#\{j : W_j \le -w\}}{\#\{j : W_j \ge w\}} \le \mathrm{fdr} \Big\},

    which bounds the expected share of false variables among the selected ones, at any n and for any model of y given
    X, if the copies are right.

    Parameters
    ----------
    X, y
        As in `trace_path`; X must be dense, without constant or categorical columns.
    fdr : float, default 0.1
        Wanted bound. At level q either none or at least 1 / q columns are selected.
    copies : str, array of shape (n, p), or callable, default "gaussian"
        The copies: drawn by `gaussian_copies` ("gaussian", or "equicorrelated" with its ``spread="equal"``), by
        `copula_copies` ("copula") or by `elliptical_copies` ("elliptical"), given, or made by ``copies(X, rng)`` with a
        `numpy.random.Generator`, so that samplers of other libraries can be used. See the notes.
    covariance : array of shape (p, p), optional
        Covariance of the columns, where it is known, for normal copies.
    statistic : {"area", "entry"}, default "area"
        What is compared. "entry" looks at the order of entry only; "area" also at the size that coefficients reach,
        and had more power in all simulations, at the same false discovery rate.
    seed : int, numpy.random.Generator or None, default 0
        Source of the copies.
    progress : bool or None, default False
        Show progress bars of copies and path (needs rich); None shows them on a terminal.
    **options
        Keyword arguments of `trace_path`; ``penalty_factor``, ``lower`` and ``upper`` hold for a column and its copy
        alike. A column with ``penalty_factor=0`` is in every model, has no copy and is never selected.

    Notes
    -----
    "If the copies are right" is a condition on X. Normal copies are right for normal columns. In simulations (n = 400,
    p = 60, level 0.2) they gave a false discovery rate of 0.18 there and 0.21 for lognormal columns, but 0.25, above
    the level, for columns of a multivariate t with 3 degrees of freedom. "elliptical" copies, for rows that are normal
    but for a size of their own, gave 0.20 for these; "copula" copies, for columns of any distributions joined by a
    Gaussian copula, 0.23 for these and 0.19 for lognormal columns.

    References
    ----------
    Barber and Candes, *Controlling the false discovery rate via knockoffs*, Annals of Statistics 2015. Candes, Fan,
    Janson and Lv, *Panning for gold: model-X knockoffs*, JRSS B 2018. Spector and Janson, *Powerful knockoffs via
    minimizing reconstructability*, Annals of Statistics 2022.

    Examples
    --------
    >>> import bregpath
    >>> data = bregpath.datasets.make_linear(300, 40, 12, seed=1)
    >>> bregpath.knockoff_select(data.X, data.y, fdr=0.2).selected.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    """
    fdr = check_share("fdr", fdr)
    check_choice("statistic", statistic, STATISTICS)
    matrix, names = dense_columns(X)
    options = _for_both(options, matrix.shape[1])
    fakes = _make_copies(matrix, copies, covariance, make_generator(seed), progress)
    with _interrupts.all_or_nothing():
        path: Path = trace_path(np.column_stack([matrix, fakes]), y, progress=progress, **options)  # type: ignore[assignment]
    W = _areas(path) if statistic == "area" else _entries(path)
    never_penalised = np.all(path.trajectory.penalty.weights == 0, axis=1)[: matrix.shape[1]]
    W[never_penalised] = 0.0
    threshold = knockoff_threshold(W, fdr)
    return KnockoffSelection(np.flatnonzero(W >= threshold), W, threshold, fdr, statistic, names, path)


def knockoff_threshold(statistics: Any, fdr: float) -> float:
    r"""The knockoff+ threshold of some statistics; infinite when nothing can be selected.

    .. math:: \tau = \min \{ w > 0 : (1 + \#\{W_j \le -w\}) \le \mathrm{fdr}\, \#\{W_j \ge w\} \}.

    Examples
    --------
    >>> knockoff_threshold([5, 4, 3, 2, -1, 0.5], fdr=0.25), knockoff_threshold([5, 4, -3], fdr=0.25)
    (2.0, inf)
    """
    fdr = check_share("fdr", fdr)
    W = np.asarray(statistics, dtype=float)
    levels = np.unique(np.abs(W[W != 0]))
    sizes = np.sort(W[W > 0]), np.sort(-W[W < 0])
    selected = len(sizes[0]) - np.searchsorted(sizes[0], levels)
    false = 1 + len(sizes[1]) - np.searchsorted(sizes[1], levels)
    good = np.flatnonzero(false <= fdr * selected * (1 + 1e-12))
    return float(levels[good[0]]) if len(good) else np.inf


# --- statistics ----------------------------------------------------------------------------------------------


def _areas(path: Path) -> Array:
    """Area below the standardised coefficients over log time, less that of the copies."""
    _, columns, coef = path.read(path.t)
    norms = np.sqrt(np.sum(coef**2, axis=2)) * path.units.scale[columns]
    areas = np.zeros(path.n_features)
    areas[columns] = np.trapezoid(norms, np.log(path.t), axis=0)
    own, fake = np.split(areas, 2)
    return np.where(np.abs(own - fake) <= TIE * np.maximum(own, fake), 0.0, own - fake)


def _entries(path: Path) -> Array:
    """Earliness of a column or its copy, whichever enters first, signed by which of them it is."""
    own, fake = np.split(1.0 / np.maximum(path.entry_times, np.finfo(float).tiny), 2)
    tied = np.abs(own - fake) <= TIE * np.maximum(own, fake)
    return np.where(tied, 0.0, np.sign(own - fake) * np.maximum(own, fake))


# --- checks --------------------------------------------------------------------------------------------------


def _make_copies(X: Array, copies: Any, covariance: Any, rng: np.random.Generator, progress: bool | None) -> Array:
    if isinstance(copies, str):
        if copies not in (*NORMAL, *OTHERS):
            raise ValueError(f"`copies` must be one of {[*NORMAL, *OTHERS]}, an array or a callable, found {copies!r}.")
        if copies in NORMAL:
            return gaussian_copies(X, rng, covariance, NORMAL[copies], progress)
    if covariance is not None:
        raise ValueError(f"`covariance` is for normal copies ({list(NORMAL)}); leave it out with other `copies`.")
    if isinstance(copies, str):
        return OTHERS[copies](X, rng, progress=progress)
    made = np.asarray(copies(X, rng) if callable(copies) else copies, dtype=float)
    if made.shape != X.shape or not np.isfinite(made).all():
        raise ValueError(f"`copies` must be finite and have the shape of X, {X.shape}; found shape {made.shape}.")
    return made


def _for_both(options: dict[str, Any], p: int) -> dict[str, Any]:
    """Options of `trace_path` for columns and copies: what holds for a column holds for its copy."""
    if options.get("groups") is not None:
        raise ValueError("`groups` is not possible: a group needs copies made for the group; select single columns.")
    if options.get("structure") is not None:
        raise ValueError("`structure` relates the columns of X, which their copies would have to keep; leave it out.")
    both = dict(options)
    for name in ("penalty_factor", "lower", "upper"):
        values = both.get(name)
        if values is None or np.ndim(values) == 0:
            continue
        if np.shape(values) != (p,):
            raise ValueError(f"`{name}` must have one entry a column ({p}), found shape {np.shape(values)}.")
        twin = np.asarray(values, dtype=float)
        both[name] = np.concatenate([twin, np.where(twin == 0, np.inf, twin) if name == "penalty_factor" else twin])
    return both
