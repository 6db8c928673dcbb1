"""Half a cross-validation, estimator or resampling is worth nothing: Ctrl-C is raised, whenever it comes."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

import bregpath
from bregpath import Result, _interrupts, selection, trace_path
from bregpath.cli import main
from bregpath.flow import screened
from tests.graphs.cases import data_of, graph_of
from tests.helpers import make_data
from tests.interrupts import ctrl_c_after, ctrl_c_at_line

X, Y = make_data("gaussian", 80, 8)
FIT = {"n_times": 25, "t_ratio": 20.0}


@pytest.fixture(autouse=True)
def short_blocks(monkeypatch):
    """So that a small path has many, and a valid part wherever it is interrupted."""
    monkeypatch.setattr(screened, "BLOCK_STEPS", 4)
    monkeypatch.setattr(screened, "BLOCK_NUMBERS", 1)


def trace_rows(rows):
    return trace_path(X[rows], Y[rows], **FIT)


def fit_graph(case, **options):
    return graph_of(case, **options).fit(data_of(case))


CALLS = {
    "cross-validation": lambda: bregpath.cross_validate(X, Y, **FIT),
    "stability": lambda: bregpath.stability_selection(X, Y, n_replicates=10, **FIT),
    "stability of own paths": lambda: selection.replicate_stability(trace_rows, len(Y), [1.0, 2.0], n_replicates=10),
    "bootstrap": lambda: bregpath.bootstrap_intervals(X, Y, t=2.0, n_replicates=10),
    "bootstrap of own paths": lambda: selection.replicate_intervals(trace_rows, len(Y), 2.0, n_replicates=10),
    "knockoffs": lambda: bregpath.knockoff_select(X, Y, **FIT),
    "regressor cv": lambda: bregpath.BregmanRegressor(**FIT).fit(X, Y),
    "regressor bic": lambda: bregpath.BregmanRegressor(stop="bic", **FIT).fit(X, Y),
    "regressor at t": lambda: bregpath.BregmanRegressor(stop=3.0, **FIT).fit(X, Y),
    "classifier": lambda: bregpath.BregmanClassifier(**FIT).fit(X, Y > np.median(Y)),
    "ising ebic": lambda: fit_graph("ising-composite"),
    "ising at t": lambda: fit_graph("ising-composite", stop=20.0),
    "ising cv": lambda: fit_graph("ising-composite", stop="cv"),
    "ising mdc": lambda: fit_graph("ising-composite", stop="mdc"),
    "ising stars": lambda: fit_graph("ising-composite", stop="stars", n_subsamples=4),
    "ising stable": lambda: fit_graph("ising-composite", stop="stable", n_subsamples=4),
    "potts cv": lambda: fit_graph("potts", stop="cv"),
    "gaussian graph cv": lambda: fit_graph("gaussian-likelihood", stop="cv"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_interrupt_is_raised_whenever_it_comes(call):
    """Also when the path it came to has a valid part: the last path is interrupted inside, too."""
    k, came = 3, 0
    while True:
        with ctrl_c_at_line(k, "bregpath.flow.integrate") as lines:
            try:
                call()
            except KeyboardInterrupt:
                came += 1
            else:
                break
        k = int(1.5 * k) + 4
    assert not lines.place, f"swallowed at {lines.place}"
    assert came >= 3
    assert _interrupts.keeps_parts()


def test_paths_of_a_selection_keep_their_parts_later():
    whole = bregpath.cross_validate(X, Y, **FIT).path
    with ctrl_c_at_line(20, "bregpath.flow.integrate") as lines:
        path = whole.extend(10 * whole.t[-1])
    assert lines.place and path.result is Result.INTERRUPTED


@pytest.mark.parametrize("stop", ["cv", "bic", "2.0", "500.0"])
def test_command_line(stop, tmp_path, capsys):
    file = tmp_path / "data.csv"
    np.savetxt(file, np.column_stack([X, Y]), delimiter=",", header="a,b,c,d,e,f,g,h,y", comments="")
    with ctrl_c_at_line(40, "bregpath.flow.integrate") as lines:
        code = main(["fit", str(file), "--target", "y", "--stop", stop])
    assert lines.place and code == 130
    assert "interrupted" in capsys.readouterr().err


LONG = {"step": 1e-5, "t_ratio": 1e4, "n_times": 100}  # for hours
IN_THREADS = {
    "cross-validation": lambda: bregpath.cross_validate(X, Y, n_jobs=3, t=np.linspace(1.0, 1e3, 5), step=1e-5),
    "stability": lambda: selection.replicate_stability(
        lambda rows: trace_path(X[rows], Y[rows], **LONG), len(Y), [1.0, 2.0], n_replicates=10, n_jobs=3
    ),
    "gaussian graph": lambda: fit_graph("gaussian-likelihood", stop="cv", n_jobs=3, step=1e-6),
}


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("call", IN_THREADS.values(), ids=IN_THREADS)
def test_threads_end_promptly(call):
    with pytest.raises(KeyboardInterrupt), ctrl_c_after(1.0):
        call()
    assert not [t for t in threading.enumerate() if t.name.startswith("ThreadPoolExecutor")]
