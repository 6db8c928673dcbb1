"""Do knockoffs keep their level where X is not normal, or wider than long? ``python -m benchmarks.knockoff_study``.

A linear model with 15 true columns of 60 (n = 400), neighbours correlated by 0.5, half of the variance noise. The same
normal numbers Z give columns of three kinds: Z itself, heavy tails (multivariate t with 3 degrees of freedom: every
row of Z divided by a number of its own) and skewed ones (exp Z). Wide data: n = 200, p = 1000, 20 true columns, a tenth
of the variance noise. The table in markdown is printed and written to ``knockoff_study.md``.
"""

from __future__ import annotations

import argparse

import numpy as np

import bregpath
from benchmarks.machine import write_page
from benchmarks.report import markdown
from benchmarks.selection_study import Record

LEVELS = (0.1, 0.2)
KINDS = ("normal", "t3", "lognormal")


def draw(kind: str, n: int, p: int, s: int, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """X, y and which columns are true: s of them, anywhere; the noise has this variance, relative to the signal."""
    rng = np.random.default_rng([20180409, seed])
    X = np.empty((n, p))
    X[:, 0] = rng.standard_normal(n)
    for j in range(1, p):
        X[:, j] = 0.5 * X[:, j - 1] + np.sqrt(0.75) * rng.standard_normal(n)
    if kind == "t3":
        X /= np.sqrt(rng.chisquare(3, n) / 3)[:, None]
    elif kind == "lognormal":
        X = np.exp(X)
    truth = np.zeros(p, dtype=bool)
    truth[rng.choice(p, s, replace=False)] = True
    signal = X[:, truth] @ rng.choice([-1.0, 1.0], s)
    return X, signal + np.sqrt(noise) * signal.std() * rng.standard_normal(n), truth


def study(
    kind: str, n: int, p: int, s: int, noise: float, copies: str, seeds: range
) -> dict[float, Record]:
    records = {level: Record() for level in LEVELS}
    for seed in seeds:
        X, y, truth = draw(kind, n, p, s, noise, seed)
        result = bregpath.knockoff_select(X, y, copies=copies, seed=seed)
        for level, record in records.items():
            found = truth[result.at_level(level).selected]
            record.add(share=np.mean(~found) if len(found) else 0.0, power=found.sum() / s)
    return records


def main(argv: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.knockoff_study", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="data sets of each kind")
    parser.add_argument("--wide-seeds", type=int, default=60, help="data sets with n = 200, p = 1000")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    cases = [
        (kind, 400, 60, 15, 1.0, copies, range(args.seeds))
        for kind in KINDS
        for copies in ("gaussian", "copula", "elliptical")
    ]
    wide = range(args.wide_seeds)
    cases += [("normal", 200, 1000, 20, 0.1, copies, wide) for copies in ("gaussian", "equicorrelated")]
    rows = []
    for kind, n, p, s, noise, copies, seeds in cases:
        for level, record in study(kind, n, p, s, noise, copies, seeds).items() if len(seeds) else ():
            held = "yes" if record.mean("share") <= level + 2 * record.error("share") else "NO"
            cells = [record.cell("share", 3), record.cell("power", 2), held]
            rows.append([kind, str(n), str(p), copies, f"{level:g}", *cells])
            print(*rows[-1], flush=True)
    page = markdown(["columns", "n", "p", "copies", "level", "false discovery rate", "power", "held"], rows) + "\n"
    print(f"{page}written: {write_page(args.out, 'knockoff_study.md', page)}")
    return page


if __name__ == "__main__":
    main()
