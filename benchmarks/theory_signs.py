"""How many rows it takes to find all signs: ``python -m benchmarks.theory_signs``. JSON and a figure.

A linear model with p columns, neighbours correlated by 0.25, s true coefficients of +-1 at random places and noise of
standard deviation 1. A method succeeds where its path has, at some time (or lambda), exactly the right signs and no
other column. Paths are followed exactly, from event to event, so that no grid decides, until they have 2 s + 10
columns: GLBI with kappa = 10, the default, and 100, inverse scale space (``flow="giss"``), and the lasso by
scikit-learn's homotopy (`lars_path`). Smaller samples are the first rows of larger ones.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

import bregpath
from benchmarks.machine import describe_machine, write_json
from benchmarks.theory_figures import draw_signs
from bregpath.theory import sign_intervals

P, CORRELATION = 128, 0.25
SUPPORTS = (4, 8, 16)
ROWS = (40, 60, 80, 100, 120, 140, 160, 200, 240, 280, 320, 400)
QUICK_ROWS = (60, 200)


def draw(n: int, s: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and the true coefficients."""
    rng = np.random.default_rng([20180409, s, seed])
    coef = np.zeros(P)
    coef[rng.choice(P, s, replace=False)] = rng.choice([-1.0, 1.0], s)
    fresh = rng.standard_normal((n, P))
    X = np.empty((n, P), order="F")
    X[:, 0] = fresh[:, 0]
    for j in range(1, P):
        X[:, j] = CORRELATION * X[:, j - 1] + np.sqrt(1 - CORRELATION**2) * fresh[:, j]
    return X, X @ coef + rng.standard_normal(n), coef


def path_succeeds(X: np.ndarray, y: np.ndarray, coef: np.ndarray, **options: Any) -> bool:
    path = bregpath.trace_path(X, y, stop=bregpath.StopAtVariables(2 * np.count_nonzero(coef) + 10), **options)
    return len(sign_intervals(path, coef)) > 0


def lasso_succeeds(X: np.ndarray, y: np.ndarray, coef: np.ndarray) -> bool:
    """Signs are constant between two knots of the homotopy, so one look between them is enough."""
    from sklearn.linear_model import lars_path

    X, y = (X - X.mean(axis=0)) / X.std(axis=0), y - y.mean()
    _, _, knots = lars_path(X, y, method="lasso", max_iter=3 * np.count_nonzero(coef) + 20)
    between = (knots[:, 1:] + knots[:, :-1]) / 2
    return bool(np.any(np.all(np.sign(between) == np.sign(coef)[:, None], axis=0)))


METHODS: dict[str, tuple[str, Callable[..., bool], dict[str, Any]]] = {
    "giss": ("inverse scale space", path_succeeds, {"flow": "giss"}),
    "glbi100": ("GLBI, kappa = 100", path_succeeds, {"kappa": 100.0}),
    "glbi": ("GLBI, kappa = 10", path_succeeds, {"kappa": 10.0}),
    "lasso": ("lasso", lasso_succeeds, {}),
}


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.theory_signs", description=__doc__)
    parser.add_argument("--repeats", type=int, default=100, help="data sets a point")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    rows, repeats = (QUICK_ROWS, 3) if args.quick else (ROWS, args.repeats)
    record: dict[str, Any] = {
        "machine": describe_machine(), "p": P, "n": list(rows), "repeats": repeats, "shares": {},
        "methods": {name: title for name, (title, _, _) in METHODS.items()},
    }  # fmt: skip
    for s in SUPPORTS:
        found = {name: np.zeros(len(rows)) for name in METHODS}
        for seed in range(repeats):
            X, y, coef = draw(max(rows), s, seed)
            for i, n in enumerate(rows):
                for name, (_, succeeds, options) in METHODS.items():
                    found[name][i] += succeeds(np.asfortranarray(X[:n]), y[:n], coef, **options)
        record["shares"][str(s)] = {name: (counts / repeats).tolist() for name, counts in found.items()}
        for name, shares in record["shares"][str(s)].items():
            points = (f"{n}: {share:.2f}" for n, share in zip(rows, shares, strict=True))
            print(f"s = {s:2}  {name:6}", *points, flush=True)
    write_json(args.out, "theory_signs.json", record)
    print(f"written: {args.out}/theory_signs.json, {draw_signs(record, args.out)}")
    return record


if __name__ == "__main__":
    main()
