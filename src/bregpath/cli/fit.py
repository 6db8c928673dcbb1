"""``bregpath fit``: the path of a CSV file, and a model on it."""

from __future__ import annotations

import argparse
import shlex
from typing import Any

from bregpath._frames import ColumnEncoder, ColumnSpec, is_frame
from bregpath._typing import Array
from bregpath.cli.data import Data, read_csv, regression_data
from bregpath.cli.options import add_length, add_table, read_kappa, read_stop
from bregpath.cli.output import check_files, print_model, print_path, save_figure, size
from bregpath.path import Path
from bregpath.selection.kappas import CV_RULES, check_average, chosen_by

__all__ = ["add_arguments", "choose", "run"]

CRITERIA = ("aic", "bic", "ebic")

_FIT_NOTES = """
examples:
  bregpath fit data.csv --target y
  bregpath fit patients.csv --target died --loss logistic --stop cv-1se --drop id --plot path.png
  bregpath fit data.csv --target y --kappa cv --stop cv-sparse
  bregpath fit survey.csv --target income --weights copies --penalty-free age --cv 10 --seed 1
  bregpath fit data.csv --target y --stop bic --out path.npz

The CSV file has names in its first row. Text columns become one group of 0/1 indicators each
(needs pandas and narwhals). t is the time on the path, and plays the part of 1 / lambda in the lasso:
larger t, larger model.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    from bregpath.losses import LOSSES

    parser.epilog = _FIT_NOTES
    add_table(parser)
    parser.add_argument("--target", required=True, metavar="COLUMN", help="column to predict")
    parser.add_argument("--weights", metavar="COLUMN", help="column of weights: weight k counts as k copies of a row")
    parser.add_argument(
        "--penalty-free", action="append", default=[], metavar="COLUMN",
        help="column that is never penalised, so that it is in every model (may be repeated)",
    )  # fmt: skip
    parser.add_argument(
        "--loss", choices=["auto", *LOSSES], default="auto", metavar="LOSS",
        help=f"model of the target: {', '.join(LOSSES)}, or auto, which is gaussian for numbers and logistic or "
        "multinomial for text (default: auto)",
    )  # fmt: skip
    parser.add_argument(
        "--stop", default="cv", metavar="RULE",
        help="how the model is chosen: cv (best in cross-validation), cv-1se (smallest within one standard "
        "error of the best), cv-sparse (of several kappas: the best of the largest one within one standard error), "
        "aic, bic, ebic, or a time t (default: cv)",
    )  # fmt: skip
    parser.add_argument("--cv", type=int, metavar="K", help="number of folds of the cross-validation (default: 5)")
    parser.add_argument("--seed", type=int, metavar="N", help="another dealing of the rows into folds (default: 0)")
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
    add_length(parser)
    parser.add_argument("--out", metavar="FILE.npz", help="save the path, for bregpath predict or Python")
    parser.add_argument("--plot", metavar="FILE.png", help="save a figure of the path (png, pdf, svg)")


def run(args: argparse.Namespace) -> None:
    """Run the command."""
    stop = read_stop(args.stop, (*CV_RULES, *CRITERIA))
    kappa, folds = read_kappa(args.kappa, stop), _folds(args, stop)
    average = check_average(None if args.average == "none" else args.average, kappa == "cv")
    check_files(args.data, args.out, plot=args.plot)
    data = regression_data(read_csv(args.data), args.target, args.drop, args.weights)
    loss = _guess_loss(data.y) if args.loss == "auto" else args.loss
    options = {"loss": loss, "kappa": kappa, "t_ratio": args.t_ratio, "average": average}
    options |= {"sample_weight": data.weights, "penalty_factor": _penalty_factor(data, args.penalty_free)}
    print(f"{args.data}: {len(data.y)} rows, target {args.target!r}, loss {loss}, kappa {args.kappa}\n")
    selection, path = choose(data, stop, options, folds)
    print_path(path)
    t = selection.t if selection is not None else float(stop)
    print(f"\n{selection.summary(model=False) if selection is not None else f't = {t:g}, as asked for'}")
    print(f"The model at t = {t:.4g} has {size(path, t)}.\n")
    print_model(path, t)
    if args.out:
        path.save(args.out)
        print(f"\nPath saved in {args.out}; in Python: bregpath.load_path({args.out!r}).")
        print("To predict new rows by this model:")
        print(f"  bregpath predict {shlex.quote(args.out)} NEW.csv --t {float(t)!r}")
    if args.plot:
        save_figure(lambda ax: path.plot(ax=ax, mark=t, standardized=True), args.plot)


def _folds(args: argparse.Namespace, stop: str | float) -> dict[str, Any]:
    """What was said of the folds, which only some rules have."""
    given = {name: getattr(args, name) for name in ("cv", "seed") if getattr(args, name) is not None}
    if given and stop not in CV_RULES:
        said = " and ".join(f"--{name}" for name in given)
        raise ValueError(f"{said} must go with a rule that has folds, --stop {', '.join(CV_RULES)}; found {stop!r}.")
    if given.get("seed", 0) < 0:
        raise ValueError(f"--seed must be a whole number of at least 0, found {args.seed}.")
    return given


def _penalty_factor(data: Data, free: list[str]) -> list[float] | None:
    """Thresholds of the columns of the design, none of those that are never penalised."""
    for name in free:
        if name not in data.names:
            raise ValueError(f"--penalty-free {name!r} is none of the predictors {', '.join(data.names[:12])}.")
    if not free:
        return None
    columns = ColumnEncoder.from_frame(data.X).columns if is_frame(data.X) else map(ColumnSpec, data.names)
    return [0.0 if column.name in free else 1.0 for column in columns for _ in column.design_names]


def _guess_loss(y: Array) -> str:
    if y.dtype.kind not in "OUTb":
        return "gaussian"
    return "logistic" if len(set(y.tolist())) == 2 else "multinomial"


def choose(
    data: Data, stop: str | float, options: dict[str, Any], folds: dict[str, Any] | None = None
) -> tuple[Any, Path]:
    """The path of the data and the selection on it (None where t was given)."""
    from bregpath.selection.criteria import information_criterion
    from bregpath.selection.cross_validation import cross_validate
    from bregpath.trace import trace_path

    selection, options = None, {**options, "feature_names": None if is_frame(data.X) else data.names}
    if stop in CV_RULES:
        selection = chosen_by(cross_validate(data.X, data.y, **options, **(folds or {})), str(stop))
        path = selection.path
        assert path is not None
    else:
        path = trace_path(data.X, data.y, **options)
        if isinstance(stop, str):
            selection = information_criterion(path, stop, n=len(data.y) if data.weights is None else data.weights.sum())
        elif stop > path.t[-1]:
            path = path.extend(stop)
            if stop > path.t[-1]:
                end = f"t = {path.t[-1]:.4g}"
                raise ValueError(f"--stop {stop:g} lies beyond the end of the path, {end}. {path.result}")
    return selection, path
