r"""Stretches of a path by quadratic models of its loss, where stages would be many.

Where data are noisy the curvature of a loss hardly changes along a path, while ``kappa t`` times it goes up to
thousands: ten and more stages a step are then asked for by stability alone. A quadratic model of the loss, with the
Hessian H of some time, is followed by exponentials instead (`exponential`), through several events, without a look at
the rows. Then the true slope is looked at. With ``d`` what it differs by at the end of a stretch of length h, as if
that had grown evenly, coefficients A that move and coordinates j at rest are off by

.. math:: \delta\beta_A = \left(H_{AA} + \frac{2}{\kappa h}\right)^{-1} d_A, \qquad
          \delta z_j = \frac h2 \left(d_j - H_{jA}\, \delta\beta_A\right),

which is exact for what is slow and for what is fast within the stretch, and a rational function in between; for
``d_j`` also counts what it is in the middle. They are put right by this (earlier knots by a share that grows with the
square of the time), and a stretch is short enough if it is little. The next one begins with the true slope, so that
errors of what is fast, as nearly all is late in a path, cannot add up.

Of several outputs each coefficient is a coordinate, and H has a block for each pair of outputs.

H is renewed now and then; in between its scale follows the slopes that are seen. To make it takes about as long as a
number of gradients that is an eighth of that of the columns, so it has to last: stages are watched as they go, models
take over where they would be cheaper (`most_products`), and are given up where they are not.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError

from bregpath import _interrupts
from bregpath._kernels import exponential
from bregpath._kernels.quadratic_model import Model, Part, Stretch, Tools
from bregpath._kernels.records import Knot, Memory, StepError, Steps, System
from bregpath._kernels.reference import round_down
from bregpath._known_to_core import is_known_as
from bregpath._typing import Array
from bregpath.stores import AbstractStore
from bregpath.stores.base import is_one_hot

__all__ = ["Tools", "advance", "given_up", "most_products"]

MAX_COLUMNS, MAX_NUMBERS = 4000, 2**25  # of a model, with all their outputs, and of the columns that it is made of
ROWS = 64  # whose zeros are counted
SHARED = 0.45  # of a product with a dense column alone is one of each of several outputs, which share what is read
SPARSE = 5.0  # numbers of a dense column in the time of one that is stored of a sparse one
# What a unit of log t costs in products with a column: so many models, and more of them where columns are nearly as
# many as rows and explain all, each so much of what the products of all pairs of columns would; exponential steps; and
# stretches with two looks at the rows, and so many numbers beside them.
MODELS, MORE_MODELS, MODEL_SHARE, STEPS_SHARE, STRETCHES, ASIDE = 2.5, 60.0, 0.25, 1.6, 15, 1.2e6
MARGIN, WIDER, LARGE = 1.5, 1.6, 1e6  # by which they must be cheaper than stages; more of so many numbers, to fetch
PATIENCE = 1.0  # units of log t, whose cost models may have spent in advance
GROWTH = 1.5  # of t, for which a model is kept
STALE = 0.05  # of t: an older model that allows shorter stretches only is renewed
FINE = 1e-3  # error of a stretch over the largest one, below which the scale stays: what is seen of it may be rounding
CORRECTION = 0.5  # of what a step may err: the largest correction of a stretch
FIRST_LENGTH, FIRST_TRIAL = 0.05, 0.02  # of t: that of the first stretch, and of its first step
SAFETY, SHORTER, LONGER = 0.8, 0.2, 2.0  # of the next length


class Estimate(NamedTuple):
    """What is made and done costs, in products with a column; and how many stages may take in a unit of log t."""

    model: float
    stretch: float
    most: float


NO_MODELS = Estimate(0.0, 0.0, math.inf)


def most_products(system: System) -> float:
    """Products with a column in a unit of log t, beyond which stages cost more than models; inf if there are none."""
    return _estimated(system).most


def _estimated(system: System) -> Estimate:
    """Found once."""
    if "estimate of models" not in system.cache:
        system.cache["estimate of models"] = _estimate(system)
    return system.cache["estimate of models"]  # type: ignore[no-any-return]


def _estimate(system: System) -> Estimate:
    """The rule does not mention the columns that work: a screened path takes the steps of the unscreened one."""
    problem, store = system.problem, system.problem.store
    (n, p), q = store.shape, problem.offset.shape[1]
    is_plain = is_known_as(system.block, "dense", "csc") and p <= n and p * q <= MAX_COLUMNS
    numbers = _numbers(store, q) if is_plain else math.inf
    has_l1 = is_known_as(problem.penalty, "l1") and not exponential.has_box(problem.penalty)
    has_curvature = store.has_intercepts and not problem.loss.has_domain
    if system.step is not None or not (numbers * p <= MAX_NUMBERS * q and has_l1 and has_curvature):
        return NO_MODELS
    if exponential.has_stiff_intercept(problem):
        return NO_MODELS
    pairs = max(q * (q - 1) / 2, 1.0)  # of outputs, each with a matrix of its own
    model, stretch = 0.5 * pairs * (MODEL_SHARE * n * p * p + ASIDE) / numbers, 4 * p + ASIDE / numbers
    models = (MODELS + MORE_MODELS * (p / n) ** 2) * model
    margin = MARGIN * (WIDER if n * p > LARGE else 1.0)
    return Estimate(model, stretch, margin * (models + STEPS_SHARE * (p * q) ** 3 / numbers + STRETCHES * stretch))


def _numbers(store: AbstractStore, q: int) -> float:
    """About how many a product of q outputs passes over, however X is stored; inf where many rows are alike.

    Stages pass over the different ones only, and of one-hot data these are few.
    """
    n, p = store.shape
    filled = store.filled(np.arange(ROWS) * n // ROWS)
    if filled is None or (filled.mean() <= 0.5 * p and is_one_hot(filled)):
        return math.inf
    return n * q * min(SHARED if q > 1 else 1.0, SPARSE * float(filled.mean()) / p)


def given_up(memory: Memory) -> Memory:
    """What is remembered where stages go on for good, because models are no good."""
    return replace(memory, is_stiff=False, quadratic=None, watched_t=math.inf)


@dataclass(frozen=True)
class Remembered:
    """What stretches remember of each other."""

    eta: Array  # predictor at which the curvature was taken ...
    t: float  # ... and its time
    scale: float  # of the curvature by now
    length: float  # proposed for the next stretch
    trial: float  # the same for its first step
    stages: float  # what these cost in a unit of log t
    since: float  # time from which on ...
    spent: float = 0.0  # ... so much has been spent, as an `Estimate` counts

    @classmethod
    def at(cls, t: float, memory: Memory) -> Remembered:
        """Before the first stretch."""
        stages = memory.watched_products / math.log(t / memory.watched_t)
        return cls(np.zeros(0), 0.0, 0.0, round_down(FIRST_LENGTH * t), FIRST_TRIAL * t, stages, t)

    def may_go_on(self, t: float) -> bool:
        """Whether models have not cost more than stages would."""
        return self.spent <= self.stages * (PATIENCE + math.log(t / self.since))


def advance(
    system: System, knot: Knot, memory: Memory, until: float, max_steps: int, tools: Tools
) -> Steps | None:
    """Stretches from ``knot`` until one reaches ``until`` or ``max_steps`` knots are there; None if there is none."""
    parts, memories, interrupted = [Part.of(knot)], [memory], False
    while knot.t < until and sum(len(part.t) for part in parts) <= max_steps:
        try:
            _interrupts.check()
            after = _stretch(system, knot, memory, tools)
        except KeyboardInterrupt:
            if len(parts) == 1:
                raise
            interrupted = True
            break
        if after is None:
            break  # the next call will find so too
        part, knot, memory = after
        parts.append(part)
        memories.append(memory)
    if len(parts) == 1:
        return None
    cuts = np.cumsum([len(part.t) for part in parts]) - 1
    whole = Part.joined(parts)

    def remember(k: int) -> Memory:
        return memories[int(np.searchsorted(cuts, k))]

    return Steps(
        system.columns,
        **whole._asdict(),
        R=knot.R[None],  # of a system of all columns nobody asks for it
        residual=knot.residual[None],
        reach=np.zeros(len(whole.t)),
        memory=remember,
        interrupted=interrupted,
        cuts=cuts,
    )


def _stretch(system: System, knot: Knot, memory: Memory, tools: Tools) -> tuple[Part, Knot, Memory] | None:
    """One stretch, as long as the tolerance allows; None where no model lasts for a while."""
    kept = memory.quadratic or Remembered.at(knot.t, memory)
    if knot.t > GROWTH * kept.since:
        kept = replace(kept, since=knot.t, spent=0.0)
    while kept.may_go_on(knot.t):
        try:
            if knot.t > GROWTH * kept.t:
                kept, memory = _renewed(system, knot, kept, memory, tools)
            model = _model_of(system, kept, tools)
            steps = model.follow(knot, kept.scale, kept.length, kept.trial)
            stretch = Stretch(system, knot, model, kept.scale, steps)
        except (StepError, LinAlgError):
            return None
        error, h, is_old = stretch.error(CORRECTION * system.tol), stretch.length, kept.t < knot.t
        memory = _counted(memory, stretch)
        kept = replace(kept, spent=kept.spent + _estimated(system).stretch)
        length = h * min(LONGER, max(SHORTER, SAFETY * error**-0.5)) if error > 0 else LONGER * h
        if error <= 1.0:
            trial = steps.memory(len(steps)).h / kept.scale
            scale = stretch.rescaled() if error > FINE else kept.scale
            kept = replace(kept, scale=scale, length=round_down(length), trial=trial)
            return stretch.part, stretch.end, replace(memory, quadratic=kept)
        if is_old and h < STALE * knot.t:
            kept, memory = _renewed(system, knot, kept, memory, tools)
        else:
            scale = stretch.rescaled() if is_old and math.isfinite(error) else kept.scale
            kept = replace(kept, length=round_down(min(length, SAFETY * h)), scale=scale)
    return None


def _renewed(
    system: System, knot: Knot, kept: Remembered, memory: Memory, tools: Tools
) -> tuple[Remembered, Memory]:
    """A model at this knot."""
    problem, (p, q) = system.problem, knot.z.shape
    eta = problem.predictor(system.block, knot.alpha, system.penalty.primal(knot.z, problem.kappa))
    kept = replace(kept, eta=eta, t=knot.t, spent=kept.spent + _estimated(system).model)
    memory = replace(memory, models=memory.models + 1, products=memory.products + (q + 1) * p * (p + 1) // 4)
    return replace(kept, scale=_model_of(system, kept, tools).scale), memory


def _model_of(system: System, kept: Remembered, tools: Tools) -> Model:
    """That of some time, made once as long as it is the last one."""
    known = system.cache.get("quadratic")
    if known is None or known[0] is not kept.eta:
        known = system.cache["quadratic"] = kept.eta, Model(system, kept.eta, tools)
    return known[1]  # type: ignore[no-any-return]


def _counted(memory: Memory, stretch: Stretch) -> Memory:
    """What the stretch has cost, its second look at the rows included."""
    made = stretch.steps.memory(len(stretch.steps))
    moving = int(np.count_nonzero(stretch.moves.any(axis=1)))
    products = memory.products + made.products // stretch.moves.shape[1] + 2 * (len(stretch.knot.z) + moving)
    return replace(memory, gradients=memory.gradients + made.gradients + 2, products=products)
