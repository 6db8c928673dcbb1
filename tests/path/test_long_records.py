"""Records so long that of earlier knots only what moves is kept."""

from __future__ import annotations

import pickle
from pathlib import Path as File
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import bregpath
from bregpath import load_path
from bregpath.flow import era, screened, trajectory
from bregpath.flow.trajectory import ERA_SHARE
from tests.helpers import ALL_LOSSES, GROUPS, make_data, trace
from tests.saved_paths import read, write

TOL = 0.01
KINDS: dict[str, dict[str, Any]] = {
    **{loss: {"loss": loss} for loss in ALL_LOSSES},
    "groups": {"loss": "logistic", "penalty": "group", "groups": GROUPS},
    "limits": {"lower": 0.0, "upper": 0.7},
    "free columns": {"loss": "logistic", "penalty_factor": np.arange(10) % 4 != 0},
    "small kappa": {"kappa": 0.3},
    "inverse scale space": {"flow": "giss"},
    "fixed steps": {"step": 0.003, "t_ratio": 10.0},
    "linear mean": {"average": "linear"},
    "uniform mean of another": {"average": "uniform", "loss": "logistic"},
    "mean of events": {"average": "uniform", "flow": "giss"},
}


@pytest.fixture(name="blocks", autouse=True)
def several_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(screened, "BLOCK_NUMBERS", 0)
    monkeypatch.setattr(screened, "BLOCK_STEPS", 2)


@pytest.fixture(name="long")
def every_record_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectory, "MOST_BYTES", -1)
    monkeypatch.setattr(trajectory, "ERA_NUMBERS", 40)  # a few knots at once
    monkeypatch.setattr(era, "MOST_BYTES", 100)  # several eras


def both(kind: str, request: pytest.FixtureRequest, **options: Any) -> tuple[bregpath.Path, bregpath.Path]:
    """A path with a record of all knots, and the same with a long record."""
    arguments = {"loss": "gaussian", **KINDS[kind], **options}
    X, y = make_data(arguments["loss"])
    whole = trace(X, y, **arguments)
    request.getfixturevalue("long")
    return whole, trace(X, y, **arguments)


def dense(path: bregpath.Path, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Intercepts, and coefficients of all columns, in the units in which they are traced."""
    intercept, columns, values = path.trajectory.read(t * path.units.y_unit)
    out = np.zeros((len(t), path.n_features, path.n_outputs))
    out[:, columns] = values
    return intercept, out


def error(path: bregpath.Path, whole: bregpath.Path, t: np.ndarray) -> float:
    """Largest distance of coefficients, in shares of what eras may err; no support differs."""
    (_, mine), (_, theirs) = dense(path, t), dense(whole, t)
    assert_array_equal(mine != 0, theirs != 0)
    return float(np.abs(mine - theirs).max() / (ERA_SHARE * path.trajectory.tol * np.abs(theirs).max()))


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_read_as_the_whole_one(kind: str, request: pytest.FixtureRequest, rng: np.random.Generator) -> None:
    whole, path = both(kind, request)
    record = path.trajectory
    assert len(record.closed().eras) > 1 and len(record.chunks) == 1 and not whole.trajectory.eras
    some = np.exp(rng.uniform(*np.log(path.t[[0, -1]]), 400))
    t = np.unique(np.concatenate([whole.t, some, *(part.t / path.units.y_unit for part in record.parts)]))
    t = t[(t >= path.t[0]) & (t <= path.t[-1])]
    assert error(path, whole, t) <= 1.5
    assert path.kappa == np.inf or error(path, whole, t) > 0  # few jumps are as few points
    for name in ("t", "result", "event_times", "entry_times", "exit_times"):
        assert_array_equal(getattr(path, name), getattr(whole, name))
    assert path.stats.steps == whole.stats.steps
    assert_allclose(path.deviance, whole.deviance, rtol=0, atol=1e-3 * whole.null_deviance)
    (mine, _), (theirs, coef) = dense(path, t), dense(whole, t)
    assert_allclose(mine, theirs, rtol=0, atol=1.5 * ERA_SHARE * TOL * np.abs(coef).max())


@pytest.mark.parametrize("kind", ["gaussian", "logistic", "inverse scale space", "linear mean", "groups"])
def test_it_goes_on(kind: str, request: pytest.FixtureRequest) -> None:
    whole, path = both(kind, request, t_ratio=40.0, saturation=None)
    before = dense(path, path.t)
    one, other = path.extend(2 * path.t[-1]), path.extend(2 * path.t[-1])
    assert error(one, whole.extend(2 * whole.t[-1]), one.t) <= 1.5
    assert_array_equal(one.coef, other.coef)
    for now, then in zip(dense(path, path.t), before, strict=True):  # it was not changed
        assert_array_equal(now, then)


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_kept(kind: str, request: pytest.FixtureRequest, tmp_path: File) -> None:
    whole, path = both(kind, request)
    path.save(tmp_path / "path.npz")
    t = np.geomspace(path.t[0], path.t[-1], 300)
    for again in (load_path(tmp_path / "path.npz"), pickle.loads(pickle.dumps(path))):
        assert len(again.trajectory.eras) == len(path.trajectory.closed().eras) or again.trajectory.opened is not None
        for mine, theirs in zip(dense(again, t), dense(path, t), strict=True):
            assert_array_equal(mine, theirs)
        for name in ("coef", "intercept", "deviance", "entry_times", "exit_times"):
            assert_array_equal(getattr(again, name), getattr(path, name))
        again.save(tmp_path / "again.npz")
        assert (tmp_path / "again.npz").stat().st_size == (tmp_path / "path.npz").stat().st_size


def test_a_mean_knows_its_plain_path(request: pytest.FixtureRequest) -> None:
    whole, path = both("linear mean", request)
    plain = path.trajectory.plain
    assert plain.average is None and plain.closed().eras
    alpha, columns, beta = plain.read(path.t)
    theirs = whole.trajectory.plain.read(path.t)
    assert_array_equal(columns, theirs[1])
    assert_allclose(beta, theirs[2], rtol=0, atol=1.5 * ERA_SHARE * TOL * np.abs(theirs[2]).max())
    assert_allclose(alpha, theirs[0], rtol=0, atol=1.5 * ERA_SHARE * TOL * np.abs(theirs[2]).max())


def test_it_takes_less_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coefficient that hardly moves needs few points: a record does not grow with the steps of the others."""
    monkeypatch.setattr(trajectory, "MOST_BYTES", -1)
    data = bregpath.datasets.make_linear(400, 300, 40, seed=0)
    # Groups of one column move as these would alone, in many steps: no model of the loss takes their place.
    path = bregpath.trace_path(data.X, data.y, loss="huber", t_ratio=100.0, penalty="group", groups=range(300))
    assert path.stats.models == 0
    knots = sum(len(part.t) - 1 for part in path.trajectory.parts)
    whole = 16 * knots * len(path.trajectory.order)
    assert path.trajectory.closed().size < 0.2 * whole


def test_ordinary_records_are_whole() -> None:
    X, y = make_data("logistic")
    path = trace(X, y, loss="logistic")
    assert len(path.trajectory.chunks) > 2
    assert not path.trajectory.eras and path.trajectory.opened is None


def test_graphs(request: pytest.FixtureRequest) -> None:
    X = bregpath.datasets.make_ising_grid(3, T=2.0, n=200, seed=0).X
    whole = bregpath.IsingGraph(t_ratio=20.0).fit(X).path_.path
    request.getfixturevalue("long")
    path = bregpath.IsingGraph(t_ratio=20.0).fit(X).path_.path
    assert path.trajectory.closed().eras
    assert error(path, whole, np.geomspace(path.t[0], path.t[-1], 500)) <= 1.5
    assert_array_equal(path.event_times, whole.event_times)


# --- files that contradict themselves ------------------------------------------------------------------------


def _moved(name: str, where: Any, by: Any) -> Any:
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][where] += by

    return change


def _cut(name: str) -> Any:
    return lambda arrays: arrays.update({name: arrays[name][:-1]})


CONTRADICTIONS = {
    "knots": (_moved("era_t", 3, 1e3), "knots of an era out of order|do not join"),
    "joint": (_moved("era_t", -1, 1e-9), "eras that do not join"),
    "trust": (_moved("era_trust", 0, 1.0), "count for more than their step"),
    "start": (_moved("era_alpha_value", 0, 0.1), "an era that starts elsewhere"),
    "overlap": (_moved("era_z_starts", 1, 10**6), "overlap"),
    "points": (_moved("era_z_row", 0, 10**6), "points of an era out of order"),
    "bends": (_moved("era_z_bends", 0, 10**9), "steps of an era out of order"),
    "short": (_cut("era_z_value"), "shorter|another length"),
    "shape": (_moved("era_shapes", (0, 0), -(10**3)), "odd shapes|an era of"),
    "columns": (_moved("era_shapes", (0, 1), 10**6), "shorter"),
    "events": (_moved("located", (0, 1), 1.0), "events that the eras do not show"),
    "directions": (_moved("located", (1, 2), -1.0), "events that the eras do not show"),
    "lacking": (lambda arrays: arrays.pop("era_t"), "arrays that lack"),
}


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_files_that_contradict_themselves(what: str, long: None, tmp_path: File) -> None:
    X, y = make_data("gaussian")
    file, (change, text) = tmp_path / "path.npz", CONTRADICTIONS[what]
    trace(X, y).save(file)
    arrays, header = read(file)
    change(arrays)
    write(file, arrays, header)
    with pytest.raises(ValueError, match=rf"Found .*({text})"):
        load_path(file)
