"""Signals and images with a sparse structure, against the l1 penalty: ``python -m benchmarks.structure``.

Three kinds of data whose truth is known: 1,000 points with jumps (differences are sparse), 1,000 points on a broken
line (second differences), an image of 64 x 64 pixels with flat regions (differences of neighbours). Ours is the path of
`trace_path(None, y, structure=...)` over t; the peer is the fused lasso, l1 trend filtering or total variation,

    minimise |y - b|^2 / 2 + lambda |D b|_1,

solved by cvxpy with the solver it chooses, over a grid of lambda. What is compared is the best point of each path, by
its mean squared error to the truth; what a rule would choose is not. The table is printed, and written to
``structure.md``.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import bregpath
from benchmarks.machine import write_page
from benchmarks.report import markdown
from benchmarks.selection_study import Record
from bregpath.structures import fused, grid, trend
from bregpath.structures.projection import Projection

NOISES = (0.3, 0.6, 1.0)  # standard deviations; that of the truth is 1
CHANGED = 1e-3  # of the standard deviation of the truth: a smaller difference of the peer's is none
WINDOW = {"t_ratio": 20.0, "n_times": 60}
# Inverse scale space goes from event to event: for few changes on a line, not for all the edges of an image.
ON_A_LINE = {"bregpath": {}, 'bregpath, flow="giss"': {"flow": "giss", "t_ratio": 10.0}}
IN_AN_IMAGE = {"bregpath": {}, "bregpath, kappa = 30": {"kappa": 30.0}}


def jumps(rng: np.random.Generator, n: int) -> np.ndarray:
    """Eight levels."""
    cuts = np.sort(rng.choice(np.arange(n // 50, n - n // 50), 7, replace=False))
    return rng.normal(size=8)[np.searchsorted(cuts, np.arange(n), side="right")]


def broken_line(rng: np.random.Generator, n: int) -> np.ndarray:
    """Five kinks."""
    cuts = np.sort(rng.choice(np.arange(n // 20, n - n // 20), 5, replace=False))
    return np.interp(np.arange(n), [0, *cuts, n - 1], rng.normal(size=7))


def image(rng: np.random.Generator, n: int) -> np.ndarray:
    """Four rectangles and ellipses, one over the other."""
    y, x = np.mgrid[:n, :n] / n
    out = np.zeros((n, n))
    for _ in range(4):
        (cx, cy), (w, h) = rng.uniform(0.2, 0.8, 2), rng.uniform(0.1, 0.3, 2)
        box = (np.abs(x - cx) < w) & (np.abs(y - cy) < h)
        out += rng.normal() * (box if rng.random() < 0.5 else ((x - cx) / w) ** 2 + ((y - cy) / h) ** 2 < 1)
    return out.ravel()


class Task(NamedTuple):
    name: str
    draw: Callable[[np.random.Generator, int], np.ndarray]
    n: int  # points on a line, or of a side
    structure: Any
    D: Any
    lambdas: np.ndarray
    ours: dict[str, dict[str, Any]]
    seeds: int

    def data(self, noise: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Truth, of mean 0 and variance 1, and what is measured."""
        rng = np.random.default_rng([20180409, seed])
        truth = self.draw(rng, self.n)
        truth = (truth - truth.mean()) / truth.std()
        return truth, truth + noise * rng.normal(size=len(truth))


def tasks(seeds: int, quick: bool) -> list[Task]:
    n, side, few = (200, 16, 6) if quick else (1000, 64, 20)
    prices, few_images = np.geomspace(0.05, 3, few), max(seeds // 2, 2)
    return [
        Task("jumps", jumps, n, "fused", fused(n), np.geomspace(0.5, 100, few), ON_A_LINE, seeds),
        Task("broken line", broken_line, n, "trend", trend(n), np.geomspace(5, 5000, few), ON_A_LINE, seeds),
        Task("image", image, side, ("grid", (side, side)), grid((side, side)), prices, IN_AN_IMAGE, few_images),
    ]


def ours(task: Task, truth: np.ndarray, y: np.ndarray, options: dict[str, Any]) -> dict[str, float]:
    began = time.perf_counter()
    path = bregpath.trace_path(None, y, structure=task.structure, **{**WINDOW, **options})
    coef = path.coef
    seconds = time.perf_counter() - began
    error = np.mean((coef - truth) ** 2, axis=1)
    best = int(error.argmin())
    inside = 0 < best < len(path.t) - 1
    return {"error": error[best], "pieces": path.df[best], "seconds": seconds, "inside": inside}


def peer(task: Task, truth: np.ndarray, y: np.ndarray) -> dict[str, float]:
    import cvxpy as cp

    b, price = cp.Variable(len(y)), cp.Parameter(nonneg=True)
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(b - y) + price * cp.norm1(task.D @ b)))
    began, found = time.perf_counter(), []
    for price.value in task.lambdas:
        problem.solve()
        found.append(b.value.copy())
    seconds = time.perf_counter() - began
    error = np.mean((np.array(found) - truth) ** 2, axis=1)
    best = int(error.argmin())
    pieces = Projection(task.D).dimension(np.abs(task.D @ found[best]) > CHANGED)
    return {"error": error[best], "pieces": pieces, "seconds": seconds, "inside": 0 < best < len(found) - 1}


def compare(task: Task, noise: float) -> list[list[str]]:
    """Rows of the table: ours, and the peer's."""
    records = {name: Record() for name in (*task.ours, "l1 (cvxpy)")}
    for seed in range(task.seeds):
        truth, y = task.data(noise, seed)
        measured = [ours(task, truth, y, options) for options in task.ours.values()] + [peer(task, truth, y)]
        for record, figures in zip(records.values(), measured, strict=True):
            record.add(**figures, better=figures["error"] <= measured[-1]["error"])
    rows = []
    for name, record in records.items():
        wins = "" if name.startswith("l1") else f"{sum(record.figures['better']):.0f} of {task.seeds}"
        cells = [record.cell("error", 4), wins, f"{record.mean('pieces'):.0f}", f"{record.mean('seconds'):.1f}"]
        rows.append([task.name, f"{noise:g}", name, *cells])
        print(*rows[-1], f"(best inside the window: {record.mean('inside'):.0%})", flush=True)
    return rows


def main(argv: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.structure", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small data: does the harness work?")
    parser.add_argument("--seeds", type=int, default=10, help="data sets of each kind; half as many images")
    parser.add_argument("--tasks", default="jumps,broken line,image")
    parser.add_argument("--noises", default=",".join(map(str, NOISES)))
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    wanted = args.tasks.split(",")
    noises = [float(noise) for noise in args.noises.split(",")]
    chosen = [task for task in tasks(2 if args.quick else args.seeds, args.quick) if task.name in wanted]
    rows = [row for task in chosen for noise in noises for row in compare(task, noise)]
    head = ["data", "noise", "method", "best squared error (s.e.)", "not worse than l1", "pieces", "seconds a path"]
    page = markdown(head, rows) + "\n"
    print(f"{page}written: {write_page(args.out, 'structure.md', page)}")
    return page


if __name__ == "__main__":
    main()
