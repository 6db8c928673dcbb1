"""MCP and SCAD (skglm) and best subsets (abess) on every outer split of a problem; see ``benchmarks.nested``.

Run by the interpreter of the peers: ``python -P benchmarks/peers/nested.py FOLDER``. Knobs are chosen by the deviance
of the inner folds: lambda on a grid of 30 values down to a hundredth of its maximum, or the number of variables.
"""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path

import numpy as np

N_LAMBDAS, RATIO = 30, 0.01


def standardized(X):
    center, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale <= 1e-12] = np.inf  # a constant column gets the coefficient zero
    return (X - center) / scale, center, scale


def deviance(loss, y, eta):
    if loss == "gaussian":
        return np.mean((y - eta) ** 2)
    return 2 * np.mean(np.logaddexp(0.0, -np.where(y > 0, eta, -eta)))


def concave_path(X, y, loss, lambdas, kind):
    """Intercepts and coefficients on standardised columns, one lambda after the other."""
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Logistic, Quadratic
    from skglm.penalties import SCAD, MCPenalty
    from skglm.solvers import AndersonCD

    penalty = {"MCP": lambda level: MCPenalty(level, 3.0), "SCAD": lambda level: SCAD(level, 3.7)}[kind]
    solver = AndersonCD(tol=1e-4, fit_intercept=True, warm_start=True, max_epochs=5000)
    target = np.where(y > 0, 1.0, -1.0) if loss == "logistic" else y - y.mean()
    model, theta = None, []
    for level in lambdas:
        fresh = GeneralizedLinearEstimator(Logistic() if loss == "logistic" else Quadratic(), penalty(level), solver)
        if model is not None:
            fresh.coef_, fresh.intercept_ = model.coef_, model.intercept_
        model = fresh.fit(X, target)
        intercept = float(np.ravel(model.intercept_)[0]) + (0.0 if loss == "logistic" else y.mean())
        theta.append(np.append(intercept, np.ravel(model.coef_)))
    return np.array(theta)


def concave(X, y, loss, fold, kind):
    inside, center, scale = standardized(X)
    top = np.max(np.abs(inside.T @ (y - y.mean()))) / len(y)  # where the first coefficient enters, for both losses
    lambdas = np.geomspace(top, RATIO * top, N_LAMBDAS)
    score = np.zeros(N_LAMBDAS)
    for k in np.unique(fold):
        here, there = fold != k, fold == k
        part, middle, size = standardized(X[here])
        theta = concave_path(part, y[here], loss, lambdas, kind)
        eta = theta[:, :1] + theta[:, 1:] @ ((X[there] - middle) / size).T
        score += [np.sum(there) * deviance(loss, y[there], e) for e in eta]
    best = int(np.argmin(np.where(np.isfinite(score), score, np.inf)))
    theta = concave_path(inside, y, loss, lambdas[: best + 1], kind)[-1]
    coef = theta[1:] / scale
    return np.append(theta[0] - center @ coef, coef)


def best_subset(X, y, loss, fold):
    from abess import LinearRegression, LogisticRegression

    n_folds = len(np.unique(fold))
    varies = np.all([X[fold != k].std(axis=0) > 0 for k in np.unique(fold)], axis=0)  # it refuses constant columns
    if loss == "logistic":
        model = LogisticRegression(cv=n_folds, cv_score="test_loss")
    else:
        model = LinearRegression(cv=n_folds, cv_score="test_loss")
    model.fit(np.ascontiguousarray(X[:, varies]), y, cv_fold_id=fold.astype(int))
    coef = np.zeros(X.shape[1])
    coef[varies] = np.ravel(model.coef_)
    return np.append(np.ravel(model.intercept_)[0], coef)


METHODS = {
    "abess": best_subset,
    "mcp": lambda *data: concave(*data, "MCP"),
    "scad": lambda *data: concave(*data, "SCAD"),
}


def main(folder):
    warnings.simplefilter("ignore")
    home = Path(folder)
    meta = dict(line.split("\t") for line in (home / "meta.tsv").read_text().splitlines())
    n, p, J, loss = int(meta["n"]), int(meta["p"]), int(meta["splits"]), meta["loss"]
    X, y = np.fromfile(home / "x.bin").reshape(p, n).T, np.fromfile(home / "y.bin")
    splits = np.fromfile(home / "splits.bin").reshape(J, n)
    some = np.random.default_rng(0).normal(size=(40, 5))
    for name, method in METHODS.items():
        label = np.arange(40) % 4 + 1
        method(some, (some[:, 0] > 0).astype(float) if loss == "logistic" else some[:, 0], loss, label)  # compile
        rows = []
        for split in splits:
            train = split > 0
            data = np.asfortranarray(X[train]), y[train], loss, split[train]
            begun = time.perf_counter()
            theta = method(*data)
            rows.append(np.append(time.perf_counter() - begun, theta))
        np.array(rows).tofile(home / f"model_{name}.bin")


if __name__ == "__main__":
    main(sys.argv[1])
