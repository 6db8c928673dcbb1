"""``bregpath fit``: the path of a CSV file, and a model on it."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

import numpy as np

from bregpath._frames import ColumnEncoder, ColumnSpec
from bregpath._typing import Array
from bregpath.cli.data import Data, read_csv
from bregpath.cli.output import check_files, print_model, print_path, save_figure, size
from bregpath.path import Path
from bregpath.selection.kappas import CV_RULES, check_average, check_kappas, check_stop_of_kappas, chosen_by

__all__ = ["add_arguments", "choose", "run"]

CRITERIA = ("aic", "bic", "ebic")

_FIT_NOTES = """
examples:
  bregpath fit data.csv --target y
  bregpath fit patients.csv --target died --loss logistic --stop cv-1se --drop id --plot path.png
  bregpath fit data.csv --target y --kappa cv --stop cv-sparse
  bregpath fit data.csv --target y --stop bic --out path.npz

The CSV file has names in its first row. Text columns become one group of 0/1 indicators each
(needs pandas and narwhals). t is the time on the path, and plays the part of 1 / lambda in the lasso:
larger t, larger model.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from bregpath.losses import LOSSES

    parser.epilog = _FIT_NOTES
    parser.add_argument("data", metavar="DATA.csv", help="one row per observation, names in the first row")
    parser.add_argument("--target", required=True, metavar="COLUMN", help="column to predict")
    parser.add_argument(
        "--drop", action="append", default=[], metavar="COLUMN", help="column to ignore (may be repeated)"
    )
    parser.add_argument(
        "--loss", choices=["auto", *LOSSES], default="auto", metavar="LOSS",
        help=f"model of the target: {', '.join(LOSSES)}, or auto, which is gaussian for numbers and logistic or "
        "multinomial for text (default: auto)",
    )  # fmt: skip
    parser.add_argument(
        "--stop", default="cv", metavar="RULE",
        help="how the model is chosen: cv (best 5-fold cross-validation), cv-1se (smallest within one standard "
        "error of the best), cv-sparse (of several kappas: the best of the largest one within one standard error), "
        "aic, bic, ebic, or a time t (default: cv)",
    )  # fmt: skip
    parser.add_argument(
        "--kappa", default="10",
        help="damping; larger is less biased, inf is the limit; cv, or a list such as 1,3,10, chooses it with the "
        "model (default: 10)",
    )  # fmt: skip
    parser.add_argument(
        "--average", choices=["auto", "linear", "uniform", "none"], default="auto", metavar="MEAN",
        help="read the path as its mean over time, which is shrunken: linear (as Breiman's garrote), uniform (as the "
        "lasso) or none; auto is linear with --kappa cv, unless the path itself is clearly better, else none "
        "(default: auto)",
    )  # fmt: skip
    parser.add_argument(
        "--t-ratio", type=float, default=100.0, metavar="R",
        help="length of the path: it ends at R times the time of the first entry (default: 100)",
    )  # fmt: skip
    parser.add_argument("--out", metavar="FILE.npz", help="save the path; bregpath.load_path reads it in Python")
    parser.add_argument("--plot", metavar="FILE.png", help="save a figure of the path (png, pdf, svg)")


def run(args: argparse.Namespace) -> None:
    """Run the command."""
    stop, kappa = _stop_rule(args.stop), _kappa(args.kappa)
    check_stop_of_kappas(stop, check_kappas(kappa) is not None)
    average = check_average(None if args.average == "none" else args.average, kappa == "cv")
    check_files(args.out, args.plot)
    data = read_csv(args.data, args.target, args.drop)
    loss = _guess_loss(data.y) if args.loss == "auto" else args.loss
    print(f"{args.data}: {len(data.y)} rows, target {args.target!r}, loss {loss}, kappa {args.kappa}\n")
    options = {"loss": loss, "kappa": kappa, "t_ratio": args.t_ratio, "average": average}
    selection, path = choose(data, stop, options)
    print_path(path)
    t = selection.t if selection is not None else float(stop)
    print(f"\n{selection.summary(model=False) if selection is not None else f't = {t:g}, as asked for'}")
    print(f"The model at t = {t:.4g} has {size(path, t)}.\n")
    print_model(path, t)
    if args.out:
        path.save(args.out)
        print(f"\nPath saved in {args.out}; in Python: bregpath.load_path({args.out!r}).")
    if args.plot:
        save_figure(lambda ax: path.plot(ax=ax, mark=t, standardized=True), args.plot)


def _stop_rule(text: str) -> str | float:
    if text in (*CV_RULES, *CRITERIA):
        return text
    try:
        t = float(text)
    except ValueError:
        raise ValueError(f"--stop must be {', '.join([*CV_RULES, *CRITERIA])} or a time, found {text!r}.") from None
    if not (np.isfinite(t) and t > 0):
        raise ValueError(f"--stop must be a positive time, found {text!r}.")
    return t


def _kappa(text: str) -> str | float | list[float]:
    if text == "cv":
        return text
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        raise ValueError(f"--kappa must be a number, a list such as 1,3,10, or cv, found {text!r}.") from None
    return numbers if len(numbers) > 1 else numbers[0]


def _guess_loss(y: Array) -> str:
    if y.dtype.kind not in "OUTb":
        return "gaussian"
    return "logistic" if len(set(y.tolist())) == 2 else "multinomial"


def choose(data: Data, stop: str | float, options: dict[str, Any]) -> tuple[Any, Path]:
    """The path of the data and the selection on it (None where t was given)."""
    from bregpath.selection.criteria import information_criterion
    from bregpath.selection.cross_validation import cross_validate
    from bregpath.trace import trace_path

    selection = None
    if stop in CV_RULES:
        selection = chosen_by(cross_validate(data.X, data.y, **options), str(stop))
        path = selection.path
        assert path is not None
    else:
        path = trace_path(data.X, data.y, **options)
        if isinstance(stop, str):
            selection = information_criterion(path, stop, n=len(data.y))
        elif stop > path.t[-1]:
            path = path.extend(stop)
    if path.encoder is None:
        path = replace(path, encoder=ColumnEncoder(tuple(map(ColumnSpec, data.names))))
    return (None if selection is None else replace(selection, path=path)), path
