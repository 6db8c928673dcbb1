"""Paths of all kinds, for the tests of their files."""

from __future__ import annotations

import io
import json
import pathlib
from typing import Any

import numpy as np
from numpy.testing import assert_array_equal

import bregpath
from tests.helpers import make_data

Content = dict[str, Any]


def trace(name: str) -> bregpath.Path:
    """A small path of one of the `NAMES`."""
    X, y = make_data("multinomial" if name == "classes" else "gaussian", n=40, p=6)
    options: dict[str, Any] = {"t_ratio": 6, "n_times": 6}
    if name == "classes":
        return bregpath.trace_path(X, y, loss="multinomial", **options)
    if name == "groups":
        return bregpath.trace_path(
            X, y, penalty="group", groups=[0, 0, 1, 1, 2, 2], penalty_factor=[0, 1, 1], loss="huber", **options
        )
    if name == "ising":
        data = bregpath.datasets.make_ising_grid(2, T=2.0, n=200, seed=0)
        return bregpath.IsingGraph(**options).fit(data.X).path_
    if name == "potts":
        return bregpath.PottsGraph(**options).fit(X[:, :4].argsort(axis=0).argsort(axis=0) // 14).path_
    if name == "gaussian graph":
        return bregpath.GaussianGraph(**options).fit(X).path_
    if name == "mixed graph":
        table = np.column_stack([X[:, :2], X[:, 2:4] > 0, X[:, 4].argsort().argsort() // 14, np.round(np.exp(X[:, 5]))])
        kinds = ["gaussian", "gaussian", "categorical", "categorical", "categorical", "count"]
        return bregpath.MixedGraph(kinds, **options).fit(table).path_
    return bregpath.trace_path(X, y, **options)


NAMES = ["plain", "classes", "groups", "ising", "potts", "gaussian graph", "mixed graph"]


def assert_same(again: bregpath.Path, path: bregpath.Path) -> None:
    """All that can be read is the same to the last bit."""
    middle = float(np.sqrt(path.t[0] * path.t[-1]))
    assert type(again) is type(path)
    for name in ("t", "coef", "intercept", "deviance", "df", "entry_times", "exit_times", "feature_names"):
        assert_array_equal(getattr(again, name), getattr(path, name), err_msg=name)
    assert_array_equal(again.at(middle).coef, path.at(middle).coef)
    assert_array_equal(again.at(middle).intercept, path.at(middle).intercept)
    assert (again.null_deviance, again.kappa, again.result) == (path.null_deviance, path.kappa, path.result)
    assert again.stats == path.stats
    assert repr(again.loss) == repr(path.loss) and repr(again) == repr(path)


def read(file: pathlib.Path) -> tuple[dict[str, np.ndarray], Content]:
    """Arrays and header of a file."""
    with np.load(file) as saved:
        arrays = {name: saved[name] for name in saved.files}
    return arrays, json.loads(str(arrays.pop("header")))


def write(file: pathlib.Path, arrays: dict[str, np.ndarray], header: Content) -> None:
    """A file of the same form, whatever is in it."""
    stream = io.BytesIO()
    np.savez(stream, header=np.array(json.dumps(header)), **arrays)
    file.write_bytes(stream.getvalue())
