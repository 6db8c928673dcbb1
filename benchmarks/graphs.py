"""Graphs: whole paths against peers, a protein-sized Potts path, recovery of edges, Gibbs updates.

``python -m benchmarks.graphs [--quick]`` prints tables in Markdown and writes graphs.json and graphs.md.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.cases import SEED, Data, standardize_dense
from benchmarks.graph_recovery import auc, recover, studies
from benchmarks.graph_report import to_markdown
from benchmarks.machine import describe_machine, write_json, write_page
from benchmarks.measure import Plan, calibrate, side_by_side
from benchmarks.processes import ROOT, command_of

PARTS = ("ising", "gaussian", "potts", "recovery", "gibbs")
SPARSITY = 0.05  # where the Potts path ends


@dataclass(frozen=True)
class GraphCase:
    """Rows of one simulated graph, the systems that learn it, and the two whose ratio counts."""

    name: str
    model: str  # "ising" or "gaussian"
    n: int
    p: int
    ours: tuple[str, ...]
    peer: str
    graph: str = "grid"
    also: str = ""  # another peer, for comparison
    target: float = 3.0  # peer's time / ours

    def quick(self) -> GraphCase:
        return GraphCase(self.name, self.model, 200, 9, self.ours, self.peer, self.graph, self.also, self.target)

    def make(self) -> Data:
        from bregpath.datasets import make_gaussian_graph, make_ising_grid

        if self.model == "ising":
            X = make_ising_grid(round(self.p**0.5), 1.5, self.n, seed=SEED).X
            X = np.asfortranarray(X, dtype=float)
        else:
            # Both work on correlations; ours would scale by itself.
            X = standardize_dense(np.asfortranarray(make_gaussian_graph(self.n, self.p, self.graph, seed=SEED).X))
        return Data(X, np.zeros(len(X)), self.model)


LONGER = "glmnet to 0.001"  # the usual end of a node-wise grid; ours ends closer to the unpenalised fit than both
_ISING = ("composite", "mpf", "composite+ebic")
CASES = (
    GraphCase("ising 36", "ising", 750, 36, _ISING, "glmnet", also=LONGER),
    GraphCase("ising 100", "ising", 1500, 100, _ISING, "glmnet", also=LONGER),
    GraphCase("gaussian 100", "gaussian", 200, 100, ("likelihood",), "graphical lasso", "random", target=6.0),
    GraphCase("gaussian 300", "gaussian", 600, 300, ("likelihood",), "graphical lasso", "random", target=4.0),
)


def commands(names: tuple[str, ...]) -> dict[str, list[str]]:
    """How the workers are started; peers that are not installed are left out."""
    found = {}
    for name in names:
        if name in ("glmnet", LONGER):
            known = command_of("glmnet")
            if known is None:
                print("skipped, not installed: glmnet")
                continue
            script = str(Path(__file__).parent / "peers" / "nodewise_glmnet.R")
            found[name] = [known[0], script, *(["10"] if name == LONGER else [])]
        else:
            found[name] = [sys.executable, "-m", "benchmarks.graph_worker", name]
    return found


def time_paths(case: GraphCase, plan: Plan, quick: bool) -> dict[str, Any]:
    """One row of a table of times."""
    case = case.quick() if quick else case
    speed = [calibrate()]
    results = side_by_side(case.make(), commands((*case.ours, case.peer, *filter(None, [case.also]))), plan)
    speed.append(calibrate())
    peer = results.get(case.peer, {})
    # A peer that was stopped at the limit took at least that long.
    theirs, at_least = peer.get("seconds", peer.get("over")), "over" in peer
    ratios = {
        name: theirs / results[name]["seconds"] for name in case.ours if theirs and "seconds" in results.get(name, {})
    }
    if case.also in results and ratios and "seconds" in results[case.also]:
        ratios[case.also] = results[case.also]["seconds"] / results[case.ours[0]]["seconds"]
    met = ratios[case.ours[0]] >= case.target if ratios and not quick else None
    verdict = {"ratios": ratios, "at_least": at_least, "met": met, "calibration": speed}
    return {**asdict(case), **verdict, "systems": results}


def time_potts(quick: bool, limit: float) -> dict[str, Any]:
    """Seconds and memory of a Potts path of the size of a protein family, in a process of its own."""
    from bregpath.datasets import make_potts
    from bregpath.graphs import gibbs

    n, p, q, level = (300, 8, 4, 0.2) if quick else (5000, 53, 21, SPARSITY)
    model = _uneven(make_potts(1, p, q, "random", strength=0.25, seed=SEED).model)  # the truth does not depend on n
    X = gibbs(model, n, burn_in=200, chains=n, seed=SEED, method="gibbs")
    row: dict[str, Any] = {"n": n, "p": p, "q": q, "level": level, "true_edges": int(model.adjacency.sum()) // 2}
    with tempfile.TemporaryDirectory(prefix="bregpath-bench-") as folder:
        file = str(Path(folder) / "states.npy")
        np.save(file, X)
        command = [sys.executable, "-m", "benchmarks.graph_fresh", file, str(level)]
        try:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=limit)
        except subprocess.TimeoutExpired:
            return {**row, "over": limit}
    if done.returncode:
        words = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return {**row, "error": words[-1][:300]}
    answer = json.loads(done.stdout)
    times = np.full((p, p), np.inf)
    times[np.triu_indices(p, 1)] = answer.pop("entry_times")
    return {**row, **answer, "auc": auc(times, model.adjacency)}


def _uneven(model: Any) -> Any:
    """The same Potts model with blocks of a tenth to the whole of their size: contacts differ in strength."""
    from bregpath.graphs import PottsModel

    p, q = model.n_nodes, model.n_states[0]
    factor = np.triu(np.random.default_rng(SEED).uniform(0.1, 1.0, (p, p)), 1)
    factor = np.kron(factor + factor.T, np.ones((q, q)))
    return PottsModel(model.fields, factor * model.couplings, model.n_states)


def time_gibbs(quick: bool, repeats: int) -> dict[str, Any]:
    """Milliseconds for a million draws of a node."""
    from bregpath.datasets import make_ising_grid, make_potts
    from bregpath.graphs.chains import Plan, run_chains

    million = 20_000 if quick else 1_000_000
    models = {
        "ising 10 x 10": make_ising_grid(10, 1.5, 1, seed=SEED).model,
        "potts 4 x 4, q = 3": make_potts(1, 16, 3, seed=SEED).model,
    }
    rows = {}
    for name, model in models.items():
        chains = 64
        sweeps = million // (chains * model.n_nodes)
        seconds = []
        for k in range(repeats):
            begun = time.perf_counter()
            run_chains(model, Plan(chains, chains, sweeps, 1), np.random.default_rng(k))
            seconds.append(time.perf_counter() - begun)
        updates = sweeps * chains * model.n_nodes
        rows[name] = {"ms": 1e3 * statistics.median(seconds) * 1e6 / updates, "updates": updates}
    return rows


def parse(argv: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graphs", description=__doc__)
    parser.add_argument("--parts", default=",".join(PARTS), help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--cases", default=",".join(case.name for case in CASES), help="timed paths")
    parser.add_argument("--repeats", type=int, default=5, help="rounds; the median counts")
    parser.add_argument("--seeds", type=int, default=20, help="simulated models in each study of recovery")
    parser.add_argument("--limit", type=float, default=160.0, help="seconds a path may take")
    parser.add_argument("--slow", type=float, default=20.0, help="seconds beyond which a path is not repeated")
    parser.add_argument("--quick", action="store_true", help="small data, to try the harness")
    parser.add_argument("--out", default="benchmarks/results")
    args = parser.parse_args(argv)
    args.parts, args.cases = args.parts.split(","), args.cases.split(",")
    for given, known in ((args.parts, PARTS), (args.cases, [case.name for case in CASES])):
        unknown = [name for name in given if name not in known]
        if unknown:
            parser.error(f"not known: {', '.join(unknown)}; there are {', '.join(known)}")
    return args


def previous(folder: str, quick: bool) -> dict[str, Any]:
    """What an earlier run left, so that parts can be run one at a time."""
    file = Path(folder) / "graphs.json"
    record = json.loads(file.read_text()) if file.is_file() else {}
    return record if record.get("quick") == quick else {}


def main(argv: list[str] | None = None) -> dict[str, Any]:
    args = parse(argv)
    record = {**previous(args.out, args.quick), "quick": args.quick}
    plan = Plan(repeats=args.repeats, limit=args.limit, slow=args.slow, budget=40.0)

    def keep(part: str, rows: Any) -> None:
        record[part] = {"machine": describe_machine(), "rows": rows}
        write_json(args.out, "graphs.json", record)  # after every part: a long run may be interrupted
        print(to_markdown({part: record[part]}), flush=True)

    for part in (name for name in PARTS if name in args.parts):
        if part in ("ising", "gaussian"):
            some = [case for case in CASES if case.model == part and case.name in args.cases]
            keep(part, [time_paths(case, plan, args.quick) for case in some])
        elif part == "potts":
            keep(part, [time_potts(args.quick, args.limit)])
        elif part == "recovery":
            keep(part, [recover(study, 3 if args.quick else args.seeds) for study in studies(args.quick)])
        else:
            keep(part, time_gibbs(args.quick, args.repeats))
    text = to_markdown({part: record[part] for part in PARTS if part in record})
    write_page(args.out, "graphs.md", text + "\n")
    print(f"written: {args.out}/graphs.json, {args.out}/graphs.md")
    return record


if __name__ == "__main__":
    main()
