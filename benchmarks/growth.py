"""How the cost grows with p, n and kappa: ``python -m benchmarks.growth``. JSON and a figure."""

from __future__ import annotations

import argparse
from dataclasses import replace
from typing import Any

from benchmarks.cases import CASES, Case, make_data
from benchmarks.machine import describe_machine, write_json
from benchmarks.measure import Plan, side_by_side
from benchmarks.peers import OURS
from benchmarks.processes import find_peers
from benchmarks.report import cell, draw_growth, table

# p: sparse, so that a million columns fit; the density leaves about ten entries in each column.
GROW_P = Case("p", n=2000, p=0, s=50, density=0.005)
GROW_N = Case("n", n=0, p=100, s=20)
SIZES = (1_000, 10_000, 100_000, 1_000_000)
QUICK_SIZES = (200, 400)
KAPPAS = (10.0, 100.0, 1000.0)


def problems(variable: str, quick: bool) -> tuple[str, list[tuple[float, Case, dict[str, Any]]]]:
    """Title, and (value, case, options of bregpath) for each point of a curve."""
    sizes = QUICK_SIZES if quick else SIZES
    if variable == "p":
        base = replace(GROW_P, n=200, density=0.05, s=10) if quick else GROW_P
        return f"sparse, n = {base.n}, density {base.density:g}", [(p, replace(base, p=p), {}) for p in sizes]
    if variable == "n":
        return f"dense, p = {GROW_N.p}", [(n, replace(GROW_N, n=n), {}) for n in sizes]
    base = CASES["b"].quick() if quick else CASES["b"]
    return f"dense, {base.n} x {base.p}", [(kappa, base, {"kappa": kappa}) for kappa in KAPPAS]


def grow(variable: str, losses: list[str], commands: dict[str, list[str]], plan: Plan, quick: bool) -> dict[str, Any]:
    """One curve for each loss; peers know no kappa, so there bregpath runs alone."""
    title, points = problems(variable, quick)
    some = {OURS: commands[OURS]} if variable == "kappa" else commands
    rows = []
    for loss in losses:
        for value, case, options in points:
            data = make_data(case, loss, options=options)
            rows.append({"value": value, "loss": loss, "systems": side_by_side(data, some, plan)})
            print_growth(variable, rows[-1:], list(some))
    return {"title": title, "rows": rows}


def print_growth(variable: str, rows: list[dict[str, Any]], names: list[str]) -> None:
    head = [variable, "loss", *names, "steps", "column products"]
    lines = []
    for row in rows:
        stats = row["systems"].get(OURS, {}).get("stats", {})
        lines.append([
            f"{variable}={row['value']:g}", row["loss"], *(cell(row["systems"].get(name)) for name in names),
            str(stats.get("steps", "-")), str(stats.get("column_products", "-")),
        ])  # fmt: skip
    print(table(head, lines, header=False, widths=[12, 9, *(12 for _ in names), 8, 16]), flush=True)


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("--variables", default="p,n,kappa")
    parser.add_argument("--losses", default="logistic,gaussian")
    parser.add_argument("--peers", default="bregpath,glmnet")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds a fit of a peer may take")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    commands, missing = find_peers(list(dict.fromkeys([OURS, *args.peers.split(",")])))
    for name in missing:
        print(f"skipped, not installed: {name}")
    plan = Plan(repeats=args.repeats, limit=args.limit, budget=8.0)
    print("columns: value, loss, seconds of " + ", ".join(commands) + ", steps and column products of bregpath")
    record: dict[str, Any] = {"machine": describe_machine(), "quick": args.quick, "series": {}}
    for variable in args.variables.split(","):
        record["series"][variable] = grow(variable, args.losses.split(","), commands, plan, args.quick)
        write_json(args.out, "growth.json", record)
    figure = draw_growth(record, args.out)
    print(f"written: {args.out}/growth.json" + (f", {figure}" if figure else ""))
    return record


if __name__ == "__main__":
    main()
