"""A selection as text: the choice in words and numbers."""

from __future__ import annotations

import numpy as np

from bregpath.selection.result import Selection

__all__ = ["summary"]


def summary(selection: Selection, model: bool = True) -> str:
    """What `Selection.summary` returns."""
    lines = [*_rows_of_times(selection), *_remarks(selection)]
    path = selection.path
    if model and path is not None and selection.model.table is not None:
        lines.append(repr(selection.model))
    average, n_times = getattr(path, "average", None), f"{len(selection.times)} times:"
    chosen = f"t = {selection.t:.4g}" + (f", {average} mean of the path" if average else "")
    if selection.surface:
        head = f"Selection by {selection.rule}: kappa = {selection.kappa:g}, {chosen}"
        lines = [*_rows_of_kappas(selection), f"The curve of kappa = {selection.kappa:g}, {n_times}", *lines]
    else:
        head = f"Selection by {selection.rule}, {n_times} {chosen}"
    return "\n".join([head, *lines])


def _rows_of_times(selection: Selection) -> list[str]:
    """The points that can be chosen on the curve."""
    se = [] if selection.se is None else [selection.se]
    header = ["", "t", selection.measure, *(["se"] if se else []), *selection.curves]
    lines = ["".join(f"{name:>{_width(name)}}" for name in header)]
    rows = {"1se": selection.t_1se, "min": selection.t_min} if selection.t_1se is not None else {"min": selection.t_min}
    for name, t in rows.items():
        i = int(np.argmin(np.abs(selection.times - t)))
        values = [curve[i] for curve in (selection.times, selection.mean, *se, *selection.curves.values())]
        chosen = f"{'*' if t == selection.t else ''}{name}"
        cells = "".join(f"{v + 0.0:>{_width(h)}.4g}" for h, v in zip(header[1:], values, strict=True))
        lines.append(f"{chosen:>{_width('')}}{cells}")
    return lines


def _remarks(selection: Selection) -> list[str]:
    lines = []
    if selection.stopped_early:
        lines.append(f"Ended at t = {selection.times[-1]:.4g}, when the curve had clearly turned (full=True goes on).")
    others = [name for name in selection.scores if name != selection.measure]
    if others:
        lines.append(f"Measured too, see by(): {', '.join(others)}")
    return lines


def _rows_of_kappas(selection: Selection) -> list[str]:
    """The best point of every kappa, and of the paths themselves that are chosen."""
    width = _width(selection.measure)
    lines = [f"{'':>13}{'kappa':>9}{'t':>11}{selection.measure:>{width}}{'se':>11}"]
    for kappa, curve, names, is_plain, is_chosen in selection.curves_of_kappas():
        i = curve.best
        score = f"{curve.mean[i] + 0.0:>{width}.4g}{curve.se[i]:>11.4g}"
        score += "  given up" if kappa in selection.given_up and not is_plain else "  path itself" if is_plain else ""
        lines.append(f"{'*' * is_chosen + ', '.join(names):>13}{kappa:>9g}{curve.t_min:>11.4g}{score}")
    return lines


def _width(name: str) -> int:
    return max(len(name) + 2, 6 if name in ("", "df") else 11)
