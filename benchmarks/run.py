"""Whole paths, side by side: ``python -m benchmarks.run``. Table, JSON and figure; README.md says what is compared."""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks.cases import CASES, DEFAULT_CASES, is_present, make_data
from benchmarks.judge import PATH_TARGETS, judge, mark
from benchmarks.machine import describe_machine, write_json
from benchmarks.measure import Plan, calibrate, side_by_side
from benchmarks.peers import OURS, PEERS, asked
from benchmarks.processes import find_peers
from benchmarks.report import LIBRA_TO_GLMNET, draw_times, print_notes, print_times

LIBRA_TARGET = 10.0


def recorded_libra(case: str, loss: str, results: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """Libra's recorded time relative to glmnet's, times glmnet's here, against ours."""
    ratio = LIBRA_TO_GLMNET.get(loss, {}).get(case)
    glmnet, ours = (results.get(name, {}).get("seconds") for name in ("glmnet", OURS))
    if not (ratio and glmnet and ours):
        return {}
    libra = ratio * glmnet
    return {"libra_seconds": libra, "libra_ratio": libra / ours, "libra_met": libra / ours >= LIBRA_TARGET}


def run_case(
    name: str, loss: str, commands: dict[str, list[str]], plan: Plan, args: argparse.Namespace
) -> dict[str, Any]:
    """One row of the table."""
    case = CASES[name].quick() if args.quick else CASES[name]
    data = make_data(case, loss, standardize=not args.no_standardize)
    some = {peer: command for peer, command in commands.items() if PEERS[peer].applies(name, loss)}
    speed = [calibrate()]
    results = side_by_side(data, some, plan)
    speed.append(calibrate())
    row = {"case": name, "loss": loss, "n": data.X.shape[0], "p": data.X.shape[1], "sparse": data.sparse}
    mark(results, data.sparse, loss, same_path=True)
    verdict = judge(results, None if args.quick else PATH_TARGETS.get(loss, {}).get(name))
    if not args.quick:
        verdict |= recorded_libra(name, loss, results)
    return {**row, **verdict, "calibration": speed, "systems": results}


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--cases", default=",".join(DEFAULT_CASES), help=f"some of {', '.join(CASES)}")
    parser.add_argument("--losses", default="logistic,gaussian,multinomial")
    parser.add_argument("--repeats", type=int, default=5, help="rounds; the median counts")
    parser.add_argument("--peers", default=",".join(asked("applies")), help=f"some of {', '.join(PEERS)}")
    parser.add_argument("--limit", type=float, default=Plan.limit, help="seconds a fit of a peer may take")
    parser.add_argument("--slow", type=float, default=Plan.slow, help="seconds beyond which a fit is not repeated")
    parser.add_argument("--quick", action="store_true", help="small data, to try the harness")
    parser.add_argument("--no-standardize", action="store_true", help="tell bregpath and glmnet to take X as it is")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    args.cases, args.losses, args.peers = (value.split(",") for value in (args.cases, args.losses, args.peers))
    choices = ((args.cases, CASES, "case"), (args.peers, PEERS, "peer"), (args.losses, PATH_TARGETS, "loss"))
    for given, known, what in choices:
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"no {what} {', '.join(unknown)}; there are {', '.join(known)}")
    return args


def main(argv: list[str] | None = None) -> dict[str, Any]:
    args = parse(argv)
    commands, missing = find_peers(args.peers)
    for name in missing:
        print(f"skipped, not installed: {name}")
    plan = Plan(repeats=1 if args.quick else args.repeats, limit=args.limit, slow=args.slow)
    record: dict[str, Any] = {"machine": describe_machine(), "plan": vars(plan), "quick": args.quick, "rows": []}
    record["skipped"] = missing
    for loss in args.losses:
        for name in args.cases:
            if loss not in CASES[name].losses:
                continue
            if not is_present(CASES[name]):
                print(f"skipped, no data: {name}")
                continue
            record["rows"].append(run_case(name, loss, commands, plan, args))
            print_times(record["rows"][-1:], args.peers, header=len(record["rows"]) == 1)
            write_json(args.out, "times.json", record)  # after every row: a long run may be interrupted
    print_notes(record["rows"])
    figure = draw_times(record, args.out)
    print(f"written: {args.out}/times.json" + (f", {figure}" if figure else ""))
    return record


if __name__ == "__main__":
    main()
