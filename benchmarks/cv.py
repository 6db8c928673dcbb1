"""From data to a cross-validated model, 5 folds: ``python -m benchmarks.cv``.

Every system uses its own folds and its own score (deviance or squared error) over the same window, one thread.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.cases import CASES, make_data
from benchmarks.machine import describe_machine, write_json
from benchmarks.measure import Plan, side_by_side
from benchmarks.peers import OURS, PEERS
from benchmarks.processes import find_peers
from benchmarks.report import cell, table

WITH_CV = (OURS, "glmnet", "adelie", "sklearn")


def run_case(name: str, loss: str, commands: dict[str, list[str]], plan: Plan, quick: bool) -> dict[str, Any]:
    """One row: seconds of every system, and the best peer's time over ours."""
    data = make_data(CASES[name].quick() if quick else CASES[name], loss)
    some = {peer: command for peer, command in commands.items() if PEERS[peer].applies(name, loss)}
    results = side_by_side(data, some, plan, job="cv")
    ours = results.get(OURS, {}).get("seconds")
    rivals = [result["seconds"] for peer, result in results.items() if peer != OURS and "seconds" in result]
    ratio = min(rivals) / ours if rivals and ours else None
    return {"case": name, "loss": loss, "ratio": ratio, "systems": results}


def print_cv(rows: list[dict[str, Any]], names: list[str], header: bool = True) -> None:
    head = ["case", "loss", *names, "best/ours"]
    lines = [
        [row["case"], row["loss"], *(cell(row["systems"].get(name)) for name in names),
         "-" if row["ratio"] is None else f"{row['ratio']:.2f}"]
        for row in rows
    ]  # fmt: skip
    print(table(head, lines, header, [9, 9, *(10 for _ in names), 9]), flush=True)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cv", description=__doc__)
    parser.add_argument("--cases", default="a,b,c,d,cancer")
    parser.add_argument("--losses", default="logistic,gaussian")
    parser.add_argument("--peers", default=",".join(WITH_CV), help=f"some of {', '.join(WITH_CV)}")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a cross-validation may take")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
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
    for row in record["rows"]:
        for name, result in row["systems"].items():
            if "error" in result:
                print(f"error: {name} at {row['case']} {row['loss']}: {result['error']}")
    print(f"written: {args.out}/cv.json")
    return record


if __name__ == "__main__":
    main()
