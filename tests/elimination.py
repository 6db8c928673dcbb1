"""Backward elimination with ridge regressions, by hand."""

from __future__ import annotations

import numpy as np


def damped_least_squares(X, y, columns, ridge):
    """Intercept and coefficients of the ridge regression on some columns, in units of their variance."""
    mean, inside = X[:, columns].mean(axis=0), X[:, columns] - X[:, columns].mean(axis=0)
    gram = inside.T @ inside / len(y)
    coef = np.linalg.solve(gram + ridge * np.diag(np.diagonal(gram)), inside.T @ (y - y.mean()) / len(y))
    return y.mean() - mean @ coef, coef


def objective(X, y, columns, ridge):
    intercept, coef = damped_least_squares(X, y, columns, ridge)
    residual = y - intercept - X[:, columns] @ coef
    return residual @ residual / len(y) + ridge * (X[:, columns].var(axis=0) @ coef**2)


def eliminate(X, y, columns, ridge, sizes):
    """Columns that are left at each size: those without which the refitted objective is least."""
    out, columns = [], list(columns)
    for size in sizes:
        while len(columns) > size:
            least = min(columns, key=lambda j: objective(X, y, [k for k in columns if k != j], ridge))
            columns.remove(least)
        out.append(sorted(columns))
    return out
