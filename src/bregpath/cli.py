"""The command line: ``bregpath demo`` and ``bregpath fit``. One function a command, listed in `COMMANDS`."""

from __future__ import annotations

import argparse
import csv
import importlib.util
import os
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from bregpath._frames import ColumnEncoder, ColumnSpec
from bregpath._typing import Array
from bregpath._version import __version__

if TYPE_CHECKING:
    from bregpath.path import Path
    from bregpath.selection.result import Selection

__all__ = ["main"]

MAX_ROWS = 12
CRITERIA = ("aic", "bic", "ebic")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns 0, or 2 after an error in what was given.

    Examples
    --------
    >>> main(["fit", "nowhere.csv", "--target", "y"])
    2
    """
    parser = _parser()
    args = parser.parse_args(argv)
    if args.run is None:
        parser.print_help()
        return 0
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = _note
            args.run(args)
    except KeyboardInterrupt:
        print("bregpath: interrupted", file=sys.stderr)
        return 130
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, TypeError, ImportError) as error:
        return _fail(str(error))
    return 0


def _fail(message: str) -> int:
    print(f"bregpath: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"bregpath: note: {message}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """Errors in one line, with the command that explains more."""

    def error(self, message: str) -> NoReturn:
        raise SystemExit(_fail(f"{message} (see {self.prog} --help)"))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bregpath",
        description="Sparse regression by regularisation paths: models of all sizes, and the one to use.",
    )
    parser.add_argument("--version", action="version", version=f"bregpath {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (summary, add_arguments, run) in COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        add_arguments(command)
        command.set_defaults(run=run)
    return parser


# --- bregpath demo -----------------------------------------------------------------------------------------


def _demo_arguments(parser: argparse.ArgumentParser) -> None:
    where = "folder for the figures (default: %(default)s)"
    parser.add_argument("--out", metavar="DIR", default="bregpath-demo", help=where)


def _demo(args: argparse.Namespace) -> None:
    from sklearn.datasets import load_breast_cancer, load_diabetes

    os.makedirs(args.out, exist_ok=True)
    cancer, diabetes = load_breast_cancer(), load_diabetes(scaled=False)
    _analyse(
        "Breast cancer: 569 tumours, 30 measurements of cell nuclei; which ones tell malignant from benign?",
        _Data(cancer.data, cancer.target_names[cancer.target], list(cancer.feature_names)),
        "logistic",
        os.path.join(args.out, "breast_cancer"),
    )
    _analyse(
        "Diabetes: 442 patients, 10 measurements; which ones predict the progression of the disease?",
        _Data(diabetes.data, diabetes.target, list(diabetes.feature_names)),
        "gaussian",
        os.path.join(args.out, "diabetes"),
    )


def _analyse(question: str, data: _Data, loss: str, stem: str) -> None:
    """One data set of the demo: path, cross-validation, model, figures."""
    print(f"\n{question}\n")
    selection, path = _choose(data, "cv-1se", {"loss": loss})
    _print_path(path)
    print(f"\n{selection}")
    print(f"The smallest model within one standard error of the best has {_size(path, selection.t)}.")
    print(_held_out(selection, path, data.y) + "\n")
    _print_model(path, selection.t)
    print()
    if importlib.util.find_spec("matplotlib") is None:
        print("No figures: they need matplotlib (pip install bregpath[plot]).")
        return
    marks = {"t_1se": selection.t_1se, "t_min": selection.t_min}
    title = os.path.basename(stem).replace("_", " ").capitalize()
    _save_figure(lambda ax: path.plot(ax=ax, mark=marks, standardized=True, title=title), f"{stem}_path.png")
    _save_figure(lambda ax: selection.plot(ax=ax), f"{stem}_selection.png")


def _held_out(selection: Selection, path: Path, y: Array) -> str:
    """How the chosen model does on rows that its fold has not seen."""
    assert selection.out_of_fold is not None
    eta = selection.out_of_fold[int(np.argmin(np.abs(selection.times - selection.t)))]
    if path.classes is not None:
        wrong = np.mean((eta > 0) != (np.asarray(y) == path.classes[1]))
        return f"On held-out rows it errs in {100 * wrong:.1f} % of the cases."
    share = 1 - np.sum((y - eta) ** 2) / np.sum((y - np.mean(y)) ** 2)
    return f"On held-out rows it explains {100 * share:.1f} % of the variance."


# --- bregpath fit ------------------------------------------------------------------------------------------

_FIT_NOTES = """
examples:
  bregpath fit data.csv --target y
  bregpath fit patients.csv --target died --loss logistic --stop cv-1se --drop id --plot path.png
  bregpath fit data.csv --target y --stop bic --out path.npz

The CSV file has names in its first row. Text columns become one group of 0/1 indicators each
(needs pandas and narwhals). t is the time on the path, and plays the part of 1 / lambda in the lasso:
larger t, larger model.
"""


def _fit_arguments(parser: argparse.ArgumentParser) -> None:
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
        "error of the best), aic, bic, ebic, or a time t (default: cv)",
    )  # fmt: skip
    parser.add_argument("--kappa", type=float, default=10.0, help="damping; larger is less biased (default: 10)")
    parser.add_argument(
        "--t-ratio", type=float, default=100.0, metavar="R",
        help="length of the path: it ends at R times the time of the first entry (default: 100)",
    )  # fmt: skip
    parser.add_argument("--out", metavar="FILE.npz", help="save the path; bregpath.load_path reads it in Python")
    parser.add_argument("--plot", metavar="FILE.png", help="save a figure of the path (png, pdf, svg)")


def _fit(args: argparse.Namespace) -> None:
    stop = _stop_rule(args.stop)
    data = _read_csv(args.data, args.target, args.drop)
    loss = _guess_loss(data.y) if args.loss == "auto" else args.loss
    print(f"{args.data}: {len(data.y)} rows, target {args.target!r}, loss {loss}, kappa {args.kappa:g}\n")
    selection, path = _choose(data, stop, {"loss": loss, "kappa": args.kappa, "t_ratio": args.t_ratio})
    _print_path(path)
    t = selection.t if selection is not None else float(stop)
    print(f"\n{selection if selection is not None else f't = {t:g}, as asked for'}")
    print(f"The model at t = {t:.4g} has {_size(path, t)}.\n")
    _print_model(path, t)
    if args.out:
        path.save(args.out)
        print(f"\nPath saved in {args.out}; in Python: bregpath.load_path({args.out!r}).")
    if args.plot:
        _save_figure(lambda ax: path.plot(ax=ax, mark=t, standardized=True), args.plot)


def _stop_rule(text: str) -> str | float:
    if text in ("cv", "cv-1se", *CRITERIA):
        return text
    try:
        t = float(text)
    except ValueError:
        raise ValueError(f"--stop must be cv, cv-1se, {', '.join(CRITERIA)} or a time, found {text!r}.") from None
    if not (np.isfinite(t) and t > 0):
        raise ValueError(f"--stop must be a positive time, found {text!r}.")
    return t


def _guess_loss(y: Array) -> str:
    if y.dtype.kind not in "OUTb":
        return "gaussian"
    return "logistic" if len(set(y.tolist())) == 2 else "multinomial"


def _choose(data: _Data, stop: str | float, options: dict[str, Any]) -> tuple[Any, Path]:
    """The path of the data and the selection on it (None where t was given)."""
    from bregpath.selection.criteria import information_criterion
    from bregpath.selection.cross_validation import cross_validate
    from bregpath.trace import trace_path

    selection = None
    if stop in ("cv", "cv-1se"):
        selection = cross_validate(data.X, data.y, **options)
        selection = selection.one_se() if stop == "cv-1se" else selection
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


# --- data --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Data:
    X: Any
    y: Array
    names: list[str]


def _read_csv(file: str, target: str, drop: list[str]) -> _Data:
    """The columns of a CSV file; as a data frame where pandas and narwhals are there."""
    frames = all(importlib.util.find_spec(name) is not None for name in ("pandas", "narwhals"))
    if frames:
        import pandas as pd

        try:
            frame = pd.read_csv(file, skipinitialspace=True)
        except ValueError as error:  # all of pandas' own errors are
            raise ValueError(f"{file} cannot be read as CSV: {error}") from None
        columns = {str(name): frame[name] for name in frame.columns}
    else:
        columns = _plain_columns(file)
    for option, wanted in [("--target", target), *(("--drop", name) for name in drop)]:
        if wanted not in columns:
            known = ", ".join(list(columns)[:12]) + (" and others" if len(columns) > 12 else "")
            raise ValueError(f"{option} {wanted!r} is no column of {file}; it has {known}.")
    names = [name for name in columns if name != target and name not in drop]
    if not names:
        raise ValueError(f"{file} has no column besides the target {target!r}; a path needs at least one.")
    y = columns[target]
    if frames:
        missing = int(y.isna().sum())
        if missing:
            raise ValueError(f"--target {target!r} has {missing} missing values; drop these rows from {file}.")
        return _Data(frame[names], y.to_numpy(), names)
    text = [name for name in names if columns[name].dtype.kind == "U"]
    if text:
        raise ValueError(
            f"column {text[0]!r} of {file} holds text or missing values; text needs pandas and narwhals "
            f"(pip install pandas narwhals), or leave it out with --drop {text[0]}."
        )
    return _Data(np.column_stack([columns[name] for name in names]), y, names)


def _plain_columns(file: str) -> dict[str, Array]:
    """Columns of a CSV file read without pandas: numbers where all cells are, else text."""
    with open(file, newline="", encoding="utf-8-sig") as stream:
        rows = [row for row in csv.reader(stream, skipinitialspace=True) if row]
    if len(rows) < 2:
        raise ValueError(f"{file} has no data rows; the first row holds names, the others numbers.")
    uneven = [i + 1 for i, row in enumerate(rows) if len(row) != len(rows[0])]
    if uneven:
        raise ValueError(f"{file} has {len(rows[0])} names, but another number of cells in row {uneven[0]}.")
    columns: dict[str, Array] = {}
    for name, cells in zip(rows[0], np.array(rows[1:]).T, strict=True):
        try:
            columns[name] = cells.astype(float)
        except ValueError:
            columns[name] = cells
    return columns


# --- output ------------------------------------------------------------------------------------------------


def _size(path: Path, t: float) -> str:
    n = len(path.support(t))
    return f"{n} of {path.n_features} variables" if n != 1 else f"1 variable of {path.n_features}"


def _print_path(path: Path) -> None:
    """Sizes, deviance and the names of those that enter, where the support changes (a dozen rows at most)."""
    supports = [set(path.support(t).tolist()) for t in path.t]
    changes = [i for i in range(1, len(supports)) if supports[i] != supports[i - 1]]
    if len(changes) > MAX_ROWS:
        changes = [changes[i] for i in np.linspace(0, len(changes) - 1, MAX_ROWS).round().astype(int)]
    rows, before, names = [], supports[0], path.feature_names
    for i in sorted({0, *changes, len(supports) - 1}):
        moves = [names[j] for j in sorted(supports[i] - before, key=lambda j: path.entry_times[j])]
        moves += [f"-{names[j]}" for j in sorted(before - supports[i])]
        more = f", ... {len(moves) - 5} more" if len(moves) > 5 else ""
        share = f"{100 * path.deviance_ratio[i]:.2f}"
        rows.append([str(path.df[i]), share, f"{path.t[i]:.4g}", ", ".join(moves[:5]) + more])
        before = supports[i]
    _print_table(["Df", "%Dev", "t", "enters (-leaves)"], rows, left={3})
    print(path.result)


def _print_model(path: Path, t: float) -> None:
    """Coefficients on the original scale, those with the largest effect first."""
    point = path.at(t)
    coef = np.reshape(point.coef, (path.n_features, -1)) + 0.0  # no negative zeros
    effect = coef * path.units.scale[:, None]
    support = path.support(t)
    order = support[np.argsort(-np.linalg.norm(effect[support], axis=1), kind="stable")]
    header = ["variable", *(["coefficient"] if path.n_outputs == 1 else path._output_names)]
    rows = [["(intercept)", *(f"{a:.5g}" for a in np.ravel(point.intercept))]]
    rows += [[path.feature_names[j], *(f"{b:.5g}" for b in coef[j])] for j in order]
    if path.n_outputs == 1:
        header.append("per std. dev.")
        effects = ["", *(f"{effect[j, 0]:.4g}" for j in order)]
        rows = [[*row, cell] for row, cell in zip(rows, effects, strict=True)]
    _print_table(header, rows, left={0})
    if path.classes is not None and path.n_outputs == 1:
        print(f"Positive coefficients speak for {path.classes[1]}, negative ones for {path.classes[0]}.")


def _print_table(header: list[str], rows: list[list[str]], left: set[int]) -> None:
    """A table: by rich on a terminal, else in plain text that other programs can read."""
    if sys.stdout.isatty() and importlib.util.find_spec("rich") is not None:
        from rich import box
        from rich.console import Console
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        for i, name in enumerate(header):
            table.add_column(name, justify="left" if i in left else "right", overflow="fold")
        for row in rows:
            table.add_row(*(cell.replace("[", r"\[") for cell in row))
        Console().print(table)
        return
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    for row in [header, *rows]:
        cells = (row[i].ljust(width) if i in left else row[i].rjust(width) for i, width in enumerate(widths))
        print("  ".join(cells).rstrip())


def _save_figure(draw: Callable[[Any], Any], file: str) -> None:
    """Draw into a file, without a window and without pyplot."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Figures need matplotlib: pip install bregpath[plot]") from None
    figure = Figure(figsize=(7.5, 4.8), layout="constrained")
    draw(figure.subplots())
    figure.savefig(file, dpi=150)
    print(f"Figure saved in {file}.")


# To add a command: a function for its arguments, one that runs it, and a line here.
_Command = tuple[str, Callable[[argparse.ArgumentParser], None], Callable[[argparse.Namespace], None]]
COMMANDS: dict[str, _Command] = {
    "demo": ("analyse two data sets that ship with scikit-learn", _demo_arguments, _demo),
    "fit": ("trace the path of a CSV file and choose a model on it", _fit_arguments, _fit),
}
