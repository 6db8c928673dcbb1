"""How fast paths converge to their limits: ``python -m benchmarks.theory_limits``. JSON and a figure.

* Adaptive steps to the flow as ``tol`` goes to zero, and the paper's fixed steps to it as they go to zero: the largest
  error of a coefficient at 200 times, relative to the largest coefficient. The flow is a path with tol = 1e-7.
* The flow to inverse scale space as kappa grows: that path jumps, so the error is the mean over time, of all
  coefficients relative to their size; and that of the entry times, of columns that enter in both.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import bregpath
from benchmarks.machine import describe_machine, write_json
from benchmarks.theory_figures import draw_rates

TOLS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
STEPS = tuple(0.02 / 2**k for k in range(7))
KAPPAS = tuple(10.0 * 2**k for k in range(9))
N, P, S, SEED = 200, 30, 5, 0
WINDOW = 50.0  # times t0
SIMULATORS = {"gaussian": bregpath.datasets.make_linear, "logistic": bregpath.datasets.make_logistic}


def order(sizes: list[float], errors: list[float]) -> float:
    """The power of the size with which the error falls: slope of the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(errors), 1)[0])


def coefficients(path: bregpath.Path, times: np.ndarray) -> np.ndarray:
    """Of all columns at some times."""
    _, columns, values = path.read(times)
    out = np.zeros((len(times), path.n_features))
    out[:, columns] = values[:, :, 0]
    return out


def to_flow(data: Any, loss: str) -> dict[str, Any]:
    """Errors of adaptive and fixed steps."""
    options = {"loss": loss, "standardize": False, "t_ratio": WINDOW, "saturation": None}
    flow = bregpath.trace_path(data.X, data.y, tol=1e-7, **options)
    times = np.geomspace(flow.t[0], flow.t[-1], 200)
    exact = coefficients(flow, times)

    def error(**more: Any) -> float:
        path = bregpath.trace_path(data.X, data.y, **options, **more)
        return float(np.abs(coefficients(path, times) - exact).max() / np.abs(exact).max())

    return {
        "tol": curve(TOLS, [error(tol=tol) for tol in TOLS]),
        "step": curve(STEPS, [error(step=step) for step in STEPS]),
    }


def to_inverse_scale_space(data: Any, loss: str) -> dict[str, Any]:
    """Errors of the flow with a finite kappa, and of its entry times."""
    options = {"loss": loss, "standardize": False, "t_ratio": WINDOW, "saturation": None}
    limit = bregpath.trace_path(data.X, data.y, flow="giss", **options)
    times = np.linspace(limit.t[0], limit.t[-1], 20_000)
    exact = coefficients(limit, times)
    means, entries = [], []
    for kappa in KAPPAS:
        path = bregpath.trace_path(data.X, data.y, kappa=kappa, tol=1e-5, **options)
        means.append(float(np.abs(coefficients(path, times) - exact).sum() / np.abs(exact).sum()))
        both = np.isfinite(path.entry_times) & np.isfinite(limit.entry_times)
        entries.append(float(np.max(np.abs(path.entry_times[both] / limit.entry_times[both] - 1))))
    sizes = [1 / kappa for kappa in KAPPAS]
    return {"1 / kappa": curve(sizes, means), "1 / kappa, entry times": curve(sizes, entries)}


def curve(sizes: Any, errors: list[float]) -> dict[str, Any]:
    return {"size": list(sizes), "error": errors, "order": order(list(sizes), errors)}


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.theory_limits", description=__doc__)
    parser.add_argument("--losses", default="gaussian,logistic")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    record: dict[str, Any] = {"machine": describe_machine(), "n": N, "p": P, "s": S, "losses": {}}
    for loss in args.losses.split(","):
        data = SIMULATORS[loss](N, P, S, seed=SEED)
        record["losses"][loss] = to_flow(data, loss) | to_inverse_scale_space(data, loss)
        for name, found in record["losses"][loss].items():
            print(f"{loss:9} {name:24} order {found['order']:.2f}  {[f'{e:.1e}' for e in found['error']]}", flush=True)
    write_json(args.out, "theory_limits.json", record)
    print(f"written: {args.out}/theory_limits.json, {draw_rates(record, args.out)}")
    return record


if __name__ == "__main__":
    main()
