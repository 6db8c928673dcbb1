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
from benchmarks.peers import OURS
from benchmarks.processes import PeerError, Worker


@dataclass(frozen=True)
class Plan:
    """How often and how long."""

    repeats: int = 5
    limit: float = 20.0  # seconds a fit of a peer may take ...
    own_limit: float = 150.0  # ... and one of bregpath, without which a row says nothing
    slow: float = 8.0  # a fit that takes longer is not repeated
    budget: float = 15.0  # seconds of all rounds; a round is begun only if it will end within them
    round_seconds: float = 0.2  # short fits are repeated within a round until it lasts about this long

    def limit_of(self, name: str) -> float:
        return max(self.limit, self.own_limit) if name == OURS else self.limit


Results = dict[str, dict[str, Any]]


def side_by_side(data: Data, commands: dict[str, list[str]], plan: Plan) -> Results:
    """Time whole paths of every system on one problem in alternating rounds.

    Returns
    -------
    dict
        For each system either ``seconds`` (median over rounds) with ``rounds`` and the end of its path,
        ``over`` (the time limit it passed), or ``error``.
    """
    return time_jobs(data, commands, plan, ("fit",))["fit"]


def time_jobs(data: Data, commands: dict[str, list[str]], plan: Plan, jobs: tuple[str, ...]) -> dict[str, Results]:
    """The same for several jobs, one after the other on the same workers; a system without a job is not in its results.

    A system that failed at a job, or was ended, has no results of those after it.
    """
    results: dict[str, Results] = {job: {} for job in jobs}
    workers: dict[str, Worker] = {}
    with tempfile.TemporaryDirectory(prefix="bregpath-bench-") as folder:
        write_data(folder, data)
        try:
            for name, command in commands.items():
                _say(f"{name}, start")
                try:
                    workers[name] = Worker(command, folder)
                except (PeerError, TimeoutError) as error:
                    results[jobs[0]][name] = {"error": str(error) or "did not start in time"}
            lost: set[str] = set()
            for job in jobs:
                able = {name: worker for name, worker in workers.items() if job in worker.jobs and name not in lost}
                results[job] |= {name: _once(name, worker, plan, job) for name, worker in able.items()}
                _rounds(able, results[job], plan, job)
                lost |= {name for name in able if "seconds" not in results[job][name]}
        finally:
            for worker in workers.values():
                worker.close()
            _say("")
    return results


def _once(name: str, worker: Worker, plan: Plan, job: str) -> dict[str, Any]:
    """The warm-up, or the only measurement of a slow system."""
    _say(name)
    try:
        answer = worker.ask(job, 1, plan.limit_of(name))
    except TimeoutError:
        return {"over": plan.limit_of(name)}
    except PeerError as error:
        return {"error": str(error)}
    return {**answer, "version": worker.hello.get("version"), "rounds": [answer["seconds"]], "single": True}


def _rounds(workers: dict[str, Worker], results: Results, plan: Plan, job: str) -> None:
    """Repeat in an order that changes from round to round; the warm-up is replaced."""
    first = {name: results[name].get("seconds", math.inf) for name in workers}
    names = [name for name in workers if first[name] <= plan.slow]
    within = {name: min(200, max(1, math.ceil(plan.round_seconds / max(first[name], 1e-3)))) for name in names}
    expected = sum(within[name] * first[name] for name in names)
    rounds: dict[str, list[float]] = {name: [] for name in names}
    for k in range(min(plan.repeats, max(1, int(plan.budget / max(expected, 1e-9))))):
        shift = k % max(len(names), 1)
        order = names[shift:] + names[:shift]
        for name in order[::-1] if k % 2 else order:
            if "seconds" not in results[name]:
                continue
            _say(f"{name}, round {k + 1}")
            try:
                answer = workers[name].ask(job, within[name], plan.limit_of(name) * within[name])
            except TimeoutError:
                results[name] = {"over": plan.limit_of(name)}
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
