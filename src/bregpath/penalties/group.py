"""The group penalty: all coordinates of a group enter together."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from bregpath._known_to_core import Kernel, only_for_its_class
from bregpath._typing import Array, BoolArray, IntArray
from bregpath.penalties.base import AbstractPenalty
from bregpath.penalties.wishes import check_group_factor, check_groups

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["GroupPenalty", "GroupSqrtPenalty"]

BISECTIONS = 60


class GroupPenalty(AbstractPenalty):
    r"""Group norm :math:`J(b) = \sum_g w_g \lVert b_g \rVert_2` (Frobenius norm over all outputs of a group).

    .. math:: \mathrm{shrink}(z)_g = \max(1 - w_g / \lVert z_g \rVert_2, 0)\, z_g.

    ``weights`` holds the weight of the group at each of its coordinates; ``groups`` the group of each column,
    numbered from 0.

    Examples
    --------
    >>> import numpy as np
    >>> no_limit = np.full((3, 1), np.inf)
    >>> penalty = GroupPenalty(np.ones((3, 1)), -no_limit, no_limit, groups=np.array([0, 0, 1]))
    >>> penalty.shrink(np.array([[3.0], [4.0], [0.9]])).ravel()
    array([2.4, 3.2, 0. ])
    """

    name = "group"
    array_names = ("weights", "lower", "upper", "groups")

    def __init__(self, weights: Array, lower: Array, upper: Array, groups: IntArray) -> None:
        super().__init__(weights, lower, upper)
        self.groups = groups
        self.n_groups = int(groups.max(initial=-1)) + 1
        self.has_box = any(bool(np.any(np.isfinite(limit) & (limit != 0))) for limit in (lower, upper))

    @classmethod
    def _weigh(cls, n_columns: int, n_outputs: int, groups: Any, penalty_factor: Any) -> tuple[Array, dict[str, Array]]:
        # Without `groups` a group is one column over all outputs: the natural choice for several (multinomial).
        labels = check_groups(groups, n_columns)
        thresholds = cls._threshold(np.bincount(labels) * n_outputs)
        return check_group_factor(penalty_factor, labels) * thresholds[labels], {"groups": labels}

    @staticmethod
    def _threshold(sizes: Array) -> Array:
        """Threshold of groups of some sizes, in units of their factors."""
        return np.ones(len(sizes))

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("group", self.arrays())

    def take(self, columns: IntArray) -> Self:
        part = super().take(columns)
        part.groups = np.unique(part.groups, return_inverse=True)[1]
        part.n_groups = int(part.groups.max(initial=-1)) + 1
        return part

    def _norms(self, z: Array) -> Array:
        """Norm of its group, at every column."""
        return np.sqrt(self._sums(z * z))

    def _sums(self, x: Array) -> Array:
        """Sum over its group, at every column."""
        of_columns = np.sum(x, axis=-1)
        batch = of_columns.reshape(math.prod(of_columns.shape[:-1]), len(self.groups))
        # One group number for each group of each batch: all sums in one pass.
        labels = self.groups + self.n_groups * np.arange(len(batch))[:, None]
        sums = np.bincount(labels.ravel(), weights=batch.ravel(), minlength=self.n_groups * len(batch))
        return sums[labels].reshape(of_columns.shape)[..., None]

    def shrink(self, z: Array) -> Array:
        z = self.allowed(z)
        norms = self._norms(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor = np.where(self.weights == 0, 1.0, 1.0 - self.weights / norms)
        return np.where(norms > self.weights, np.maximum(factor, 0.0) * z, 0.0)

    def primal(self, z: Array, kappa: float) -> Array:
        if not self.has_box:
            return super().primal(z, kappa)
        # Clipping a shrunken group would be no mirror map: the loss could rise. With limits the minimiser is
        # b = clip(z r / (r + w)) with r its own norm, found by bisection; the norm over r falls in r.
        z, w = self.allowed(z), self.weights
        lower, upper = self.lower / kappa, self.upper / kappa
        low = np.zeros(np.broadcast_shapes(z.shape, w.shape))
        high = np.maximum(self._norms(z) - w, 0.0) + low

        def at(r: Array) -> Array:
            with np.errstate(invalid="ignore"):  # 0 / 0 where a free or excluded group is at zero
                share = np.where(w == 0, 1.0, np.where(np.isfinite(w), r / (r + w), 0.0))
            return np.clip(share * z, lower, upper)

        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            above = self._norms(at(middle)) > middle
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        return np.clip(kappa * at(0.5 * (low + high)), self.lower, self.upper)

    def root(self, z: Array, v: Array) -> Array:
        norms = np.maximum(self._norms(z), 1e-300)
        across = np.sqrt(1.0 - np.minimum(self.weights / norms, 1.0))  # a group; along it is 1
        if self.has_limits:
            has_limit = np.any(np.isfinite(self.lower) | np.isfinite(self.upper), axis=1)
            across[self.close(has_limit)] = 1.0
        return across * v + (1.0 - across) * z / norms * (self._sums(z * v) / norms)

    @property
    def step_share(self) -> float:
        return 0.5 if self.has_limits else 1.0  # a coordinate that meets its limit bends all others of its group

    def entry(self, z: Array) -> Array:
        return self._free_first(self.weights - self._norms(self.allowed(z)))

    def value(self, beta: Array) -> float:
        norms = self._norms(beta)
        first = np.unique(self.groups, return_index=True)[1]
        active = norms[first, 0] > 0
        return float(np.sum(self.weights[first, 0][active] * norms[first, 0][active]))

    def slack(self, scan: Any) -> Array:
        return scan.group_size(self.groups)

    @property
    def variables(self) -> IntArray:
        return self.groups

    @property
    def moves_together(self) -> bool:
        return self.n_groups < len(self.groups)

    def close(self, columns: BoolArray) -> BoolArray:
        touched = np.zeros(self.n_groups, dtype=bool)
        touched[self.groups[columns]] = True
        return touched[self.groups]


class GroupSqrtPenalty(GroupPenalty):
    """The group norm with a threshold that is the square root of a group's size.

    Examples
    --------
    >>> GroupSqrtPenalty.build(3, 1, groups=[0, 0, 1]).weights.ravel()
    array([1.41421356, 1.41421356, 1.        ])
    """

    name = "group-sqrt"

    @staticmethod
    def _threshold(sizes: Array) -> Array:
        return np.sqrt(sizes)

    @only_for_its_class
    def kernel(self) -> Kernel:
        return Kernel("group", self.arrays())
