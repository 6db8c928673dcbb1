"""The dynamics integrated by other means: nothing of bregpath is imported here.

The intercept is a column of ones that is never penalised, so all of it is one line,

    u' = -A' r(eta),      eta = offset + A theta,      theta = kappa shrink(u),

handed to LSODA with tight tolerances. Between two *events* (a coefficient or group enters, leaves or meets a limit; a
row passes the bend of the Huber loss) the right side is smooth. Each stretch is integrated with its *pieces* held
fixed, cut where they change, and the next one begun there.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.integrate import LSODA
from scipy.optimize import brentq

from tests.fuzz.oracle_losses import CURVATURES, HUBER_BEND, RESIDUALS, UNITS

__all__ = ["NotUniqueError", "Oracle"]

Array = np.ndarray
RTOL, ATOL = 1e-11, 1e-13
SHORTEST = 1e-9  # stretch, relative to t: rounding must not end it where it began (speeds have kinks, not jumps)
FLOOR = 1e-5  # of kappa: smaller coefficients, just after the first entry, do not measure an error: thresholds round


class NotUniqueError(Exception):
    """The unpenalised start of the path is not unique (or not finite), so neither is the path."""


class Oracle:
    """The exact path of a regression; the arguments are those of ``bregpath.trace_path``, as plain arrays."""

    def __init__(
        self,
        X: Array,
        y: Array,
        *,
        loss: str = "gaussian",
        penalty: str = "l1",
        groups: Any = None,
        penalty_factor: Any = None,
        lower: Any = None,
        upper: Any = None,
        kappa: float = 10.0,
        sample_weight: Any = None,
        offset: Any = None,
        fit_intercept: bool = True,
        standardize: bool | str = True,
    ) -> None:
        X = np.asarray(X, dtype=float)
        n, p = X.shape
        w = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
        rows = w > 0
        X, self.w = X[rows], w[rows] / w.sum()
        y = np.asarray(y)[rows]
        self.y = np.unique(y, return_inverse=True)[1] if loss in ("logistic", "multinomial") else y.astype(float)
        self.q = q = int(self.y.max()) + 1 if loss == "multinomial" else 1
        self.offset = (np.zeros((n, q)) if offset is None else np.zeros((n, q)) + np.reshape(offset, (n, -1)))[rows]
        self.loss, self.kappa = loss, kappa
        self._scale(X, fit_intercept, standardize)
        self._thresholds(p, penalty, groups, penalty_factor, lower, upper)
        self.start = self._null_model()
        slope = self.speed(self.start)
        self.t0 = self._first_entry(slope)
        self.u0 = np.where(self.weights == 0, self.start / kappa, (self.t0 if np.isfinite(self.t0) else 1.0) * slope)

    def _scale(self, X: Array, fit_intercept: bool, standardize: bool | str) -> None:
        """Columns and response in standard deviations, and the column of the intercept."""
        mean = self.w @ X
        deviation = np.sqrt(self.w @ (X - mean) ** 2)
        constant = deviation <= 1e-13 * np.abs(mean)
        self.center = mean if fit_intercept and standardize else np.zeros(X.shape[1])
        size = np.where((mean == 0) | fit_intercept, 1.0, np.abs(mean))  # of a constant column
        self.scale = np.where(constant, size, deviation) if standardize else np.ones(X.shape[1])
        self.unit = 1.0
        if standardize is True and self.loss in UNITS:
            self.unit = UNITS[self.loss](self.y - self.offset[:, 0], self.w)
            self.y, self.offset = self.y / self.unit, self.offset / self.unit
        columns = (X - self.center) / self.scale
        if fit_intercept:  # which says all that a constant column could
            columns[:, constant] = 0.0
        self.A = np.column_stack([np.full(len(X), float(fit_intercept)), columns])
        self.idle = ~self.A.any(axis=0)  # coordinates that cannot do anything

    def _thresholds(self, p: int, penalty: str, groups: Any, factor: Any, lower: Any, upper: Any) -> None:
        """Weights, limits and group of every coordinate, the intercept first."""
        factor = np.ones(p) if factor is None else np.asarray(factor, dtype=float)
        labels = np.arange(p) if groups is None else np.unique(groups, return_inverse=True)[1].ravel()
        if len(factor) != p:  # one a group
            factor = factor[labels]
        if penalty == "group-sqrt":
            factor = factor * np.sqrt(np.bincount(labels) * self.q)[labels]
        self.groups = None if penalty == "l1" else np.append(0, labels + 1)

        def table(first: float, rest: Any) -> Array:
            return np.repeat(np.append(first, np.broadcast_to(rest, p))[:, None], self.q, axis=1).astype(float)

        inside = self.scale / self.unit
        self.weights = table(0.0, factor)
        self.lower = table(-np.inf, (-np.inf if lower is None else np.asarray(lower)) * inside)
        self.upper = table(np.inf, (np.inf if upper is None else np.asarray(upper)) * inside)
        self.lower[self.idle] = self.upper[self.idle] = 0.0
        bounded = [np.isfinite(x) & (x != 0) for x in (self.lower, self.upper)]
        self.has_box = bool(np.any(bounded))

    # --- the mirror map --------------------------------------------------------------------------------------

    def shrink(self, u: Array) -> Array:
        """Coefficients at ``u``, in units of the integration."""
        if self.groups is None:
            soft = np.sign(u) * np.maximum(np.abs(u) - self.weights, 0)
            return np.clip(self.kappa * soft, self.lower, self.upper)
        u, norms = self.signed(u), self.norms(self.signed(u))
        with np.errstate(divide="ignore", invalid="ignore"):
            shares = np.where(self.weights == 0, 1.0, np.where(norms > self.weights, 1 - self.weights / norms, 0.0))
        theta = self.kappa * shares * u
        beyond = (theta < self.lower) | (theta > self.upper)
        for g in np.unique(self.groups[beyond.any(axis=1)]):
            theta[self.groups == g] = self._in_box(u, self.groups == g)
        return theta

    def _in_box(self, u: Array, group: Array) -> Array:
        """``b = clip(u r / (r + w))`` where r is the norm of b itself: near r = 0 the norm exceeds r."""
        u, w, lower, upper = u[group], float(self.weights[group][0, 0]), self.lower[group], self.upper[group]
        if w == 0:
            return np.clip(self.kappa * u, lower, upper)
        parts = list(zip(u.ravel().tolist(), lower.ravel().tolist(), upper.ravel().tolist(), strict=True))

        def excess(r: float) -> float:
            share = self.kappa * r / (r + w)
            return math.hypot(*(min(max(share * x, a), b) for x, a, b in parts)) / (self.kappa * r) - 1

        longest = float(np.linalg.norm(u)) - w
        r = brentq(excess, 1e-9 * longest, (1 + 1e-9) * longest, xtol=1e-15)
        return np.clip(self.kappa * r / (r + w) * u, lower, upper)

    def signed(self, u: Array) -> Array:
        """``u`` without the signs that limits of zero forbid."""
        return np.where(((self.lower == 0) & (u < 0)) | ((self.upper == 0) & (u > 0)), 0.0, u)

    def squares(self, u: Array) -> Array:
        """Sum of squares of each group."""
        return np.bincount(self.groups, weights=np.sum(u * u, axis=1))

    def norms(self, u: Array) -> Array:
        """Norm of its group, at each coordinate."""
        return np.sqrt(self.squares(u))[self.groups][:, None]

    # --- pieces: where the right side is smooth ----------------------------------------------------------------

    def alive(self, u: Array) -> Array:
        """Coordinates beyond their threshold, with a sign that is allowed."""
        signed = self.signed(u)
        norms = np.abs(signed) if self.groups is None else self.norms(signed)
        return np.where(self.weights == 0, self.lower < self.upper, (norms > self.weights) & (signed != 0))

    def limits(self, theta: Array) -> Array:
        """1 at and beyond the upper limit, -1 at the lower one."""
        return 1.0 * (theta >= self.upper) - 1.0 * (theta <= self.lower)

    def bent(self, theta: Array) -> Array:
        """Rows beyond the bend of the Huber loss: 1, -1; nothing for other losses."""
        if self.loss != "huber":
            return np.zeros(0)
        distance = (self.offset + self.A @ theta)[:, 0] - self.y
        return np.sign(distance) * (np.abs(distance) > HUBER_BEND)

    def speed(self, theta: Array, bent: Array | None = None) -> Array:
        """``u'`` at coefficients; rows of the Huber loss stay ``bent`` as they are."""
        eta = self.offset + self.A @ theta
        if bent is not None and len(bent):
            r = np.where(bent == 0, eta[:, 0] - self.y, HUBER_BEND * bent)[:, None]
        else:
            r = RESIDUALS[self.loss](eta, self.y)
        return -self.A.T @ (self.w[:, None] * r)

    def hessian(self, B: Array, theta: Array, bent: Array | None = None) -> Array:
        """Second derivative over the coordinates of some columns."""
        size = B.shape[1] * self.q
        bend = CURVATURES[self.loss](self.offset + self.A @ theta, self.y)
        if bent is not None and len(bent):
            bend = 1.0 * (bent == 0)[:, None, None]
        weighted = (self.w[:, None, None] * bend)[:, None, :, :] * B[:, :, None, None]
        return np.einsum("nikl,nj->ikjl", weighted, B, optimize=True).reshape(size, size)

    # --- the start -------------------------------------------------------------------------------------------

    def _null_model(self) -> Array:
        """Optimum over intercept and free coordinates, by Newton's method with shorter steps where it must."""
        free = (self.weights[:, 0] == 0) & ~self.idle
        theta = np.zeros_like(self.weights)
        gradient = -self.speed(theta)[free]
        move = gradient
        for _ in range(200):
            hessian = self.hessian(self.A[:, free], theta)
            move = np.linalg.lstsq(hessian, gradient.ravel(), rcond=1e-11)[0].reshape(gradient.shape)
            before = theta.copy()
            for share in 0.5 ** np.arange(40):
                theta[free] = before[free] - share * move
                with np.errstate(over="ignore"):
                    new = -self.speed(theta)[free]
                # The slope along the move tells whether it went beyond the minimum, and by how much.
                if np.isfinite(new).all() and np.vdot(new, move) >= -0.5 * np.vdot(gradient, move):
                    break
            gradient = new
            if np.max(np.abs(theta - before)) <= 1e-15 * (1 + np.max(np.abs(theta))):
                break
        hessian = self.hessian(self.A[:, free], theta)
        curvature = np.linalg.eigvalsh(hessian)
        # Adding the same to all classes changes nothing; any other flat direction makes the start a choice.
        flat = len(gradient) if self.loss == "multinomial" else 0
        if np.max(np.abs(move), initial=0.0) > 1e-9 or np.any(curvature[flat:] < 1e-8):
            raise NotUniqueError("The unpenalised part has no unique optimum.")
        return theta

    def _first_entry(self, slope: Array) -> float:
        slope = np.where(self.weights == 0, 0.0, self.signed(slope))
        speed = np.abs(slope) if self.groups is None else np.broadcast_to(self.norms(slope), slope.shape)
        moves = (speed > 1e-14) & (self.weights > 0)
        return float(np.min(self.weights[moves] / speed[moves], initial=np.inf))

    # --- the path --------------------------------------------------------------------------------------------

    def solve(self, times: Array) -> tuple[Array, Array]:
        """Intercepts (T, q) and coefficients (T, p, q) at ascending times, in the units of the data."""
        return self._restore(self._integrate(np.asarray(times) * self.unit))

    def _restore(self, states: list[Array]) -> tuple[Array, Array]:
        """Of states, in the units of the data."""
        theta = np.stack([self.shrink(u) for u in states])
        coef = theta[:, 1:] * (self.unit / self.scale[:, None])
        return theta[:, 0] * self.unit - np.sum(self.center[:, None] * coef, axis=1), coef

    def iterate(self, times: Array, step: float) -> tuple[Array, Array]:
        """The same of the paper's iteration with a fixed step from t0 on; its dual moves on straight lines."""
        times, h = np.asarray(times) * self.unit, step * self.unit
        out, t, u = [self.u0 for t in times if t <= self.t0], self.t0, self.u0
        while len(out) < len(times):
            slope = self.speed(self.shrink(u))
            while len(out) < len(times) and times[len(out)] <= t + h:
                out.append(u + (times[len(out)] - t) * slope)
            t, u = t + h, u + h * slope
        return self._restore(out)

    def _integrate(self, times: Array) -> list[Array]:
        out, t, u = [self.u0 for t in times if t <= self.t0], self.t0, self.u0
        while len(out) < len(times):
            stretch = _Stretch(self, u)
            solver = LSODA(stretch.speed, t, u.ravel(), times[-1], rtol=RTOL, atol=ATOL, jac=stretch.jacobian)
            ended = False
            while not ended and len(out) < len(times):
                message = solver.step()
                if solver.status == "failed":
                    raise RuntimeError(f"LSODA failed at t={solver.t}: {message}")
                dense, low, high = solver.dense_output(), max(solver.t_old, t * (1 + SHORTEST)), solver.t
                ended = high > low and not stretch.contains(solver.y)
                while ended and high - low > 4e-16 * high:
                    middle = 0.5 * (low + high)
                    low, high = (middle, high) if stretch.contains(dense(middle)) else (low, middle)
                while len(out) < len(times) and times[len(out)] <= high:
                    out.append(dense(times[len(out)]).reshape(u.shape))
            t, u = high, dense(high).reshape(u.shape)
        return out

    def error(self, path: Any) -> Array:
        """Error of the coefficients at the times of a path: as ``tol`` means it, relative to the largest at that time.

        Both in the units in which the path is integrated (standard deviations), and coefficients below
        1e-5 kappa count as that.
        """
        return self.difference(path.coef, self.solve(path.t)[1])

    def difference(self, coef: Array, exact: Array, floor: float = FLOOR) -> Array:
        """At each time, relative to the largest coefficient; see `error`."""
        inside = self.scale[:, None] / self.unit
        off = np.abs((coef.reshape(exact.shape) - exact) * inside).max(axis=(1, 2), initial=0.0)
        return off / np.maximum(np.abs(exact * inside).max(axis=(1, 2), initial=0.0), floor * self.kappa)

    def largest_stable_step(self, t: float) -> float:
        """A fixed step at which the loss cannot rise before ``t``, in the units of the data."""
        bound = {"gaussian": 1.0, "huber": 1.0, "logistic": 0.25, "multinomial": 0.5}.get(self.loss)
        if bound is None:  # rates on the way, with room to spare
            states = self._integrate(np.geomspace(self.t0, t * self.unit, 10))
            bound = 3 * max(float(np.exp(self.offset + self.A @ self.shrink(u)).max()) for u in states)
        curvature = bound * float(np.linalg.eigvalsh(self.A.T @ (self.w[:, None] * self.A))[-1])
        return 2.0 / (self.kappa * curvature * self.unit)


class _Stretch:
    """The dynamics with its pieces held as they are at ``u``: smooth, and right as long as it `contains` the state."""

    def __init__(self, oracle: Oracle, u: Array) -> None:
        theta = oracle.shrink(u)
        self.oracle, self.shape = oracle, u.shape
        self.alive, self.bent = oracle.alive(u), oracle.bent(theta)
        self.limits = self.alive * oracle.limits(theta)
        self.moves = self.alive & (self.limits == 0)
        self.fixed = np.where(self.limits > 0, oracle.upper, np.where(self.limits < 0, oracle.lower, 0.0))
        self.sign = np.sign(theta)
        self.w = np.where(self.alive, oracle.weights, 0.0)
        if oracle.groups is not None:  # what follows is one number a group
            self.w = np.zeros(oracle.groups.max() + 1)
            np.maximum.at(self.w, oracle.groups, np.where(self.alive, oracle.weights, 0.0).max(axis=1))
            self.C = oracle.squares(self.fixed) / oracle.kappa**2
            self.bounded = (self.C > 0) & (self.w > 0)

    def contains(self, u: Array) -> bool:
        u, oracle = u.reshape(self.shape), self.oracle
        if not np.array_equal(oracle.alive(u), self.alive):
            return False
        theta = self._unlimited(u)
        if not np.array_equal(self.alive * oracle.limits(theta), self.limits):
            return False
        return not len(self.bent) or np.array_equal(oracle.bent(np.where(self.moves, theta, self.fixed)), self.bent)

    def speed(self, t: float, u: Array) -> Array:
        theta = np.where(self.moves, self._unlimited(u.reshape(self.shape)), self.fixed)
        return self.oracle.speed(theta, self.bent).ravel()

    def jacobian(self, t: float, u: Array) -> Array:
        u = u.reshape(self.shape)
        theta = np.where(self.moves, self._unlimited(u), self.fixed)
        return -self.oracle.hessian(self.oracle.A, theta, self.bent) @ self._derivative(u)

    def _unlimited(self, u: Array) -> Array:
        """Coefficients of those alive, were there no limits for them."""
        if self.oracle.groups is None:
            return self.oracle.kappa * (u - self.sign * self.w)
        r = self._radius(u)
        return self.oracle.kappa * (r / (r + self.w))[self.oracle.groups][:, None] * u

    def _radius(self, u: Array) -> Array:
        """Norm r of each group: b = u r / (r + w) where it moves, so ``C / r^2 + S / (r + w)^2 = 1``."""
        S = self.oracle.squares(np.where(self.moves, u, 0.0))
        r = np.where(self.w > 0, np.sqrt(S) - self.w, 1.0)
        if self.bounded.any():
            S, C, w = S[self.bounded], self.C[self.bounded], self.w[self.bounded]
            x = np.maximum(np.sqrt(C), np.sqrt(S) - w)  # left of the root of a convex function: Newton's method
            for _ in range(50):
                move = (C / x**2 + S / (x + w) ** 2 - 1) / (2 * C / x**3 + 2 * S / (x + w) ** 3)
                x = x + move
                if np.max(np.abs(move)) <= 1e-15:
                    break
            r[self.bounded] = x
        return r

    def _derivative(self, u: Array) -> Array:
        """Of the coefficients."""
        kappa, groups = self.oracle.kappa, self.oracle.groups
        if groups is None:
            return kappa * np.diag(1.0 * self.moves.ravel())
        v = np.where(self.moves, u, 0.0)
        r, slope = self._radius(u), np.where(self.w > 0, self.oracle.squares(v), 1.0)
        slope[self.bounded] += (self.C * (1 + self.w / r) ** 3)[self.bounded]
        pull = self.w / (r + self.w) / slope
        share = np.where(self.moves, (r / (r + self.w))[groups][:, None], 0.0)
        labels = np.repeat(groups, self.oracle.q)
        bend = np.outer(v.ravel(), (pull[groups][:, None] * v).ravel())
        return kappa * (np.diag(share.ravel()) + (labels[:, None] == labels) * bend)
