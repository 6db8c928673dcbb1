"""The command line. One file a command, listed in `COMMANDS`."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from typing import NoReturn

from bregpath import _interrupts
from bregpath._version import __version__
from bregpath.cli import bench, demo, fit, graph, predict
from bregpath.cli.options import in_options

__all__ = ["main"]

# To add a command: a file with add_arguments(parser) and run(args), and a line here.
COMMANDS = {
    "demo": ("analyse two data sets that ship with scikit-learn", demo),
    "fit": ("trace the path of a CSV file and choose a model on it", fit),
    "predict": ("predict the rows of a CSV file by a path that fit has saved", predict),
    "graph": ("learn which columns of a CSV file go together, given all others", graph),
    "bench": ("run the benchmarks against glmnet and others (in the source tree)", bench),
}


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
        with warnings.catch_warnings(), _interrupts.all_or_nothing():
            warnings.simplefilter("default", UserWarning)
            warnings.showwarning = lambda message, *_, **__: _note(in_options(str(message), args))
            args.run(args)
            sys.stdout.flush()  # here, where a pipe that was closed is known
    except KeyboardInterrupt:
        print("bregpath: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # whoever reads the output, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        return _fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
    except (ValueError, TypeError, ImportError, subprocess.CalledProcessError) as error:
        return _fail(in_options(str(error), args))
    return 0


def _fail(message: str) -> int:
    print(f"bregpath: error: {' '.join(message.split())}", file=sys.stderr)
    return 2


def _note(message: str) -> None:
    print(f"bregpath: note: {message}", file=sys.stderr)


class _Parser(argparse.ArgumentParser):
    """Errors in one line, with the command that explains more."""

    def error(self, message: str) -> NoReturn:
        raise SystemExit(_fail(f"{message} (see {self.prog} --help)"))


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="bregpath",
        description="Sparse regressions and graphs by regularisation paths: models of all sizes, and the one to use.",
    )
    parser.add_argument("--version", action="version", version=f"bregpath {__version__}")
    parser.set_defaults(run=None)
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, (summary, module) in COMMANDS.items():
        command = commands.add_parser(
            name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        module.add_arguments(command)
        command.set_defaults(run=module.run)
    return parser
