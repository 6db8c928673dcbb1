"""celer: working sets with dual extrapolation. No intercept, so logistic paths solve a different problem."""

from __future__ import annotations

from typing import Any

import numpy as np
from celer.homotopy import celer_path


def fit(data: Any) -> Any:
    logistic = data.loss == "logistic"
    y = np.where(data.y > 0, 1.0, -1.0) if logistic else data.y
    # Its logistic loss is a sum over rows, its squared loss a mean; both windows start at its own alpha_max.
    pb = "logreg" if logistic else "lasso"
    return celer_path(data.X, y, pb, eps=data.ratio, n_alphas=data.points, use_PN=logistic)


def end(data: Any, result: Any) -> dict[str, Any]:
    coefs = result[1]
    return {"points": coefs.shape[1], "intercept": 0.0, "coef": coefs[:, -1]}
