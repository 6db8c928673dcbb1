"""Whether cross-validation ends too soon: ``python -m benchmarks.ends``, best times of whole curves against their ends.

Random regressions, and data of the study in several foldings (``--data "colon,leukemia"``). Curves are run to the end
of the window; then both rules say where they would have ended, with the turn of pairs and without.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np

import bregpath
from benchmarks.real_data import DATA
from benchmarks.report import markdown
from bregpath.selection.curves import aggregate, clear_turn, paired_turn

PATIENCE = 5
FOLDINGS = 10


def make_problem(seed: int) -> tuple[np.ndarray, np.ndarray, str]:
    """Rows, columns, true ones, correlation and noise of all sizes."""
    rng = np.random.default_rng(seed)
    n, p = int(rng.integers(60, 700)), int(np.exp(rng.uniform(np.log(8), np.log(600))))
    k, rho = int(rng.integers(1, max(2, min(p, 40)))), rng.choice([0, 0.3, 0.7, 0.9])
    X = rng.normal(size=(n, p))
    for j in range(1, p):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    beta = np.zeros(p)
    beta[rng.choice(p, k, False)] = rng.normal(size=k) * rng.choice([1, 1, 3], size=k)
    eta, signal = X @ beta, np.exp(rng.uniform(np.log(0.1), np.log(20)))
    if rng.choice(["gaussian", "logistic"]) == "gaussian":
        return X, eta + rng.normal(size=n) * eta.std() / np.sqrt(signal), "gaussian"
    return X, (1 / (1 + np.exp(-eta / eta.std() * np.sqrt(signal))) > rng.random(n)).astype(int), "logistic"


def selections(problems: int, names: list[str], cv: int) -> Iterator[tuple[str, Any]]:
    """Whole curves, and what they are of."""
    for seed in range(problems):
        X, y, loss = make_problem(seed)
        if loss == "gaussian" or np.bincount(y, minlength=2).min() >= cv:
            yield "random", bregpath.cross_validate(X, y, loss=loss, cv=cv, full=True)
    for name in names:
        X, y, loss = DATA[name]()
        for seed in range(FOLDINGS):
            yield "data of the study", bregpath.cross_validate(X, y, loss=loss, cv=cv, seed=seed, full=True)


def ends(selection: Any) -> list[tuple[float, bool, float]]:
    """By each rule, the share of the times that are traced, whether the best of all is missed, and what that costs."""
    curve, weights = next(iter(selection.scores.values())), selection.fold_weights
    scores, times = curve.fold_scores, curve.times
    mean, se = aggregate(scores, weights)
    turns = [clear_turn(mean, se, PATIENCE, smooth=True)[0], paired_turn(scores, weights, PATIENCE, times=times)[0]]
    best, found = int(mean.argmin()), []
    for rules in (turns[:1], turns):
        end = min((turn for turn in rules if turn is not None), default=len(times) - 1)
        chosen = int(mean[: end + 1].argmin())
        loss = (mean[chosen] - mean[best]) / se[best] if se[best] > 0 else 0.0
        found.append((end / len(times), chosen != best, loss))
    return found


def main(argv: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ends", description=__doc__)
    parser.add_argument("--problems", type=int, default=900)
    parser.add_argument("--data", default=",".join(name for name in DATA if name != "a9a"), help="separated by commas")
    parser.add_argument("--cv", type=int, default=5)
    args = parser.parse_args(argv)
    found: dict[str, list[Any]] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind, selection in selections(args.problems, [name for name in args.data.split(",") if name], args.cv):
            found.setdefault(kind, []).append(ends(selection))
    rows = []
    for kind, results in found.items():
        by_rule = np.array(results, dtype=float).transpose(1, 2, 0)
        for rule, (traced, missed, loss) in zip(("error bars", "and pairs"), by_rule, strict=True):
            numbers = [f"{traced.mean():.3f}", f"{missed.sum():.0f} of {len(missed)}", f"{loss.mean():.4f}"]
            rows.append([kind, rule, *numbers])
    table = markdown(["", "ended by", "share of the times", "best time beyond", "loss / standard error"], rows)
    print(table)
    return table


if __name__ == "__main__":
    main()
