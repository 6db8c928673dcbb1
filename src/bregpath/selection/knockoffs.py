"""Knockoffs: variables that beat a fake copy of themselves along the path."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bregpath import _frames, _interrupts, _validation
from bregpath._typing import Array, IntArray
from bregpath.path import Path
from bregpath.selection.bootstrap import MIN_ROWS, check_share, make_generator
from bregpath.trace import trace_path

__all__ = ["KnockoffSelection", "gaussian_copies", "knockoff_select", "knockoff_threshold"]

STATISTICS = ("area", "entry")
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
        fdr = check_share("fdr", fdr, 0.0, 1.0)
        threshold = knockoff_threshold(self.statistics, fdr)
        return replace(self, fdr=fdr, threshold=threshold, selected=np.flatnonzero(self.statistics >= threshold))

    def __repr__(self) -> str:
        head = f"Knockoffs at false discovery rate {self.fdr:g}: {len(self.selected)} of {len(self.statistics)} columns"
        if not len(self.selected):
            return f"{head}\nNo threshold keeps to this rate; at level q at least 1 / q columns must be selected."
        order = self.selected[np.argsort(-self.statistics[self.selected], kind="stable")]
        width = max(len(self.names[j]) for j in order)
        lines = [f"{self.names[j]:>{width}}{self.statistics[j]:>11.4g}" for j in order[:20]]
        more = [f"... and {len(order) - 20} more"] if len(order) > 20 else []
        return "\n".join([head, f"statistic ({self.statistic}) >= {self.threshold:.4g}", *lines, *more])


def knockoff_select(
    X: Any,
    y: Any,
    *,
    fdr: float = 0.1,
    copies: Any = "gaussian",
    covariance: Any = None,
    statistic: str = "area",
    seed: Any = 0,
    **options: Any,
) -> KnockoffSelection:
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
    copies : "gaussian", "equicorrelated", array of shape (n, p), or callable, default "gaussian"
        The copies: drawn by `gaussian_copies` (with ``spread="equal"`` if "equicorrelated"), given, or made by
        ``copies(X, rng)`` with a `numpy.random.Generator`, so that samplers of other libraries can be used.
    covariance : array of shape (p, p), optional
        Covariance of the columns, where it is known, for copies drawn here.
    statistic : {"area", "entry"}, default "area"
        What is compared. "entry" looks at the order of entry only; "area" also at the size that coefficients reach,
        and had more power in all simulations, at the same false discovery rate.
    seed : int, numpy.random.Generator or None, default 0
        Source of the copies.
    **options
        Keyword arguments of `trace_path`; ``penalty_factor``, ``lower`` and ``upper`` hold for a column and its copy
        alike. A column with ``penalty_factor=0`` is in every model, has no copy and is never selected.

    Returns
    -------
    KnockoffSelection

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
    fdr = check_share("fdr", fdr, 0.0, 1.0)
    if statistic not in STATISTICS:
        raise ValueError(f"`statistic` must be one of {list(STATISTICS)}, found {statistic!r}.")
    matrix, names = _dense_columns(X)
    options = _for_both(options, matrix.shape[1])
    fakes = _make_copies(matrix, copies, covariance, make_generator(seed))
    with _interrupts.all_or_nothing():
        path = trace_path(np.column_stack([matrix, fakes]), y, **options)
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
    fdr = check_share("fdr", fdr, 0.0, 1.0)
    W = np.asarray(statistics, dtype=float)
    levels = np.unique(np.abs(W[W != 0]))
    sizes = np.sort(W[W > 0]), np.sort(-W[W < 0])
    selected = len(sizes[0]) - np.searchsorted(sizes[0], levels)
    false = 1 + len(sizes[1]) - np.searchsorted(sizes[1], levels)
    good = np.flatnonzero(false <= fdr * selected * (1 + 1e-12))
    return float(levels[good[0]]) if len(good) else np.inf


def gaussian_copies(X: Any, seed: Any = 0, covariance: Any = None, spread: str = "reconstruct") -> Array:
    r"""Second-order knockoff copies: the same mean and covariance as X, as little like X as that allows.

    For columns scaled to unit variance, with mean :math:`\mu`, correlation :math:`\Sigma` and :math:`S =
    \operatorname{diag}(s)`,

    .. math:: \tilde x \mid x \sim N\big( x - S \Sigma^{-1} (x - \mu),\; 2 S - S \Sigma^{-1} S \big).

    Then :math:`(x, \tilde x)` has a covariance that does not change when any columns are swapped with their copies;
    for normal X that is all, otherwise it is an approximation. The correlation of a column with its copy is
    :math:`1 - s_j`. "equal" takes the largest equal :math:`s_j = \min(1, 2 \lambda_{\min}(\Sigma))`, which two nearly
    identical columns make tiny for all; "reconstruct" minimises :math:`\operatorname{tr} (2 \Sigma - S)^{-1} +
    \sum_j 1 / s_j`, so that no column can be told from all others and their copies (Spector and Janson 2022).

    Unless given, :math:`\Sigma = (1 - \delta) R + \delta I` with the sample correlation R and the :math:`\delta` that
    maximises the normal likelihood of held-out rows. (Ledoit and Wolf's choice aims at another error and shrinks more,
    so that noise columns close to a true one beat their copies: the false discovery rate rose above its level.)

    Parameters
    ----------
    X : array of shape (n, p)
    seed : int, numpy.random.Generator or None, default 0
    covariance : array of shape (p, p), optional
    spread : {"reconstruct", "equal"}, default "reconstruct"

    Returns
    -------
    ndarray of shape (n, p)

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(500, 3))
    >>> copies = gaussian_copies(X)
    >>> bool(np.abs(np.corrcoef(X.T, copies.T)[:3, 3:]).max() < 0.2)
    True
    """
    if spread not in ("reconstruct", "equal"):
        raise ValueError(f'`spread` must be "reconstruct" or "equal", found {spread!r}.')
    matrix, _ = _dense_columns(X)
    mean, scale = matrix.mean(axis=0), matrix.std(axis=0)
    if covariance is None:
        correlation = _shrunken_correlation((matrix - mean) / scale)
    else:
        scale, correlation = _given_correlation(covariance, matrix.shape[1])
    s = _equal_spread(correlation) if spread == "equal" else _reconstruct_spread(correlation)
    if s.max() < 0.01:
        off = np.abs(correlation - np.diag(np.diagonal(correlation)))
        j, k = np.sort(np.unravel_index(int(np.argmax(off)), off.shape))
        warnings.warn(
            f"The columns of X nearly depend on each other (columns {j} and {k} have correlation "
            f"{correlation[j, k]:.4f}): copies are almost the columns themselves, and hardly anything will be "
            "selected; drop or merge such columns.",
            UserWarning,
            stacklevel=2,
        )
    scaled = (matrix - mean) / scale
    inverse = np.linalg.inv(correlation)
    values, vectors = np.linalg.eigh(2.0 * np.diag(s) - s[:, None] * inverse * s)
    noise = make_generator(seed).standard_normal(matrix.shape) * np.sqrt(np.maximum(values, 0.0))
    return mean + scale * (scaled - scaled @ inverse * s + noise @ vectors.T)


def _equal_spread(correlation: Array) -> Array:
    return np.full(len(correlation), min(1.0, 2.0 * float(np.linalg.eigvalsh(correlation)[0])))


def _reconstruct_spread(correlation: Array, sweeps: int = 30, tol: float = 1e-3) -> Array:
    r"""Minimise :math:`\mathrm{tr}\, M + \sum_j 1 / s_j`, :math:`M = (2 \Sigma - S)^{-1}`, one :math:`s_j` at a time.

    A step h in :math:`s_j` turns M into :math:`M + h\, m m^\top / (1 - h m_j)` with m its j-th column, so the best one
    satisfies :math:`1 - h m_j = \lVert m \rVert (s_j + h)`; it keeps :math:`2 \Sigma - S` positive definite. Every
    feasible s gives valid copies, so few digits will do.
    """
    from scipy.linalg.blas import dger

    s = 0.9 * _equal_spread(correlation)
    for _ in range(sweeps):
        before = s.copy()
        M = np.asfortranarray(np.linalg.inv(2.0 * correlation - np.diag(s)))  # anew: updates gather rounding errors
        for j in range(len(s)):
            m = M[:, j].copy()
            length = float(np.sqrt(m @ m))
            h = (1.0 - length * s[j]) / (length + m[j])
            M = dger(h / (1.0 - h * m[j]), m, m, a=M, overwrite_a=1)
            s[j] += h
        if np.max(np.abs(s - before)) <= tol:
            break
    return s


def _shrunken_correlation(scaled: Array, n_folds: int = 5) -> Array:
    """``(1 - d) R + d I`` with the d under which held-out rows are most likely."""
    n, p = scaled.shape
    shares = np.geomspace(1e-3, 1.0, 40)
    lengths = np.zeros(len(shares))
    for fold in range(n_folds):
        held_out = np.arange(n) % n_folds == fold
        if not held_out.any():
            continue
        rest = scaled[~held_out]
        values, vectors = np.linalg.eigh(rest.T @ rest / len(rest))
        squares = np.sum((scaled[held_out] @ vectors) ** 2, axis=0)
        spectrum = (1.0 - shares[:, None]) * np.maximum(values, 0.0) + shares[:, None]
        lengths += held_out.sum() * np.log(spectrum).sum(axis=1) + (squares / spectrum).sum(axis=1)
    share = shares[int(np.argmin(lengths))]
    return (1.0 - share) * (scaled.T @ scaled / n) + share * np.eye(p)


def _given_correlation(covariance: Any, p: int) -> tuple[Array, Array]:
    matrix = np.asarray(covariance, dtype=float)
    if matrix.shape != (p, p) or not np.isfinite(matrix).all() or not np.allclose(matrix, matrix.T):
        raise ValueError(
            f"`covariance` must be a finite symmetric matrix of shape ({p}, {p}), found shape {matrix.shape}."
        )
    if not np.linalg.eigvalsh(matrix)[0] > 0:
        raise ValueError("`covariance` must be positive definite; leave it out to have it estimated with shrinkage.")
    scale = np.sqrt(np.diagonal(matrix))
    return scale, matrix / np.outer(scale, scale)


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


def _dense_columns(X: Any) -> tuple[Array, list[str]]:
    """X as a dense array with the names of its columns, none of them constant."""
    names = None
    if _frames.is_frame(X):
        encoder = _frames.ColumnEncoder.from_frame(X)
        if encoder.has_categories:
            categories = [spec.name for spec in encoder.columns if spec.levels is not None]
            raise ValueError(
                f"`X` has categorical columns {categories[:5]}, of which no normal copy can be drawn; leave them "
                "out, or pass an encoded matrix and your own `copies`."
            )
        X, names = encoder.encode(X), list(encoder.names)
    if _validation.is_sparse(X):
        raise TypeError("`X` is sparse, but its copies are not; pass X.toarray() if that fits into memory.")
    matrix = np.asarray(_validation.check_design(X), dtype=float)
    if len(matrix) < MIN_ROWS:
        raise ValueError(
            f"`X` has {len(matrix)} rows, too few to estimate the covariance of its columns; at least {MIN_ROWS} are "
            "needed, and many more to select anything."
        )
    constant = np.flatnonzero(np.std(matrix, axis=0) <= 1e-13 * np.abs(np.mean(matrix, axis=0)))
    if len(constant):
        raise ValueError(f"`X` has constant columns {constant[:5].tolist()}, which have no copy; drop them.")
    return matrix, names or [f"x{j}" for j in range(matrix.shape[1])]


def _make_copies(X: Array, copies: Any, covariance: Any, rng: np.random.Generator) -> Array:
    if isinstance(copies, str):
        spreads = {"gaussian": "reconstruct", "equicorrelated": "equal"}
        if copies not in spreads:
            raise ValueError(f"`copies` must be one of {list(spreads)}, an array or a callable, found {copies!r}.")
        return gaussian_copies(X, rng, covariance, spreads[copies])
    if covariance is not None:
        raise ValueError("`covariance` is for copies drawn here; leave it out with your own `copies`.")
    made = np.asarray(copies(X, rng) if callable(copies) else copies, dtype=float)
    if made.shape != X.shape or not np.isfinite(made).all():
        raise ValueError(f"`copies` must be finite and have the shape of X, {X.shape}; found shape {made.shape}.")
    return made


def _for_both(options: dict[str, Any], p: int) -> dict[str, Any]:
    """Options of `trace_path` for columns and copies: what holds for a column holds for its copy."""
    if options.get("groups") is not None:
        raise ValueError("`groups` is not possible: a group needs copies made for the group; select single columns.")
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
