"""bregpath itself, as a user calls it; reading the 100 models is part of the time, since peers return them."""

from __future__ import annotations

from typing import Any

import bregpath


def _arguments(data: Any) -> dict[str, Any]:
    window = {"t_ratio": 1.0 / data.ratio, "n_times": data.points}
    stop = {"stop": bregpath.StopAtVariables(data.dfmax)} if data.dfmax else {}
    return {"loss": data.loss, "standardize": data.standardize, **window, **stop, **data.options}


def fit(data: Any, **other: Any) -> Any:
    path = bregpath.trace_path(data.X, data.y, **{**_arguments(data), **other})
    return path, path.coef_sparse, path.intercept


def fit_to(data: Any, grid: Any) -> Any:
    return fit(data, t=grid)


def end(data: Any, result: Any) -> dict[str, Any]:
    path, coef, intercept = result
    last = coef[[-1]].toarray().ravel()
    stats = {key: getattr(path.stats, key) for key in ("steps", "refreshes", "column_products")}
    return {"points": len(path.t), "intercept": intercept[-1], "coef": last, "stats": stats}


def cross_validate(data: Any) -> dict[str, Any]:
    from bregpath.selection.cross_validation import cross_validate as run

    selection = run(data.X, data.y, cv=5, **_arguments(data))
    point = selection.path.at(selection.t_min)
    grid = selection.times[selection.times <= selection.t_min]
    return {"points": len(selection.path.t), "intercept": point.intercept, "coef": point.coef, "grid": grid}
