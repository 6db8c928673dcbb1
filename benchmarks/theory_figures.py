"""Figures of the theory studies: rates of convergence, and the probability of right signs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bregpath.plots.style import COLORS, DASHES, new_axes, subplots

RATES = {
    "tol": "tolerance of adaptive steps",
    "step": "length of fixed steps",
    "1 / kappa": "1 / kappa, from inverse scale space",
}
SCALE_SHOWN = 8.0  # of n / (s log p): beyond it all succeed


def draw_rates(record: dict[str, Any], folder: str) -> str:
    """Errors against what goes to zero, on logarithmic axes, with the measured orders."""
    axes = subplots(1, len(RATES), figsize=(11.0, 4.0))[0]
    for ax, (name, title) in zip(axes, RATES.items(), strict=True):
        new_axes(ax)
        for colour, (loss, curves) in zip(COLORS, record["losses"].items(), strict=False):
            for key, dash in ((name, "-"), (f"{name}, entry times", "--")):
                if key in curves:
                    found = curves[key]
                    what = f"{loss}, entry times" if dash == "--" else loss
                    ax.plot(found["size"], found["error"], dash, color=colour, marker="o", markersize=3.5,
                            linewidth=1.3, label=f"{what}: order {found['order']:.2f}")  # fmt: skip
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_xlabel(title)
        ax.legend(frameon=False, fontsize=8, loc="lower left", bbox_to_anchor=(0.0, 1.0))
    axes[0].set_ylabel("relative error")
    return _save(axes[0].figure, folder, "theory_limits.png")


def draw_signs(record: dict[str, Any], folder: str) -> str:
    """Above, one panel an s: methods against n. Below, one panel a method: every s on the scale of the theory."""
    shares, methods = record["shares"], record["methods"]
    axes = subplots(2, len(methods), figsize=(12.5, 6.2), sharey=True)
    for ax, (s, of_methods) in zip(axes[0], shares.items(), strict=False):
        new_axes(ax)
        for colour, dash, (method, title) in zip(COLORS, (*DASHES, "-."), methods.items(), strict=False):
            ax.plot(record["n"], of_methods[method], color=colour, linestyle=dash, marker="o", markersize=3.5,
                    linewidth=1.5, label=title)  # fmt: skip
        ax.set_title(f"s = {s}", fontsize=9)
        ax.set_xlabel("rows n")
    for ax in axes[0, len(shares) :]:
        ax.axis("off")
    axes[0, -1].legend(*axes[0, 0].get_legend_handles_labels(), frameon=False, fontsize=9, loc="center left")
    for ax, (method, title) in zip(axes[1], methods.items(), strict=True):
        new_axes(ax)
        for colour, s in zip(COLORS[3:], shares, strict=False):
            scaled = np.array(record["n"]) / (int(s) * np.log(record["p"]))
            ax.plot(scaled, shares[s][method], color=colour, marker="s", markersize=3.5, linewidth=1.3,
                    label=f"s = {s}")  # fmt: skip
        ax.set_xlim(0, SCALE_SHOWN)
        ax.set_title(title, fontsize=9)
        ax.set_xlabel("n / (s log p)")
    axes[1, 0].legend(frameon=False, fontsize=8, loc="lower right")
    for ax in axes[:, 0]:
        ax.set_ylabel("share with right signs\nsomewhere on the path", fontsize=9)
    return _save(axes[0, 0].figure, folder, "theory_signs.png")


def _save(figure: Any, folder: str, name: str) -> str:
    Path(folder).mkdir(parents=True, exist_ok=True)
    figure.savefig(Path(folder) / name, dpi=110)
    return f"{folder}/{name}"
