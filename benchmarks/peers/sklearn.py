"""scikit-learn: ``lasso_path``, and saga with warm starts, which is what it offers for an l1 logistic path."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.linear_model import LassoCV, LogisticRegression, LogisticRegressionCV, lasso_path

# saga stops at max_iter on the last models; that is how it is used, and it is visible in the loss that is reported.
warnings.filterwarnings("ignore")


def fit(data: Any) -> Any:
    lambdas = data.lambdas()
    if data.loss == "gaussian":
        _, coefs, _ = lasso_path(data.X, data.y, alphas=lambdas)
        return coefs.T, np.zeros(len(lambdas))
    model = LogisticRegression(l1_ratio=1.0, solver="saga", warm_start=True, random_state=0)
    coefs, intercepts = [], []
    for value in lambdas:
        model.C = 1.0 / (value * len(data.y))
        model.fit(data.X, data.y)
        coefs.append(model.coef_.ravel().copy())
        intercepts.append(float(model.intercept_[0]))
    return coefs, intercepts


def end(data: Any, result: Any) -> dict[str, Any]:
    coefs, intercepts = result
    return {"points": len(coefs), "intercept": float(intercepts[-1]), "coef": np.asarray(coefs[-1])}


def cross_validate(data: Any) -> dict[str, Any]:
    if data.loss == "gaussian":
        model = LassoCV(eps=data.ratio, alphas=data.points, cv=5).fit(data.X, data.y)
        return {"points": data.points, "intercept": float(model.intercept_), "coef": model.coef_}
    strengths = 1.0 / (data.lambdas() * len(data.y))
    model = LogisticRegressionCV(
        Cs=strengths, l1_ratios=(1.0,), solver="saga", cv=5, scoring="neg_log_loss", random_state=0,
        use_legacy_attributes=False,
    ).fit(data.X, data.y)  # fmt: skip
    return {"points": data.points, "intercept": float(np.ravel(model.intercept_)[0]), "coef": model.coef_.ravel()}
