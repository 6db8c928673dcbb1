"""A process that holds one problem and one system, and fits when told: ``python -m benchmarks.worker PEER FOLDER``.

It answers each line ``JOB K`` on standard input with one line of JSON: seconds a call (mean of K), and what the path
looks like at its end. Jobs: ``fit`` (a whole path), ``cv`` (cross-validation and the model) and, after it, ``chosen``
(a path to the chosen model). Loading, a first small fit (compilation) and the description are not timed.
"""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from benchmarks.cases import Data, read_data
from benchmarks.peers import PEERS


def describe(data: Data, point: dict[str, Any]) -> dict[str, Any]:
    """Points, non-zeros and mean training loss of a model."""
    coef = np.reshape(point.pop("coef"), (data.X.shape[1], -1))
    eta = np.asarray(data.X @ coef) + point.pop("intercept")
    if data.loss == "multinomial":
        loss = np.mean(np.logaddexp.reduce(eta, axis=1) - eta[np.arange(len(eta)), data.y.astype(int)])
        return {"nnz": int(np.count_nonzero(coef)), "loss": float(loss), **point}
    eta = eta.ravel()
    if data.loss == "logistic":
        loss = np.mean(np.logaddexp(0.0, eta) - data.y * eta)
    else:
        loss = np.mean((data.y - eta) ** 2) / 2
    return {"nnz": int(np.count_nonzero(coef)), "loss": float(loss), **point}


def warm_up(peer: Any, data: Data) -> None:
    """Fit a small problem of the same kind, so that imports and compilation are done."""
    rows, columns = min(data.X.shape[0], 60), min(data.X.shape[1], 12)
    if data.sparse:
        import scipy.sparse as sp

        small: Any = sp.random(60, columns, 0.5, format="csc", random_state=0)
        rows = 60
    else:
        small = np.asfortranarray(np.random.default_rng(0).standard_normal((rows, columns)))
    y = np.arange(rows) % (3 if data.loss == "multinomial" else 2) + 0.0
    first = getattr(peer, "fit", None) or peer.cross_validate
    first(replace(data, X=small, y=y - y.mean() if data.loss == "gaussian" else y, points=5))


def package_version(name: str) -> str:
    """Version of an installed package, or of one that is merely on the path."""
    try:
        return version(name)
    except PackageNotFoundError:
        return str(getattr(import_module(name), "__version__", "unknown"))


JOBS = {"fit": "fit", "cv": "cross_validate", "chosen": "fit_to"}


def _serve(peer: Any, data: Data, answers: Any) -> None:
    grid: Any = None  # of the last cross-validation, up to the model it chose
    for line in sys.stdin:
        word, *count = line.split()
        if word == "quit":
            return
        repeats, job = int(count[0]), getattr(peer, JOBS[word])
        arguments = (data, grid) if word == "chosen" else (data,)
        begun = time.perf_counter()
        for _ in range(repeats):
            result = job(*arguments)
        seconds = (time.perf_counter() - begun) / repeats
        point = result if word == "cv" else peer.end(data, result)
        grid = point.pop("grid", grid)
        print(json.dumps({"seconds": seconds, **describe(data, point)}), file=answers, flush=True)


def main() -> None:
    name, folder = sys.argv[1:3]
    # Answers keep the real standard output; whatever the libraries print goes to standard error.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    try:
        peer = import_module(f"benchmarks.peers.{name}")
        data = read_data(folder)
        warm_up(peer, data)
    except Exception as error:
        print(json.dumps({"error": f"{type(error).__name__}: {error}"[:300]}), file=answers, flush=True)
        return
    jobs = [job for job, function in JOBS.items() if hasattr(peer, function)]
    hello = {"ready": True, "version": package_version(PEERS[name].package), "jobs": jobs}
    print(json.dumps(hello), file=answers, flush=True)
    _serve(peer, data, answers)


if __name__ == "__main__":
    main()
