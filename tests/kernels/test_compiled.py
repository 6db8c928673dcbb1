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
from bregpath.flow import gram
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
def size(request, monkeypatch):
    """Small designs work as a whole; made to look large they are screened."""
    if request.param == "screened":
        monkeypatch.setattr("bregpath.designs.base.WHOLE_BYTES", 0)
        monkeypatch.setattr(gram, "MAX_WHOLE", 0)
    return request.param


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


@pytest.mark.parametrize("loss", sorted(LOSSES))
def test_box_limits_inside_groups(loss, size):
    X, y = make_data(loss)
    lower, upper = np.full(X.shape[1], -0.2), np.full(X.shape[1], 0.3)
    lower[0], upper[3] = -np.inf, 0.0
    options = dict(penalty="group", groups=np.arange(X.shape[1]) // 3, lower=lower, upper=upper)
    assert_same(*both(X, y, loss=loss, t_ratio=10.0, n_times=20, **options))


def test_gram_matrix_of_a_growing_working_set(monkeypatch):
    monkeypatch.setattr("bregpath.designs.base.WHOLE_BYTES", 0)
    monkeypatch.setattr(gram, "MAX_WHOLE", 0)
    data = bregpath.datasets.make_linear(120, 300, 10, seed=0)
    weights = np.random.default_rng(1).random(120)
    compiled, reference = both(data.X, data.y, sample_weight=weights, t_ratio=20.0)
    assert compiled.stats.working_columns < 300
    assert_same(compiled, reference)


def test_user_loss_is_called_back(size):
    class Quartic:
        def value(self, eta, y, w):
            return float(np.dot(w, (eta - y) ** 2 / 2 + (eta - y) ** 4 / 4))

        def gradient(self, eta, y, w):
            return w * ((eta - y) + (eta - y) ** 3)

    X, y = make_data("gaussian")
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


@pytest.mark.parametrize("isa", ["base", "v3"])
def test_lower_instruction_sets_agree(isa):
    code = (
        "import bregpath, bregpath._kernels as k, numpy as np\n"
        "d = bregpath.datasets.make_logistic(90, 12, 4, seed=0)\n"
        "p = bregpath.trace_path(d.X, d.y, loss='logistic', t_ratio=10.0)\n"
        "print(k.implementation(), repr(float(np.abs(p.coef).sum())))"
    )
    environment = {**os.environ, "BREGPATH_ISA": isa}
    out = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    data = bregpath.datasets.make_logistic(90, 12, 4, seed=0)
    path = bregpath.trace_path(data.X, data.y, loss="logistic", t_ratio=10.0)
    assert_allclose(float(out.stdout.split()[1]), np.abs(path.coef).sum(), rtol=1e-9)
