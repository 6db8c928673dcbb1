"""Cross-validated Gaussian graphs side by side: ``python -m benchmarks.gaussian_cv``.

Rows of a random sparse precision matrix (p = 100, n = 900 by default): `GaussianGraph(stop="cv")` with its two losses,
scikit-learn's `GraphicalLassoCV`, R's glasso (peers/glasso_cv.R), GGLasso's solver where the package is there, and a
plain graphical lasso by ADMM (below), the last three with warm starts along 20 penalties, all with five folds. Times
are minima over the repetitions, which alternate, without the start of R and the import of packages; the held-out
log-likelihood is that of fresh rows.
"""

from __future__ import annotations

import argparse
import io
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import bregpath
from benchmarks.processes import rscript_with

State = tuple[np.ndarray, np.ndarray]
Fit = Callable[[np.ndarray], np.ndarray]
Timed = Callable[[np.ndarray], tuple[float, np.ndarray]]  # seconds, precision matrix


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


def gglasso(S: np.ndarray, penalty: float, start: State) -> State:
    """The same by the package GGLasso, with its own tolerances."""
    from gglasso.solver.single_admm_solver import ADMM_SGL

    Z, U = start
    with redirect_stdout(io.StringIO()):
        solution, _ = ADMM_SGL(S, penalty, Omega_0=Z, Theta_0=Z, X_0=U)
    return solution["Theta"], solution["X"]


def log_likelihood(precision: np.ndarray, S: np.ndarray) -> float:
    sign, logdet = np.linalg.slogdet(precision)
    return 0.5 * (logdet - np.sum(precision * S)) if sign > 0 else -np.inf


def penalised_cv(solve: Callable[[np.ndarray, float, State], State], X: np.ndarray) -> np.ndarray:
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
            state = solve(S, penalty, state)
            scores[i] += log_likelihood(state[0], held.T @ held / len(held))
    state = start
    for penalty in penalties[: int(np.argmax(scores)) + 1]:
        state = solve(np.cov(R, rowvar=False, bias=True), penalty, state)
    return state[0] / np.outer(scale, scale)


def ours(loss: str) -> Fit:
    return lambda X: bregpath.GaussianGraph(loss, stop="cv").fit(X).precision_


def scikit_learn(X: np.ndarray) -> np.ndarray:
    from sklearn.covariance import GraphicalLassoCV

    scale = X.std(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return GraphicalLassoCV().fit((X - X.mean(axis=0)) / scale).precision_ / np.outer(scale, scale)


def glasso(rscript: str) -> Timed:
    def fit(X: np.ndarray) -> tuple[float, np.ndarray]:
        script = str(Path(__file__).parent / "peers" / "glasso_cv.R")
        with tempfile.TemporaryDirectory(prefix="bregpath-bench-") as folder:
            np.asarray(X, dtype=float).ravel(order="F").tofile(Path(folder) / "x.bin")
            command = [rscript, script, folder, *map(str, X.shape)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            precision = np.fromfile(Path(folder) / "precision.bin").reshape(X.shape[1], X.shape[1])
        return float(done.stdout), (precision + precision.T) / 2

    return fit


def timed(fit: Fit) -> Timed:
    def run(X: np.ndarray) -> tuple[float, np.ndarray]:
        begun = time.perf_counter()
        precision = fit(X)
        return time.perf_counter() - begun, precision

    return run


def systems() -> dict[str, Timed]:
    fits = {"bregpath": ours("likelihood"), "bregpath, composite": ours("composite")}
    fits |= {"ADMM": partial(penalised_cv, admm), "scikit-learn": scikit_learn}
    if find_spec("gglasso"):
        fits["GGLasso"] = partial(penalised_cv, gglasso)
    found = {name: timed(fit) for name, fit in fits.items()}
    rscript = rscript_with("glasso")
    return found | ({"R glasso": glasso(rscript)} if rscript else {})


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100)
    parser.add_argument("--rows", type=int, default=900)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args(argv)
    fits, (n, p) = systems(), (args.rows, args.nodes)
    data = bregpath.datasets.make_gaussian_graph(n=n + 5000, p=p, graph="random", seed=0)
    X, fresh = data.X[:n], data.X[n:] - data.X[:n].mean(axis=0)
    timed(ours("likelihood"))(X[:, :5])  # imports
    S, times, models = fresh.T @ fresh / len(fresh), {name: [] for name in fits}, {}
    for _ in range(args.repeat):
        for name, fit in fits.items():
            seconds, models[name] = fit(X)
            times[name].append(seconds)
    print(f"p = {p}, n = {n}\n\n| method | seconds | held-out log-likelihood | edges |\n|---|---|---|---|")
    for name, model in models.items():
        edges = np.count_nonzero(np.triu(model, 1))
        print(f"| {name} | {min(times[name]):.2f} | {log_likelihood(model, S):.3f} | {edges} |")
    print(f"| the truth | | {log_likelihood(data.model.precision, S):.3f} | {data.adjacency.sum() // 2} |")


if __name__ == "__main__":
    main()
