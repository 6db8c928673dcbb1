"""The systems that are compared. One module each, with the same functions.

``fit(data)``
    The whole path; the only thing that is timed.
``end(data, result)``
    Number of points, intercept and coefficients at the end of the window, to see that the path is a valid one.
``cross_validate(data)`` (optional)
    5-fold cross-validation and the model on all rows, over the same window.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

OURS = "bregpath"


@dataclass(frozen=True)
class Peer:
    """How a system is reached and where it can be compared.

    ``home`` is "here" (this Python), "peers" (the peers' virtual environment, else this one) or "R".
    """

    name: str
    package: str
    home: str
    applies: Callable[[str, str], bool] = lambda case, loss: True  # (case, loss): is it run at all?
    same_problem: Callable[[bool, str], bool] = lambda sparse, loss: True  # (X is sparse, loss)


PEERS = {
    peer.name: peer
    for peer in (
        Peer(OURS, "bregpath", "here"),
        Peer("glmnet", "glmnet", "R"),
        Peer("adelie", "adelie", "peers"),
        # celer_path has no intercept: the same problem only where X and y are centred and the loss is squared.
        Peer("celer", "celer", "peers", same_problem=lambda sparse, loss: loss == "gaussian" and not sparse),
        Peer("skglm", "skglm", "peers"),
        # lasso_path has no intercept either; saga needs minutes beyond the small cases.
        Peer(
            "sklearn",
            "scikit-learn",
            "here",
            applies=lambda case, loss: loss == "gaussian" or case in ("a", "b", "tiny"),
            same_problem=lambda sparse, loss: loss == "logistic" or not sparse,
        ),
    )
}
