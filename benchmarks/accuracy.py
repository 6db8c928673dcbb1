"""What speed costs in accuracy, and what the plain iteration costs: ``python -m benchmarks.accuracy``.

The default path is compared with finer ones of the same dynamics: adaptive steps with a hundredth of the tolerance
(everywhere), and fixed steps, ten times finer than the default's mean and the paper's (--fixed) or a hundred times
(--finest). A fixed step has an error of first order: at kappa * delta = 0.1, about 2 % of the largest coefficient for
the squared loss, as the distance between the references shows. So that row alone does not judge the default.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

import numpy as np
from scipy.stats import kendalltau

import bregpath
from benchmarks.cases import CASES, Data, make_data
from benchmarks.machine import describe_machine, write_json
from benchmarks.report import number, table, yes
from bregpath._kernels import UnstableStepError

TOL, KAPPA = 0.01, 10.0
TAU_TARGET, DEVIATION_TARGET, PLAIN_TARGET = 0.995, 0.006, 30.0


def trace(data: Data, **options: Any) -> tuple[Any, float]:
    """A path, its 100 models read as in the timing, and the seconds both took."""
    begun = time.perf_counter()
    arguments = {"loss": data.loss, "t_ratio": 1.0 / data.ratio, "n_times": data.points, "kappa": KAPPA, **options}
    path = bregpath.trace_path(data.X, data.y, **arguments)
    _ = path.coef_sparse, path.intercept
    return path, time.perf_counter() - begun


def compare(path: Any, reference: Any) -> dict[str, Any]:
    """Variables, entry order and coefficients of two paths, up to the end of the shorter one."""
    end = min(path.t[-1], reference.t[-1]) * (1 + 1e-9)
    entered = [one.entry_times <= end for one in (path, reference)]
    both = entered[0] & entered[1]
    tau = kendalltau(path.entry_times[both], reference.entry_times[both]).statistic if both.sum() > 1 else 1.0
    m = min(np.count_nonzero(path.t < end), np.count_nonzero(reference.t < end))
    m -= int(not np.isclose(path.t[m - 1], reference.t[m - 1]))  # the time of an early end is not on the grid
    ours, theirs = path.coef_sparse[:m].tocsc(), reference.coef_sparse[:m].tocsc()
    columns = np.flatnonzero((np.diff(ours.indptr) > 0) | (np.diff(theirs.indptr) > 0))
    gap = np.abs(ours[:, columns].toarray() - theirs[:, columns].toarray()).max(axis=1)
    size = np.abs(theirs[:, columns].toarray()).max(axis=1)
    return {
        "variables": int(entered[1].sum()),
        "different_variables": int((entered[0] ^ entered[1]).sum()),
        "kendall_tau": float(tau),
        "deviation": float(gap.max() / size.max()),  # relative to the largest of the window
        "deviation_at_its_time": float(np.max(gap[size > 0] / size[size > 0], initial=0.0)),
        "times_compared": int(m),
    }


def accuracy(data: Data, fixed: list[str]) -> dict[str, Any]:
    """The default against its references."""
    runs = [trace(data) for _ in range(3)]
    path, seconds = runs[0][0], statistics.median(seconds for _, seconds in runs)
    fine, fine_seconds = trace(data, tol=TOL / 100)
    row: dict[str, Any] = {"seconds": seconds, "steps": path.stats.steps}
    row["references"] = {"tol/100": {**compare(path, fine), "steps": fine.stats.steps, "seconds": fine_seconds}}
    coarse = min((path.t[-1] - path.t[0]) / (10 * path.stats.steps), 0.1 / KAPPA)
    for label, step in zip(("fixed/10", "fixed/100"), (coarse, coarse / 10), strict=True):
        if label in fixed:
            other, fine_seconds = trace(data, step=step)
            row["references"][label] = {
                **compare(path, other), "steps": other.stats.steps, "seconds": fine_seconds, "step": step,
                "own_deviation": compare(other, fine)["deviation"],  # how far the reference itself is from tol/100
            }  # fmt: skip
    for reference in row["references"].values():
        reference["met"] = bool(
            reference["different_variables"] == 0
            and reference["kendall_tau"] >= TAU_TARGET
            and reference["deviation"] <= DEVIATION_TARGET
        )
    return row


def plain(data: Data, short: bool) -> dict[str, Any]:
    """Seconds of the plain iteration: no screening, fixed step with kappa * delta = 1 (halved while unstable).

    ``short`` times two short windows and extrapolates their cost a step to the whole one. The active set is still
    small there, so that the true time is larger.
    """
    t0 = float(bregpath.trace_path(data.X, data.y, loss=data.loss, t_ratio=1.001, n_times=2).t[0])
    step = 1.0 / KAPPA
    while True:
        try:
            if not short:
                path, seconds = trace(data, step=step, screening=False)
                return {"seconds": seconds, "steps": path.stats.steps, "step": step, "extrapolated": False}
            steps, seconds = zip(*(_short(data, t0, step, count) for count in (50, 200)), strict=True)
            each = (seconds[1] - seconds[0]) / (steps[1] - steps[0])
            whole = int(np.ceil(t0 * (1.0 / data.ratio - 1.0) / step))
            total = seconds[0] + each * (whole - steps[0])
            return {"seconds": total, "steps": whole, "step": step, "extrapolated": True, "seconds_a_step": each}
        except UnstableStepError:
            step /= 2.0


def _short(data: Data, t0: float, step: float, count: int) -> tuple[int, float]:
    """Steps taken and seconds of the beginning of the window."""
    path, seconds = trace(data, step=step, screening=False, t_ratio=1.0 + count * step / t0, n_times=2)
    return path.stats.steps, seconds


def print_accuracy(rows: list[dict[str, Any]]) -> None:
    head = ["case", "loss", "reference", "steps", "variables", "differ", "tau", "max dev", "dev at t", "met"]
    head.append("ref vs tol/100")
    lines = []
    for row in rows:
        for label, r in row["references"].items():
            own = f"{100 * r['own_deviation']:.3f}%" if "own_deviation" in r else "-"
            lines.append([
                row["case"], row["loss"], label, f"{row['steps']}/{r['steps']}", str(r["variables"]),
                str(r["different_variables"]), f"{r['kendall_tau']:.4f}", f"{100 * r['deviation']:.3f}%",
                f"{100 * r['deviation_at_its_time']:.3f}%", yes(r["met"]), own,
            ])  # fmt: skip
    print(table(head, lines))
    print(f"targets: no variable differs, tau >= {TAU_TARGET:g}, max dev <= {DEVIATION_TARGET:.1%} of the largest")
    print("coefficient; dev at t: of the largest one at that time; last column: distance of references from tol/100.")
    for row in rows:
        if "plain" in row:
            r, ratio = row["plain"], row["plain"]["ratio"]
            how = "extrapolated from short windows" if r["extrapolated"] else "measured"
            judged = row["case"] == "c" and not row["quick"]
            target = f"; target >= {PLAIN_TARGET:g}: {yes(ratio >= PLAIN_TARGET)}" if judged else ""
            print(
                f"plain iteration, {row['case']} {row['loss']}: {number(r['seconds'])} s ({how}, {r['steps']} steps of "
                f"{r['step']:g}) / {number(row['seconds'])} s = {ratio:.1f}{target}"
            )


def run_case(name: str, loss: str, args: argparse.Namespace) -> dict[str, Any]:
    case = CASES[name].quick() if args.quick else CASES[name]
    data = make_data(case, loss)
    trace(data)  # warm
    wanted = {"fixed/10": args.fixed, "fixed/100": args.finest}
    fixed = [label for label, names in wanted.items() if name in names.split(",")]
    row = {"case": name, "loss": loss, "quick": args.quick, **accuracy(data, fixed)}
    if name in args.plain.split(","):
        row["plain"] = plain(data, short=case.n * case.p > 10_000_000)
        row["plain"]["ratio"] = row["plain"]["seconds"] / row["seconds"]
    return row


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy", description=__doc__)
    parser.add_argument("--cases", default="a,b,c")
    parser.add_argument("--losses", default="logistic,gaussian")
    parser.add_argument("--fixed", default="a,b", help="cases compared with fixed steps, ten times finer")
    parser.add_argument("--finest", default="a", help="the same, a hundred times finer")
    parser.add_argument("--plain", default="a,b,c", help="cases in which the plain iteration is timed")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    rows = [run_case(name, loss, args) for loss in args.losses.split(",") for name in args.cases.split(",")]
    record = {"machine": describe_machine(), "quick": args.quick, "rows": rows}
    print_accuracy(rows)
    print(f"written: {write_json(args.out, 'accuracy.json', record)}")
    return record


if __name__ == "__main__":
    main()
