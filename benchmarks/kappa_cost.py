"""What choosing kappa costs: ``python -m benchmarks.kappa_cost``, cross-validation by several kappas against one.

Of simulated cases (``--cases a,b``), and of the data of the study (``--cases colon,a9a``), these with its folds and its
window, summed over some of its outer splits. Processor time, the least of some repeats.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import bregpath
from benchmarks.cases import CASES, make_data
from benchmarks.nested import Problem
from benchmarks.real_data import DATA, load, markdown, validate

WAYS: tuple[dict[str, Any], ...] = ({}, {"kappa": "cv"}, {"kappa": "cv", "average": None})  # the first is the measure
Run = Callable[..., Any]  # a cross-validation, of options


def seconds(run: Run, repeats: int) -> list[float]:
    """The shortest of some cross-validations in each of the `WAYS`, which take turns."""
    spent: list[list[float]] = [[] for _ in WAYS]
    for _ in range(repeats):
        for times, options in zip(spent, WAYS, strict=True):
            begun = time.process_time()
            run(**options)
            times.append(time.process_time() - begun)
    return [min(times) for times in spent]


def runs(cases: list[str], losses: list[str], splits: int) -> Iterator[tuple[str, list[Run]]]:
    """Names, and the cross-validations that make up each of them."""
    for case in cases:
        if case in DATA:
            problem = load(case, 1)
            yield case, [partial(validate, problem.loss, *inner(problem, j)) for j in range(splits)]
            continue
        for loss in losses:
            data = make_data(CASES[case], loss)
            yield f"{case}, {loss}", [partial(bregpath.cross_validate, data.X, data.y, loss=loss)]


def inner(problem: Problem, j: int) -> tuple[Any, Any, Any]:
    """Training rows of an outer split, and the folds among them."""
    train, _ = problem.parts(j)
    return problem.X[train], problem.y[train], problem.inner_folds(j)


def main(argv: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kappa_cost", description=__doc__)
    parser.add_argument("--cases", default="a,b,d,f", help="simulated ones, or data of the study, separated by commas")
    parser.add_argument("--losses", default="gaussian,logistic", help="of simulated cases")
    parser.add_argument("--splits", type=int, default=5, help="outer splits of the data of the study, at most 5")
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args(argv)
    if unknown := [case for case in args.cases.split(",") if case not in {**DATA, **CASES}]:
        parser.error(f"no case {', '.join(unknown)}; there are {', '.join({**DATA, **CASES})}")
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, parts in runs(args.cases.split(","), args.losses.split(","), args.splits):
            one, *several = map(sum, zip(*(seconds(run, args.repeats) for run in parts), strict=True))
            rows.append([name, f"{one:.3f}", *(f"{spent / one:.1f}" for spent in several)])
    table = markdown(["", "one kappa, seconds", 'kappa = "cv" / one', "without means / one"], rows)
    print(table)
    return table


if __name__ == "__main__":
    main()
