"""``bregpath bench``: the benchmarks, which live in the source tree."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys

__all__ = ["add_arguments", "run"]

PARTS = ("run", "memory", "accuracy", "cv", "growth")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which part, and arguments that are handed on to it."""
    parser.add_argument(
        "part", nargs="?", choices=PARTS, default="run", metavar="PART", help=f"{', '.join(PARTS)} (default: run)"
    )
    parser.add_argument("--quick", action="store_true", help="small data: does it work? its times mean nothing")


def run(args: argparse.Namespace) -> None:
    """Run a part of the benchmarks from the root of the source tree."""
    if not os.path.isfile(os.path.join("benchmarks", f"{args.part}.py")):
        raise ValueError(
            "there is no folder `benchmarks` here; run this in the root of bregpath's source tree "
            "(`make bench` there also installs the peers)."
        )
    command = [sys.executable, "-m", f"benchmarks.{args.part}", *(["--quick"] if args.quick else [])]
    subprocess.run(command, check=True)
