"""Files whose parts contradict each other, written without a digest, as the first version of the format was."""

from __future__ import annotations

import pathlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import bregpath
from bregpath import load_path
from tests.saved_paths import NAMES, Content, assert_same, read, trace, write


@pytest.fixture(scope="module", name="paths")
def trace_all() -> dict[str, bregpath.Path]:
    return {name: trace(name) for name in NAMES}


def put(name: str, where: Any, value: Any) -> Callable[[dict[str, np.ndarray], Content], None]:
    def change(arrays: dict[str, np.ndarray], header: Content) -> None:
        arrays[name] = arrays[name].copy()
        arrays[name][where] = value

    return change


def array(name: str, make: Callable[[np.ndarray], Any]) -> Callable[[dict[str, np.ndarray], Content], None]:
    return lambda arrays, header: arrays.update({name: make(arrays[name])})


def head(**news: Any) -> Callable[[dict[str, np.ndarray], Content], None]:
    return lambda arrays, header: header.update(news)


def inside(part: str, **news: Any) -> Callable[[dict[str, np.ndarray], Content], None]:
    return lambda arrays, header: header[part].update(news)


def pop(part: str, key: str) -> Callable[[dict[str, np.ndarray], Content], None]:
    return lambda arrays, header: header[part].pop(key)


CONTRADICTIONS = {
    "times decrease": ("plain", put("t", -1, 1e-3), "increasing"),
    "times repeat": ("plain", put("t", 1, 0.0), "increasing"),
    "negative time": ("plain", put("t", 0, -1.0), "increasing"),
    "no times": ("plain", array("t", lambda t: t[:0]), "increasing"),
    "times beyond the end": ("plain", array("t", lambda t: 3 * t), "beyond the last knot"),
    "time NaN": ("plain", put("t", 2, np.nan), "`t` with NaN"),
    "deviances of other times": ("plain", array("deviance", lambda d: d[:-1]), "deviances at"),
    "deviance NaN": ("plain", put("deviance", 0, np.nan), "`deviance` with NaN"),
    "null deviance inf": ("plain", array("null_deviance", lambda d: d + np.inf), "`null_deviance` with NaN"),
    "kappa zero": ("plain", array("kappa", lambda k: 0 * k), "`kappa` that is not positive"),
    "kappa a list": ("plain", array("kappa", lambda k: k.reshape(1)), "`kappa` of shape"),
    "kappa a whole number": ("plain", array("kappa", lambda k: np.int64(k)), "`kappa` of dtype"),
    "order repeats": ("plain", array("order", lambda o: np.where(o == o[1], o[0], o)), "impossible `order`"),
    "order out of range": ("plain", put("order", 0, 6), "impossible `order`"),
    "order negative": ("plain", put("order", 0, -1), "impossible `order`"),
    "order of floats": ("plain", array("order", lambda o: o.astype(float)), "`order` of dtype"),
    "order too short": ("plain", array("order", lambda o: o[:-1]), "columns, of which `order`"),
    "order swapped": ("plain", array("order", lambda o: o[::-1]), "events"),
    "event of an unknown column": ("plain", put("events", (0, 0), 77), "an event of column 77"),
    "event in no chunk": ("plain", put("events", (0, 1), 99), "of chunk 99"),
    "event in a negative chunk": ("plain", put("events", (0, 1), -1), "of chunk -1"),
    "event in no row": ("plain", put("events", (0, 2), 10**6), "at row 1000000"),
    "event elsewhere": ("plain", put("events", (1, 2), 0), "events that the knots do not show"),
    "event neither way": ("plain", put("events", (0, 3), 2), "odd events"),
    "event the other way": ("plain", put("events", (0, 3), 0), "events that the knots do not show"),
    "event twice": ("plain", array("events", lambda e: np.vstack([e, e[:1]])), "events that the knots do not show"),
    "event missing": ("plain", array("events", lambda e: e[1:]), "events that the knots do not show"),
    "events of another width": ("plain", array("events", lambda e: e[:, :3]), "`events` of shape"),
    "located column": ("plain", array("located", lambda _: np.array([[9.0, 1.0, 1.0]])), "an event of column 9"),
    "located time": ("plain", array("located", lambda _: np.array([[0.0, -1.0, 1.0]])), "an event of column 0"),
    "another first time": ("plain", put("chunk_t", 0, 1e-9), "a first knot that was not reached in its time"),
    "knots out of order": ("plain", array("chunk_t", lambda t: t[::-1]), "knots out of order"),
    "first intercept": ("plain", put("chunk_alpha", 0, 5.0), "not the null model"),
    "knot NaN": ("plain", put("chunk_z", 3, np.nan), "`chunk_z` with NaN"),
    "slope inf": ("plain", put("chunk_slope", 3, np.inf), "`chunk_slope` with NaN"),
    "knots that moved": ("plain", array("chunk_z", lambda z: 1.01 * z), "not reached in its time"),
    "chunk of one knot": ("plain", put("chunk_shapes", (0, 0), 1), "fewer than two knots"),
    "chunk of negative size": ("plain", put("chunk_shapes", (0, 1), -1), "of no size"),
    "chunk too large": ("plain", put("chunk_shapes", (0, 0), 2**62), "of length"),
    "chunk too wide": ("plain", put("chunk_shapes", (0, 1), 2**62), "of length"),
    "coefficients flat": ("plain", array("beta_null", lambda b: b[:, 0]), "`beta_null` of shape"),
    "more coefficients": ("plain", array("beta_null", lambda b: np.vstack([b, b])), "of shape"),
    "null model of penalised columns": ("plain", put("beta_null", 2, 1.0), "penalised coefficients in the null"),
    "negative weights": ("plain", put("weights", 0, -1.0), "negative `weights`"),
    "weights NaN": ("plain", put("weights", 0, np.nan), "`weights` with NaN"),
    "limits that exclude zero": ("plain", put("lower", 0, 0.5), "wrong side of zero"),
    "scale zero": ("plain", put("scale", 0, 0.0), "`scale` that is not positive"),
    "scale of other columns": ("plain", array("scale", lambda s: s[:-1]), "`scale` of shape"),
    "center of other columns": ("plain", array("center", lambda c: np.append(c, 0)), "`center` of shape"),
    "unit negative": ("plain", array("y_unit", lambda u: -u), "`y_unit` that is not positive"),
    "unknown array": ("plain", lambda arrays, header: arrays.update(more=np.ones(2)), "unknown: .'more'"),
    "missing array": ("plain", lambda arrays, header: arrays.pop("upper"), "unknown: .'upper'"),
    "degree": ("plain", head(degree=2), "`degree`=2"),
    "result": ("plain", head(result="FINE"), "`result`='FINE'"),
    "at rest with steps": ("plain", head(result="AT_REST"), "at rest"),
    "penalty": ("plain", head(penalty={"kind": "ridge"}), "ridge"),
    "groups without labels": ("plain", head(penalty={"kind": "group"}), "unknown: .'groups'"),
    "stats negative": ("plain", inside("stats", steps=-3), "steps=-3"),
    "stats of half a step": ("plain", inside("stats", steps=1.5), "steps=1.5"),
    "stats unknown": ("plain", inside("stats", hours=1), "unknown `stats`"),
    "stats NaN": ("plain", inside("stats", seconds=float("nan")), "seconds=nan"),
    "encoder of other columns": (
        "plain",
        head(encoder={"columns": [{"name": "a", "levels": None}]}),
        "an `encoder` of 1 columns",
    ),
    "encoder of numbers": (
        "plain",
        head(encoder={"columns": [{"name": 1, "levels": None}] * 6}),
        "columns of the `encoder` that are not text",
    ),
    "encoder of equal names": (
        "plain",
        head(encoder={"columns": [{"name": "a", "levels": None}] * 6}),
        "columns of the `encoder` that are the same",
    ),
    "encoder without levels": ("plain", head(encoder={"columns": [{"name": "a"}] * 6}), "unknown parts"),
    "encoder without columns": ("plain", head(encoder={}), "an `encoder` without columns"),
    "encoder of something else": ("plain", head(encoder=[1]), "an `encoder` without columns"),
    "loss of graphs": ("plain", head(loss={"name": "ising-composite", "n_outputs": 1}), "not for such a path"),
    "loss without classes": ("plain", head(loss={"name": "logistic", "classes": None}), "other classes"),
    "loss with unknown options": ("plain", head(loss={"name": "gaussian", "threshold": 1.0}), "TypeError"),
    "threshold negative": ("groups", inside("loss", threshold=-1.0), "threshold"),
    "too few classes": (
        "classes",
        inside("loss", classes={"values": ["a", "b"], "dtype": "<U1"}),
        "other classes|outputs|intercepts",
    ),
    "classes that are cut": ("classes", inside("loss", classes={"values": ["ab", "b", "c"], "dtype": "<U1"}), "labels"),
    "classes that repeat": ("classes", inside("loss", classes={"values": ["a", "a", "c"], "dtype": "<U1"}), "labels"),
    "classes that take much room": (
        "classes",
        inside("loss", classes={"values": ["a", "b", "c"], "dtype": "<U536870911"}),
        "labels of dtype",
    ),
    "groups with holes": ("groups", array("groups", lambda g: 2 * g), "not numbered from 0"),
    "groups too short": ("groups", array("groups", lambda g: g[:-1]), "`groups` of shape"),
    "a group half free": ("groups", put("weights", 1, 1.0), "penalised coefficients in the null"),
    "free columns elsewhere": ("groups", array("beta_null", lambda b: 2 * b), "start elsewhere"),
    "another node": ("ising", inside("layout", names=["a", "b", "c"]), "`levels`|fields"),
    "nodes with equal names": ("ising", inside("layout", names=["a", "b", "c", "a"]), "nodes that are the same"),
    "nodes that are numbers": ("ising", inside("layout", names=[1, 2, 3, 4]), "nodes that are not text"),
    "unknown rule": ("ising", inside("layout", rule="xor"), "`rule`='xor'"),
    "fields that are a number": ("ising", inside("layout", fit_fields=1), "`fit_fields`=1"),
    "another loss of the layout": ("ising", inside("layout", loss="nodewise"), "coefficients"),
    "layout of unknown kind": ("ising", inside("layout", kind="tree"), "unknown kind"),
    "layout with more": ("ising", inside("layout", colour="red"), "colour"),
    "layout without rule": ("potts", pop("layout", "levels"), "`levels`"),
    "another penalty of the layout": ("potts", inside("layout", penalty="ridge"), "`penalty`='ridge'"),
    "other couplings": ("potts", inside("layout", couplings="diagonal"), "coefficients"),
    "reduced": ("potts", inside("layout", parameters_are="reduced"), "coefficients"),
    "states of the loss": ("potts", inside("loss", n_states=[3, 3, 3, 4]), "another size"),
    "negative states": ("potts", inside("loss", n_states=[3, 3, 9, -3]), "another size"),
    "scale of a node": ("gaussian graph", put("scale", 0, -1.0), "`scale` that is not positive"),
    "means of other nodes": ("gaussian graph", array("mean", lambda m: m[:-1]), "shapes"),
    "mean NaN": ("gaussian graph", put("mean", 0, np.nan), "`mean` with NaN"),
}


@pytest.mark.parametrize(("name", "change", "text"), CONTRADICTIONS.values(), ids=CONTRADICTIONS.keys())
def test_contradictions(
    name: str, change: Any, text: str, paths: dict[str, bregpath.Path], tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "path.npz"
    paths[name].save(file)
    arrays, header = read(file)
    shift = arrays.pop("shift", None)
    header.pop("digest")
    header["version"] = 1
    write(file, arrays, header)
    assert_array_equal(load_path(file).coef, paths[name].coef)  # as an older version would have written it
    assert shift is None or name in ("plain", "groups", "classes")
    change(arrays, header)
    write(file, arrays, header)
    with pytest.raises(ValueError, match=rf"path\.npz' is not a path saved.* damaged .* Found .*({text})"):
        load_path(file)


def test_chunks_join(paths: dict[str, bregpath.Path], tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("BLOCK_NUMBERS", 0), ("BLOCK_STEPS", 4)):  # several chunks
        monkeypatch.setattr(f"bregpath.flow.screened.{name}", size)
    path, file = trace("plain"), tmp_path / "path.npz"
    assert len(path.trajectory.chunks) > 2
    path.save(file)
    assert_same(load_path(file), path)
    arrays, header = read(file)
    header.update(version=1)
    header.pop("digest")
    arrays.pop("shift")
    second = arrays["chunk_shapes"][0, 0]
    for name in ("chunk_alpha", "chunk_t"):
        changed = {**arrays, name: arrays[name].copy()}
        changed[name][second] += 1e-9
        write(file, changed, header)
        with pytest.raises(ValueError, match="chunks that do not join"):
            load_path(file)
