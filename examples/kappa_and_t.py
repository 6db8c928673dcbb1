"""What kappa and t do, in three pictures: the same data with several kappas, as means over time, and the choice.

    python examples/kappa_and_t.py --out docs/images

Needs no files: the data are simulated (six true variables among forty correlated ones, some of them strong), and the
breast cancer data of scikit-learn.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer

import bregpath
from bregpath.plots import style

KAPPAS = (0.1, 1.0, 10.0)


def correlated(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, responses and true coefficients; neighbours are correlated (0.7)."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, 40))
    for j in range(1, 40):
        X[:, j] = 0.7 * X[:, j - 1] + np.sqrt(1 - 0.7**2) * X[:, j]
    coef = np.zeros(40)
    coef[[2, 9, 16, 23, 30, 37]] = [2.0, -1.6, 1.2, 1.0, -0.8, 0.6]
    return X, X @ coef + 1.5 * rng.normal(size=120), coef


def draw_paths(file: Path) -> None:
    """One panel a kappa: true variables in colours, the others in grey, true sizes at the right."""
    X, y, truth = correlated()
    panels = style.subplots(1, len(KAPPAS), figsize=(12.0, 3.9), sharey=True)[0]
    for ax, kappa in zip(panels, KAPPAS, strict=True):
        selection = bregpath.cross_validate(X, y, kappa=kappa, t_ratio=35 * max(1.0, 10 / kappa), full=True)
        draw_panel(ax, selection, truth, f"κ = {kappa:g}", first=kappa == KAPPAS[0])
    panels[0].figure.savefig(file, dpi=110)


def draw_means(file: Path) -> None:
    """The path of kappa = 10, and its means over time."""
    X, y, truth = correlated()
    kinds = {"The path": None, "Its linear mean": "linear", "Its uniform mean": "uniform"}
    panels = style.subplots(1, len(kinds), figsize=(12.0, 3.9), sharey=True)[0]
    for ax, (name, average) in zip(panels, kinds.items(), strict=True):
        selection = bregpath.cross_validate(X, y, average=average, t_ratio=35, full=True)
        draw_panel(ax, selection, truth, name, first=average is None)
    panels[0].figure.savefig(file, dpi=110)


def draw_panel(ax: Any, selection: bregpath.Selection, truth: np.ndarray, name: str, first: bool) -> None:
    path = selection.path
    style.new_axes(ax)
    style.log_time_axis(ax, path.t)
    for j in np.flatnonzero(truth == 0):
        ax.plot(path.t, path.coef[:, j], color=style.FAINT, linewidth=0.7)
    for i, j in enumerate(np.flatnonzero(truth)):
        ax.plot(path.t, path.coef[:, j], linewidth=1.5, **style.curve_style(i))
        ax.plot(path.t[-1] * 1.12, truth[j], "<", color=style.curve_style(i)["color"], markersize=5, clip_on=False)
    inside = path.support(selection.t_min)
    right = np.count_nonzero(truth[inside])
    style.mark_times(ax, {"t_min": selection.t_min})
    words = f"{name}: {right} true, {len(inside) - right} other variables"
    style.label_axes(ax, style.TIME_LABEL, "Coefficient" if first else "", words)
    ax.title.set_fontsize(9.5)


def draw_choice(file: Path) -> dict[str, Any]:
    """Curves by kappa where few variables matter, and where many do a little."""
    sparse, cancer = correlated(), load_breast_cancer(return_X_y=True)
    panels = style.subplots(1, 2, figsize=(12.0, 4.4))[0]
    chosen = {
        "Six strong variables of forty": bregpath.cross_validate(*sparse[:2], kappa="cv"),
        "Breast cancer, thirty correlated measurements": bregpath.cross_validate(*cancer, loss="logistic", kappa="cv"),
    }
    for ax, (title, selection) in zip(panels, chosen.items(), strict=True):
        selection.plot(ax=ax, title=title)
    panels[0].figure.savefig(file, dpi=110)
    return chosen


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default="kappa_and_t", help="folder of the pictures")
    args = parser.parse_args(argv)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    draw_paths(out / "kappa_paths.png")
    draw_means(out / "kappa_means.png")
    for title, selection in draw_choice(out / "kappa_choice.png").items():
        print(f"{title}\n{selection.summary(model=False)}")
        for name, one in (("best", selection), ("sparse", selection.sparse())):
            print(f"{name}: kappa = {one.kappa:g}, {len(one.path.support(one.t))} variables")
    print(f"\nwritten: {out}/kappa_paths.png, kappa_means.png, kappa_choice.png")


if __name__ == "__main__":
    main()
