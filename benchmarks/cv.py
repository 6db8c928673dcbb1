"""From data to a cross-validated model, 5 folds: ``python -m benchmarks.cv``.

Every system uses its own folds and its own score (deviance or squared error) over the same window, one thread. bregpath
stops when its curve has clearly turned, as a user gets it; the others have no such rule and run the window out. Then,
where a system can, one path on all rows is timed that ends at the model it chose.
"""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.cases import CASES, DEFAULT_CASES, is_present, make_data
from benchmarks.judge import CHOSEN_TARGETS, CV_TARGETS, judge, mark
from benchmarks.machine import describe_machine, write_json
from benchmarks.measure import Plan, calibrate, time_jobs
from benchmarks.peers import PEERS, asked
from benchmarks.processes import find_peers
from benchmarks.report import cell, cell_of_ratio, print_errors, table, yes

TARGETS = {"cv": CV_TARGETS, "chosen": CHOSEN_TARGETS}
# An end in variables is no question of cross-validation.
CV_CASES = tuple(name for name in DEFAULT_CASES if not CASES[name].dfmax)


def run_case(name: str, loss: str, commands: dict[str, list[str]], plan: Plan, quick: bool) -> dict[str, Any]:
    """One row: for each of the two jobs the seconds of every system, and how they compare with ours."""
    data = make_data(CASES[name].quick() if quick else CASES[name], loss)
    some = {peer: command for peer, command in commands.items() if PEERS[peer].validates(name, loss)}
    speed = [calibrate()]
    results = time_jobs(data, some, plan, tuple(TARGETS))
    speed.append(calibrate())
    row = {"case": name, "loss": loss, "n": data.X.shape[0], "p": data.X.shape[1], "sparse": data.sparse}
    row["calibration"] = speed
    for job, systems in results.items():
        mark(systems, data.sparse, loss, same_path=False)
        target = None if quick else TARGETS[job].get(loss, {}).get(name)
        row[job] = {**judge(systems, target), "systems": systems}
    return row


def print_cv(row: dict[str, Any], names: list[str], header: bool) -> None:
    head = ["case", "loss", "", *names, "best/ours", "target", "met"]
    lines = []
    for job in TARGETS:
        part = row[job]
        seconds = [cell(part["systems"].get(name)) for name in names]
        target = "-" if part["target"] is None else f">= {part['target']:g}"
        lines.append([row["case"], row["loss"], job, *seconds, cell_of_ratio(part), target, yes(part["met"])])
    print(table(head, lines, header, [9, 9, 7, *(9 for _ in names), 9, 6, 3]), flush=True)


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cv", description=__doc__)
    parser.add_argument("--cases", default=",".join(CV_CASES))
    parser.add_argument("--losses", default="logistic,gaussian,multinomial")
    names = ",".join(asked("validates"))
    parser.add_argument("--peers", default=names, help=f"some of {names}")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--limit", type=float, default=40.0, help="seconds a cross-validation of a peer may take")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="benchmarks/results")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    args = parse(argv)
    commands, missing = find_peers(args.peers.split(","))
    for name in missing:
        print(f"skipped, not installed: {name}")
    plan = Plan(repeats=1 if args.quick else args.repeats, limit=args.limit, slow=5.0, budget=8.0)
    record: dict[str, Any] = {"machine": describe_machine(), "quick": args.quick, "skipped": missing, "rows": []}
    for loss in args.losses.split(","):
        for name in args.cases.split(","):
            if loss not in CASES[name].losses:
                continue
            if not is_present(CASES[name]):
                print(f"skipped, no data: {name}")
                continue
            record["rows"].append(run_case(name, loss, commands, plan, args.quick))
            print_cv(record["rows"][-1], list(commands), header=len(record["rows"]) == 1)
            write_json(args.out, "cv.json", record)
    for row in record["rows"]:
        for job in TARGETS:
            print_errors(row, row[job]["systems"])
    print(f"written: {args.out}/cv.json")
    return record


if __name__ == "__main__":
    main()
