r"""Graphical models of mixed data: numbers, labels and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, pdtr, pdtrik

from bregpath._typing import Array, IntArray, Seed
from bregpath._validation import check_integer
from bregpath.graphs._checks import check_levels, check_names, check_square, finite_array, freeze
from bregpath.graphs.base_model import AbstractModel, InBlocks, draw_states

__all__ = ["KINDS", "MixedModel", "centred_block"]

KINDS = ("gaussian", "categorical", "count")
BURN_IN = 300  # sweeps of a Gibbs sampler before a row is drawn
SMALLEST_MASS = 1e-250  # of counts up to the largest, whose quantiles can still be told


@dataclass(frozen=True, eq=False)
class MixedModel(InBlocks, AbstractModel):
    r"""Numbers, labels and counts: :math:`\log P(x) = a^\top \phi + \phi^\top B \phi / 2 - \sum_j \log x_j! - \log Z`.

    The features :math:`\phi` of a row are its numbers, its counts, and indicators of the states of its labels; the last
    sum is over counts. Given all others, with :math:`\eta = a + B_{\cdot, -j} \phi_{-j}`, a number is normal with
    precision :math:`\omega_j = -B_{jj}` and mean :math:`\eta_j / \omega_j`, a label has state l with probability in
    proportion to :math:`\exp(\eta_{j;l})`, and a count is Poisson with rate :math:`\exp(\eta_j)`, cut off at its
    largest value. The cut makes the model proper whatever the signs of the couplings, as long as the precision matrix
    of the numbers is positive definite.

    Parameters
    ----------
    fields : array-like of shape (P,)
        :math:`a`: an entry for each number, each count and each state of a label, node after node.
    couplings : array-like of shape (P, P)
        :math:`B`, symmetric. Its diagonal is negative for numbers, and zero for counts and the blocks of labels.
    kinds : sequence of {"gaussian", "categorical", "count"}
        Of each node.
    n_states : sequence of int
        Number of states of each label, 1 for numbers and counts.
    max_counts : array-like of shape (p,)
        Largest value of each count; not used for other nodes.
    names : sequence of str, optional
        Names of the nodes.
    levels : sequence of p sequences, optional
        Labels of the states of each node, none for numbers and counts; without them states are 0, 1, ...

    Examples
    --------
    >>> kinds, couplings = ["gaussian", "count"], [[-1.0, 0.3], [0.3, 0.0]]
    >>> model = MixedModel([0.0, 0.5], couplings, kinds, [1, 1], max_counts=[0, 30])
    >>> float(model.strengths[0, 1]), model.sample(4, seed=0).shape
    (0.3, (4, 2))
    """

    fields: Array
    couplings: Array
    kinds: tuple[str, ...]
    n_states: IntArray
    max_counts: Array
    names: tuple[str, ...] | None = None
    levels: tuple[Array, ...] | None = None

    def __post_init__(self) -> None:
        fields = finite_array("fields", self.fields, 1)
        couplings = check_square("couplings", self.couplings, len(fields))
        kinds, n_states = tuple(self.kinds), np.asarray(self.n_states, dtype=np.intp)
        p = len(kinds)
        wrong = [kind for kind in kinds if kind not in KINDS]
        if wrong:
            raise ValueError(f"`kinds` must be of {', '.join(map(repr, KINDS))}, found {wrong[0]!r}.")
        if n_states.shape != (p,) or (n_states < 1).any() or n_states.sum() != len(fields):
            raise ValueError(f"`n_states` must be positive, one a node, and sum to {len(fields)}, found {n_states}.")
        several = [kind for kind, states in zip(kinds, n_states, strict=True) if kind != "categorical" and states > 1]
        if several:
            raise ValueError(f"`n_states` of kind {several[0]!r} must be 1, found {n_states.max()}.")
        max_counts = finite_array("max_counts", self.max_counts, 1)
        if max_counts.shape != (p,):
            raise ValueError(f"`max_counts` must have one entry for each of the {p} nodes, found {max_counts.shape}.")
        freeze(self, fields=fields, couplings=couplings, kinds=kinds, n_states=n_states, max_counts=max_counts)
        freeze(self, names=check_names(self.names, p))
        if self.levels is not None:
            sizes = np.where([kind == "categorical" for kind in kinds], n_states, 0)
            freeze(self, levels=check_levels(self.levels, sizes))
        self._check_diagonal()

    def _check_diagonal(self) -> None:
        for j, kind in enumerate(self.kinds):
            own = self.block(j, j)
            if kind == "gaussian" and not own[0, 0] < 0:
                raise ValueError(f"`couplings` must be minus its precision at number {j}, found {own[0, 0]:g}.")
            if kind != "gaussian" and own.any():
                raise ValueError(f"`couplings` must be zero between {kind} {j} and itself; use `fields`.")

    @property
    def n_nodes(self) -> int:
        return len(self.kinds)

    @property
    def strengths(self) -> Array:
        r"""One number a pair (p, p): couplings over :math:`\sqrt{\omega}` of their numbers, norms of blocks of labels.

        So two numbers have their partial correlation. Blocks are centred first, and have no sign.
        """
        size = np.ones(len(self.fields))
        is_number = np.repeat([kind == "gaussian" for kind in self.kinds], self.n_states)
        size[is_number] = np.sqrt(-np.diagonal(self.couplings)[is_number])
        scaled = self.couplings / np.outer(size, size)
        out = np.zeros((self.n_nodes, self.n_nodes))
        at = self.offsets
        for j in range(self.n_nodes):
            for k in range(j):
                block = scaled[at[j] : at[j + 1], at[k] : at[k + 1]]
                out[j, k] = block.item() if block.size == 1 else np.linalg.norm(centred_block(block))
        return out + out.T

    def features(self, rows: Array) -> Array:
        """Rows of numbers, counts and codes of states (n, p) as features (n, P)."""
        out = np.zeros((len(rows), len(self.fields)))
        for j, kind in enumerate(self.kinds):
            if kind == "categorical":
                out[np.arange(len(rows)), self.offsets[j] + rows[:, j].astype(np.intp)] = 1.0
            else:
                out[:, self.offsets[j]] = rows[:, j]
        return out

    def log_weight(self, rows: Any) -> Array:
        """Logarithm of the density of each row of numbers, counts and codes of states, up to a constant."""
        rows = self._rows(rows, float)
        z, counts = self.features(rows), rows[:, [kind == "count" for kind in self.kinds]]
        quadratic = 0.5 * np.einsum("ij,ij->i", z @ self.couplings, z)
        return z @ self.fields + quadratic - gammaln(counts + 1).sum(axis=1)

    def redraw(self, rows: Array, j: int, features: Array, at: Any, rng: np.random.Generator) -> None:
        """Draw node j of some rows, ``at``, given all other nodes; rows and their features are changed."""
        own = slice(self.offsets[j], self.offsets[j + 1])
        eta = self.fields[own] + features[at] @ self.couplings[:, own]
        if self.kinds[j] == "categorical":
            rows[at, j] = codes = draw_states(eta, rng)
            features[at, own] = codes[:, None] == np.arange(self.n_states[j])
            return
        if self.kinds[j] == "gaussian":
            precision = -self.couplings[own, own].item()
            before = features[at, own.start]
            # eta holds the node itself, by its diagonal.
            drawn = (eta[:, 0] + precision * before + np.sqrt(precision) * rng.standard_normal(len(eta))) / precision
        else:
            drawn = _draw_counts(eta[:, 0], self.max_counts[j], rng)
        rows[at, j] = features[at, own.start] = drawn

    def sample(self, n: int, seed: Seed = None, *, burn_in: int = BURN_IN) -> Array:
        """Draw `n` rows, each from a Gibbs chain of its own after ``burn_in`` sweeps.

        An array of numbers, or of objects where labels are not. Codes of states where the model has no `levels`.
        """
        n, burn_in = check_integer("n", n, 1), check_integer("burn_in", burn_in, 1)
        self._require_proper()
        rng = np.random.default_rng(seed)
        rows = np.zeros((n, self.n_nodes))
        rows += rng.integers(self.n_states, size=rows.shape)  # those of numbers and counts are zero
        features, every = self.features(rows), slice(None)
        for _ in range(burn_in):
            for j in range(self.n_nodes):
                self.redraw(rows, j, features, every, rng)
        return self.decode(rows)

    def decode(self, rows: Array) -> Array:
        """Rows with labels in place of codes of states."""
        if self.levels is None:
            return rows
        has_text = any(labels.dtype.kind not in "biuf" for labels in self.levels if len(labels))
        out = rows.astype(object) if has_text else rows.copy()
        for j, labels in enumerate(self.levels):
            if len(labels):
                out[:, j] = labels[rows[:, j].astype(np.intp)]
        return out

    def _require_proper(self) -> None:
        number = np.flatnonzero([kind == "gaussian" for kind in self.kinds])
        at = self.offsets[number]
        lowest = np.linalg.eigvalsh(-self.couplings[np.ix_(at, at)])[0] if len(at) else 1.0
        if not lowest > 0:
            raise ValueError(
                "The precision matrix of the numbers is not positive definite, so that there is no joint distribution "
                "to draw from (the conditional ones are as good as ever); take an earlier time of the path."
            )


def centred_block(block: Array) -> Array:
    """Couplings without what is constant along the states of a label, which would be a field."""
    for axis in (0, 1):
        block = block - block.mean(axis=axis, keepdims=True) if block.shape[axis] > 1 else block
    return block


def _draw_counts(eta: Array, largest: float, rng: np.random.Generator) -> Array:
    """Poisson draws of rates exp(eta), given that they are at most ``largest``."""
    rate = np.exp(np.minimum(eta, 30.0))  # far beyond any count that can be drawn
    drawn = rng.poisson(rate).astype(float)
    beyond = np.flatnonzero(drawn > largest)
    drawn[beyond] = _draw_below(rate[beyond], largest, rng)
    return drawn


def _draw_below(rate: Array, largest: float, rng: np.random.Generator) -> Array:
    """The same by the inverse distribution function, for few of them: it costs a hundred times as much."""
    u, mass = rng.random(len(rate)), pdtr(largest, rate)
    share = u * mass
    drawn = np.where(share <= np.exp(-rate), 0.0, np.ceil(pdtrik(share, rate)))
    # Where the rate is so far beyond that nothing is left, P(largest - g) falls like (largest / rate)^g.
    with np.errstate(divide="ignore", invalid="ignore"):
        below = largest - np.floor(np.log(u) / np.log(largest / rate))
    return np.clip(np.where(mass < SMALLEST_MASS, below, drawn), 0.0, largest)
