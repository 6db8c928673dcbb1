"""All benchmarks in one go, then the tables of docs/performance.md: ``python -m benchmarks`` (`make bench`).

The parts share a time limit; one that fails, or would pass it, is named, and the others are run. Tables are made of
what this run wrote, so those of a part that wrote nothing stay as they were.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.processes import ROOT

# What matters most comes first: the last ones pay if the time is short. Files are those the tables read.
PARTS = {
    "run": ("times.json", []),
    "cv": ("cv.json", []),
    "graphs": ("graphs.json", ["--parts", "ising,gaussian,potts,gibbs"]),
    "memory": ("memory.json", []),
    "accuracy": ("accuracy.json", []),
    "inverse_scale_space": ("inverse_scale_space.json", []),
    "growth": ("growth.json", []),
}


def run_part(part: str, words: list[str], limit: float) -> str:
    """Run a part, and everything it starts, for so many seconds at most; what went wrong, or nothing."""
    command = [sys.executable, "-m", f"benchmarks.{part}", *words]
    process = subprocess.Popen(command, cwd=ROOT, start_new_session=True)
    try:
        status = process.wait(timeout=limit)
    except BaseException as problem:  # of its own group, so an interruption does not reach it by itself
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if not isinstance(problem, subprocess.TimeoutExpired):
            raise
        return f"ended after {limit:.0f} s"
    return f"failed with status {status}" if status else ""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--minutes", type=float, default=41.0, help="for all parts together")
    parser.add_argument("--quick", action="store_true", help="small data: does it work? docs are not written")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    parts = args.parts.split(",")
    if unknown := [part for part in parts if part not in PARTS]:
        parser.error(f"no part {', '.join(unknown)}; there are {', '.join(PARTS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # ends the part that runs as well
    out, begun, wrong = Path(args.out).resolve(), time.monotonic(), {}
    for part in parts:
        file, words = PARTS[part]
        (out / file).unlink(missing_ok=True)
        started = time.monotonic()
        left = max(60.0 * args.minutes - (started - begun), 0.0)
        print(f"\n=== {part} ===", flush=True)
        words = [*words, "--out", str(out), *(["--quick"] if args.quick else [])]
        problem = run_part(part, words, left) if left else "not begun, no time left"
        if problem:
            wrong[part] = problem
        now = time.monotonic()
        print(f"=== {part}: {problem or 'done'}; {now - started:.0f} s, {now - begun:.0f} s in all", flush=True)
    if not args.quick and (problem := run_part("tables", ["--out", str(out)], 60.0)):
        wrong["tables"] = problem
    for part, problem in wrong.items():
        print(f"{part}: {problem}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
