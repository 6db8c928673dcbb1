"""``bregpath predict``: what a saved path says of new rows."""

from __future__ import annotations

import argparse
import csv
import sys
from typing import Any, TextIO

import numpy as np

from bregpath._text import listed
from bregpath.cli.data import Table, read_csv
from bregpath.cli.output import check_files
from bregpath.path import Path
from bregpath.path_file import load_path

__all__ = ["add_arguments", "run"]

_NOTES = """
examples:
  bregpath fit data.csv --target y --out path.npz       (prints the t it has chosen)
  bregpath predict path.npz new.csv --t 2.5 --out predictions.csv

The columns are found by their names; others are ignored. There is one row for each of NEW.csv: the mean
response, or the most probable class and the probabilities of all classes.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _NOTES
    parser.add_argument("path", metavar="PATH.npz", help="a path that bregpath fit --out has saved")
    parser.add_argument("data", metavar="NEW.csv", help="rows to predict, names in the first row")
    parser.add_argument("--t", type=float, metavar="T", help="time of the model; fit prints the one it has chosen")
    parser.add_argument("--out", metavar="FILE.csv", help="write to a file (default: to the terminal)")


def run(args: argparse.Namespace) -> None:
    """Run the command."""
    check_files(args.data, args.out)
    path = load_path(args.path)
    if not isinstance(path, Path):
        raise ValueError(f"{args.path} holds graphs, which have no target to predict; save a path by bregpath fit.")
    _check_time(args, path)
    X = _columns_of(path, read_csv(args.data))
    rows = _predictions(path, path.predict(X, args.t))
    if args.out is None:
        _write(rows, sys.stdout)
        return
    with open(args.out, "w", newline="", encoding="utf-8") as stream:
        _write(rows, stream)
    print(f"{len(rows) - 1} predictions of the model at t = {args.t:.4g} saved in {args.out}.")


def _check_time(args: argparse.Namespace, path: Path) -> None:
    """The file holds models of all sizes, none of which is marked; so a time must be named, and be on the path."""
    if args.t is None or not 0 < args.t <= path.t[-1] * (1 + 1e-12):
        found = "is missing" if args.t is None else f"{args.t:g} is not on the path"
        raise ValueError(
            f"--t {found}: {args.path} holds models of all sizes, from t = {path.t[0]:.4g} to {path.t[-1]:.4g}; "
            "bregpath fit --out prints the t it has chosen."
        )


def _columns_of(path: Path, table: Table) -> Any:
    """The columns of a file that a path has been traced on."""
    names = path.feature_names if path.encoder is None else path.encoder.feature_names_in
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise ValueError(f"{table.file} lacks columns that the path needs: {listed(missing, 12)}.")
    return table.select(names)


def _predictions(path: Path, mean: Any) -> list[list[Any]]:
    """A header, and one row a prediction."""
    if path.classes is None:
        outputs = ["prediction"] if mean.ndim == 1 else [f"prediction[{name}]" for name in path.output_names]
        return [outputs, *mean.reshape(len(mean), -1).tolist()]
    shares = np.column_stack([1 - mean, mean]) if mean.ndim == 1 else mean
    labels = path.classes[shares.argmax(axis=1)].tolist()
    header = ["prediction", *(f"probability[{label}]" for label in path.classes.tolist())]
    return [header, *([label, *row] for label, row in zip(labels, shares.tolist(), strict=True))]


def _write(rows: list[list[Any]], stream: TextIO) -> None:
    csv.writer(stream, lineterminator="\n").writerows(rows)
