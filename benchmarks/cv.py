"""From data to a cross-validated model, 5 folds: ``python -m benchmarks.cv``.

Every system uses its own folds and its own score (deviance or squared error) over the same window, one thread. bregpath
stops when its curve has clearly turned, as a user gets it; the others have no such rule and run the window out. What
bregpath costs is told in single paths of its own, too: to the end of the window, timed before and after in one run.
"""

from __future__ import annotations

import argparse
import statistics
from typing import Any

from benchmarks.cases import CASES, Data, make_data
from benchmarks.machine import describe_machine, write_json
from benchmarks.measure import Plan, calibrate, side_by_side
from benchmarks.peers import OURS, PEERS
from benchmarks.processes import find_peers
from benchmarks.report import cell, table, yes

WITH_CV = (OURS, "glmnet", "adelie", "sklearn")
# Cases with a promise: at least so many times faster than cv.glmnet and than the fastest Python peer ...
TARGET_CASES = {"logistic": ("a", "b", "d")}
TARGET_RATIO = 3.0
TARGET_PATHS = 3.5  # ... and at most so many single paths


def run_case(name: str, loss: str, commands: dict[str, list[str]], plan: Plan, quick: bool) -> dict[str, Any]:
    """One row: seconds of every system, and how they compare with ours."""
    data = make_data(CASES[name].quick() if quick else CASES[name], loss)
    some = {peer: command for peer, command in commands.items() if PEERS[peer].applies(name, loss)}
    speed = [calibrate()]
    paths = _time_paths(data, some, plan)
    results = side_by_side(data, some, plan, job="cv")
    paths += _time_paths(data, some, plan)
    speed.append(calibrate())
    single = statistics.median(paths) if paths else None
    row = {"case": name, "loss": loss, "single_path": single, "calibration": speed, "systems": results}
    return row | judge("" if quick else name, loss, results, single)


def _time_paths(data: Data, commands: dict[str, list[str]], plan: Plan) -> list[float]:
    """Seconds of single paths of bregpath, all rows, to the end of the window."""
    ours = {name: command for name, command in commands.items() if name == OURS}
    return side_by_side(data, ours, plan).get(OURS, {}).get("rounds", [])


def judge(case: str, loss: str, results: dict[str, dict[str, Any]], single: float | None) -> dict[str, Any]:
    """Times of glmnet and of the fastest Python peer over ours, our cost in single paths, and whether all is met."""
    seconds = {name: result["seconds"] for name, result in results.items() if "seconds" in result}
    ours = seconds.pop(OURS, None)
    python = {name: time for name, time in seconds.items() if PEERS[name].home != "R"}
    best = min(python, key=python.__getitem__, default=None)
    verdict: dict[str, Any] = {
        "to_glmnet": seconds["glmnet"] / ours if ours and "glmnet" in seconds else None,
        "python_peer": best,
        "to_python": python[best] / ours if ours and best else None,
        "single_paths": ours / single if ours and single else None,
        "met": None,
    }
    ratios = [verdict[key] for key in ("to_glmnet", "to_python") if verdict[key] is not None]
    if case in TARGET_CASES.get(loss, ()) and ratios and verdict["single_paths"]:
        verdict["met"] = min(ratios) >= TARGET_RATIO and verdict["single_paths"] <= TARGET_PATHS
    return verdict


def print_cv(rows: list[dict[str, Any]], names: list[str], header: bool = True) -> None:
    head = ["case", "loss", *names, "glmnet/ours", "python/ours", "single path", "cost in paths", "met"]

    def show(value: float | None, digits: int = 2) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    lines = [
        [row["case"], row["loss"], *(cell(row["systems"].get(name)) for name in names), show(row["to_glmnet"]),
         show(row["to_python"]), show(row["single_path"], 4), show(row["single_paths"]), yes(row["met"])]
        for row in rows
    ]  # fmt: skip
    print(table(head, lines, header, [9, 9, *(10 for _ in names), 11, 11, 11, 13, 3]), flush=True)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cv", description=__doc__)
    parser.add_argument("--cases", default="a,b,c,d,cancer")
    parser.add_argument("--losses", default="logistic,gaussian")
    parser.add_argument("--peers", default=",".join(WITH_CV), help=f"some of {', '.join(WITH_CV)}")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a cross-validation may take")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="benchmarks/results")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    args = parse(argv)
    commands, missing = find_peers([name for name in WITH_CV if name in args.peers.split(",")])
    for name in missing:
        print(f"skipped, not installed: {name}")
    plan = Plan(repeats=args.repeats, limit=args.limit)
    record: dict[str, Any] = {"machine": describe_machine(), "quick": args.quick, "rows": []}
    for loss in args.losses.split(","):
        for name in args.cases.split(","):
            if loss in CASES[name].losses:
                record["rows"].append(run_case(name, loss, commands, plan, args.quick))
                print_cv(record["rows"][-1:], list(commands), header=len(record["rows"]) == 1)
                write_json(args.out, "cv.json", record)
    print(f"targets: {TARGET_RATIO:g} times faster than glmnet and the best Python peer, {TARGET_PATHS:g} single paths")
    for row in record["rows"]:
        for name, result in row["systems"].items():
            if "error" in result:
                print(f"error: {name} at {row['case']} {row['loss']}: {result['error']}")
    print(f"written: {args.out}/cv.json")
    return record


if __name__ == "__main__":
    main()
