r"""Steps of squared loss by the exponential of the active Gram matrix, each ending on the next event, in NumPy.

Between two events the coordinates A that move (the intercept among them) obey a linear equation. With ``H`` their
Hessian and ``s_0`` minus the gradient at the start of a step,

.. math:: \beta(\tau) = \beta_0 + \phi(\tau)\, s_0, \quad \phi = (1 - e^{-\kappa\tau H}) H^{-1}, \qquad
          z_j(\tau) = z_j + \tau s_j - E_{jA} \Phi(\tau)\, s_0, \quad \Phi = \int_0^\tau \phi

for every coordinate j at rest, E being the moments of all. Lanczos' method from ``s_0`` turns this into sums of few
scalar exponentials: a step has no stability limit, and ends exactly where a coordinate reaches its threshold. Inside a
step, knots are set where the cubics between them need them, at the cost of no product.

Products are with the inverse ``K = (H + sigma)^-1``, the shift ``sigma`` being the curvature of what hardly decays
within a step: what is slow, and decides where everything comes to rest, is found first, and three or four modes do
where powers of ``H`` need ten (van den Eshof and Hochbruck 2006). With ``K V = V T + w e_k'``,
``a = phi(T^-1 - sigma) |s_0| e_1`` and ``d = e_k' T^-1 a``

.. math:: \beta - \beta_0 = V a + w\, d, \qquad
          s_0 - H(\beta - \beta_0) = V e^{-\kappa\tau(T^{-1} - \sigma)} |s_0| e_1 + \sigma w\, d,

so that slopes and coefficients agree exactly, however few modes there are. All that is left out is a part of the speed
along ``w``, of which the integral is at most ``|w d|``.

Intercept and columns are one vector: the intercept is a last, unpenalised coordinate ``alpha / kappa``. Nothing that is
decided here depends on which columns at rest are in the working set, but for the event that ends a step: so a block of
steps may be cut at the ends of steps only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from bregpath import _interrupts
from bregpath._kernels.crossing import Bounds, first_event
from bregpath._kernels.exponential_record import Stretch, block_of, coordinates
from bregpath._kernels.inverse_scale_space import thresholds
from bregpath._kernels.records import Knot, Memory, StepError, Steps, System
from bregpath._kernels.reference import round_down
from bregpath._known_to_core import is_known_as
from bregpath._typing import Array, IntArray
from bregpath.penalties import AbstractPenalty
from bregpath.problem import Problem

__all__ = ["advance", "applies", "takes_moments"]

MAX_RATIO = 2  # columns over rows, up to which the Gram matrix of any of them pays
MAX_STIFFNESS = 1e3  # curvature of the loss in the intercept over that in columns
SELDOM = 8  # modes of Lanczos' method, beyond which not every number of them is tried
MAX_MODES = 32  # beyond which a step is shortened ...
SHORTER = 8.0  # ... by this, and the shift grows by as much
MAX_INNER = 32  # knots of a step
MODE_SHARE = 0.03  # of the error of a step that is allowed to modes that are left out
START_SHARE = 0.5  # of its slope: by what the speed of a coefficient that begins at zero may err
SHIFT = 30.0  # over kappa t: the curvature below which nothing much happens in a step
LEAST_SHIFT = 1e-12  # of the sum of all curvatures: a smaller one is rounding
KNOT_SHARE = 0.25  # of the error of a step that is allowed to the cubics between its knots
NEGLIGIBLE = 0.01  # of what is allowed to the cubics: a mode that moves coefficients by less sets no knots
BREAKDOWN = 1e-14  # of the sum of what a product makes of all directions: what is left of a direction that is rounding
TIE = 1e-12  # closer than this to its threshold, relative to it, a coordinate is on it
LEAST_TRIAL = 0.02  # of t, for the length that is tried
AFTER_EVENT, AFTER_NONE = 1.5, 2.0  # the next trial over the length of a step that ended at an event, or did not
LEAST_STEP = 1e-14  # of t
LEAST_SCALE = 1e-6  # of kappa: coefficients below it are measured by it
SERIES, TERMS = 0.5, 14  # below this argument an exponential without its first terms is a series of so many


def takes_moments(problem: Problem, step: float | None) -> bool:
    """Whether a problem is linear between two events, and the moments of any of its columns worth having.

    The rule does not mention the columns that work: a screened path takes the steps of the unscreened one.
    """
    n, p = problem.store.shape
    has_l1 = step is None and is_known_as(problem.penalty, "l1") and not has_box(problem.penalty)
    is_squared = is_known_as(problem.loss, "gaussian") and problem.store.has_intercepts
    return has_l1 and is_squared and p <= MAX_RATIO * n and not has_stiff_intercept(problem)


def applies(system: System) -> bool:
    """The same for a system, whose moments must be at hand; found out once."""
    if "has moments" not in system.cache:
        has_gram = is_known_as(system.block, "gram")
        system.cache["has moments"] = has_gram and takes_moments(system.problem, system.step)
    return system.cache["has moments"]  # type: ignore[no-any-return]


def has_stiff_intercept(problem: Problem) -> bool:
    """Whether the intercept is far stiffer than all columns, which are tiny, or far from zero, and taken as they are.

    Then intercept and coefficients all but cancel in the predictor, and to read each of them within its tolerance is
    not enough.
    """
    mean, deviation = problem.scan.largest
    return not 1.0 + mean * mean <= MAX_STIFFNESS * deviation * deviation


def has_box(penalty: AbstractPenalty) -> bool:
    limits = (penalty.lower, penalty.upper) if penalty.has_limits else ()
    return any(bool(np.any(np.isfinite(limit) & (limit != 0))) for limit in limits)


def advance(
    system: System, knot: Knot, memory: Memory, until: float, max_steps: int, keep_rows: bool, limit: float = np.inf
) -> Steps:
    """Steps from ``knot`` until one reaches ``until`` or at least ``max_steps`` knots are there.

    None goes beyond ``limit``.
    """
    moments = _Moments.of(system)
    start = coordinates(knot, system.problem.kappa)
    parts, memories, interrupted = [Stretch.start(knot.t, *start, knot.value)], [memory], False
    while parts[-1].t[-1] < until and sum(len(part.t) for part in parts) <= max_steps:
        try:
            _interrupts.check()
            part, memory = _step(system, moments, parts[-1], memory, limit)
        except (StepError, KeyboardInterrupt) as trouble:
            if len(parts) == 1:
                raise
            interrupted = isinstance(trouble, KeyboardInterrupt)
            break  # a step that failed fails again in the next call
        parts.append(part)
        memories.append(memory)
    cuts = np.cumsum([len(part.t) for part in parts]) - 1
    whole = Stretch(*(np.concatenate(pieces) for pieces in zip(*parts, strict=True)))

    def remember(k: int) -> Memory:
        return memories[int(np.searchsorted(cuts, k))]

    return block_of(system, knot, whole, cuts, remember, interrupted, keep_rows)


@dataclass(frozen=True)
class _Moments:
    """Second derivatives of squared loss, and thresholds, of the working columns and the intercept."""

    gram: Array
    mean: Array
    low: Array  # (m + 1,) between which values a coordinate has no coefficient
    high: Array
    fit_intercept: bool
    make_rows: Callable[[Array], None] | None  # of the matrix, where they are made when they are needed
    outputs: int  # so many columns, side by side, are outputs of one of which only differences count; 1: none are

    @classmethod
    def of(cls, system: System) -> _Moments:
        """Those of a system, made once."""
        if "moments" not in system.cache:
            kernel, fit_intercept = system.block.kernel(), system.problem.fit_intercept
            assert kernel is not None  # applies() has seen to it
            gram, mean = kernel.numbers["gram"], kernel.numbers["gram_mean"]
            edge = 0.0 if fit_intercept else np.inf  # an intercept that is not fitted never moves
            low, high = (np.append(x, side * edge) for x, side in zip(thresholds(system.penalty), (-1, 1), strict=True))
            make_rows = kernel.numbers.get("make_rows")
            outputs = kernel.numbers.get("outputs", 1)
            system.cache["moments"] = cls(gram, mean, low, high, fit_intercept, make_rows, outputs)
        return system.cache["moments"]  # type: ignore[no-any-return]

    def require(self, z: Array, slope: Array, bounds: Bounds) -> None:
        """See to it that the rows of coordinates that move are there."""
        if self.make_rows is not None:
            self.make_rows(np.where(bounds.moves, 0.0, bounds.wait(z, slope))[:-1])

    def take_means_off(self, movers: IntArray, v: Array) -> Array:
        """Of outputs that move together only rounding moves the mean, and nothing damps it."""
        if self.outputs == 1:
            return v
        column, v = movers // self.outputs, v.copy()
        is_whole = np.bincount(column)[column] == self.outputs
        v[is_whole] -= np.repeat(v[is_whole].reshape(-1, self.outputs).mean(axis=1), self.outputs)
        return v

    def products(self, movers: IntArray) -> tuple[Array, Array]:
        """Rows of the Gram matrix and the means of coordinates that move."""
        columns = movers[: len(movers) - self.fit_intercept]
        return self.gram[columns], np.append(self.mean[columns], 1.0)[: len(movers)]

    def hessian(self, movers: IntArray) -> Array:
        """That of the coordinates that move."""
        rows, means = self.products(movers)
        hessian = np.outer(means, means)
        hessian[: len(rows), : len(rows)] += rows[:, movers[: len(rows)]]
        return hessian

    def images(self, movers: IntArray, directions: Array) -> Array:
        """The Hessian of all coordinates times some directions of those that move."""
        rows, means = self.products(movers)
        u = directions @ means
        columns = directions[:, : len(rows)] @ rows + np.outer(u, self.mean)
        return np.column_stack([columns, u * self.fit_intercept])


class _Modes(NamedTuple):
    """Few exponentials instead of the one of a matrix: directions in which coefficients move, at rates that decay."""

    moves: Array  # (k, movers)
    images: Array  # (k, m + 1) the Hessian times them
    rates: Array  # (k,) kappa times curvatures


def _step(
    system: System, moments: _Moments, before: Stretch, memory: Memory, limit: float
) -> tuple[Stretch, Memory]:
    """One step to the next event, or as long as the tolerance allows."""
    kappa, t = system.problem.kappa, float(before.t[-1])
    z, slope = _as_recorded(before.z[-1], kappa), _as_recorded(before.slope[-1], kappa)
    z, bounds = _settle(z, slope, moments)
    moments.require(z, slope, bounds)
    coefficients = np.append(system.penalty.primal(z[:-1, None], kappa)[:, 0], kappa * z[-1])
    largest = float(np.max(np.abs(coefficients[:-1]), initial=0.0))
    allowed = system.tol * max(largest, LEAST_SCALE * kappa)
    movers, trial = np.flatnonzero(bounds.moves), min(round_down(max(memory.h, LEAST_TRIAL * t)), limit - t)
    # One that went the other way than its slope says would be at rest at once, and begin again, without end.
    begins = (coefficients == 0) & (moments.low < moments.high)
    leeway = np.where(begins, START_SHARE * np.abs(slope), np.inf)[movers]
    limits = _Limits(MODE_SHARE * allowed, leeway)
    moves, rates, length = _decompose(moments, movers, slope[movers], kappa, t, trial, limits)
    modes = _Modes(moves, moments.images(movers, moves), rates)
    course = _Course(modes, movers, z, slope, kappa)
    tau = _knot_times(modes, kappa, length, KNOT_SHARE * allowed)
    path = course.z(tau)
    broken = np.flatnonzero((bounds.excess(path) > 0).any(axis=1))
    if len(broken):
        last = int(broken[0])
        begin = float(tau[last - 1]) if last else 0.0
        event = max(first_event(course, bounds, begin, float(tau[last]), TIE), LEAST_STEP * t)
        tau = np.append(tau[:last], event)
        path[last] = np.clip(course.z(tau[-1:])[0], bounds.low, bounds.high)
    integral = before.integral[-1] + tau[:, None] * coefficients + course.integrals(tau)
    slopes = course.slopes(tau)
    memory = replace(
        memory,
        h=float(tau[-1]) * (AFTER_EVENT if len(broken) else AFTER_NONE),
        gradients=memory.gradients + len(modes.rates),
        products=memory.products + len(modes.rates) * len(z),
    )
    value = before.value[-1] - course.falls(tau, slopes)
    return Stretch(t + tau, path[: len(tau)], slopes, integral, value), memory


def _as_recorded(x: Array, kappa: float) -> Array:
    """Coordinates as another block would find them: to the last bit, so that it goes on in the very same way."""
    return np.append(x[:-1], kappa * x[-1:] / kappa)


def _settle(z: Array, slope: Array, moments: _Moments) -> tuple[Array, Bounds]:
    """Coordinates, of which those that are about on a threshold are put there, and what bounds them from now on."""
    low, high = moments.low, moments.high
    for edge in (low, high):
        z = np.where(np.isfinite(edge) & (np.abs(z - edge) <= TIE * np.abs(edge)), edge, z)
    above, below = (z > high) | (z == high) & (slope > 0), (z < low) | (z == low) & (slope < 0)
    is_free = low == high
    lowest = np.where(is_free | below, -np.inf, np.where(above, high, low))
    highest = np.where(is_free | above, np.inf, np.where(below, low, high))
    return z, Bounds(is_free | above | below, lowest, highest)


class _Limits(NamedTuple):
    """What modes may leave out: of coefficients in a step, and of the speed of each over kappa at its start."""

    error: float
    speed: Array  # (movers,)


def _decompose(
    moments: _Moments, movers: IntArray, slope: Array, kappa: float, t: float, length: float, limits: _Limits
) -> tuple[Array, Array, float]:
    """Modes that leave out little up to some length: moves, rates, and that length."""
    hessian, take_means_off = moments.hessian(movers), partial(moments.take_means_off, movers)
    # A power of two, so that the inverse may stay what it is for many steps.
    shift = round_down(max(SHIFT / (kappa * t), LEAST_SHIFT * float(np.trace(hessian))), bits=1)
    while length >= LEAST_STEP * t:
        inverse = np.linalg.inv(hessian + shift * np.eye(len(hessian)))
        with np.errstate(invalid="ignore"):
            modes = _lanczos(inverse, shift, slope, kappa, length, limits, take_means_off)
        if modes is not None:
            return *modes, length
        length, shift = length / SHORTER, shift * SHORTER
    raise StepError(f"no step from t={t:g} has few modes")


def _lanczos(
    inverse: Array, shift: float, slope: Array, kappa: float, length: float, limits: _Limits,
    take_means_off: Callable[[Array], Array] = lambda v: v,
) -> tuple[Array, Array] | None:  # fmt: skip
    """Moves and rates of the modes; None if it takes too many, or no number of them will do."""
    slope = take_means_off(slope)
    size = float(np.linalg.norm(slope))
    if size == 0:
        return np.zeros((0, len(slope))), np.zeros(0)
    basis = slope[None] / size
    matrix = np.zeros((MAX_MODES, MAX_MODES))  # tridiagonal
    while True:
        k = len(basis)
        rest = inverse @ basis[-1]
        matrix[k - 1, k - 1] = basis[-1] @ rest
        # What is large first, so that once more is enough for what rounding leaves of all others.
        rest = rest - matrix[k - 1, max(k - 2, 0) : k] @ basis[-2:]
        rest = take_means_off(rest - (basis @ rest) @ basis)
        left = float(np.linalg.norm(rest))
        if not np.isfinite(left):
            return None
        is_all = k == len(slope) or left <= BREAKDOWN * np.trace(matrix[:k, :k])
        if is_all or k == MAX_MODES or k % (1 + k // SELDOM) == 0:
            responses, axes = np.linalg.eigh(matrix[:k, :k])
            rates = kappa * np.maximum(1.0 / responses - shift, 0.0)
            mix = size * axes * axes[0]
            tail = mix[-1] / responses
            if is_all:
                return mix.T @ basis, rates
            starts_well = np.all(np.abs(rest * tail.sum()) <= limits.speed)
            if starts_well and left * _most(tail, rates, length, kappa) <= limits.error:
                return mix.T @ basis + np.outer(tail, rest), rates
            if k == MAX_MODES:
                return None
        matrix[k - 1, k] = matrix[k, k - 1] = left
        basis = np.vstack([basis, rest / left])


def _most(tail: Array, rates: Array, length: float, kappa: float) -> float:
    """The most that what is left of a product adds to coefficients in a step, as seen where its modes have decayed."""
    tau = np.append(1.0 / np.maximum(rates, 1.0 / length), length)
    return float(np.max(np.abs(_phi(rates, tau[:, None], kappa) @ tail)))


def _knot_times(modes: _Modes, kappa: float, length: float, allowed: float) -> Array:
    """Times between which a cubic errs by no more than ``allowed``, by the fourth derivatives of exponentials."""
    speeds = kappa * np.max(np.abs(modes.moves), axis=1, initial=0.0)
    # What is negligible altogether may be rounding, which must not decide.
    counts = speeds > NEGLIGIBLE * allowed * modes.rates
    bend, tau = counts * speeds * modes.rates**3 / 384, 0.0
    times: list[float] = []
    while tau < length and len(times) < MAX_INNER:
        curvature = float(bend @ np.exp(-modes.rates * tau))
        tau = min(tau + round_down((allowed / curvature) ** 0.25), length) if curvature > 0 else length
        times.append(tau)
    return np.array(times)


class _Course:
    """Where everything is at times after the start of a step."""

    def __init__(self, modes: _Modes, movers: IntArray, z: Array, slope: Array, kappa: float) -> None:
        self.modes, self.movers, self.start, self.slope, self.kappa = modes, movers, z, slope, kappa

    def z(self, tau: Array) -> Array:
        change, past = self._shares(tau)
        z = self.start + tau[:, None] * self.slope - past @ self.modes.images
        z[:, self.movers] = self.start[self.movers] + change @ self.modes.moves / self.kappa
        return z

    def slopes(self, tau: Array) -> Array:
        return self.slope - self._shares(tau)[0] @ self.modes.images

    def integrals(self, tau: Array) -> Array:
        """Of the changes of coefficients."""
        out = np.zeros((len(tau), len(self.start)))
        out[:, self.movers] = self._shares(tau)[1] @ self.modes.moves
        return out

    def falls(self, tau: Array, slopes: Array) -> Array:
        """Of the loss: between two points of a quadratic function the mean of its slopes tells the difference."""
        moved = self._shares(tau)[0] @ self.modes.moves
        return 0.5 * np.einsum("kj,kj->k", moved, self.slope[self.movers] + slopes[:, self.movers])

    def only(self, some: IntArray) -> _Course:
        """The same for some coordinates."""
        inside = np.isin(self.movers, some)
        modes = self.modes._replace(moves=self.modes.moves[:, inside], images=self.modes.images[:, some])
        movers = np.searchsorted(some, self.movers[inside])
        return _Course(modes, movers, self.start[some], self.slope[some], self.kappa)

    def _shares(self, tau: Array) -> tuple[Array, Array]:
        """Of the moves, in the change of coefficients and in its integral."""
        rates, tau = self.modes.rates, tau[:, None]
        return _phi(rates, tau, self.kappa), _phi_integral(rates, tau, self.kappa)


def _phi(rates: Array, tau: Array | float, kappa: float) -> Array:
    """``kappa`` times the integral of ``exp(-rate tau)``."""
    x = rates * tau
    return kappa * tau * np.where(x > 0, -np.expm1(-x) / np.where(x > 0, x, 1.0), 1.0)


def _phi_integral(rates: Array, tau: Array | float, kappa: float) -> Array:
    """The integral of `_phi`."""
    x = rates * tau
    series = np.ones_like(x)
    small = np.minimum(x, SERIES)
    for k in range(TERMS, 2, -1):
        series = 1.0 - series * small / k
    large = np.maximum(x, SERIES)
    return kappa * tau * tau * np.where(x < SERIES, 0.5 * series, (large + np.expm1(-large)) / large**2)
