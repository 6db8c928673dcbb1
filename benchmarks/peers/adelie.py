"""adelie: group elastic net; the deviance limits are glmnet's, so that it follows the whole window."""

from __future__ import annotations

from typing import Any

import adelie as ad
import numpy as np

LIMITS = {"adev_tol": 0.999, "ddev_tol": 1e-5, "progress_bar": False, "n_threads": 1}


def _problem(data: Any) -> tuple[Any, Any]:
    X = ad.matrix.sparse(data.X, method="naive", n_threads=1) if data.sparse else data.X
    return X, ad.glm.binomial(data.y) if data.loss == "logistic" else ad.glm.gaussian(data.y)


def fit(data: Any, **other: Any) -> Any:
    window = {"min_ratio": data.ratio, "lmda_path_size": data.points}
    stop = {"max_active_size": data.dfmax} if data.dfmax else {}
    return ad.grpnet(*_problem(data), **{**window, **stop, **other}, **LIMITS)


def fit_to(data: Any, grid: Any) -> Any:
    return fit(data, lmda_path=grid)


def end(data: Any, result: Any) -> dict[str, Any]:
    coef = np.asarray(result.betas[-1].toarray()).ravel()
    return {"points": result.betas.shape[0], "intercept": float(result.intercepts[-1]), "coef": coef}


def cross_validate(data: Any) -> dict[str, Any]:
    X, glm = _problem(data)
    quiet = {"progress_bar": False, "n_threads": 1}
    # cv_grpnet sets its own deviance limits.
    scores = ad.cv_grpnet(X, glm, n_folds=5, seed=0, min_ratio=data.ratio, lmda_path_size=data.points, **quiet)
    return {**end(data, scores.fit(X, glm, **quiet)), "grid": scores.lmdas[: scores.best_idx + 1]}
