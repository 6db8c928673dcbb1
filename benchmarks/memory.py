"""Peak memory of a fit and the first fit of a fresh process: ``python -m benchmarks.memory``."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from benchmarks.cases import CASES, make_data, write_data
from benchmarks.machine import describe_machine, write_json
from benchmarks.processes import ROOT
from benchmarks.report import table, yes

FIRST_LIMIT = 1.0  # seconds, import included


def allowance(x_mb: float) -> float:
    """What a fit may need beside the data: 20 % of X and 100 MB."""
    return 0.2 * x_mb + 100.0


def in_fresh_process(what: str, folder: str) -> dict[str, float]:
    """Run one of the two measurements; ``process`` is the wall time with the start of the interpreter."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.fresh", what, folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return {**json.loads(done.stdout), "process": time.perf_counter() - begun}


def measure(name: str, loss: str, quick: bool, repeats: int, first: bool) -> dict[str, Any]:
    """One row: memory and, where asked, the first fit."""
    case = CASES[name].quick() if quick else CASES[name]
    row: dict[str, Any] = {"case": name, "loss": loss}
    with tempfile.TemporaryDirectory(prefix="bregpath-bench-") as folder:
        write_data(folder, make_data(case, loss))
        row |= in_fresh_process("memory", folder)
        row["allowed_mb"] = allowance(row["x_mb"])
        row["memory_met"] = row["extra_mb"] <= row["allowed_mb"]
        if first:
            runs = [in_fresh_process("first", folder) for _ in range(repeats)]
            row["first"] = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
            row["first_met"] = row["first"]["seconds"] < FIRST_LIMIT
    return row


def print_memory(rows: list[dict[str, Any]]) -> None:
    head = ["case", "loss", "X MB", "peak MB", "above data MB", "allowed MB", "met"]
    lines = [
        [row["case"], row["loss"], *(f"{row[key]:.0f}" for key in ("x_mb", "peak_mb", "extra_mb", "allowed_mb")),
         yes(row["memory_met"])]
        for row in rows
    ]  # fmt: skip
    print(table(head, lines))
    print("above data: peak less what NumPy and X take; the imports of bregpath count. allowed: 20 % of X + 100 MB")
    for row in rows:
        if "first" in row:
            first = row["first"]
            print(
                f"first fit in a fresh process, {row['case']} {row['loss']}: import {first['import']:.2f} s + fit "
                f"{first['fit']:.2f} s = {first['seconds']:.2f} s (target < {FIRST_LIMIT:g}: {yes(row['first_met'])}); "
                f"whole process {first['process']:.2f} s"
            )


def main(argv: list[str] | None = None) -> dict[str, Any]:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--cases", default="a,b,c,d,e,f")
    parser.add_argument("--losses", default="logistic,gaussian")
    parser.add_argument("--repeats", type=int, default=5, help="fresh processes for the first fit (case a)")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    names = args.cases.split(",")
    rows = [
        measure(name, loss, args.quick, args.repeats, first=name == names[0])
        for loss in args.losses.split(",")
        for name in names
    ]
    record = {"machine": describe_machine(), "quick": args.quick, "rows": rows}
    print_memory(rows)
    print(f"written: {write_json(args.out, 'memory.json', record)}")
    return record


if __name__ == "__main__":
    main()
