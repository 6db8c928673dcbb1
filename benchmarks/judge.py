"""Who is the best peer of a row, and whether a target is met."""

from __future__ import annotations

from typing import Any

from benchmarks.peers import OURS, PEERS

# Best peer's time / ours; above 1 we are faster.
PATH_TARGETS = {
    "logistic": {"a": 2.5, "b": 3.0, "c": 2.5, "d": 2.5, "e": 2.0, "f": 2.5, "a9a": 2.0},
    "gaussian": {"a": 1.2, "b": 1.8, "c": 1.5, "d": 2.0, "f": 2.5},
    "multinomial": {},
}
CV_TARGETS = {
    "logistic": {"a": 5.0, "b": 5.0, "c": 3.0, "d": 7.0, "e": 3.0, "f": 3.0, "a9a": 3.0},
    "gaussian": dict.fromkeys("abcdef", 3.0),
}
CHOSEN_TARGETS = {"gaussian": {"e": 1.0}}  # a path to the model that cross-validation chooses
# An end loss this much above glmnet's, at as many points, is not the same path.
LOOSE = 1.05

Targets = dict[str, dict[str, float]]


def mark(results: dict[str, dict[str, Any]], sparse: bool, loss: str, same_path: bool) -> None:
    """Say of every result whether it solves the same problem and, of the ``same_path``, as far as glmnet does."""
    anchor = results.get("glmnet", {})
    for name, result in results.items():
        result["same_problem"] = PEERS[name].same_problem(sparse, loss)
        comparable = same_path and name != OURS and "loss" in result and "loss" in anchor
        comparable = comparable and result["same_problem"] and result["points"] == anchor["points"]
        result["loose"] = bool(comparable and result["loss"] > LOOSE * anchor["loss"])


def judge(results: dict[str, dict[str, Any]], target: float | None) -> dict[str, Any]:
    """Best peer, its time over ours, and whether the target is met. One that was ended took at least its limit."""
    rivals = {
        name: result.get("seconds", result.get("over"))
        for name, result in results.items()
        if name != OURS and "error" not in result and result["same_problem"] and not result["loose"]
    }
    ours = results.get(OURS, {}).get("seconds")
    best = min(rivals, key=rivals.__getitem__, default=None)
    ratio = rivals[best] / ours if best and ours else None
    met = None if ratio is None or target is None else ratio >= target
    at_least = best is not None and "over" in results[best]
    return {"best_peer": best, "ratio": ratio, "at_least": at_least, "target": target, "met": met}
