"""What the compiled core reads between knots, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from bregpath import _kernels
from bregpath._kernels import lines
from bregpath._typing import Array
from bregpath.flow.reading import Chunk, CubicOfDual
from bregpath.penalties import build_penalty

pytestmark = pytest.mark.skipif(not _kernels.has_compiled(), reason="built without the compiled core")


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("kappa", [0.1, 30.0])
def test_the_core_reads_what_numpy_reads(
    n_outputs: int, kappa: float, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps far too long for their slopes among them, free columns and excluded ones, and times outside of all."""
    knots, columns, shape = 12, 20, (12, 20, n_outputs)
    order, length = rng.permutation(columns), 10.0 ** rng.uniform(-4, 1, size=(knots, 1, 1))
    factor = np.ones(columns)
    factor[3], factor[7] = 0.0, np.inf
    reading = CubicOfDual(build_penalty("l1", columns, n_outputs, penalty_factor=factor), kappa)
    chunk = Chunk(
        t=np.cumsum(rng.uniform(0.1, 1.0, knots)),
        alpha=rng.normal(size=(knots, n_outputs)),
        alpha_slope=kappa * length[:, :, 0] * rng.normal(size=(knots, n_outputs)),
        z=1.5 * rng.normal(size=shape),
        slope=length * rng.normal(size=shape),
        value=np.sort(rng.uniform(size=knots))[::-1],
    )
    chunk.z[:, order == 3] = 0.0  # free all the same
    times = np.concatenate([chunk.t, rng.uniform(chunk.t[0], chunk.t[-1], 50), chunk.t[[0, -1]] * [0.99, 1.01]])
    steps = np.arange(knots - 1) + np.array([[0], [1]])
    trust = reading._trust(chunk, steps, reading.penalty.take(order), chunk.z[steps], chunk.slope[steps])
    assert trust.min() < 1 == trust.max()
    parts = chunk.t[:-1], chunk.t[1:] - rng.uniform(0.0, 0.1, knots - 1) * [0, *[1] * (knots - 2)]

    def read() -> list[tuple[Array, Array]]:
        models = [reading.between(chunk, order, some) for some in (times, times[:1], times[:0])]
        return [*models, *(m for power in (0.0, 1.0) for m in reading.integrals(chunk, order, *parts, power))]

    fast = read()
    monkeypatch.setattr("bregpath.flow.reading.cubics_of", lambda penalty: None)
    for mine, slow in zip(fast, read(), strict=True):
        assert_allclose(mine[0], slow[0], rtol=0, atol=1e-12 * max(kappa, 1.0))
        assert_allclose(mine[1], slow[1], rtol=0, atol=1e-12 * kappa)


@pytest.mark.parametrize("n_outputs", [1, 3])
def test_the_core_sees_what_changes(n_outputs: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    from bregpath._kernels import compiled_reading

    factor = np.array([1.0, 0.0, np.inf, 2.0, 1.0])
    reading = CubicOfDual(build_penalty("l1", 5, n_outputs, penalty_factor=factor), 10.0)
    room = 2.0 * rng.normal(size=(30, 6, n_outputs))
    room[5, 1], room[7, 0] = 0.0, 1.0  # of a free column, and on a threshold
    some = np.array([4, 1, 0, 2])
    blocks = [(np.arange(5), room[:, :-1]), (some, room[:, some]), (some, room[:1, some]), (some[:0], room[:, :0])]
    for chosen in (np.array([3, 0]), some[:0]):
        assert_array_equal(compiled_reading.take_columns(room[:, :-1], chosen), room[:, chosen])
    with pytest.raises(ValueError, match="a column is out of range"):
        compiled_reading.take_columns(room[:, :-1], np.array([5]))
    fast = [reading.changes(*block) for block in blocks]
    assert len(fast[0][1]) > 20
    monkeypatch.setattr("bregpath.flow.reading.cubics_of", lambda penalty: None)
    assert fast == [reading.changes(*block) for block in blocks]
    with pytest.raises(ValueError, match="`weights` has a wrong shape"):
        compiled_reading.changes(room, np.ones((5, n_outputs)))


def by_curve(points: lines.Points) -> Array:
    """Numbers of points, of the first curve in order of time, of the second, ..."""
    return np.lexsort((np.abs(points.row + 0.5), points.column))


@pytest.mark.parametrize("holds", [False, True])
@pytest.mark.parametrize("is_cubic", [False, True])
def test_the_core_draws_what_numpy_draws(holds: bool, is_cubic: bool, rng: np.random.Generator) -> None:
    """Curves that come to rest and leave it again, some of them steep, in three runs of knots."""
    knots, columns = 90, 40
    t = np.cumsum(rng.uniform(0.1, 1.0, knots))
    rate, phase = rng.uniform(0.02, 0.5, columns), rng.uniform(0, 6, columns)
    value, slope = np.sin(rate * t[:, None] + phase), rate * np.cos(rate * t[:, None] + phase)
    room = np.maximum(np.abs(value) - rng.uniform(0, 0.6, columns), 0.0)
    trust = rng.uniform(0.5, 1.0, knots - 1)
    drawn = []
    for draw in (_kernels.draw, lines.draw):
        state, found = lines.Lines.of(columns, None), []
        for first, end in ((0, 30), (29, 31), (30, 90)):
            part = slice(first, end)
            some = (np.ascontiguousarray(x[part]) for x in (value, slope, room))
            found += draw(lines.Knots(t[part], trust[first : end - 1], *some, 0.02), state, first, holds, is_cubic)
        drawn.append(([lines.joined(found[k::2], width) for k, width in ((0, None), (1, 3))], state))
    for mine, theirs in zip(*(parts for parts, _ in drawn), strict=True):
        assert len(theirs.row) > 0 or holds
        for x, y in zip(mine, theirs, strict=True):
            assert_allclose(x[by_curve(mine)], y[by_curve(theirs)], rtol=0, atol=1e-13)
    for x, y in zip(*(state for _, state in drawn), strict=True):
        assert_allclose(x, y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("limits", [{"lower": 0.0}, {"upper": 0.5}])
def test_the_core_leaves_limits_to_numpy(limits: dict[str, float]) -> None:
    assert _kernels.cubics_of(build_penalty("l1", 2, 1)) is not None
    assert _kernels.cubics_of(build_penalty("l1", 2, 1, **limits)) is None
    assert _kernels.cubics_of(build_penalty("group", 2, 1)) is None
