"""Does what the theorem guarantees happen, every time? ``python -m benchmarks.theory_guarantees``.

Simulations of several families, seeds 0, 1, 2, ..., each diagnosed by `bregpath.theory.diagnose` until enough of them
satisfy the conditions (or the seeds of a family are spent). The tables in markdown are printed and written to
``theory_guarantees.md``: what was guaranteed how often, how often it did not happen, and which conditions failed.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.machine import write_page
from benchmarks.report import markdown
from bregpath import datasets
from bregpath.theory import Diagnosis, diagnose


@dataclass(frozen=True)
class Family:
    """Simulations of one kind: how many are wanted whose conditions hold, all of them or those of the first claim."""

    draw: Callable[[int], Any]
    wanted: int
    all_conditions: bool = False
    options: dict[str, Any] = field(default_factory=lambda: {"kappa": 20.0})

    def counts(self, diagnosis: Diagnosis) -> bool:
        return diagnosis.holds if self.all_conditions else diagnosis.findings[0].guaranteed


def imitated(seed: int) -> datasets.Simulation:
    """A linear model with a column outside, the last, that is the sum of the true ones and a little noise."""
    simulation = datasets.make_linear(2000, 40, 3, r=0.0, snr=16, seed=seed)
    rng = np.random.default_rng([20180409, seed])
    X, signs = simulation.X.copy(), np.sign(simulation.coef[:3])
    X[:, -1] = 0.7 * X[:, :3] @ signs + 0.1 * rng.standard_normal(len(X))
    return datasets.Simulation(X, simulation.y, simulation.intercept, simulation.coef)


FAMILIES = {
    "linear, n = 4000, p = 40, s = 3": Family(
        lambda seed: datasets.make_linear(4000, 40, 3, r=0.0, snr=16, seed=seed), 200, all_conditions=True
    ),
    "linear, n = 4000, p = 40, s = 3, r = 0.25": Family(
        lambda seed: datasets.make_linear(4000, 40, 3, r=0.25, snr=16, seed=seed), 200, all_conditions=True
    ),
    "linear, n = 4000, p = 40, s = 3, steps of 0.005": Family(
        lambda seed: datasets.make_linear(4000, 40, 3, r=0.0, snr=16, seed=seed), 50, all_conditions=True,
        options={"kappa": 20.0, "step": 0.005},
    ),
    "logistic, n = 60000, p = 10, s = 1": Family(
        lambda seed: datasets.make_logistic(60000, 10, 1, M=0.5, r=0.0, seed=seed), 50, all_conditions=True
    ),
    "logistic, n = 2000, p = 20, s = 3, r = 0.25": Family(
        lambda seed: datasets.make_logistic(2000, 20, 3, seed=seed), 200
    ),
    "Poisson, n = 2000, p = 20, s = 3, r = 0.25": Family(
        lambda seed: datasets.make_poisson(2000, 20, 3, seed=seed), 200
    ),
    "Ising, 3 x 3 grid, T = 4, n = 1000": Family(
        lambda seed: datasets.make_ising_grid(3, T=4.0, n=1000, seed=seed), 50
    ),
    "linear, n = 400, p = 80, s = 5, r = 0.25": Family(
        lambda seed: datasets.make_linear(400, 80, 5, seed=seed), 200
    ),
    "linear, n = 200, p = 80, s = 10, r = 0.7": Family(
        lambda seed: datasets.make_linear(200, 80, 10, r=0.7, seed=seed), 100
    ),
    "linear, n = 2000, p = 40, s = 3, imitated by x39": Family(imitated, 20),
}  # fmt: skip


def study(family: Family, wanted: int) -> list[Diagnosis]:
    """Diagnoses of seeds 0, 1, ..., until enough hold; five times as many seeds at most."""
    found: list[Diagnosis] = []
    for seed in range(5 * wanted):
        found.append(diagnose(family.draw(seed), **family.options))
        if sum(map(family.counts, found)) == wanted:
            break
    return found


def guarantees(name: str, found: list[Diagnosis]) -> list[str]:
    """A row: drawn; of each claim, how often it was guaranteed and how often it then failed; how near it came."""
    cells = [name, str(len(found)), str(sum(d.holds for d in found))]
    for claim in range(3):
        findings = [d.findings[claim] for d in found]
        cells.append(f"{sum(f.guaranteed for f in findings)} ({sum(f.contradicts for f in findings)})")
    safe = [d for d in found if d.findings[0].guaranteed]
    cells.append(f"{min(d.first_false_positive / d.tbar for d in safe):.2f}" if safe else "-")
    sure = [d for d in found if d.findings[1].guaranteed]
    cells.append(f"{max(d.error / d.error_bound for d in sure):.3f}" if sure else "-")
    return [*cells, str(sum(not d.potential_falls for d in found))]


def failures(name: str, found: list[Diagnosis]) -> list[str]:
    """A row: how often each condition failed, and the column that was named most often as imitating the support."""
    failed = Counter(condition.name for d in found for condition in d.failed)
    blamed = Counter(d.critical for d in found if not d.conditions[1].held)
    common = ", ".join(f"x{j} {count} times" for j, count in blamed.most_common(1)) or "-"
    return [name, *(str(failed[condition.name]) for condition in found[0].conditions), common]


def main(argv: list[str] | None = None) -> str:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.theory_guarantees", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="two simulations a family")
    parser.add_argument("--only", default="", help="families whose names contain this text")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    kept, failed = [], []
    for name, family in FAMILIES.items():
        if args.only not in name:
            continue
        found = study(family, 2 if args.quick else family.wanted)
        kept.append(guarantees(name, found))
        failed.append(failures(name, found))
        print(*kept[-1], sep=" | ", flush=True)
    conditions = [condition.name for condition in found[0].conditions]
    head = ["family", "drawn", "all hold", "no false positive", "l2 error", "right signs"]
    head += ["first false positive / tbar, least", "error / bound, most", "potential rose"]
    page = markdown(head, kept) + "\n\n" + markdown(["family", *conditions, "named"], failed) + "\n"
    print(f"{page}written: {write_page(args.out, 'theory_guarantees.md', page)}")
    return page


if __name__ == "__main__":
    main()
