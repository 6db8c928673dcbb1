"""The data that are compared on, and their way into other processes as plain binary files.

Reading (`read_data`) needs only NumPy and SciPy, so that it works in the peers' environment; making needs bregpath.
"""

from __future__ import annotations

import gzip
import json
import os
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

SEED = 20180409
SHIPPED = {"cancer": "load_breast_cancer", "digits": "load_digits"}  # with scikit-learn
RATIO = 0.01  # lambda_min / lambda_max, and t0 / t_end
POINTS = 100
NOISE = 1.0  # standard deviation of the gaussian response around X beta


@dataclass(frozen=True)
class Case:
    """One data set: simulated (n, p, s), or read (``source``)."""

    name: str
    n: int = 0
    p: int = 0
    s: int = 0
    density: float | None = None
    signal: float | None = None  # standard deviation of the predictor; None: that of coefficients 1 and -1
    source: str = ""
    classes: int = 0  # of a simulated multinomial response
    losses: tuple[str, ...] = ("logistic", "gaussian")
    dfmax: int = 0  # where paths end, in variables; 0: at the end of the window

    def quick(self) -> Case:
        """A small case of the same kind, to try the harness; its times mean nothing."""
        density = None if self.density is None else max(self.density, 0.05)
        small = {"n": min(self.n, 200), "p": min(self.p, 100), "s": min(self.s, 10), "dfmax": min(self.dfmax, 30)}
        return replace(self, density=density, **small)


@dataclass(frozen=True)
class Data:
    """A standardised design, a response, and what is asked of it."""

    X: Any  # (n, p) float64 by columns, or scipy.sparse CSC
    y: np.ndarray  # 0 / 1, numbers of classes, or centred with standard deviation 1
    loss: str
    standardize: bool = True
    ratio: float = RATIO
    points: int = POINTS
    dfmax: int = 0
    options: dict[str, Any] = field(default_factory=dict)  # for bregpath only, e.g. kappa

    @property
    def sparse(self) -> bool:
        return not isinstance(self.X, np.ndarray)

    @property
    def x_bytes(self) -> int:
        return self.X.data.nbytes + self.X.indices.nbytes + self.X.indptr.nbytes if self.sparse else self.X.nbytes

    def lambdas(self) -> np.ndarray:
        """The lasso window of this problem; the null gradient of both losses is X'(y - mean) / n."""
        largest = np.abs(self.X.T @ (self.y - self.y.mean())).max() / len(self.y)
        return largest * np.geomspace(1.0, self.ratio, self.points)


CASES = {
    case.name: case
    for case in (
        Case("a", 400, 80, 20),
        Case("b", 1000, 200, 50),
        Case("c", 2000, 20000, 50),
        Case("d", 6000, 2000, 200),
        Case("e", 20000, 50000, 100, density=0.001),
        # Whoever wants a model, not a saturated fit: most of e's window is noise that enters.
        Case("e to 1000 variables", 20000, 50000, 100, density=0.001, losses=("gaussian",), dfmax=1000),
        Case("f", 100000, 100, 20),
        Case("noisy", 3000, 500, 30, signal=0.5),
        Case("wide", 500, 5000, 20, signal=0.5),
        Case("cancer", 569, 30, source="cancer", losses=("logistic",)),
        Case("colon", 62, 2000, source="colon.npz", losses=("logistic",)),
        Case("leukemia", 72, 7129, source="leukemia.npz", losses=("logistic",)),
        Case("mushrooms", 8124, 112, source="mushrooms.libsvm.gz", losses=("logistic",)),
        Case("a9a", 32561, 123, source="a9a.libsvm.gz", losses=("logistic",)),
        Case("classes", 5000, 100, 20, signal=0.5, classes=3, losses=("multinomial",)),
        Case("digits", 1797, 64, source="digits", losses=("multinomial",)),
        Case("tiny", 60, 10, 3),
    )
}
DEFAULT_CASES = tuple(name for name in CASES if name != "tiny")


def data_folder() -> Path:
    """Where the real data lie: in a folder of that name, or as the environment says."""
    return Path(os.environ.get("BREGPATH_BENCH_DATA", Path(__file__).resolve().parents[1] / "data"))


def is_present(case: Case) -> bool:
    """Whether the data of a case can be made here."""
    return case.source in ("", *SHIPPED) or (data_folder() / case.source).is_file()


def make_data(case: Case, loss: str, **settings: Any) -> Data:
    """Simulate or read a case and standardise it: dense columns to mean 0 and variance 1, sparse ones to variance 1."""
    X, y = _simulate(case, loss) if case.source == "" else _load(case)
    scale = standardize_sparse if not isinstance(X, np.ndarray) else standardize_dense
    X = scale(X)
    if loss == "gaussian":
        y = (y - y.mean()) / y.std()
    elif loss == "multinomial":
        y = np.unique(y, return_inverse=True)[1]
    else:
        y = (y == y.max()).astype(float)
    return Data(X, np.ascontiguousarray(y, dtype=float), loss, dfmax=case.dfmax, **settings)


def _simulate(case: Case, loss: str) -> tuple[Any, np.ndarray]:
    """The paper's logistic simulation, M = 1 and r = 0.25; the gaussian response has the same X and coefficients."""
    from bregpath.datasets import make_logistic

    simulation = make_logistic(case.n, case.p, case.s, M=1.0, seed=SEED, density=case.density)
    rng, eta = np.random.default_rng(SEED + 1), simulation.X @ simulation.coef
    if loss == "multinomial":
        eta = simulation.X[:, : case.s] @ rng.standard_normal((case.s, case.classes))
        return simulation.X, (case.signal * eta / eta.std() + rng.gumbel(size=eta.shape)).argmax(axis=1)
    if case.signal is not None:
        eta *= case.signal / eta.std()
    if loss == "gaussian":
        return simulation.X, eta + NOISE * rng.standard_normal(case.n)
    if case.signal is None:
        return simulation.X, simulation.y
    return simulation.X, (rng.random(case.n) < 1 / (1 + np.exp(-eta))).astype(float)


def _load(case: Case) -> tuple[Any, np.ndarray]:
    """Real data, or as much of them as the case has room for."""
    X, y = _read(case.source)
    if X.shape[0] > case.n or X.shape[1] > case.p:
        rows = np.linspace(0, X.shape[0] - 1, min(case.n, X.shape[0])).astype(int)
        X, y = X[rows][:, : case.p], y[rows]
        X = np.asfortranarray(X) if isinstance(X, np.ndarray) else X.tocsc()
    return X, y


def _read(source: str) -> tuple[Any, np.ndarray]:
    if source in SHIPPED:
        from sklearn import datasets

        X, y = getattr(datasets, SHIPPED[source])(return_X_y=True)
        return np.asfortranarray(X, dtype=float), y
    file = data_folder() / source
    if file.suffix == ".npz":
        with np.load(file) as stored:
            return np.asfortranarray(stored["X"], dtype=float), stored["y"]
    from sklearn.datasets import load_svmlight_file

    with gzip.open(file) as stream:
        X, y = load_svmlight_file(stream)
    return X.tocsc(), y


def standardize_dense(X: np.ndarray) -> np.ndarray:
    """Centre and scale in place, column by column; constant columns are dropped."""
    keep = []
    for j in range(X.shape[1]):
        column = X[:, j]
        column -= column.mean()
        deviation = column.std()
        if deviation > 1e-12:
            keep.append(j)
            column /= deviation
    return X if len(keep) == X.shape[1] else np.asfortranarray(X[:, keep])


def standardize_sparse(X: Any) -> Any:
    """Scale to unit variance without centring, so that X stays sparse; constant columns are dropped."""
    import scipy.sparse as sp

    n = X.shape[0]
    mean = np.asarray(X.sum(axis=0)).ravel() / n
    deviation = np.sqrt(np.maximum(np.asarray(X.multiply(X).sum(axis=0)).ravel() / n - mean**2, 0.0))
    keep = np.flatnonzero(deviation > 1e-9)
    X = sp.csc_matrix(X)[:, keep]
    X = sp.csc_matrix(X @ sp.diags(1.0 / deviation[keep]))
    X.sort_indices()
    return X


# --- files: one folder a problem -------------------------------------------------------------------------------


def write_data(folder: str | Path, data: Data) -> None:
    """Write a problem as raw arrays (X by columns) with a description in JSON and, for R, as lines of key and value."""
    folder = Path(folder)
    meta = {key: value for key, value in asdict(replace(data, X=None, y=None)).items() if key not in ("X", "y")}
    meta |= {"n": data.X.shape[0], "p": data.X.shape[1], "sparse": data.sparse}
    data.y.tofile(folder / "y.bin")
    if data.sparse:
        meta["nnz"] = int(data.X.nnz)
        data.X.data.astype(float).tofile(folder / "x.bin")
        data.X.indices.astype(np.int32).tofile(folder / "i.bin")
        data.X.indptr.astype(np.int32).tofile(folder / "p.bin")
    else:
        meta["nnz"] = int(data.X.size)
        np.asfortranarray(data.X).T.tofile(folder / "x.bin")
    (folder / "meta.json").write_text(json.dumps(meta))
    plain = {key: int(value) if isinstance(value, bool) else value for key, value in meta.items() if key != "options"}
    (folder / "meta.tsv").write_text("".join(f"{key}\t{value}\n" for key, value in plain.items()))


def read_data(folder: str | Path) -> Data:
    """Read what `write_data` wrote; a dense X comes by columns and without a second copy."""
    folder = Path(folder)
    meta = json.loads((folder / "meta.json").read_text())
    shape, sparse = (meta.pop("n"), meta.pop("p")), meta.pop("sparse")
    meta.pop("nnz")
    values = np.fromfile(folder / "x.bin")
    if sparse:
        import scipy.sparse as sp

        rows, starts = (np.fromfile(folder / f"{name}.bin", dtype=np.int32) for name in "ip")
        X = sp.csc_matrix((values, rows, starts), shape=shape)
        X.has_sorted_indices = True
    else:
        X = values.reshape(shape, order="F")
    return Data(X, np.fromfile(folder / "y.bin"), **meta)
