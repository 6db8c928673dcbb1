"""Inverse scale space paths: ``python -m benchmarks.inverse_scale_space`` prints a table, writes
inverse_scale_space.json and the figure of the guide, inverse_scale_space.png.

Whole paths of squared loss, from the null model to least squares on all columns, against a lasso path of R's glmnet
over its window; and the time to the first knots where p is large. Libra's `iss` is not run: its recorded time relative
to glmnet's, times glmnet's time here.
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks.cases import CASES, make_data
from benchmarks.machine import describe_machine, write_json
from benchmarks.measure import Plan, calibrate, side_by_side
from benchmarks.peers import OURS
from benchmarks.processes import find_peers

WHOLE = {"flow": "giss", "t_ratio": 1e9, "saturation": None}
LIBRA = {"a": 0.101 / 0.0027, "b": 4.10 / 0.0112}  # iss over glmnet, recorded side by side
KNOTS = 200


def whole_path(name: str, plan: Plan, quick: bool) -> dict[str, Any]:
    """Seconds of a whole path, and of a lasso path of glmnet, in alternating rounds."""
    data = make_data(CASES[name].quick() if quick else CASES[name], "gaussian")
    commands, missing = find_peers([OURS, "glmnet"])
    speed = [calibrate()]
    systems = side_by_side(replace(data, options=WHOLE), commands, plan)
    row: dict[str, Any] = {"case": name, "missing": missing, "calibration": [*speed, calibrate()], "systems": systems}
    ours, glmnet = (systems.get(peer, {}).get("seconds") for peer in (OURS, "glmnet"))
    row |= {"ours": ours, "glmnet": glmnet, "libra": glmnet * LIBRA[name] if glmnet else None}
    return row | {"steps": systems[OURS]["stats"]["steps"]}


def first_knots(name: str, repeats: int, quick: bool) -> dict[str, Any]:
    """Seconds to the first knots of a path that is screened."""
    from bregpath import StopAtVariables, trace_path

    data = make_data(CASES[name].quick() if quick else CASES[name], "gaussian")
    wanted, seconds = 20 if quick else KNOTS, []
    for _ in range(repeats + 1):
        begin = time.perf_counter()
        path = trace_path(data.X, data.y, flow="giss", stop=StopAtVariables(wanted), t_ratio=1000.0)
        seconds.append(time.perf_counter() - begin)
    return {
        "case": name,
        "seconds": statistics.median(seconds[1:]),
        "knots": len(path.event_times),
        "working_columns": path.stats.working_columns,
    }


def draw(file: str) -> None:
    """Paths of the diabetes data for growing kappa."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from sklearn.datasets import load_diabetes

    from bregpath import trace_path

    X, y = load_diabetes(return_X_y=True, as_frame=True)
    figure, axes = plt.subplots(1, 4, figsize=(15, 4), sharey=True, layout="constrained")
    # The last first: its range is the largest, and labels are placed in the range that is known.
    for ax, kappa in zip(axes[::-1], (float("inf"), 100.0, 10.0, 1.0), strict=True):
        title = "inverse scale space" if kappa == float("inf") else f"kappa = {kappa:g}"
        path = trace_path(X, y, kappa=kappa, t_ratio=300.0, saturation=None)
        path.plot(ax=ax, standardized=True, top=5, title=title)
    for ax in axes[1:]:
        ax.set_ylabel("")
    figure.savefig(file, dpi=110)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inverse_scale_space", description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    plan = Plan(repeats=args.repeats)
    record: dict[str, Any] = {"machine": describe_machine(), "quick": args.quick}
    record["whole"] = [whole_path(name, plan, args.quick) for name in ("a", "b")]
    print("| case | knots | whole path, ms | glmnet's window, ms | Libra iss (recorded ratio), ms |")
    print("|---|---|---|---|---|")
    for row in record["whole"]:
        times = (f"{1e3 * row[key]:.1f}" if row[key] else "-" for key in ("ours", "glmnet", "libra"))
        print(f"| {row['case']} | {row['steps']} | {' | '.join(times)} |")
    row = record["first"] = first_knots("c", min(args.repeats, 3), args.quick)
    print(f"\n{row['case']}: {row['knots']} events, {row['seconds']:.2f} s, {row['working_columns']} columns worked on")
    write_json(args.out, "inverse_scale_space.json", record)
    draw(str(Path(args.out) / "inverse_scale_space.png"))
    return record


if __name__ == "__main__":
    main()
