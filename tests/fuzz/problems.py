"""Random regressions: everything about a problem follows from one integer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.helpers import ALL_LOSSES, LOSSES_WITH_UNITS, response

__all__ = ["Problem", "make_problem", "stream"]

Array = np.ndarray


def stream(*key: int) -> np.random.Generator:
    """Random numbers that belong to a key."""
    return np.random.default_rng([20180409, *key])


@dataclass(frozen=True)
class Problem:
    """Data and options of a path: ``trace_path(X, y, **options)``, and the oracle alike."""

    seed: int
    X: Array
    y: Array
    options: dict[str, Any]
    labels: Array | None = None  # a categorical column, whose indicators are the last columns of X
    traits: list[str] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Loss, penalty and the kind of limits: what results are counted by."""
        return " ".join([self.options["loss"], self.options["penalty"], *self.traits])


def make_problem(seed: int, most_columns: int = 15, categories: float = 0.15, tame: bool = False) -> Problem:
    """A problem with 20 to 80 rows; ``categories`` is the chance of a categorical column.

    A ``tame`` one loses few digits to rounding: its columns are not farther from the origin than a hundred deviations,
    and its kappa is at most a hundred.
    """
    rng = stream(seed)
    n, p = int(rng.integers(20, 81)), int(rng.integers(2, most_columns + 1))
    loss = str(rng.choice(ALL_LOSSES))
    X = _columns(rng, n, p)
    coef = rng.normal(size=p) * (rng.random(p) < 0.5)
    y = response(loss, rng.normal() + X @ coef / max(1.0, 0.7 * np.linalg.norm(coef)), rng)
    if len(np.unique(y)) == 1:  # labels of one class, or no counts: no regression
        y[0] = "d" if y.dtype.kind == "U" else 1 - y[0]
    options: dict[str, Any] = {
        "loss": loss,
        "kappa": float(10 ** rng.uniform(-1, 2 if tame else 3)),
        "fit_intercept": bool(rng.random() < 0.85),
        "standardize": [True, True, True, "X", False][rng.integers(5)],
    }
    X, y = _other_units(rng, X, y, options, far=2.0 if tame else 6.0)
    labels = None
    if rng.random() < categories:
        labels = rng.choice(["a", "b", "c", "d"][: rng.integers(2, 5)], n)
        X = np.column_stack([X, labels[:, None] == np.unique(labels)])
    _rows(rng, y, options)
    traits = _penalty(rng, X, y, labels, options)
    return Problem(seed, X, y, options, labels, traits)


def _columns(rng: np.random.Generator, n: int, p: int) -> Array:
    """Normal columns, correlated or not; some sparse, some binary, some copies, some constant."""
    rho = rng.choice([0.0, 0.5, 0.95])
    X = np.sqrt(1 - rho) * rng.normal(size=(n, p)) + np.sqrt(rho) * rng.normal(size=(n, 1))
    shape = rng.choice(["normal", "sparse", "binary", "mixed"], p=[0.6, 0.2, 0.1, 0.1])
    if shape in ("sparse", "mixed"):
        X = X * (rng.random((n, p)) < 0.3)
    if shape in ("binary", "mixed"):
        some = rng.random(p) < (1.0 if shape == "binary" else 0.5)
        X[:, some] = X[:, some] > 0.5
    if p > 3 and rng.random() < 0.15:
        X[:, 1] = X[:, 0] * rng.choice([1.0, -1.0])
    if p > 3 and rng.random() < 0.15:
        X[:, 2] = rng.choice([0.0, 1.0])
    return X


def _other_units(
    rng: np.random.Generator, X: Array, y: Array, options: dict[str, Any], far: float
) -> tuple[Array, Array]:
    """Far from the origin and in other units, as far as the path does not depend on them."""
    p, centred = X.shape[1], options["fit_intercept"] and options["standardize"]
    if rng.random() < 0.4:
        X = X + rng.choice([-1.0, 1.0], p) * 10 ** rng.uniform(-1, far if centred else 0.5, p)
    if rng.random() < 0.4:
        X = X * 10 ** (rng.uniform(-8, 8, p) if options["standardize"] else rng.uniform(-1, 0.5, p))
    if options["loss"] in LOSSES_WITH_UNITS and rng.random() < 0.4:
        if options["fit_intercept"]:
            y = y + rng.choice([-1.0, 1.0]) * np.std(y) * 10 ** rng.uniform(-1, far)
        y = y * 10 ** (rng.uniform(-8, 8) if options["standardize"] is True else rng.uniform(-1, 1))
    return X, y


def _rows(rng: np.random.Generator, y: Array, options: dict[str, Any]) -> None:
    """Weights and offsets."""
    n = len(y)
    weights = {
        "whole": lambda: rng.integers(0, 4, n),
        "uneven": lambda: rng.gamma(0.5, size=n),
        "holes": lambda: rng.random(n) * (rng.random(n) < 0.8),
    }
    if rng.random() < 0.4:
        w = weights[str(rng.choice(list(weights)))]().astype(float)
        w[np.unique(y, return_index=True)[1] if options["loss"] in ("logistic", "multinomial") else [y.argmax()]] = 1.0
        options["sample_weight"] = w
    if rng.random() < 0.25:
        shape = (n, len(np.unique(y))) if options["loss"] == "multinomial" else n
        options["offset"] = rng.normal(size=shape) * (0.3 * np.std(y) if options["loss"] in LOSSES_WITH_UNITS else 0.3)


def _penalty(rng: np.random.Generator, X: Array, y: Array, labels: Array | None, options: dict[str, Any]) -> list[str]:
    """Penalty, groups, factors and limits; the kinds of limits are told."""
    p = X.shape[1]
    names = ["group", "group-sqrt"] if labels is not None else ["l1", "l1", "group", "group-sqrt"]
    options["penalty"] = str(rng.choice(names))
    groups = np.arange(p)
    if labels is not None:
        groups[-len(np.unique(labels)) :] = p
    elif options["penalty"] != "l1":
        groups = rng.integers(0, max(2, p // 2), p)
    if options["penalty"] != "l1":
        options["groups"] = groups
    group = np.unique(groups, return_inverse=True)[1]
    factor = np.ones(p)
    if rng.random() < 0.3:
        share = [0.05 if labels is not None and options["fit_intercept"] else 0.15, 0.6, 0.25]
        factor = np.array([0.0, 1.0, np.inf])[rng.choice(3, group.max() + 1, p=np.array(share) / sum(share))]
        factor = (factor * np.where(factor == 1.0, rng.uniform(0.3, 3.0, len(factor)), 1.0))[group]
        options["penalty_factor"] = factor
    return _limits(rng, X, y, factor, options)


def _limits(rng: np.random.Generator, X: Array, y: Array, factor: Array, options: dict[str, Any]) -> list[str]:
    if rng.random() >= 0.4:
        return []
    what = str(rng.choice(["signs", "box", "mixed"]))
    spread = np.std(X, axis=0)
    size = (np.std(y) if options["loss"] in LOSSES_WITH_UNITS else 1.0) / np.where(spread > 0, spread, 1.0)
    if what == "signs":
        options["lower"] = np.where(factor == 0, -np.inf, 0.0)
        return [what]
    for name, sign in (("lower", -1.0), ("upper", 1.0)):
        limit = sign * size * rng.uniform(0.02, 0.5, len(size))
        if what == "mixed":
            limit *= np.array([0.0, 1.0, np.inf])[rng.choice(3, len(size), p=[0.2, 0.4, 0.4])]
        options[name] = np.where(factor == 0, sign * np.inf, limit)
    return [what]
