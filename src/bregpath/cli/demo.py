"""``bregpath demo``: a real analysis of data that ships with scikit-learn."""

from __future__ import annotations

import argparse
import importlib.util
import os

import numpy as np

from bregpath._typing import Array
from bregpath.cli.data import Data
from bregpath.cli.fit import choose
from bregpath.cli.output import print_model, print_path, save_figure, size
from bregpath.path import Path
from bregpath.selection.result import Selection

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    where = "folder for the figures (default: %(default)s)"
    parser.add_argument("--out", metavar="DIR", default="bregpath-demo", help=where)


def run(args: argparse.Namespace) -> None:
    """Run the command."""
    from sklearn.datasets import load_breast_cancer, load_diabetes

    os.makedirs(args.out, exist_ok=True)
    cancer, diabetes = load_breast_cancer(), load_diabetes(scaled=False)
    _analyse(
        "Breast cancer: 569 tumours, 30 measurements of cell nuclei; which ones tell malignant from benign?",
        Data(cancer.data, cancer.target_names[cancer.target], list(cancer.feature_names)),
        "logistic",
        os.path.join(args.out, "breast_cancer"),
    )
    _analyse(
        "Diabetes: 442 patients, 10 measurements; which ones predict the progression of the disease?",
        Data(diabetes.data, diabetes.target, list(diabetes.feature_names)),
        "gaussian",
        os.path.join(args.out, "diabetes"),
    )


def _analyse(question: str, data: Data, loss: str, stem: str) -> None:
    """One data set of the demo: path, cross-validation, model, figures."""
    print(f"\n{question}\n")
    selection, path = choose(data, "cv-1se", {"loss": loss})
    print_path(path)
    print(f"\n{selection.summary(model=False)}")
    print(f"The smallest model within one standard error of the best has {size(path, selection.t)}.")
    print(_held_out(selection, path, data.y) + "\n")
    print_model(path, selection.t)
    print()
    if importlib.util.find_spec("matplotlib") is None:
        print("No figures: they need matplotlib (pip install bregpath[plot]).")
        return
    marks = {"t_1se": selection.t_1se, "t_min": selection.t_min}
    title = os.path.basename(stem).replace("_", " ").capitalize()
    save_figure(lambda ax: path.plot(ax=ax, mark=marks, standardized=True, title=title), f"{stem}_path.png")
    save_figure(lambda ax: selection.plot(ax=ax), f"{stem}_selection.png")


def _held_out(selection: Selection, path: Path, y: Array) -> str:
    """How the chosen model does on rows that its fold has not seen."""
    assert selection.out_of_fold is not None
    eta = selection.out_of_fold[int(np.argmin(np.abs(selection.times - selection.t)))]
    if path.classes is not None:
        wrong = np.mean((eta > 0) != (np.asarray(y) == path.classes[1]))
        return f"On held-out rows it errs in {100 * wrong:.1f} % of the cases."
    share = 1 - np.sum((y - eta) ** 2) / np.sum((y - np.mean(y)) ** 2)
    return f"On held-out rows it explains {100 * share:.1f} % of the variance."
