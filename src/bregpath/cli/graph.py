"""``bregpath graph``: which columns of a CSV file go together, given all others."""

from __future__ import annotations

import argparse
import importlib.util
import os
from typing import Any

from bregpath.cli.data import Table, read_csv
from bregpath.cli.options import add_length, add_table, in_options, read_kappa, read_stop
from bregpath.cli.output import check_files, save_figure
from bregpath.selection.kappas import CV_RULES

__all__ = ["add_arguments", "run"]

KINDS = ("ising", "potts", "gaussian", "mixed")
RULES = ("ebic", "bic", *CV_RULES, "mdc", "stars", "stable")
MAX_LABELS = 30  # of a text column that is taken for labels unasked; names of persons or texts have more

_NOTES = """
examples:
  bregpath graph answers.csv --drop id --plot graph.png
  bregpath graph votes.csv --kind ising --stop stable --out edges.csv
  bregpath graph genes.csv --stop cv-1se --out graph.graphml

Every column is a node. Two nodes without an edge are independent given all others. Missing cells are
drawn from the graph itself. Auto takes text and columns of two values for labels, all other numbers for
numbers: ising if all have two labels, potts if all have labels, gaussian if all are numbers, else mixed.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.epilog = _NOTES
    add_table(parser)
    parser.add_argument(
        "--kind", choices=["auto", *KINDS], default="auto", metavar="KIND",
        help=f"model of the columns: {', '.join(KINDS)}, or auto, which looks at them (default: auto)",
    )  # fmt: skip
    parser.add_argument(
        "--stop", default="ebic", metavar="RULE",
        help="how the graph is chosen: ebic, bic, cv (best in 5-fold cross-validation), cv-1se (sparsest within one "
        "standard error of the best), cv-sparse (of several kappas), mdc (ising and potts), stars, stable (edges that "
        "can be defended), or a time t (default: ebic)",
    )  # fmt: skip
    parser.add_argument(
        "--kappa", default="10",
        help="damping; larger is less biased; cv, or a list such as 1,3,10, chooses it with the graph (default: 10)",
    )  # fmt: skip
    add_length(parser)
    parser.add_argument("--out", metavar="FILE.csv", help="write the edges (csv), or the graph (graphml)")
    parser.add_argument("--plot", metavar="FILE.png", help="save a figure of the graph (png, pdf, svg)")
    parser.add_argument("--save", metavar="FILE.npz", help="save the path; bregpath.load_path reads it in Python")


def run(args: argparse.Namespace) -> None:
    """Run the command."""
    stop = read_stop(args.stop, RULES)
    kappa = read_kappa(args.kappa, stop)
    check_files(args.data, args.out, args.save, plot=args.plot)
    _check_ending(args.out)
    table = read_csv(args.data)
    if table.frame is None:
        raise ImportError("graph needs pandas and narwhals: pip install bregpath[frames]")
    frame = table.select(table.without(args.drop))
    kind, why = _guess_kind(frame, table) if args.kind == "auto" else (args.kind, "as asked for")
    print(f"{args.data}: {len(frame)} rows, {frame.shape[1]} columns, kind {kind} ({why})\n")
    graph = _make_graph(kind, frame, {"stop": stop, "kappa": kappa, "t_ratio": args.t_ratio}).fit(frame)
    advice = "--stop stable keeps those that can be defended"
    print(in_options(graph.summary(), args).replace("see stability()", advice))
    if args.out:
        (graph.write_graphml if _ending(args.out) == ".graphml" else graph.write_edges)(args.out)
        print(f"\n{int(graph.adjacency_.sum()) // 2} edges saved in {args.out}.")
    if args.save:
        graph.save(args.save)
        print(f"Path saved in {args.save}; in Python: bregpath.load_path({args.save!r}).weights({graph.t_!r}).")
    if args.plot:
        save_figure(lambda ax: graph.plot(ax=ax), args.plot, inches=(10.5, 7.2))


def _ending(file: str) -> str:
    return os.path.splitext(file)[1].lower()


def _check_ending(out: str | None) -> None:
    if out is not None and _ending(out) not in (".csv", ".graphml"):
        raise ValueError(f"--out must name a file that ends in .csv or .graphml, found {out!r}.")
    if out is not None and _ending(out) == ".graphml" and importlib.util.find_spec("networkx") is None:
        raise ImportError("GraphML needs networkx: pip install bregpath[graph]")


def _labels(frame: Any) -> list[str]:
    """Columns that hold labels: text, truth values, and numbers of which there are two."""
    return [name for name in frame.columns if frame[name].dtype.kind not in "iuf" or frame[name].nunique() == 2]


def _guess_kind(frame: Any, table: Table) -> tuple[str, str]:
    """The kind of graph for some columns, and why."""
    labels = _labels(frame)
    for name in labels:
        found = frame[name].nunique()
        if found > MAX_LABELS:
            raise ValueError(
                f"column {name!r} of {table.file} holds {found} different texts, which are hardly labels; leave it out "
                f"with --drop {name}, or name the --kind."
            )
    if (frame.nunique() <= 2).all():
        return "ising", "no column has more than two values"
    if len(labels) == frame.shape[1]:
        return "potts", "all columns hold labels"
    if not labels:
        return "gaussian", "all columns hold numbers"
    some = ", ".join(labels[:5]) + (", ..." if len(labels) > 5 else "")
    return "mixed", f"{frame.shape[1] - len(labels)} columns hold numbers, {len(labels)} labels: {some}"


def _make_graph(kind: str, frame: Any, options: dict[str, Any]) -> Any:
    """An estimator of a kind."""
    from bregpath.estimators import GaussianGraph, IsingGraph, MixedGraph, PottsGraph

    if kind == "mixed":
        # Said and not guessed, because numbers of two values are no integers where some are missing.
        labels = _labels(frame)
        options |= {"kinds": {name: "categorical" if name in labels else "gaussian" for name in frame.columns}}
    made = {"ising": IsingGraph, "potts": PottsGraph, "gaussian": GaussianGraph, "mixed": MixedGraph}[kind]
    return made(**options)
