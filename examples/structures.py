"""Signals, an image and the coefficients of a spectrum: what `structure=` finds in data whose truth is known.

    python examples/structures.py --out structures

Everything is simulated, with a fixed seed. Three pictures are written: ``signals.png`` (a signal with jumps, a broken
line), ``image.png`` (total variation) and ``spectrum.png`` (a regression whose coefficients are constant in pieces,
with and without that knowledge).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import bregpath

INK, TRUTH, OURS, DENSE = "#BBBBBB", "#000000", "#D55E00", "#56B4E9"
LINE = {"truth": {"color": TRUTH, "linewidth": 1.0, "linestyle": "--"}, "ours": {"color": OURS, "linewidth": 1.6}}


def choose(X: np.ndarray | None, y: np.ndarray, **options: object) -> tuple[bregpath.structures.StructuredPath, float]:
    """The path, and the time that cross-validation chooses on it."""
    selection = bregpath.cross_validate(X, y, **options)
    return selection.path, selection.t


def tell(name: str, estimate: np.ndarray, truth: np.ndarray, y: np.ndarray, pieces: int) -> None:
    before, after = np.mean((y - truth) ** 2), np.mean((estimate - truth) ** 2)
    print(f"{name}: mean squared error {before:.4f} as measured, {after:.4f} as found, {pieces} pieces")


def signals(rng: np.random.Generator, n: int) -> plt.Figure:
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), constrained_layout=True)
    levels = np.repeat([0.0, 1.5, 1.0, -1.0, 0.5], n // 5)
    line = np.interp(np.arange(n), n * np.array([0, 0.25, 0.55, 0.8, 1]), [0.0, 1.5, -1.0, 0.5, 0.0])
    for ax, truth, structure in zip(axes, (levels, line), ("fused", "trend"), strict=True):
        y = truth + 0.4 * rng.normal(size=n)
        path, t = choose(None, y, structure=structure, flow="giss", t_ratio=30.0)
        ax.plot(y, ".", color=INK, markersize=3, label="measured")
        ax.plot(path.at(t, "dense").coef, color=DENSE, linewidth=1.2, label="dense estimate")
        ax.plot(path.at(t).coef, **LINE["ours"], label="projected estimate")
        ax.plot(truth, **LINE["truth"], label="truth")
        ax.set_title(f'structure="{structure}"', loc="left")
        ax.set_xlabel("Position")
        tell(structure, path.at(t).coef, truth, y, int(path.df[np.searchsorted(path.t, t)]))
    axes[0].set_ylabel("Value")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def picture(rng: np.random.Generator, n: int) -> plt.Figure:
    row, column = np.mgrid[:n, :n] / n
    truth = 1.0 * ((row - 0.4) ** 2 + (column - 0.35) ** 2 < 0.07) - 1.0 * ((row > 0.55) & (column > 0.5) & (row < 0.9))
    y = truth + 0.4 * rng.normal(size=(n, n))
    path, t = choose(None, y.ravel(), structure=("grid", (n, n)), t_ratio=20.0, n_times=50)
    found = path.at(t).coef.reshape(n, n)
    tell("grid", found, truth, y, int(path.df[np.searchsorted(path.t, t)]))
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), constrained_layout=True)
    for ax, values, title in zip(axes, (y, found, truth), ("Measured", "Found", "Truth"), strict=True):
        ax.imshow(values, vmin=-1.5, vmax=1.5, cmap="gray", interpolation="nearest")
        ax.set_title(title, loc="left")
        ax.set_axis_off()
    return figure


def spectrum(rng: np.random.Generator, p: int) -> plt.Figure:
    truth = np.repeat([0.0, 0.3, -0.2, 0.0, 0.1], p // 5)
    X = rng.normal(size=(3 * p // 4, p))
    y = X @ truth + rng.normal(size=len(X))
    path, t = choose(X, y, structure="fused", flow="giss")
    plain = bregpath.cross_validate(X, y)
    without = plain.path.at(plain.t).coef
    for name, coef in (("with structure", path.at(t).coef), ("without", without)):
        error = np.linalg.norm(coef - truth) / np.linalg.norm(truth)
        print(f"spectrum, {name}: relative error of the coefficients {error:.2f}")
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), constrained_layout=True, sharey=True)
    titled = {"Sparse coefficients": without, 'structure="fused"': path.at(t).coef}
    for ax, (title, coef) in zip(axes, titled.items(), strict=True):
        ax.plot(coef, **LINE["ours"], label="found")
        ax.plot(truth, **LINE["truth"], label="truth")
        ax.set_title(title, loc="left")
        ax.set_xlabel("Channel")
    axes[0].set_ylabel("Coefficient")
    axes[0].legend(frameon=False, fontsize=8)
    return figure


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="structures", help="folder for the pictures")
    parser.add_argument("--small", action="store_true", help="less data, for a first look")
    args = parser.parse_args(argv)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    sizes = (100, 12, 40) if args.small else (500, 64, 200)
    for name, draw, size in zip(("signals", "image", "spectrum"), (signals, picture, spectrum), sizes, strict=True):
        figure = draw(np.random.default_rng(7), size)
        figure.savefig(out / f"{name}.png", dpi=100)
    print(f"\nwritten: {out}/signals.png, image.png, spectrum.png")


if __name__ == "__main__":
    main()
