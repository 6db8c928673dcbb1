"""Losses: smooth functions of the linear predictor, registered in `LOSSES` (regression) or `GRAPH_LOSSES`."""

from __future__ import annotations

from copy import copy
from typing import Any

from bregpath.losses.base import AbstractLoss, UserLoss
from bregpath.losses.field import FieldCompositeLoss
from bregpath.losses.gaussian import GaussianLoss
from bregpath.losses.gaussian_graph import GaussianCompositeLoss, GaussianLikelihoodLoss
from bregpath.losses.huber import HuberLoss
from bregpath.losses.ising import IsingCompositeLoss, IsingFlowLoss
from bregpath.losses.logistic import LogisticLoss
from bregpath.losses.mixed import MixedCompositeLoss
from bregpath.losses.multinomial import MultinomialLoss
from bregpath.losses.poisson import PoissonLoss

__all__ = [
    "GRAPH_LOSSES",
    "LOSSES",
    "AbstractLoss",
    "FieldCompositeLoss",
    "GaussianCompositeLoss",
    "GaussianLikelihoodLoss",
    "GaussianLoss",
    "HuberLoss",
    "IsingCompositeLoss",
    "IsingFlowLoss",
    "LogisticLoss",
    "MixedCompositeLoss",
    "MultinomialLoss",
    "PoissonLoss",
    "UserLoss",
    "as_loss",
    "loss_from_dict",
]

LOSSES: dict[str, type[AbstractLoss]] = {
    cls.name: cls for cls in (GaussianLoss, LogisticLoss, MultinomialLoss, PoissonLoss, HuberLoss)
}

GRAPH_LOSSES: dict[str, type[AbstractLoss]] = {
    cls.name: cls
    for cls in (
        IsingCompositeLoss,
        IsingFlowLoss,
        FieldCompositeLoss,
        GaussianLikelihoodLoss,
        GaussianCompositeLoss,
        MixedCompositeLoss,
    )
}


def as_loss(loss: str | AbstractLoss | Any) -> AbstractLoss:
    """A fresh loss object from its name, or the given object (wrapped when it is not an `AbstractLoss`).

    Examples
    --------
    >>> as_loss("huber")
    HuberLoss(threshold=1.345)
    """
    if isinstance(loss, str):
        if loss not in LOSSES:
            raise ValueError(f"`loss` must be one of {sorted(LOSSES)} or a loss object, found {loss!r}.")
        return LOSSES[loss]()
    if isinstance(loss, type):
        raise TypeError(f"`loss` must be an instance, found the class {loss.__name__}; write {loss.__name__}().")
    if isinstance(loss, AbstractLoss):
        # A copy: encoding y stores the classes on the loss, and the caller's object stays as it was.
        return copy(loss)
    return UserLoss(loss)


def loss_from_dict(record: dict[str, Any]) -> AbstractLoss:
    """The registered loss that ``to_dict`` described.

    Examples
    --------
    >>> loss_from_dict(HuberLoss(0.7).to_dict())
    HuberLoss(threshold=0.7)
    """
    return {**LOSSES, **GRAPH_LOSSES}[record["name"]](**{k: v for k, v in record.items() if k != "name"})
