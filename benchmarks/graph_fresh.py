"""Seconds and peak memory of one Potts path in a fresh process: ``python -m benchmarks.graph_fresh FILE.npy LEVEL``."""

from __future__ import annotations

import json
import sys
import time

from benchmarks.fresh import MB, peak_bytes


def main() -> None:
    import numpy as np

    X, level = np.load(sys.argv[1]), float(sys.argv[2])
    before = peak_bytes()
    import bregpath

    begun = time.perf_counter()
    graph = bregpath.PottsGraph(max_sparsity=level).fit(X)
    seconds = time.perf_counter() - begun
    path = graph.path_
    record = {
        "seconds": seconds,
        "path_seconds": path.stats.seconds,
        "peak_mb": peak_bytes() / MB,
        "extra_mb": (peak_bytes() - before) / MB,
        "edges": int(path.n_edges[-1]),
        "t_ratio": float(path.t[-1] / path.t[0]),
        "steps": path.stats.steps,
        "entry_times": path.entry_times[np.triu_indices(X.shape[1], 1)].tolist(),
    }
    print(json.dumps(record))


if __name__ == "__main__":
    main()
