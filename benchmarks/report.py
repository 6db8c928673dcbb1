"""Tables and figures of the benchmark records."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import Any

from benchmarks.peers import OURS, PEERS

# Seconds of Libra / seconds of R glmnet, recorded once on one machine, one thread, kappa = 10, the same windows.
# Libra is not run here; logistic c is extrapolated from two short runs, logistic d is one run.
LIBRA_TO_GLMNET = {
    "logistic": {"a": 0.0701 / 0.0171, "b": 0.553 / 0.0926, "c": 2170 / 4.91, "d": 114 / 4.70},
    "gaussian": {"a": 0.0138 / 0.0027, "b": 0.0872 / 0.0112, "d": 17.2 / 1.36},
}
COLOURS = {
    "bregpath": "#c0392b", "glmnet": "#2c3e50", "adelie": "#2980b9", "celer": "#8e44ad",
    "skglm": "#d68910", "abess": "#16a085", "sklearn": "#7f8c8d", "libra": "#95a5a6",
}  # fmt: skip
MARKERS = {
    "bregpath": "o", "glmnet": "s", "adelie": "D", "celer": "^", "skglm": "v", "abess": "*", "sklearn": "P",
    "libra": "x",
}  # fmt: skip


def number(seconds: float) -> str:
    """Three significant digits without exponents."""
    return f"{seconds:.0f}" if seconds >= 100 else f"{seconds:.3g}" if seconds >= 0.1 else f"{seconds:.2g}"


def cell(result: dict[str, Any] | None) -> str:
    """Seconds of one system; marks: * another problem, ~ not converged as far as glmnet, ' a single fit."""
    if result is None:
        return "-"
    if "over" in result:
        return f"> {result['over']:g}"
    if "seconds" not in result:
        return "error"
    marks = "'" if result.get("single") else ""
    marks += "" if result.get("same_problem", True) else "*"
    return number(result["seconds"]) + marks + ("~" if result.get("loose") else "")


def cell_of_ratio(verdict: dict[str, Any]) -> str:
    """The best peer's time over ours; one that was ended at its limit took at least that long."""
    if verdict["ratio"] is None:
        return "-"
    return ("> " if verdict["at_least"] else "") + f"{verdict['ratio']:.2f}"


def yes(value: bool | None) -> str:
    return {True: "yes", False: "NO", None: "-"}[value]


def table(head: list[str], rows: list[list[str]], header: bool = True, widths: list[int] | None = None) -> str:
    """Columns flushed right, the first one left."""
    widths = widths or [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    lines = [head, *rows] if header else rows
    return "\n".join(
        "  ".join([line[0].ljust(widths[0]), *(text.rjust(w) for text, w in zip(line[1:], widths[1:], strict=True))])
        for line in lines
    )


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """A table as documentation has it."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [head, ["---"] * len(head), *rows])


def print_errors(row: dict[str, Any], systems: dict[str, dict[str, Any]]) -> None:
    for name, result in systems.items():
        if "error" in result:
            print(f"error: {name} at {row['case']} {row['loss']}: {result['error']}")


def print_times(rows: list[dict[str, Any]], peers: list[str], header: bool = True) -> None:
    """Seconds of each system, the best peer's time over ours, the target and whether it is met."""
    names = [name for name in PEERS if name in peers]
    head = ["case", "loss", "size", *names, "libra", "best/ours", "target", "met"]
    lines = []
    for row in rows:
        target = row["target"]
        libra = f"{number(row['libra_seconds'])}^" if "libra_seconds" in row else "-"
        lines.append([
            row["case"], row["loss"], f"{row['n']}x{row['p']}" + (" sp" if row["sparse"] else ""),
            *(cell(row["systems"].get(name)) for name in names), libra,
            cell_of_ratio(row), "-" if target is None else f">= {target:g}", yes(row["met"]),
        ])  # fmt: skip
    widths = [9, 8, 14, *(max(9, len(name)) for name in names), 9, 9, 6, 3]
    print(table(head, lines, header, widths), flush=True)


def print_notes(rows: list[dict[str, Any]]) -> None:
    """What the marks mean, what went wrong, how quiet the machine was, and what the paths look like at their end."""
    print("seconds, median of alternating rounds, one thread.  ' a single fit   * another problem (no intercept)")
    print("~ end loss more than 5 % above glmnet's   ^ recorded ratio to glmnet, not run.  * and ~ are not best peers.")
    for row in rows:
        print_errors(row, row["systems"])
        if row.get("libra_met") is False:
            print(f"below 10 times Libra at {row['case']} {row['loss']}: {row['libra_ratio']:.1f}")
    speeds = [value for row in rows for value in row["calibration"]]
    if speeds:
        low, middle, high = min(speeds), statistics.median(speeds), max(speeds)
        print(f"calibration loop: min {low:.4f}, median {middle:.4f}, max {high:.4f} s (max / min > 1.5: noisy)")
    print("at the end of the window (non-zeros, mean training loss, points):")
    for row in rows:
        ends = [
            f"{name} {r['nnz']} {r['loss']:.4g} {r['points']}" for name, r in row["systems"].items() if "nnz" in r
        ]
        print(f"  {row['case']} {row['loss']}: " + ", ".join(ends))


# --- figures ---------------------------------------------------------------------------------------------------


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        print("no figure: matplotlib is not installed")
        return None
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _tidy(ax: Any) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(True, axis="x", which="major", color="#dddddd", linewidth=0.7)
    ax.set_axisbelow(True)


def draw_times(record: dict[str, Any], folder: str) -> str | None:
    """Dots on a logarithmic scale, one line a case, one panel a loss."""
    plt = _pyplot()
    losses = list(dict.fromkeys(row["loss"] for row in record["rows"]))
    if plt is None or not losses:
        return None
    counts = [sum(row["loss"] == loss for row in record["rows"]) for loss in losses]
    height = 1.3 + 0.42 * sum(counts) + 0.6 * len(losses)
    fig, axes = plt.subplots(
        len(losses), 1, figsize=(8.5, height), squeeze=False, sharex=True, height_ratios=counts, layout="constrained"
    )
    for ax, loss in zip(axes[:, 0], losses, strict=True):
        _draw_panel(ax, [row for row in record["rows"] if row["loss"] == loss])
        ax.set_title(loss, loc="left", fontweight="bold", fontsize=10)
    axes[-1, 0].set_xlabel("seconds for a whole path, one thread (logarithmic)")
    handles: dict[str, Any] = {}
    for ax in axes[:, 0]:
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    legend = {"loc": "outside upper center", "ncols": len(handles), "frameon": False, "fontsize": 9}
    fig.legend(handles.values(), handles.keys(), **legend)
    return _save(fig, plt, folder, "times.png")


def _draw_panel(ax: Any, rows: list[dict[str, Any]]) -> None:
    names = [*PEERS, "libra"]
    for name in names:
        points, over = [], []
        for i, row in enumerate(rows):
            result = row["systems"].get(name, {})
            if name == "libra" and "libra_seconds" in row:
                result = {"seconds": row["libra_seconds"]}
            if "seconds" in result:
                points.append((result["seconds"], i, result.get("same_problem", True) and not result.get("loose")))
            elif "over" in result:
                over.append((result["over"], i))
        label = "Libra (recorded)" if name == "libra" else name
        style = {"marker": MARKERS[name], "linestyle": "", "color": COLOURS[name], "zorder": 4 if name == OURS else 3}
        style["markersize"] = 9 if name == OURS else 6
        solid = [(x, i) for x, i, fair in points if fair]
        if points or over:
            ax.plot(*zip(*(solid or [(float("nan"), 0)]), strict=True), label=label, **style)
        for x, i in [(x, i) for x, i, fair in points if not fair]:
            ax.plot(x, i, **style, fillstyle="none")
        for x, i in over:  # all at the limit: beside each other
            ax.plot(x * 1.12 ** names.index(name), i, **(style | {"marker": ">"}), fillstyle="none")
    for i, row in enumerate(rows):
        if row["ratio"] is not None:
            ours = row["systems"][OURS]["seconds"]
            ax.annotate(f"{row['ratio']:.2g}x", (ours, i), xytext=(0, 6), textcoords="offset points", ha="center",
                        fontsize=7.5, color=COLOURS[OURS])  # fmt: skip
    labels = [f"{row['case']}  {row['n']} x {row['p']}" + (" sparse" if row["sparse"] else "") for row in rows]
    ax.set_yticks(range(len(rows)), labels)
    ax.set_ylim(len(rows) - 0.5, -0.7)
    ax.set_xscale("log")
    _tidy(ax)


def draw_growth(record: dict[str, Any], folder: str) -> str | None:
    """Seconds against p, n and kappa on logarithmic axes."""
    plt = _pyplot()
    if plt is None:
        return None
    series = record["series"]
    fig, axes = plt.subplots(1, len(series), figsize=(4.2 * len(series), 3.6), squeeze=False, layout="constrained")
    for ax, (variable, group) in zip(axes[0], series.items(), strict=True):
        for loss, dash in (("logistic", "-"), ("gaussian", "--")):
            for name in PEERS:
                points = [
                    (row["value"], row["systems"][name]["seconds"])
                    for row in group["rows"]
                    if row["loss"] == loss and "seconds" in row["systems"].get(name, {})
                ]
                if points:
                    ax.plot(*zip(*points, strict=True), dash, marker=MARKERS[name], markersize=4,
                            color=COLOURS[name], label=f"{name}, {loss}")  # fmt: skip
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(variable)
        ax.set_title(group["title"], fontsize=9)
        ax.grid(True, color="#dddddd", linewidth=0.7)
        ax.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("seconds, one thread")
    handles = axes[0, 0].get_legend_handles_labels()
    fig.legend(*handles, loc="outside upper center", ncols=len(handles[0]) or 1, frameon=False, fontsize=9)
    return _save(fig, plt, folder, "growth.png")


def _save(fig: Any, plt: Any, folder: str, name: str) -> str:
    Path(folder).mkdir(parents=True, exist_ok=True)
    fig.savefig(Path(folder) / name, dpi=150)
    plt.close(fig)
    return f"{folder}/{name}"
