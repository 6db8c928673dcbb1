"""Cross-validated Gaussian graphs side by side: ``python -m benchmarks.gaussian_cv``.

Rows of a random sparse precision matrix (p = 100, n = 900 by default): `GaussianGraph(stop="cv")` with its two losses,
scikit-learn's `GraphicalLassoCV`, and a plain graphical lasso by ADMM (below, warm starts along 20 penalties), all with
five folds. Times are minima over the repetitions, which alternate; the held-out log-likelihood is that of fresh rows.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np

import bregpath

State = tuple[np.ndarray, np.ndarray]
Fit = Callable[[np.ndarray], np.ndarray]


def admm(S: np.ndarray, penalty: float, start: State, tol: float = 1e-4) -> State:
    """Graphical lasso of one covariance: sparse precision and scaled dual variable."""
    Z, U = start
    off, rho = ~np.eye(len(S), dtype=bool), 1.0
    for _ in range(1000):
        values, vectors = np.linalg.eigh(rho * (Z - U) - S)
        X = (vectors * ((values + np.sqrt(values**2 + 4 * rho)) / (2 * rho))) @ vectors.T
        before, V = Z, X + U
        Z = np.where(off, np.sign(V) * np.maximum(np.abs(V) - penalty / rho, 0.0), V)
        U = V - Z
        if max(np.linalg.norm(X - Z), np.linalg.norm(Z - before)) < tol * np.linalg.norm(Z):
            break
    return Z, U


def log_likelihood(precision: np.ndarray, S: np.ndarray) -> float:
    sign, logdet = np.linalg.slogdet(precision)
    return 0.5 * (logdet - np.sum(precision * S)) if sign > 0 else -np.inf


def admm_cv(X: np.ndarray) -> np.ndarray:
    """Precision on the scale of the data, the penalty chosen by five folds."""
    scale = X.std(axis=0)
    R = (X - X.mean(axis=0)) / scale
    largest = np.abs(np.corrcoef(R, rowvar=False) - np.eye(R.shape[1])).max()
    penalties = largest * np.logspace(0, -2, 20)
    start = np.eye(R.shape[1]), np.zeros((R.shape[1],) * 2)
    scores = np.zeros(len(penalties))
    for fold in np.array_split(np.random.default_rng(0).permutation(len(R)), 5):
        train, held = np.delete(R, fold, axis=0), R[fold] - np.delete(R, fold, axis=0).mean(axis=0)
        S, state = np.cov(train, rowvar=False, bias=True), start
        for i, penalty in enumerate(penalties):
            state = admm(S, penalty, state)
            scores[i] += log_likelihood(state[0], held.T @ held / len(held))
    state = start
    for penalty in penalties[: int(np.argmax(scores)) + 1]:
        state = admm(np.cov(R, rowvar=False, bias=True), penalty, state)
    return state[0] / np.outer(scale, scale)


def ours(loss: str) -> Fit:
    return lambda X: bregpath.GaussianGraph(loss, stop="cv").fit(X).precision_


def scikit_learn(X: np.ndarray) -> np.ndarray:
    from sklearn.covariance import GraphicalLassoCV

    scale = X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GraphicalLassoCV().fit((X - X.mean(axis=0)) / scale).precision_ / np.outer(scale, scale)


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--rows", type=int, default=900)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args(argv)
    fits = {"bregpath": ours("likelihood"), "bregpath, composite": ours("composite")}
    fits |= {"ADMM": admm_cv, "scikit-learn": scikit_learn}
    n, p = args.rows, args.nodes
    data = bregpath.datasets.make_gaussian_graph(n=n + 5000, p=p, graph="random", seed=0)
    X, fresh = data.X[:n], data.X[n:] - data.X[:n].mean(axis=0)
    S, times, models = fresh.T @ fresh / len(fresh), {name: [] for name in fits}, {}
    for _ in range(args.repeat):
        for name, fit in fits.items():
            begun = time.perf_counter()
            models[name] = fit(X)
            times[name].append(time.perf_counter() - begun)
    print(f"p = {p}, n = {n}\n\n| method | seconds | held-out log-likelihood | edges |\n|---|---|---|---|")
    for name, model in models.items():
        edges = np.count_nonzero(np.triu(model, 1))
        print(f"| {name} | {min(times[name]):.2f} | {log_likelihood(model, S):.3f} | {edges} |")
    print(f"| the truth | | {log_likelihood(data.model.precision, S):.3f} | {data.adjacency.sum() // 2} |")


if __name__ == "__main__":
    main()
