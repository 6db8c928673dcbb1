"""How far adaptive steps stay from the exact path: ``python -m tests.fuzz.accuracy --tol 1e-2 --count 200``."""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np

from tests.fuzz.paths import TOLS, measure_accuracy
from tests.fuzz.problems import make_problem
from tests.fuzz.supervise import Outcome, Task, supervise

__all__ = ["report"]

MEASURE = f"{measure_accuracy.__module__}:{measure_accuracy.__name__}"


def report(outcomes: list[Outcome], worst: int = 10) -> None:
    """Tables by loss and penalty, then the worst."""
    found = [(make_problem(o.task.args[0]), o.result) for o in outcomes if o.status == "held"]
    for tol in sorted({tol for _, errors in found for tol in errors}, reverse=True):
        by: dict[str, list[float]] = defaultdict(list)
        for problem, errors in found:
            for name in ("all", problem.options["loss"], " ".join([problem.options["penalty"], *problem.traits])):
                by[name].append(errors[tol])
        print(f"\nerror / tol at tol={tol:g}\n{'':28} {'paths':>5} {'median':>8} {'> 1':>6} {'> 2':>6} {'largest':>10}")
        for name in ["all", *sorted(set(by) - {"all"})]:
            x = np.array(by[name])
            print(f"{name:28} {len(x):5d} {np.median(x):8.3f} {np.sum(x > 1):6d} {np.sum(x > 2):6d} {x.max():10.3g}")
        for problem, errors in sorted(found, key=lambda pair: -pair[1][tol])[:worst]:
            if errors[tol] > 1:
                kappa, scaled = problem.options["kappa"], problem.options["standardize"]
                print(f"  {errors[tol]:8.3g}  --seed {problem.seed} --count 1 --tol {tol:g}  "
                      f"({problem.kind}, kappa={kappa:.3g}, standardize={scaled})")  # fmt: skip
    for o in outcomes:
        if o.is_failure:
            seed = o.task.args[0]
            print(f"{o.status}: --seed {seed} --count 1  ({make_problem(seed).kind})  {o.text}")
    print(f"{sum(o.status == 'skipped' for o in outcomes)} of {len(outcomes)} problems skipped")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.accuracy", description=__doc__)
    parser.add_argument("--tol", type=float, nargs="+", default=list(TOLS))
    parser.add_argument("--count", type=int, default=200, help="number of problems")
    parser.add_argument("--seed", type=int, default=0, help="of the first problem; the next has the next number")
    parser.add_argument("--only", default="", help='problems of this kind, such as "huber" or "l1 box"')
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for each problem")
    args = parser.parse_args()
    seeds = (s for s in range(args.seed, args.seed + args.count) if args.only in make_problem(s).kind)
    tasks = (Task(MEASURE, (seed, tuple(args.tol))) for seed in seeds)
    report(list(supervise(tasks, jobs=args.jobs, limit=args.limit)))


if __name__ == "__main__":
    main()
