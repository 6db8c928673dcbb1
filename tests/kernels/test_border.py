"""The border of the compiled core: what does not fit is refused by name, and what it holds can be collected."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from bregpath import _kernels
from bregpath._known_to_core import Kernel

if not _kernels.has_compiled():
    pytest.skip("built without the compiled core", allow_module_level=True)

from bregpath._kernels.compiled import CONSTANTS, NUMBERS  # noqa: E402

N, M = 7, 3
STAGES = {"linear_stages": False, "looks_inside": False}


def whole_arguments():
    """Arguments of a stepper of squared loss."""
    limit = np.full((M, 1), np.inf)
    return {
        "loss": Kernel("gaussian", {}),
        "penalty": Kernel("l1", {"weights": np.ones((M, 1)), "lower": -limit, "upper": limit}),
        "block": Kernel("dense", {"dense": np.asfortranarray(np.arange(N * M, dtype=float).reshape(N, M))}),
        "data": {"y": np.zeros(N), "w": np.full(N, 1 / N), "offset": None},
        "settings": {"kappa": 1.0, "fit_intercept": True, "step": 0.0, "tol": 0.01, **STAGES, **CONSTANTS},
        "check": lambda: None,
    }


def make(**changes):
    from bregpath._kernels import _core

    return _core.Stepper(**whole_arguments() | changes)


def arrays(steps=4):
    columns = dict.fromkeys(("z", "slope"), (steps + 1, M, 1)) | {"direction": (1, M, 1)}
    alphas = dict.fromkeys(("alpha", "alpha_slope", "alpha_direction"), (steps + 1, 1))
    rows = dict.fromkeys(("R", "residual"), (1, N, 1))
    numbers = {"numbers": (len(NUMBERS), steps + 1)}
    return {name: np.zeros(shape) for name, shape in (columns | alphas | numbers | rows).items()}


def test_a_block_without_steps():
    assert make().advance(arrays(), until=0.0, max_steps=4, keep_rows=False) == (0, "", 0.0)


def sparse(**changes):
    numbers = {
        "values": np.ones(4),
        "indices": np.array([0, 1, 2, N - 1], dtype=np.int32),
        "indptr": np.array([0, 1, 2, 4], dtype=np.int64),
        "center": np.zeros(M),
        "scale": np.ones(M),
    }
    return Kernel("csc", numbers | changes)


def penalty(name="l1", **changes):
    return Kernel(name, {**whole_arguments()["penalty"].numbers, **changes})


def data(**changes):
    return {**whole_arguments()["data"], **changes}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"loss": Kernel("quantile", {})}, "loss, penalty or block is unknown"),
        ({"loss": Kernel("huber", {})}, "`huber`: `threshold` is missing"),
        ({"penalty": penalty("elastic")}, "loss, penalty or block is unknown"),
        ({"penalty": penalty(weights=np.ones((M + 1, 1)))}, "`lower` has a wrong shape"),
        ({"penalty": penalty(weights=np.ones((M, 1), dtype=int))}, "`weights` is of a wrong kind"),
        ({"penalty": penalty("group")}, "`group`: `groups` is missing"),
        ({"penalty": penalty("group", groups=np.array([0, 1, -1]))}, "group has a number out of range"),
        ({"block": Kernel("dense", {"dense": np.zeros((N, M), order="C")})}, "`dense` is of a wrong kind"),
        ({"block": Kernel("dense", {"dense": np.zeros((N + 1, M), order="F")})}, "`dense` has a wrong shape"),
        ({"block": Kernel("dense", {"dense": np.zeros((N, M + 1), order="F")})}, "wrong number of columns"),
        ({"block": sparse(values=np.ones(5))}, "`indices` has a wrong shape"),
        ({"block": sparse(indices=np.array([0, 1, 2, N], dtype=np.int32))}, "row of a sparse block is out of range"),
        ({"block": sparse(indptr=np.array([0, 2, 1, 4]))}, "`indptr` is out of range"),
        ({"block": sparse(indptr=np.array([0, 1, 2, 5]))}, "`indptr` is out of range"),
        ({"block": sparse(scale=np.ones(M + 1))}, "`scale` has a wrong shape"),
        ({"data": data(y=np.zeros(N + 1))}, "`y` has a wrong shape"),
        ({"data": data(offset=np.zeros((N, 2)))}, "`offset` has a wrong shape"),
        ({"data": data(y=np.full(N, 1.0)), "loss": Kernel("multinomial", {})}, "class is out of range"),
        ({"settings": {"kappa": 1.0}}, "the settings: `.*` is missing"),
    ],
)
def test_what_does_not_fit_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        make(**changes)


@pytest.mark.parametrize(
    ("places", "changes", "message"),
    [
        ([1, 2, 5], {"y": np.eye(2).ravel()}, "`y` has a wrong shape"),
        ([1, 2, 3], {}, "place out of range"),  # below the diagonal
        ([1, 2, 9], {}, "place out of range"),
        ([1, 2], {}, "`above` has a wrong shape"),
    ],
)
def test_a_precision_matrix_that_does_not_fit_is_refused(places, changes, message):
    block = Kernel("precision", {"n_nodes": 3, "above": np.array(places, dtype=np.int64)})
    with pytest.raises(ValueError, match=message):
        make(loss=Kernel("gaussian-likelihood", {}), block=block, data=data(**{"y": np.eye(3).ravel()} | changes))


WRONG = [("z", (5, M + 1, 1)), ("numbers", (len(NUMBERS), 4)), ("alpha", (5, 2)), ("R", (1, N, 2))]


@pytest.mark.parametrize(("name", "shape"), WRONG)
def test_arrays_of_a_wrong_shape_are_refused(name, shape):
    with pytest.raises(ValueError, match=f"`{name}` has a wrong shape"):
        make().advance(arrays() | {name: np.zeros(shape)}, until=0.0, max_steps=4, keep_rows=False)


def test_a_stepper_in_a_cycle_is_collected():
    class Holder:
        def check(self):
            pass

    holder = Holder()
    holder.stepper = make(check=holder.check)
    gone = weakref.ref(holder)
    del holder
    gc.collect()
    assert gone() is None
