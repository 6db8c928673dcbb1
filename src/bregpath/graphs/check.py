r"""Is a model like the data? Margins, pairs, triplets and the number of active nodes, of data and of samples.

A composite likelihood looks at one node given the others, at states that the data have visited. A mode that the data
never visit costs it nothing, and no score of conditionals shows it; samples of the model do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from bregpath._typing import Array, IntArray, Seed
from bregpath._validation import check_integer
from bregpath.graphs.base_model import DiscreteModel, as_discrete_model
from bregpath.graphs.gibbs import gibbs
from bregpath.graphs.mdc import mdc
from bregpath.graphs.mixing import SampleDiagnostics
from bregpath.graphs.models import IsingModel

__all__ = ["Comparison", "ModelCheck", "check_codes", "check_model"]

MAX_ITEMS = {1: 10**5, 2: 5000, 3: 2000}  # features, pairs, triplets that are compared; drawn where there are more
_REPLICATES = 40
_MIN_RATIO = 1.5  # of a difference and its size by chance, from which it is worth a word


@dataclass(frozen=True, eq=False)
class Comparison:
    """One kind of statistics, of the data and of the model.

    Attributes
    ----------
    name : str
    data, model : ndarray
        One number an item: a mean, a centred moment; of active nodes the share of rows with 0, 1, 2, ... of them.
    items : ndarray of shape (k, order)
        The features each item is about: nodes of an Ising model, states of nodes of a Potts model.
    n_all : int
        How many items there are, of which some were drawn if there are too many.
    difference : float
        Root mean square of data - model; of active nodes the distance of the distributions, in nodes.
    by_chance : ndarray
        The same for samples of the model with as many rows as the data.

    Examples
    --------
    >>> from bregpath.graphs import IsingModel, check_model, enumerate_states
    >>> model = IsingModel([0.3, -0.3], [[0.0, 0.8], [0.8, 0.0]])
    >>> margins = check_model(model, enumerate_states(model).sample(300, seed=0)).margins
    >>> margins.name, margins.items.tolist()
    ('margins', [[0], [1]])
    """

    name: str
    data: Array
    model: Array
    items: IntArray
    n_all: int
    difference: float
    by_chance: Array

    @property
    def ratio(self) -> float:
        """The difference over its mean by chance: about 1 for the true model."""
        chance = float(self.by_chance.mean())
        return self.difference / chance if chance > 0.0 else (np.inf if self.difference > 0.0 else 1.0)

    @property
    def agrees(self) -> bool:
        """Whether chance explains the difference: some sample is as far off, or it is less than 1.5 times the mean."""
        return bool(self.difference <= self.by_chance.max() or self.ratio < _MIN_RATIO)

    @property
    def correlation(self) -> float:
        """Of data and model over the items; nan where either does not vary."""
        a, b = self.data - self.data.mean(), self.model - self.model.mean()
        size = np.sqrt((a @ a) * (b @ b))
        return float(a @ b / size) if size > 0.0 else np.nan


@dataclass(frozen=True, eq=False)
class ModelCheck:
    """Data and samples of a model side by side; printing it shows a table and a verdict.

    Attributes
    ----------
    margins, pairs, triplets, active : Comparison
        Means of single features; their centred second and third moments; the number of active nodes in a row: of an
        Ising model those with their second label, of a Potts model those not in their most frequent state.
    mdc : float
        `bregpath.graphs.mdc` of data and samples. Where events are rare margins alone bring it close to 1; look at
        ``pairs.correlation``, that of centred covariances, beside it.
    n, n_samples : int
        Rows of the data, and of the samples of the model.
    diagnostics : SampleDiagnostics
        How well the sampler mixed.

    Examples
    --------
    >>> from bregpath.graphs import IsingModel, check_model, enumerate_states
    >>> model = IsingModel([0.3, -0.3], [[0.0, 0.8], [0.8, 0.0]])
    >>> check = check_model(model, enumerate_states(model).sample(300, seed=0))
    >>> check.n, len(check.comparisons)
    (300, 4)
    """

    margins: Comparison
    pairs: Comparison
    triplets: Comparison
    active: Comparison
    mdc: float
    n: int
    n_samples: int
    diagnostics: SampleDiagnostics

    @property
    def comparisons(self) -> tuple[Comparison, ...]:
        """All four."""
        return self.margins, self.pairs, self.triplets, self.active

    @property
    def agrees(self) -> bool:
        """Whether chance explains all differences."""
        return all(part.agrees for part in self.comparisons)

    @property
    def mean_active(self) -> tuple[float, float]:
        """Mean number of active nodes in a row: of the data and of the model."""
        count = np.arange(len(self.active.data))
        return float(count @ self.active.data), float(count @ self.active.model)

    @property
    def verdict(self) -> str:
        """What was found, in a sentence."""
        wrong = [part for part in self.comparisons if not part.agrees]
        if not wrong:
            return f"As far as {self.n} rows can tell, samples of the model look like the data."
        named = " and ".join([", ".join(part.name for part in wrong[:-1]), wrong[-1].name][len(wrong) == 1 :])
        worst = max(part.ratio for part in wrong)
        text = f"Samples of the model differ from the data in {named}, by up to {worst:.2g} times what chance would do"
        if self.active in wrong:
            data, model = self.mean_active
            text += f"; {model:.1f} nodes are active on average, {data:.1f} in the data"
        return text + "."

    def plot(self, **kwargs: Any) -> Any:
        """Draw all four comparisons; see `bregpath.plots.plot_check`."""
        from bregpath.plots import plot_check

        return plot_check(self, **kwargs)

    def __repr__(self) -> str:
        head = f"{'':26s}{'difference':>12s}{'by chance':>12s}{'ratio':>8s}{'correlation':>13s}"
        lines = [f"ModelCheck: {self.n} rows of data, {self.n_samples} of the model", head]
        for part in self.comparisons:
            count = f" ({len(part.data)}{f' of {part.n_all}' if part.n_all > len(part.data) else ''})"
            name = part.name if part is self.active else part.name + count
            numbers = f"{part.difference:12.4f}{part.by_chance.mean():12.4f}{part.ratio:8.1f}{part.correlation:13.3f}"
            lines.append(f"{name:26s}{numbers}{'' if part.agrees else '  !'}")
        return "\n".join([*lines, f"{'MDC':26s}{self.mdc:45.3f}", self.verdict])


def check_model(model: Any, X: Any, *, n_samples: int | None = None, seed: Seed = 0, **options: Any) -> ModelCheck:
    r"""Compare data with samples of an Ising or Potts model.

    Compared are means of features, their centred moments of pairs :math:`E (x_j - \bar x_j)(x_k - \bar x_k)` and of
    triplets, and the distribution of the number of active nodes. How large differences are by chance is measured on
    samples of the model with as many rows as the data.

    Parameters
    ----------
    model : IsingModel, PottsModel, or an object whose method ``model()`` returns one
    X : array-like of shape (n, p)
        Rows of labels; best rows that the model was not fitted to.
    n_samples : int, optional
        Rows to draw: by default eight times those of the data, at least 4000 and at most 20000.
    seed : int, numpy.random.Generator or None, default 0
    **options
        Of `bregpath.graphs.gibbs`; chains are tempered unless ``method`` says otherwise.

    Returns
    -------
    ModelCheck

    Examples
    --------
    >>> from bregpath.graphs import IsingModel, check_model, enumerate_states
    >>> truth = IsingModel([0.3, 0.0, -0.3], [[0.0, 0.8, 0.0], [0.8, 0.0, 0.8], [0.0, 0.8, 0.0]])
    >>> X = enumerate_states(truth).sample(500, seed=0)
    >>> check_model(truth, X).agrees
    True
    >>> independent = IsingModel(truth.fields, np.zeros((3, 3)))
    >>> check_model(independent, X).pairs.agrees
    False
    """
    model = as_discrete_model(model)
    return check_codes(model, model.encode(X), n_samples=n_samples, seed=seed, **options)


def check_codes(
    model: DiscreteModel, codes: Array, *, n_samples: int | None = None, seed: Seed = 0, **options: Any
) -> ModelCheck:
    """See `check_model`, for codes of states."""
    n, rng = len(codes), np.random.default_rng(seed)
    if n < 2:
        raise ValueError(f"`X` must have at least two rows to compare, found {n}.")
    size = int(np.clip(8 * n, 4000, 20000)) if n_samples is None else check_integer("n_samples", n_samples, 100)
    options = {"method": "tempering", **options}
    rows, mixed = gibbs(model, size, seed=rng, return_diagnostics=True, **options)
    drawn = model.encode(rows)
    # One half stands for the model, the other gives data sets as chance would make them.
    drawn = drawn[rng.permutation(size)]
    reference, pool = drawn[: size // 2], drawn[size // 2 :]
    samples = [pool[rng.integers(len(pool), size=n)] for _ in range(_REPLICATES)]

    def compare(name: str, items: IntArray, n_all: int, read: Callable[[Array], Array], gap: Any = _rms) -> Comparison:
        data, expected = read(codes), read(reference)
        chance = np.array([gap(read(sample) - expected) for sample in samples])
        return Comparison(name, data, expected, items, n_all, gap(data - expected), chance)

    def moments(name: str, order: int) -> Comparison:
        items, n_all = _items(_owners(model), order, rng)
        return compare(name, items, n_all, lambda sample: _moments(_indicators(model, sample), items))

    modal = np.array([np.bincount(column).argmax() for column in codes.T])
    numbers = np.arange(model.n_nodes + 1)[:, None]
    active = compare(
        "number of active nodes", numbers, len(numbers), lambda sample: _active(model, sample, modal), _distance
    )
    levels = [np.arange(count) for count in model.counts]
    return ModelCheck(
        moments("margins", 1), moments("pairs", 2), moments("triplets", 3), active,
        mdc(codes, drawn, levels=levels), n, size, mixed,
    )  # fmt: skip


def _rms(difference: Array) -> float:
    return float(np.sqrt(np.mean(difference**2))) if difference.size else 0.0


def _distance(difference: Array) -> float:
    """Wasserstein distance of two distributions on 0, 1, 2, ..."""
    return float(np.abs(np.cumsum(difference)).sum())


def _active(model: DiscreteModel, codes: Array, modal: IntArray) -> Array:
    """Share of rows with 0, 1, ..., p active nodes."""
    is_active = codes == 1 if isinstance(model, IsingModel) else codes != modal
    return np.bincount(is_active.sum(axis=1), minlength=model.n_nodes + 1) / len(codes)


def _owners(model: DiscreteModel) -> IntArray:
    """The node of each feature that is compared."""
    nodes = np.arange(model.n_nodes)
    return nodes if isinstance(model, IsingModel) else np.repeat(nodes, model.counts)


def _indicators(model: DiscreteModel, codes: Array) -> Array:
    """Features as 0 and 1."""
    return codes.astype(float) if isinstance(model, IsingModel) else model.features(codes)


def _items(owner: IntArray, order: int, rng: np.random.Generator) -> tuple[IntArray, int]:
    """Sets of features of different nodes (k, order), all or some drawn at random, and how many there are."""
    count = np.bincount(owner)
    sums = np.zeros(order + 1, dtype=object)  # elementary symmetric polynomials of the numbers of states
    sums[0] = 1
    for q in count.tolist():
        sums[1:] = sums[1:] + q * sums[:-1]
    n_all = int(sums[order])
    most, size = MAX_ITEMS[order], len(owner)
    if comb(size, order) <= 10**5:
        every = np.array(list(combinations(range(size), order)), dtype=np.intp).reshape(-1, order)
    else:
        every = np.unique(np.sort(rng.integers(size, size=(4 * most, order)), axis=1), axis=0)
    every = every[(np.diff(owner[every], axis=1) > 0).all(axis=1)]
    return (every if len(every) <= most else every[rng.permutation(len(every))[:most]]), n_all


def _moments(z: Array, items: IntArray) -> Array:
    """Means of single features, or centred moments of several."""
    n, size = z.shape
    mean, order = z.mean(axis=0), items.shape[1]
    if order == 1:
        return mean[items[:, 0]]
    z = np.ascontiguousarray((z - mean).T)
    if order == 2 and size**2 <= 4 * len(items):
        return (z @ z.T / n)[items[:, 0], items[:, 1]]
    out, at_once = np.empty(len(items)), max(1, 2**20 // n)
    for first in range(0, len(items), at_once):
        part = items[first : first + at_once].T
        product = z[part[0]]
        for feature in part[1:-1]:
            product *= z[feature]
        out[first : first + at_once] = np.einsum("ij,ij->i", product, z[part[-1]]) / n
    return out
