"""skglm, with a tolerance that follows lambda: its default is absolute, and above lambda on sparse data."""

from __future__ import annotations

from typing import Any

import numpy as np
from skglm import Lasso, SparseLogisticRegression


def fit(data: Any) -> Any:
    lambdas = data.lambdas()
    tol = 1e-3 * lambdas[-1]
    if data.loss == "gaussian":
        _, coefs, _ = Lasso(tol=tol, fit_intercept=True).path(data.X, data.y, lambdas, return_n_iter=False)
        return coefs[:-1].T, coefs[-1]
    model = SparseLogisticRegression(tol=tol, warm_start=True, fit_intercept=True)
    coefs, intercepts = [], []
    for value in lambdas:
        model.alpha = value
        model.fit(data.X, data.y)
        coefs.append(model.coef_.ravel().copy())
        intercepts.append(float(np.ravel(model.intercept_)[0]))
    return coefs, intercepts


def end(data: Any, result: Any) -> dict[str, Any]:
    coefs, intercepts = result
    return {"points": len(coefs), "intercept": float(intercepts[-1]), "coef": np.asarray(coefs[-1])}
