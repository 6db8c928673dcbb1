"""What choosing kappa costs: ``python -m benchmarks.kappa_cost``, cross-validation by several kappas against one."""

from __future__ import annotations

import argparse
import time
import warnings
from typing import Any

import bregpath
from benchmarks.cases import CASES, Data, make_data
from benchmarks.real_data import markdown


def seconds(data: Data, loss: str, repeats: int, **options: Any) -> float:
    """The shortest of some cross-validations."""
    spent = []
    for _ in range(repeats):
        begun = time.perf_counter()
        bregpath.cross_validate(data.X, data.y, loss=loss, **options)
        spent.append(time.perf_counter() - begun)
    return min(spent)


def main(argv: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kappa_cost", description=__doc__)
    parser.add_argument("--cases", default="a,b,d,f", help="separated by commas")
    parser.add_argument("--losses", default="gaussian,logistic")
    parser.add_argument("--repeats", type=int, default=2)
    args = parser.parse_args(argv)
    rows = []
    for loss in args.losses.split(","):
        for case in args.cases.split(","):
            data = make_data(CASES[case], loss)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                one = seconds(data, loss, args.repeats)
                several = [seconds(data, loss, args.repeats, kappa="cv", average=mean) for mean in ("auto", None)]
                rows.append([f"{case}, {loss}", f"{one:.3f}", *(f"{spent / one:.1f}" for spent in several)])
    table = markdown(["", "one kappa, seconds", 'kappa = "cv" / one', "without means / one"], rows)
    print(table)
    return table


if __name__ == "__main__":
    main()
