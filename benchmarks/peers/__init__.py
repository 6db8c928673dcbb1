"""The systems that are compared. One module each, with some of these functions.

``fit(data)``
    The whole path; the only thing that is timed.
``end(data, result)``
    Number of points, intercept and coefficients at the end of a path, to see that it is a valid one.
``cross_validate(data)``
    5-fold cross-validation by the system's own means and the model on all rows, over the same window: like ``end``,
    and where there is ``fit_to``, ``grid``: the times or lambdas up to the chosen one.
``fit_to(data, grid)``
    One path on all rows, to the chosen model and no farther.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

OURS = "bregpath"
# Where the slower systems are run; elsewhere they are several times slower than the best one, or not done in time.
SMALL = ("a", "b", "cancer", "colon", "leukemia", "tiny")
LARGE_GAUSSIAN = ("c", "d", "f")


@dataclass(frozen=True)
class Peer:
    """How a system is reached and where it can be compared.

    ``home`` is "here" (this Python), "peers" (the peers' virtual environment, else this one) or "R".
    """

    name: str
    package: str
    home: str
    applies: Callable[[str, str], bool] = lambda case, loss: True  # (case, loss): is its path traced at all?
    validates: Callable[[str, str], bool] = lambda case, loss: True  # the same of its cross-validation
    same_problem: Callable[[bool, str], bool] = lambda sparse, loss: True  # (X is sparse, loss)


def _has_one_output(case: str, loss: str) -> bool:
    return loss != "multinomial"


def _in_time(case: str, loss: str) -> bool:
    return case in SMALL or (loss == "gaussian" and case in LARGE_GAUSSIAN)


def _saga_in_time(case: str, loss: str) -> bool:
    return loss == "gaussian" or case in ("a", "b", "cancer", "tiny")


def _validated_in_time(case: str, loss: str) -> bool:
    return case in SMALL and (loss, case) != ("logistic", "b")


PEERS = {
    peer.name: peer
    for peer in (
        Peer(OURS, "bregpath", "here"),
        Peer("glmnet", "glmnet", "R"),
        # Of several classes its default penalty is another one, of rows of coefficients; not tried there.
        Peer("adelie", "adelie", "peers", applies=_has_one_output, validates=_has_one_output),
        # celer_path has no intercept: the same problem only where X and y are centred and the loss is squared. Its
        # LassoCV (0.7.4) does not start beside scikit-learn 1.9, and there is none for the logistic loss.
        Peer(
            "celer",
            "celer",
            "peers",
            applies=_in_time,
            validates=lambda case, loss: False,
            same_problem=lambda sparse, loss: loss == "gaussian" and not sparse,
        ),
        # It compiles for a quarter of a minute in every process; its class for cross-validation took 39 s at a.
        Peer(
            "skglm",
            "skglm",
            "peers",
            applies=lambda case, loss: case in ("a", "b", "leukemia", "tiny"),
            validates=lambda case, loss: False,
        ),
        # lasso_path has no intercept either; saga needs minutes beyond the smallest cases.
        Peer(
            "sklearn",
            "scikit-learn",
            "here",
            applies=lambda case, loss: _in_time(case, loss) and _saga_in_time(case, loss),
            validates=lambda case, loss: _validated_in_time(case, loss) and _saga_in_time(case, loss),
            same_problem=lambda sparse, loss: loss == "logistic" or not sparse,
        ),
        # Best subsets: no path over a window, and another problem.
        Peer(
            "abess",
            "abess",
            "peers",
            applies=lambda case, loss: False,
            validates=_validated_in_time,
            same_problem=lambda sparse, loss: False,
        ),
    )
}


def asked(question: str) -> list[str]:
    """Names of the systems to which a question, "applies" or "validates", has an answer at all."""
    losses = ("logistic", "gaussian")
    return [name for name, peer in PEERS.items() if any(getattr(peer, question)("tiny", loss) for loss in losses)]
