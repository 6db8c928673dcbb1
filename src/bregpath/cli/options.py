"""Options that commands share: how their text is read, and messages of the library in terms of them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence

import numpy as np

from bregpath.selection.kappas import check_kappas, check_stop_of_kappas

__all__ = ["add_length", "add_table", "in_options", "read_kappa", "read_stop"]

# Arguments of the library whose options have other names.
RENAMED = {"sample_weight": "weights", "penalty_factor": "penalty_free"}


def add_table(parser: argparse.ArgumentParser) -> None:
    """The file that is read, and what of it is not."""
    parser.add_argument("data", metavar="DATA.csv", help="one row per observation, names in the first row")
    parser.add_argument(
        "--drop", action="append", default=[], metavar="COLUMN", help="column to ignore (may be repeated)"
    )


def add_length(parser: argparse.ArgumentParser) -> None:
    """How far a path goes."""
    parser.add_argument(
        "--t-ratio", type=float, default=100.0, metavar="R",
        help="length of the path: it ends at R times the time of the first entry (default: 100)",
    )  # fmt: skip


def read_stop(text: str, rules: Sequence[str]) -> str | float:
    """One of some rules, or a time."""
    if text in rules:
        return text
    try:
        t = float(text)
    except ValueError:
        raise ValueError(f"--stop must be {', '.join(rules)} or a time, found {text!r}.") from None
    if not (np.isfinite(t) and t > 0):
        raise ValueError(f"--stop must be a positive time, found {text!r}.")
    return t


def read_kappa(text: str, stop: str | float) -> str | float | list[float]:
    """One kappa or several, of which the rule ``stop`` must be able to choose."""
    kappa: str | float | list[float] = text
    if text != "cv":
        try:
            numbers = [float(part) for part in text.split(",")]
        except ValueError:
            raise ValueError(f"--kappa must be a number, a list such as 1,3,10, or cv, found {text!r}.") from None
        if not all(number > 0 for number in numbers):
            raise ValueError(f"--kappa must be above 0, found {text!r}.")
        kappa = numbers if len(numbers) > 1 else numbers[0]
    check_stop_of_kappas(stop, check_kappas(kappa) is not None)
    return kappa


def in_options(message: str, args: argparse.Namespace) -> str:
    """What the library says of its arguments, said of the options of a command.

    Examples
    --------
    >>> args = argparse.Namespace(stop="bic", kappa="cv", data="votes.csv")
    >>> in_options('`X` is odd: use `stop`="cv", or one `kappa`; found stop=2.5.', args)
    'votes.csv is odd: use --stop cv, or one --kappa; found --stop 2.5.'
    """
    message = message.replace("`file` ", "")
    if hasattr(args, "data"):
        message = re.sub(r"`X`|^X\b", lambda _: args.data, message)
    if hasattr(args, "target"):
        message = re.sub(r"`y`|^y\b", lambda _: f"--target {args.target!r}", message)
    if hasattr(args, "stop"):
        message = message.replace("information_criterion()", "--stop bic").replace("cross_validate()", "--stop cv")
    if hasattr(args, "kind"):
        message = re.sub(r"\buse (\w+)Graph\b", lambda found: f"use --kind {found[1].lower()}", message)
    known = {name: name for name in vars(args)} | {old: new for old, new in RENAMED.items() if hasattr(args, new)}
    typed = {name: "--" + option.replace("_", "-") for name, option in known.items()}
    names = "|".join(typed)
    with_value = rf"(?<![\w-])`?({names})`?=(?:['\"]([^'\"]*)['\"])?"
    message = re.sub(with_value, lambda found: f"{typed[found[1]]} {found[2] or ''}", message)
    return re.sub(rf"`({names})`", lambda found: typed[found[1]], message)
