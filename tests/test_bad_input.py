"""What a user gets wrong, and the sentence that helps."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from bregpath import BregmanClassifier, BregmanRegressor, IsingGraph, Result, cross_validate, trace_path
from tests.helpers import ALL_LOSSES, make_data

X, Y = make_data("gaussian", n=20, p=4)
LABELS = (Y > np.median(Y)).astype(int)
N, P = X.shape


def changed(array: np.ndarray, index, value) -> np.ndarray:
    out = np.array(array, dtype=float)
    out[index] = value
    return out


def damaged(kind: type, part: str, value: int) -> Any:
    """A sparse matrix one of whose indices, or places where columns begin, is another."""
    out = kind(X.copy())
    getattr(out, part)[3] = value
    return out


class OnlyValue:
    def value(self, eta, y, w):
        return 0.0


# Each row: what is passed, the exception, and words of the message.
ERRORS = {
    # X
    "X with NaN": ({"X": changed(X, (3, 2), np.nan)}, ValueError, r"`X` contains NaN or infinity.*column 2"),
    "X with inf": ({"X": changed(X, (3, 0), np.inf)}, ValueError, r"`X` contains NaN or infinity.*column 0"),
    "X with inf and -inf": (
        {"X": changed(X, ([1, 2], [1, 1]), [np.inf, -np.inf])},
        ValueError,
        "`X` contains NaN or infinity",
    ),
    "float32 X with NaN": ({"X": changed(X, (0, 0), np.nan).astype(np.float32)}, ValueError, "`X` contains NaN"),
    "sparse X with NaN": ({"X": sp.csr_array(changed(X, (3, 2), np.nan))}, ValueError, "`X` contains NaN or infinity"),
    "X one-dimensional": ({"X": X[:, 0]}, ValueError, r"`X` must be two-dimensional.*\(20,\).*reshape\(-1, 1\)"),
    "X three-dimensional": ({"X": X[None]}, ValueError, "`X` must be two-dimensional"),
    "X a number": ({"X": 3.0}, ValueError, "`X` must be two-dimensional"),
    "X without rows": ({"X": np.zeros((0, 3)), "y": np.zeros(0)}, ValueError, r"`X` is empty: .*shape=\(0, 3\)"),
    "X without columns": ({"X": np.zeros((20, 0))}, ValueError, r"`X` is empty: .*shape=\(20, 0\)"),
    "X ragged": ({"X": [[1.0, 2.0]] * 19 + [[1.0]]}, ValueError, "`X` has rows of unequal lengths"),
    "X of text": ({"X": np.full((20, 2), "a")}, ValueError, "`X` must hold numbers"),
    "X of objects": ({"X": np.array([[1, "a"]] * 20, dtype=object)}, ValueError, "`X` must hold numbers"),
    "X of None": ({"X": np.full((20, 2), None)}, (TypeError, ValueError), "`X`"),
    "X complex": ({"X": X + 1j}, ValueError, "`X` must hold real numbers"),
    "sparse X complex": ({"X": sp.csc_array(X + 1j)}, TypeError, "`X` must hold real numbers"),
    "column beyond the last": ({"X": damaged(sp.csr_array, "indices", 99)}, ValueError, r"index 99 .*0 to 3.*\(20, 4"),
    "column far beyond": ({"X": damaged(sp.csr_matrix, "indices", 2**31 - 1)}, ValueError, "`X` is a damaged sparse"),
    "column before the first": ({"X": damaged(sp.csr_array, "indices", -1)}, ValueError, "index -1 where 0 to 3"),
    "row beyond the last": ({"X": damaged(sp.csc_array, "indices", 10**9)}, ValueError, "where 0 to 19 are possible"),
    "rows that begin nowhere": ({"X": damaged(sp.csr_array, "indptr", 10**9)}, ValueError, "damaged.*`indptr`"),
    "columns that end nowhere": ({"X": damaged(sp.csc_array, "indptr", -5)}, ValueError, "damaged.*`indptr`"),
    # y
    "y missing": ({"y": None}, ValueError, "`y` is missing"),
    "y too short": ({"y": Y[:-1]}, ValueError, "`X` and `y` differ in length: 20 rows and 19"),
    "y with NaN": ({"y": changed(Y, 4, np.nan)}, ValueError, "y has 1 missing value; drop these rows"),
    "y with inf": ({"y": changed(Y, 4, -np.inf)}, ValueError, "`y` contains NaN or infinity"),
    "y two-dimensional": ({"y": np.ones((20, 2))}, ValueError, r"y must be one-dimensional, but has shape \(20, 2\)"),
    "y a number": ({"y": 3.0}, ValueError, "y must be one-dimensional"),
    "y of text": ({"y": np.array(["a", "b"] * 10)}, ValueError, "`y` must hold numbers.*'a'.*logistic"),
    "one class": ({"y": np.ones(20), "loss": "logistic"}, ValueError, r"one class only \(\[1.0\]\)"),
    "one class of several": ({"y": np.ones(20), "loss": "multinomial"}, ValueError, "one class only"),
    "three classes": ({"y": np.arange(20) % 3, "loss": "logistic"}, ValueError, '3 classes.*loss="multinomial"'),
    "labels with NaN": ({"y": changed(LABELS, 2, np.nan), "loss": "logistic"}, ValueError, "y has 1 missing value"),
    "labels of two types": (
        {"y": np.array(["a", 1] * 10, dtype=object), "loss": "logistic"},
        ValueError,
        "`y` mixes labels of type int and str",
    ),
    "negative counts": ({"y": np.arange(20) - 1, "loss": "poisson"}, ValueError, "non-negative.*-1 in row 0"),
    "no counts": ({"y": np.zeros(20), "loss": "poisson"}, ValueError, "zero in every row"),
    # weights and offset
    "weights too short": (
        {"sample_weight": np.ones(19)},
        ValueError,
        r"`sample_weight` .*20 rows, found shape \(19,\)",
    ),
    "weights all zero": ({"sample_weight": np.zeros(20)}, ValueError, "`sample_weight` is zero everywhere"),
    "weights negative": (
        {"sample_weight": -np.ones(20)},
        ValueError,
        "`sample_weight` must be finite and non-negative",
    ),
    "weights with NaN": (
        {"sample_weight": changed(np.ones(20), 0, np.nan)},
        ValueError,
        "`sample_weight` must be finite",
    ),
    "weights with inf": (
        {"sample_weight": changed(np.ones(20), 0, np.inf)},
        ValueError,
        "`sample_weight` must be finite",
    ),
    "a class without weight": (
        {"y": LABELS, "loss": "logistic", "sample_weight": LABELS},
        ValueError,
        "one class only",
    ),
    "offset too short": ({"offset": np.ones(19)}, ValueError, r"`offset` must have shape \(20,\), found \(19,\)"),
    "offset with NaN": ({"offset": changed(np.ones(20), 0, np.nan)}, ValueError, "`offset` contains NaN"),
    "offset of one class": (
        {"y": np.arange(20) % 3, "loss": "multinomial", "offset": np.ones(20)},
        ValueError,
        r"shape \(20, 3\)",
    ),
    # penalty
    "unknown penalty": ({"penalty": "scad"}, ValueError, "`penalty` must be one of.*found 'scad'"),
    "groups with l1": ({"groups": [0, 0, 1, 1]}, ValueError, '`groups` needs penalty="group"'),
    "groups too short": (
        {"penalty": "group", "groups": [0, 0, 1]},
        ValueError,
        r"`groups` must give one label.* 4 columns",
    ),
    "groups with NaN": ({"penalty": "group", "groups": [0, 0, 1, np.nan]}, ValueError, "`groups` contains NaN"),
    "factor negative": ({"penalty_factor": [1, 1, 1, -1]}, ValueError, "`penalty_factor` must be non-negative"),
    "factor too short": (
        {"penalty_factor": [1, 1]},
        ValueError,
        r"`penalty_factor` must have one entry a column \(4\)",
    ),
    "factor with NaN": ({"penalty_factor": [1, 1, 1, np.nan]}, ValueError, "`penalty_factor`.*not NaN"),
    "lower above zero": ({"lower": 1.0}, ValueError, "`lower` must be <= 0.*zero is where a path starts"),
    "upper below zero": ({"upper": [1, 1, 1, -1]}, ValueError, "`upper` must be >= 0"),
    "limits of wrong length": ({"upper": [1, 1]}, ValueError, r"`upper` must be a number or one number a column \(4\)"),
    # the dynamics
    "unknown loss": ({"loss": "hinge"}, ValueError, "`loss` must be one of.*'gaussian'.*found 'hinge'"),
    "a class for a loss": ({"loss": OnlyValue}, TypeError, r"write OnlyValue\(\)"),
    "a loss without gradient": ({"loss": OnlyValue()}, TypeError, "OnlyValue lacks gradient"),
    "unknown flow": ({"flow": "lars"}, ValueError, "`flow` must be .*found 'lars'"),
    "kappa zero": ({"kappa": 0.0}, ValueError, "`kappa` must be a finite number above 0, found 0.0"),
    "kappa negative": ({"kappa": -1.0}, ValueError, "`kappa` must be a finite number above 0"),
    "kappa beyond digits": ({"kappa": 1e9}, ValueError, r"`kappa`=1e\+09 is beyond 1e\+07.*use `kappa=np.inf`"),
    "kappa minus inf": ({"kappa": -np.inf}, ValueError, "`kappa` must be a finite number"),
    "kappa inf with a step": ({"kappa": np.inf, "step": 0.1}, ValueError, '`step` must be "adaptive"'),
    "kappa of text": ({"kappa": "10"}, TypeError, "`kappa` must be a number, found '10'"),
    "tol zero": ({"tol": 0.0}, ValueError, "`tol` must be a finite number above 0"),
    "tol negative": ({"tol": -0.1}, ValueError, "`tol` must be a finite number above 0"),
    "step of text": ({"step": "auto"}, ValueError, "`step` must be \"adaptive\" or a number, found 'auto'"),
    "step zero": ({"step": 0.0}, ValueError, "`step` must be a finite number above 0"),
    "step negative": ({"step": -1.0}, ValueError, "`step` must be a finite number above 0"),
    "step None": ({"step": None}, TypeError, "`step` must be a number"),
    "standardize of text": ({"standardize": "y"}, ValueError, "`standardize` must be True, \"X\" or False, found 'y'"),
    "standardize None": ({"standardize": None}, ValueError, "`standardize` must be True"),
    # times
    "one time only": ({"n_times": 1}, ValueError, "`n_times` must be a whole number of at least 2, found 1"),
    "half a time": ({"n_times": 2.5}, ValueError, "`n_times` must be a whole number"),
    "t_ratio one": ({"t_ratio": 1.0}, ValueError, "`t_ratio` must be a finite number above 1"),
    "t_ratio negative": ({"t_ratio": -3}, ValueError, "`t_ratio` must be a finite number above 1"),
    "t_ratio NaN": ({"t_ratio": np.nan}, ValueError, "`t_ratio` must be a finite number above 1"),
    "t decreasing": ({"t": [2.0, 1.0]}, ValueError, "`t` must increase strictly.*1 / lambda"),
    "t repeated": ({"t": [1.0, 1.0]}, ValueError, "`t` must increase strictly"),
    "t negative": ({"t": [-1.0, 1.0]}, ValueError, "`t` must be a list of positive, finite times"),
    "t zero": ({"t": [0.0, 1.0]}, ValueError, "`t` must be a list of positive"),
    "t NaN": ({"t": [1.0, np.nan]}, ValueError, "`t` must be a list of positive, finite times"),
    "t empty": ({"t": []}, ValueError, "`t` must be a list of positive"),
    "stop of text": ({"stop": "cv"}, TypeError, "`stop` must be a time, a stop rule such as StopAtVariables"),
}


@pytest.mark.parametrize(("arguments", "error", "text"), ERRORS.values(), ids=ERRORS.keys())
def test_error_helps(arguments: dict, error, text: str) -> None:
    arguments = {"X": X, "y": Y, "t_ratio": 5.0, **arguments}
    with pytest.raises(error, match=text):
        trace_path(arguments.pop("X"), arguments.pop("y"), **arguments)


def test_damaged_matrices_are_refused_wherever_they_are_read() -> None:
    broken = damaged(sp.csr_matrix, "indices", 10**6)
    model = BregmanRegressor().fit(X, Y)
    calls = lambda: BregmanRegressor().fit(broken, Y), lambda: model.predict(broken), lambda: IsingGraph().fit(broken)
    for call in calls:
        with pytest.raises(ValueError, match="`X` is a damaged sparse matrix: it has an index 1000000"):
            call()


@pytest.mark.parametrize("other", [1, None])
def test_a_classifier_names_labels_that_do_not_go_together(other) -> None:
    labels = np.array(["a", other] * 10, dtype=object)
    with pytest.raises(ValueError, match=f"`y` mixes labels of type {type(other).__name__} and str"):
        BregmanClassifier().fit(X, labels)


def test_weights_of_a_regressor_are_checked_before_anything_is_said() -> None:
    with pytest.raises(ValueError, match="`sample_weight` must be finite and non-negative"):
        BregmanRegressor().fit(X, Y, sample_weight=-np.ones(N))


@pytest.mark.parametrize("kappa", [10.0, "cv"])
def test_a_fold_without_counts_is_named(kappa) -> None:
    y = np.r_[np.zeros(N - 1), 5]
    with pytest.raises(ValueError, match=r"`cv`: the training rows of fold \d have no count above zero"):
        cross_validate(X, y, loss="poisson", kappa=kappa)


# --- reading a path ----------------------------------------------------------------------------------------------

PATH_ERRORS = {
    "beyond the end": (
        lambda path: path.at(2 * path.t[-1]),
        ValueError,
        r"beyond the end of the path.*extend\(t_max\)",
    ),
    "support beyond the end": (lambda path: path.support(1e9), ValueError, "beyond the end"),
    "predict beyond the end": (lambda path: path.predict(X, 1e9), ValueError, "beyond the end"),
    "negative time": (lambda path: path.at(-1.0), ValueError, "`t` must be a positive time, found .*-1.0"),
    "time NaN": (lambda path: path.at(np.nan), ValueError, "`t` must be a positive time"),
    "backwards": (lambda path: path.extend(path.t[0]), ValueError, "`t_max` must lie beyond the end"),
    "extend to NaN": (lambda path: path.extend(np.nan), ValueError, "`t_max`"),
    "extend to inf": (lambda path: path.extend(np.inf), ValueError, "`t_max`"),
    "other columns": (
        lambda path: path.predict(X[:, :2], path.t[1]),
        ValueError,
        "`X` has 2 columns, the path was traced on 4",
    ),
    "new X with NaN": (
        lambda path: path.predict(changed(X, (0, 0), np.nan), path.t[1]),
        ValueError,
        "`X` contains NaN",
    ),
    "new X of one row": (lambda path: path.predict(X[0], path.t[1]), ValueError, "`X` must be two-dimensional"),
    "offset of wrong length": (
        lambda path: path.predict(X, path.t[1], offset=[1.0]),
        ValueError,
        "`offset` must have shape",
    ),
}


@pytest.mark.parametrize(("call", "error", "text"), PATH_ERRORS.values(), ids=PATH_ERRORS.keys())
def test_error_of_a_path_helps(call, error: type[Exception], text: str) -> None:
    path = trace_path(X, Y, t_ratio=5.0, n_times=5)
    with pytest.raises(error, match=text):
        call(path)


# --- a step too large --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("standardize", [True, "X", False])
@pytest.mark.parametrize("loss", ALL_LOSSES)
def test_an_unstable_step_names_a_stable_one(loss: str, standardize: bool | str) -> None:
    data, y = make_data(loss, n=50, p=6)
    t0 = trace_path(data, y, loss=loss, standardize=standardize, t_ratio=2.0, n_times=2).t[0]
    times = np.linspace(t0, 10 * t0, 5)
    step, message = 20.0 * t0, ""
    ratios: list[float] = []
    options = {
        "loss": loss,
        "standardize": standardize,
        "t": times,
        "stop": lambda now: bool(ratios.append(now.deviance_ratio)),
    }
    for _ in range(12):  # the largest stable step at that time; later in the path it may be smaller still
        ratios.clear()
        try:
            path = trace_path(data, y, step=step, **options)
            break
        except ValueError as error:
            message = str(error)
        found = re.search(r"`step`=(\S+) is unstable with kappa=10:.*The largest stable step there is (\S+);", message)
        assert found, message
        assert float(found[1]) == pytest.approx(step, rel=1e-4)
        assert float(found[2]) <= step
        step = min(float(found[2]), 0.9 * step)
    else:
        pytest.fail(f"no step was stable: {message}")
    assert message, "the first step was expected to be refused"
    assert np.isfinite(path.coef).all()
    assert np.diff(ratios).min() >= -1e-10  # the loss does not rise


def test_the_named_step_works() -> None:
    """Squared loss, one column: curvature never changes, so the named step is stable for the whole path."""
    data, y = make_data("gaussian", n=50, p=1)
    t0 = trace_path(data, y, t_ratio=2.0, n_times=2).t[0]
    with pytest.raises(ValueError, match="is unstable") as refused:
        trace_path(data, y, step=100 * t0, t_ratio=1000.0)
    largest = float(re.search(r"stable step there is (\S+);", str(refused.value))[1])
    path = trace_path(data, y, step=0.99 * largest, t_ratio=1000.0)
    assert path.result is Result.COMPLETED
    with pytest.raises(ValueError, match="is unstable"):
        trace_path(data, y, step=1.05 * largest, t_ratio=1000.0)
