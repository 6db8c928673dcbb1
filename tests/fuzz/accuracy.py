"""How far adaptive steps stay from the exact path: ``python -m tests.fuzz.accuracy --tol 1e-2 --count 200 --seed 0``."""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np

import bregpath
from tests.fuzz.oracle import NotUnique, Oracle
from tests.fuzz.problems import make_problem
from tests.fuzz.supervise import Outcome, Skipped, supervise

__all__ = ["errors"]

TOLS = (1e-2, 1e-3, 1e-4)
LIMIT = 60.0


def errors(seed: int, tols: tuple[float, ...] = TOLS) -> dict[float, float]:
    """Largest error of a coefficient on a random path, as a multiple of ``tol``, for each tolerance."""
    problem = make_problem(seed)
    try:
        oracle = Oracle(problem.X, problem.y, **problem.options)
    except NotUnique as error:
        raise Skipped(str(error)) from None
    if not np.isfinite(oracle.t0):
        raise Skipped("nothing enters")
    paths = [bregpath.trace_path(problem.X, problem.y, n_times=40, tol=tol, **problem.options) for tol in tols]
    return {tol: float(oracle.error(path.t, path.coef).max()) / tol for tol, path in zip(tols, paths, strict=True)}


def _line(name: str, found: list[float]) -> str:
    x = np.array(found)
    return f"{name:28} {len(x):5d} {np.median(x):8.3f} {np.sum(x > 1):6d} {np.sum(x > 2):6d} {x.max():10.3g}"


def report(outcomes: list[Outcome]) -> None:
    """Tables by loss and penalty, then the worst."""
    measured = [o for o in outcomes if o.status == "held"]
    for tol in sorted({tol for o in measured for tol in o.result}, reverse=True):
        print(f"\nerror / tol at tol={tol:g}\n{'':28} {'paths':>5} {'median':>8} {'> 1':>6} {'> 2':>6} {'largest':>10}")
        by: dict[str, list[float]] = defaultdict(list)
        for o in measured:
            options = make_problem(o.task[0])
            for name in ("all", options.options["loss"], " ".join([options.options["penalty"], *options.traits])):
                by[name].append(o.result[tol])
        for name in ["all", *sorted(set(by) - {"all"})]:
            print(_line(name, by[name]))
        print("the worst:")
        for o in sorted(measured, key=lambda o: -o.result[tol])[:10]:
            if o.result[tol] > 1:
                problem = make_problem(o.task[0])
                kappa, scaled = problem.options["kappa"], problem.options["standardize"]
                print(f"  {o.result[tol]:10.3g}  --seed {o.task[0]} --count 1 --tol {tol:g}  "
                      f"({problem.kind}, kappa={kappa:.3g}, standardize={scaled})")  # fmt: skip
    for o in outcomes:
        if o.status not in ("held", "skipped"):
            print(f"{o.status}: --seed {o.task[0]} --count 1  ({make_problem(o.task[0]).kind})  {o.text}")
    print(f"{sum(o.status == 'skipped' for o in outcomes)} of {len(outcomes)} problems skipped")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.accuracy", description=__doc__)
    parser.add_argument("--tol", type=float, nargs="+", default=list(TOLS))
    parser.add_argument("--count", type=int, default=200, help="number of problems")
    parser.add_argument("--seed", type=int, default=0, help="of the first problem; the next has the next number")
    parser.add_argument("--only", default="", help='problems of this kind, such as "huber" or "l1 box"')
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    seeds = (s for s in range(args.seed, args.seed + args.count) if args.only in make_problem(s).kind)
    tasks = ((seed, tuple(args.tol)) for seed in seeds)
    report(list(supervise("tests.fuzz.accuracy:errors", tasks, jobs=args.jobs, limit=LIMIT)))


if __name__ == "__main__":
    main()
