"""Contacts of protein families against direct-coupling analysis: ``python -m benchmarks.contacts FASTA DISTANCES``.

Precision of the highest L/5, L/2, L and 2L scores of an alignment of L columns: pairs at least 4 columns apart,
contacts below 8 angstrom. Methods, all with sequence weights at 80 % identity and the average product correction:

* bregpath: `ContactGraph` at its defaults
* plmDCA: l2-regularised pseudo-likelihood of a symmetric Potts model by L-BFGS (below), in float32
* mfDCA: the mean-field inverse of the covariance with a pseudo-count of one half (below)

DISTANCES is a table i, j, distance of columns counted from 0. Without arguments 1atzA is looked for in ``data``, or in
the folder that BREGPATH_BENCH_DATA names. ``--share 0.5 --seeds 4`` takes four random halves of the sequences.
``--sequences 13600 --columns 53`` times an alignment of that size: rows drawn with replacement, a quarter of whose
cells are drawn anew from their columns. Every method has a process of its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import bregpath
from benchmarks.cases import data_folder
from benchmarks.fresh import MB, peak_bytes
from bregpath.graphs import Alignment, PottsModel, contact_precision, contact_scores, read_alignment

LETTERS = "-ACDEFGHIKLMNPQRSTVWY"
Q = len(LETTERS)
PAIR_PENALTY, FIELD_PENALTY = 0.1, 0.01  # of a squared coupling: times (L - 1), for a sum over the sequences
ITERATIONS = 60
PSEUDO_COUNT = 0.5


# --- methods: scores (L, L) of letters (n, L) ------------------------------------------------------------------


def ours(family: Alignment) -> np.ndarray:
    return bregpath.ContactGraph().fit(family).contact_scores()


def one_hot(family: Alignment) -> np.ndarray:
    codes = np.searchsorted(list(LETTERS), family.letters)
    X = np.zeros((*codes.shape, Q), dtype=np.float32)
    np.put_along_axis(X, codes[..., None], 1.0, axis=2)
    return X.reshape(len(codes), -1)


def scores_of(couplings: np.ndarray) -> np.ndarray:
    length = len(couplings) // Q
    levels = (np.array(list(LETTERS)),) * length
    couplings = couplings * (1 - np.kron(np.eye(length), np.ones((Q, Q))))
    model = PottsModel(np.zeros(len(couplings)), (couplings + couplings.T) / 2, np.full(length, Q), levels=levels)
    return contact_scores(model)


def plm_dca(family: Alignment) -> np.ndarray:
    """Pseudo-likelihood with a ridge on couplings, and one on fields towards those of independent columns."""
    from scipy.optimize import minimize

    X, w = one_hot(family), family.weights().astype(np.float32)
    (n, size), length = X.shape, family.shape[1]
    off = 1 - np.kron(np.eye(length), np.ones((Q, Q))).astype(np.float32)
    counts = (w @ X).reshape(length, Q) + 1.0
    start = np.log(counts)
    start = (start - start.mean(axis=1, keepdims=True)).ravel()
    ridge = PAIR_PENALTY * (length - 1)

    def objective(v: np.ndarray) -> tuple[float, np.ndarray]:
        h, J = v[:size].astype(np.float32), v[size:].reshape(size, size).astype(np.float32)
        eta = (X @ J + h).reshape(n, length, Q)
        eta -= eta.max(axis=2, keepdims=True)
        p = np.exp(eta)
        total = p.sum(axis=2, keepdims=True)
        value = float(w @ (np.log(total[..., 0]) - (eta * X.reshape(p.shape)).sum(axis=2)).sum(axis=1, dtype=float))
        r = ((p / total).reshape(n, size) - X) * w[:, None]
        G = X.T @ r
        fields = r.sum(axis=0) + 2 * FIELD_PENALTY * (h - start)
        value += FIELD_PENALTY * float(np.sum((h - start) ** 2)) + 0.5 * ridge * float(np.sum(J**2, dtype=float))
        # Of the whole matrix, in which every coupling is there twice.
        return value, np.concatenate([fields, (0.5 * (G + G.T) * off + ridge * J).ravel()]).astype(float)

    begin = np.concatenate([start, np.zeros(size * size)])
    options = {"maxiter": ITERATIONS, "maxcor": 5}
    found = minimize(objective, begin, jac=True, method="L-BFGS-B", options=options)
    return scores_of(found.x[size:].reshape(size, size))


def mf_dca(family: Alignment) -> np.ndarray:
    """Minus the inverse of the covariance of all states but the last of each column, with pseudo-counts."""
    X, w = one_hot(family), family.weights()
    length = family.shape[1]
    shares = X.T @ (X * (w / w.sum())[:, None].astype(np.float32)).astype(float)
    own = np.kron(np.eye(length), np.ones((Q, Q))) > 0
    pairs = (1 - PSEUDO_COUNT) * shares + PSEUDO_COUNT * np.where(own, np.eye(length * Q) / Q, 1 / Q**2)
    single = np.diagonal(pairs)
    kept = np.arange(length * Q) % Q < Q - 1
    couplings = np.zeros_like(pairs)
    couplings[np.ix_(kept, kept)] = -np.linalg.inv((pairs - np.outer(single, single))[np.ix_(kept, kept)])
    return scores_of(couplings)


METHODS = {"bregpath": ours, "plmDCA": plm_dca, "mfDCA": mf_dca}


# --- data ----------------------------------------------------------------------------------------------------


def enlarged(family: Alignment, sequences: int, columns: int) -> Alignment:
    """An alignment of another size: inner columns, rows drawn with replacement, a quarter of the cells drawn anew."""
    rng = np.random.default_rng(0)
    first = (family.shape[1] - columns) // 2
    known = family.letters[:, first : first + columns]
    letters = known[rng.integers(len(known), size=sequences)]
    for j, anew in enumerate((rng.random(letters.shape) < 0.25).T):
        letters[anew, j] = rng.choice(known[:, j], anew.sum())
    return Alignment(tuple(map(str, range(sequences))), letters, np.arange(columns))


def read_contacts(file: Path, length: int) -> np.ndarray:
    """Which columns touch, (L, L)."""
    i, j, distance = np.loadtxt(file, delimiter=",", skiprows=1).T
    touches = np.zeros((length, length), dtype=bool)
    touches[i.astype(int), j.astype(int)] = distance < 8.0
    return touches | touches.T


def drawn(family: Alignment, share: float, seed: int) -> Alignment:
    """A random share of the sequences."""
    chosen = np.random.default_rng(seed).permutation(family.shape[0])[: round(share * family.shape[0])]
    return Alignment(tuple(family.names[i] for i in chosen), family.letters[chosen], family.columns)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Of one method in this process: seconds, peak memory, and precision where contacts are known."""
    family = read_alignment(args.alignment)
    if args.sequences:
        family = enlarged(family, args.sequences, args.columns or family.shape[1])
    if args.share < 1:
        family = drawn(family, args.share, args.seeds)
    wall, cpu = time.perf_counter(), time.process_time()
    scores = METHODS[args.methods](family)
    row = {"seconds": time.perf_counter() - wall, "cpu": time.process_time() - cpu, "megabytes": peak_bytes() / MB}
    if not args.sequences:
        length = family.shape[1]
        counts = [length // 5, length // 2, length, 2 * length]
        row["precision"] = contact_precision(scores, read_contacts(Path(args.distances), length), counts).tolist()
    return row


def measure_apart(args: argparse.Namespace, name: str, seed: int) -> dict[str, Any]:
    """The same of a method in a process of its own."""
    options = ["--methods", name, "--seeds", seed, "--share", args.share]
    options += ["--sequences", args.sequences, "--columns", args.columns, "--here"]
    command = [sys.executable, "-m", "benchmarks.contacts", args.alignment, args.distances, *map(str, options)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr.strip()}")
    return json.loads(done.stdout.splitlines()[-1])


def main(words: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("alignment", nargs="?", default=str(data_folder() / "1atzA.fasta.gz"))
    parser.add_argument("distances", nargs="?", default=str(data_folder() / "1atzA_distances.csv"))
    parser.add_argument("--sequences", type=int, default=0)
    parser.add_argument("--columns", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=1, help="how many random shares are drawn")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args(words)
    if args.here:
        print(json.dumps(measure(args)))
        return
    print(f"{'method':10}{'L/5':>7}{'L/2':>7}{'L':>7}{'2L':>7}{'seconds':>10}{'CPU s':>8}{'peak MB':>9}")
    for seed in range(args.seeds):
        for name in args.methods.split(","):
            row = measure_apart(args, name, seed)
            shares = "".join(f"{share:7.2f}" for share in row.get("precision", [])) or " " * 28
            print(f"{name:10}{shares}{row['seconds']:10.1f}{row['cpu']:8.1f}{row['megabytes']:9.0f}", flush=True)


if __name__ == "__main__":
    main()
