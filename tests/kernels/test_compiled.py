"""The compiled core against the NumPy reference, its oracle: the same steps, the same path."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import bregpath
from bregpath import _kernels
from bregpath._kernels.reference import round_down
from bregpath.flow.gram import GramBlock
from bregpath.losses import LOSSES
from bregpath.penalties import PENALTIES
from tests.helpers import make_data

pytestmark = pytest.mark.skipif(not _kernels.has_compiled(), reason="built without the compiled core")


def both(X, y, **options):
    """The same path by either implementation."""
    compiled = bregpath.trace_path(X, y, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_kernels, "_compiled", None)
        reference = bregpath.trace_path(X, y, **options)
    return compiled, reference


def assert_same(compiled, reference):
    assert len(compiled.t) == len(reference.t)
    scale = np.abs(reference.coef).max()
    assert_allclose(compiled.coef, reference.coef, rtol=0, atol=1e-9 * scale)
    assert_allclose(compiled.intercept, reference.intercept, rtol=0, atol=1e-9 * max(scale, 1))
    assert_allclose(compiled.entry_times, reference.entry_times, rtol=1e-8)
    assert_allclose(compiled.deviance, reference.deviance, rtol=1e-8, atol=1e-12)


@pytest.fixture(params=["whole", "screened"])
def size(request):
    """Small designs work as a whole; made to look large they are screened."""
    if request.param == "screened":
        request.getfixturevalue("always_screen")
    return request.param


@pytest.fixture
def no_gram(monkeypatch):
    """Squared loss passes over the rows, too."""
    monkeypatch.setattr(GramBlock, "pays", staticmethod(lambda *_: False))
    monkeypatch.setattr(GramBlock, "pays_whole", staticmethod(lambda *_: False))


@pytest.mark.parametrize("n_rows", [31, 64, 301])
@pytest.mark.parametrize("q", [3, 4, 5, 9])
def test_outputs_that_share_what_is_read(q, n_rows):
    """However many outputs there are beyond whole lots, and rows beyond whole panels."""
    rng = np.random.default_rng(10 * n_rows + q)
    X, y = rng.standard_normal((n_rows, 12)), np.arange(n_rows) % q
    X[:, 0] += y
    assert_same(*both(X, y, loss="multinomial", t_ratio=8.0, n_times=20))


@pytest.mark.parametrize("h", [0.5, 0.7109375, 3.0, 1e-9])
def test_rounding_does_not_shorten_a_step_of_few_bits(h):
    step = round_down(h)
    assert 0 <= h - step <= h / 64
    assert round_down(step * (1 - 1e-15)) == round_down(step * (1 + 1e-15)) == step


@pytest.mark.parametrize("step", ["adaptive", 0.02])
@pytest.mark.parametrize("penalty", sorted(PENALTIES))
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_equals_reference(loss, penalty, step, size):
    X, y = make_data(loss)
    options = dict(loss=loss, penalty=penalty, step=step, t_ratio=10.0, n_times=30, kappa=5.0, standardize="X")
    if penalty != "l1":
        options["groups"] = np.arange(X.shape[1]) // 3
    if loss == "poisson" and step != "adaptive":
        options["step"] = 0.002
    assert_same(*both(X, y, **options))


@pytest.mark.parametrize("classes", [8, 13])
def test_many_classes(classes, size):
    """The predictors of so many outputs are computed together."""
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(203, 21))
    y = np.argmax(X @ rng.normal(size=(21, classes)) + rng.gumbel(size=(203, classes)), axis=1)
    assert_same(*both(X, y, loss="multinomial", t_ratio=10.0, n_times=30))


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_sparse_weighted_with_offset_and_limits(loss, size):
    X, y = make_data(loss)
    rng = np.random.default_rng(3)
    thin = sp.csc_array(np.where(rng.random(X.shape) < 0.4, X, 0.0))
    q = bregpath.trace_path(X, y, loss=loss, t_ratio=2.0).n_outputs
    offset = 0.1 * rng.standard_normal((len(y), q) if q > 1 else len(y))
    factor = np.ones(X.shape[1])
    factor[0], factor[1] = 0.0, np.inf
    lower = np.full(X.shape[1], -np.inf)
    lower[2] = 0.0
    options = dict(sample_weight=rng.random(len(y)) + 0.5, offset=offset, penalty_factor=factor, lower=lower)
    assert_same(*both(thin, y, loss=loss, t_ratio=10.0, n_times=30, **options))


@pytest.mark.usefixtures("no_gram")
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_sparse_indicators(loss, size):
    """Columns that store one number, of which the core reads the rows alone, next to others and to an empty one.

    Of indicators of most rows it reads those that are not stored.
    """
    X, y = make_data(loss)
    for first, share in ((0, 0.3), (2, 0.7)):
        X[:, first::4] = 2.5 * (X[:, first::4] > np.quantile(X[:, first::4], share, axis=0))
    X[:, 5] = 0.0
    compiled, reference = both(sp.csc_array(X), y, loss=loss, t_ratio=10.0, n_times=30)
    assert_same(compiled, reference)
    support = compiled.support(compiled.t[-1])
    assert {0, 2} < set(support % 4)


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_box_limits_inside_groups(loss, size):
    X, y = make_data(loss)
    lower, upper = np.full(X.shape[1], -0.2), np.full(X.shape[1], 0.3)
    lower[0], upper[3] = -np.inf, 0.0
    options = dict(penalty="group", groups=np.arange(X.shape[1]) // 3, lower=lower, upper=upper)
    assert_same(*both(X, y, loss=loss, t_ratio=10.0, n_times=20, **options))


@pytest.mark.usefixtures("always_screen")
def test_gram_matrix_of_a_growing_working_set():
    data = bregpath.datasets.make_linear(120, 300, 10, seed=0)
    weights = np.random.default_rng(1).random(120)
    compiled, reference = both(data.X, data.y, sample_weight=weights, t_ratio=20.0)
    assert compiled.stats.working_columns < 300
    assert_same(compiled, reference)


# --- more rows than a block ----------------------------------------------------------------------------------

# The kernels take dense columns by panels of 32 rows, and those of more than 16,384 rows by blocks of 64 to 1,024.
MANY_ROWS = [2_500, 17_000]


@pytest.mark.usefixtures("no_gram")
@pytest.mark.parametrize("n", [31, 32, 33, 97])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_panels_that_are_not_full(loss, n, size):
    X, y = make_data(loss, n=n, p=9)
    weights = np.random.default_rng(n).random(n) + 0.5
    compiled, reference = both(X, y, loss=loss, t_ratio=5.0, n_times=10, sample_weight=weights)
    assert_same(compiled, reference)
    assert len(compiled.support(compiled.t[-1])) >= 2


@pytest.mark.usefixtures("no_gram")
@pytest.mark.parametrize("n", MANY_ROWS)
@pytest.mark.parametrize("form", [np.asfortranarray, sp.csc_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_many_rows(loss, form, n, size):
    X, y = make_data(loss, n=n, p=16)
    rng = np.random.default_rng(3)
    X = form(np.where(rng.random(X.shape) < 0.4, X, 0.0) if form is sp.csc_array else X)
    q = 3 if loss == "multinomial" else 1
    options = dict(sample_weight=rng.random(n) + 0.5, offset=0.1 * rng.standard_normal((n, q)))
    compiled, reference = both(X, y, loss=loss, t_ratio=5.0, n_times=10, **options)
    assert_same(compiled, reference)
    assert len(compiled.support(compiled.t[-1])) >= 2
    assert (compiled.stats.refreshes > 0) == (size == "screened")


@pytest.mark.usefixtures("no_gram")
@pytest.mark.parametrize("n", MANY_ROWS)
@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_many_rows_by_fixed_steps(loss, n):
    X, y = make_data(loss, n=n, p=12)
    t0 = bregpath.trace_path(X, y, loss=loss, t_ratio=1.1, n_times=2).t[0]
    assert_same(*both(X, y, loss=loss, t_ratio=2.0, n_times=5, step=t0 / 100))


@pytest.mark.parametrize("n", MANY_ROWS)
def test_gram_matrix_of_many_rows(n, size):
    X, y = make_data("gaussian", n=n, p=16)
    weights = np.random.default_rng(1).random(n)
    assert_same(*both(X, y, sample_weight=weights, t_ratio=10.0, n_times=10))


@pytest.mark.parametrize("n", [60, 2_500])
def test_user_loss_is_called_back(n, size):
    class Quartic:
        def value(self, eta, y, w):
            return float(np.dot(w, (eta - y) ** 2 / 2 + (eta - y) ** 4 / 4))

        def gradient(self, eta, y, w):
            return w * ((eta - y) + (eta - y) ** 3)

    X, y = make_data("gaussian", n=n)
    assert_same(*both(X, y / np.std(y), loss=Quartic(), t_ratio=10.0, n_times=30))


def test_error_inside_a_user_loss_reaches_the_user():
    class Broken:
        calls = 0

        def value(self, eta, y, w):
            self.calls += 1
            if self.calls > 20:
                raise RuntimeError("no more")
            return float(np.dot(w, (eta - y) ** 2 / 2))

        def gradient(self, eta, y, w):
            return w * (eta - y)

    X, y = make_data("gaussian")
    with pytest.raises(RuntimeError, match="no more"):
        bregpath.trace_path(X, y, loss=Broken())


# --- instruction sets ----------------------------------------------------------------------------------------

LEVELS = ["base", "v3", "v4"]
PATH_OF_A_PROCESS = """
import numpy as np, sys
import bregpath
from bregpath._kernels import implementation
print(implementation())
for make, loss in ((bregpath.datasets.make_logistic, "logistic"), (bregpath.datasets.make_multinomial, "multinomial")):
    data = make(1500, 12, 4, seed=0)
    path = bregpath.trace_path(data.X, data.y, loss=loss, t_ratio=10.0)
    np.save(f"{sys.argv[1]}/{loss}.npy", path.coef)
"""


def run_at(isa, folder):
    """Paths of a fresh process at an instruction set (None: the processor's), and the one that it says it uses."""
    environment = {name: value for name, value in os.environ.items() if name != "BREGPATH_ISA"}
    environment |= {} if isa is None else {"BREGPATH_ISA": isa}
    command = [sys.executable, "-c", PATH_OF_A_PROCESS, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), {file.stem: np.load(file) for file in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def native(tmp_path_factory):
    return run_at(None, tmp_path_factory.mktemp("native"))


@pytest.mark.parametrize("isa", LEVELS)
def test_instruction_sets_agree(isa, native, tmp_path):
    best, expected = native
    found, coef = run_at(isa, tmp_path)
    assert found == min(isa, best, key=LEVELS.index)  # never above the processor's
    assert set(coef) == {"logistic", "multinomial"}
    for loss, values in coef.items():
        assert_allclose(values, expected[loss], rtol=0, atol=1e-9 * np.abs(expected[loss]).max())


def test_unknown_instruction_set_is_refused():
    environment = {**os.environ, "BREGPATH_ISA": "v5"}
    command = [sys.executable, "-c", "import bregpath._kernels as k; print(k.implementation())"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "BREGPATH_ISA must be 'base', 'v3' or 'v4', found 'v5'" in done.stderr
