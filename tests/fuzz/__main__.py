"""Random problems against all that must hold: ``python -m tests.fuzz --minutes 5 --seed 0``, or ``make fuzz``."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator

import numpy as np

from tests.fuzz.ends import BEGUN
from tests.fuzz.paths import ROUNDING, TOLS
from tests.fuzz.supervise import KINDS, Outcome, Task, call, supervise

MOST_STALLED = 0.01  # of all paths: each is worth a look, and more than so many are a failure


def tasks(kinds: list[str], seed: int, minutes: float) -> Iterator[Task]:
    """All kinds in turn, until the time is over; the k-th round has the seed ``seed + k``."""
    end = time.monotonic() + 60 * minutes
    for number in itertools.count(seed):
        for kind in kinds:
            if time.monotonic() >= end:
                return
            yield Task(kind, (number,))


def summary(outcomes: list[Outcome]) -> str:
    """Numbers by kind, how many paths stalled, then how well tolerances were kept."""
    lines = [f"{'':12} {'tried':>7} {'held':>7} {'failed':>7} {'skipped':>8}"]
    for kind in [*KINDS, "all"]:
        of_kind = [o for o in outcomes if kind in (o.task.kind, "all")]
        count = Counter("failed" if o.is_failure else o.status for o in of_kind)
        if of_kind:
            lines.append(
                f"{kind:12} {len(of_kind):7d} {count['held']:7d} {count['failed']:7d} {count['skipped']:8d}"
            )
    n_stalled, n_paths = stalled(outcomes)
    lines.append(f"stalled: {n_stalled} of {n_paths} paths")
    lines.append(f"held to what rounding moves: {sum(o.result == ROUNDING for o in outcomes)}; to 1e-7: all others")
    measured = [o.result for o in outcomes if o.task.kind == "accuracy" and o.result]
    for tol in TOLS if measured else ():
        errors = np.array([found[tol] for found in measured])
        lines.append(
            f"tol={tol:g}: {np.sum(errors > 1)} of {len(errors)} paths beyond tol, {np.sum(errors > 2)} beyond 2 tol, "
            f"the worst at {errors.max():.2g} tol"
        )
    return "\n".join(lines)


def stalled(outcomes: list[Outcome]) -> tuple[int, int]:
    """How many paths found no further step, and how many there were."""
    return sum(o.n_stalled for o in outcomes), sum(o.ends[BEGUN] for o in outcomes)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0, help="of the first round; the next has the next number")
    parser.add_argument("--kinds", default=",".join(KINDS), help="which checks, by commas")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each problem")
    parser.add_argument("--replay", metavar="KIND:SEED", help="repeat one check here, with its traceback")
    args = parser.parse_args()
    if args.replay:
        kind, _, seed = args.replay.rpartition(":")
        print(call(Task(kind, (int(seed),))))
        return 0
    outcomes: list[Outcome] = []
    try:
        queue = tasks(args.kinds.split(","), args.seed, args.minutes)
        for outcome in supervise(queue, jobs=args.jobs, limit=args.limit):
            outcomes.append(outcome)
            if outcome.is_failure:
                print(f"{outcome.status}: {outcome.task.replay}\n    {outcome.text}", flush=True)
            if outcome.n_stalled:
                print(f"stalled: {outcome.task.replay}\n    {outcome.n_stalled} of its paths", flush=True)
    except KeyboardInterrupt:
        print("interrupted")
    print(summary(outcomes))
    n_stalled, n_paths = stalled(outcomes)
    return int(any(o.is_failure for o in outcomes) or n_stalled > MOST_STALLED * n_paths)


if __name__ == "__main__":
    sys.exit(main())
