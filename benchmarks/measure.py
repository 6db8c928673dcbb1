"""Side-by-side timing of workers that hold the same problem."""

from __future__ import annotations

import math
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cases import Data, write_data
from benchmarks.processes import PeerError, Worker


@dataclass(frozen=True)
class Plan:
    """How often and how long."""

    repeats: int = 5
    limit: float = 60.0  # seconds a fit may take
    slow: float = 20.0  # a fit that takes longer is not repeated
    round_seconds: float = 0.2  # short fits are repeated within a round until it lasts about this long


def side_by_side(data: Data, commands: dict[str, list[str]], plan: Plan, job: str = "fit") -> dict[str, Any]:
    """Time every system on one problem in alternating rounds.

    Returns
    -------
    dict
        For each system either ``seconds`` (median over rounds) with ``rounds`` and the end of its path,
        ``over`` (the time limit it passed), or ``error``.
    """
    results: dict[str, dict[str, Any]] = {}
    workers: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory(prefix="bregpath-bench-") as folder:
        write_data(folder, data)
        try:
            for name, command in commands.items():
                _say(name)
                results[name] = _start(name, command, folder, workers, plan, job)
            _rounds(workers, results, plan, job)
        finally:
            for worker in workers.values():
                worker.close()
            _say("")
    return results


def _start(
    name: str, command: list[str], folder: str, workers: dict[str, Worker], plan: Plan, job: str
) -> dict[str, Any]:
    """Start a worker and let it fit once: the warm-up, or the only measurement of a slow system."""
    try:
        worker = Worker(command, folder)
    except (PeerError, TimeoutError) as error:
        return {"error": str(error) or "did not start in time"}
    try:
        answer = worker.ask(job, 1, plan.limit)
    except TimeoutError:
        return {"over": plan.limit}
    except PeerError as error:
        worker.close()
        return {"error": str(error)}
    result = {**answer, "version": worker.hello.get("version"), "rounds": [answer["seconds"]], "single": True}
    if answer["seconds"] > plan.slow:
        worker.close()
    else:
        workers[name] = worker
    return result


def _rounds(workers: dict[str, Worker], results: dict[str, dict[str, Any]], plan: Plan, job: str) -> None:
    """Repeat in an order that changes from round to round; the warm-up is replaced."""
    names = list(workers)
    within = {
        name: min(200, max(1, math.ceil(plan.round_seconds / max(results[name]["seconds"], 1e-3)))) for name in names
    }
    rounds: dict[str, list[float]] = {name: [] for name in names}
    for k in range(plan.repeats):
        shift = k % max(len(names), 1)
        order = names[shift:] + names[:shift]
        for name in order[::-1] if k % 2 else order:
            _say(f"{name}, round {k + 1}")
            try:
                answer = workers[name].ask(job, within[name], plan.limit * within[name])
            except TimeoutError:
                results[name] = {"over": plan.limit}
                continue
            except PeerError as error:
                results[name] = {"error": str(error)}
                continue
            rounds[name].append(answer["seconds"])
    for name in names:
        if rounds[name] and "seconds" in results[name]:
            results[name] |= {"seconds": statistics.median(rounds[name]), "rounds": rounds[name]}
            results[name] |= {"calls_a_round": within[name], "single": False}


def calibrate() -> float:
    """Seconds of a fixed NumPy loop: how quiet the machine is right now."""
    x = np.linspace(0.0, 1.0, 200_000)
    begun = time.perf_counter()
    for _ in range(50):
        x = np.sqrt(x * x + 1e-9)
    return time.perf_counter() - begun


def _say(text: str) -> None:
    """Progress on a terminal: one line that is overwritten."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
