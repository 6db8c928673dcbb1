"""Contacts of a protein from the sequences of its family.

    python examples/contacts.py 1atzA.fasta.gz --distances 1atzA_distances.csv --out contacts

The alignment is a file in FASTA, a2m or Stockholm format, plain or gzipped. Columns that touch in the folded protein
have changed together in the family, and get the highest scores. DISTANCES, if there is a structure to compare with, is
a table of columns i, j (from 0) and the distance of their C-beta atoms in angstrom.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd

import bregpath

TOUCH = 8.0  # angstrom


def true_contacts(file: str, length: int) -> np.ndarray:
    """Which columns touch, (L, L)."""
    table = pd.read_csv(file)
    near = table[table["distance"] < TOUCH]
    touches = np.zeros((length, length), dtype=bool)
    touches[near["i"], near["j"]] = touches[near["j"], near["i"]] = True
    return touches


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("alignment", help="FASTA, a2m or Stockholm file, also .gz")
    parser.add_argument("--distances", help="CSV file of i, j, distance")
    parser.add_argument("--out", default="contacts", help="folder of the results")
    args = parser.parse_args(argv)
    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)

    family = bregpath.graphs.read_alignment(args.alignment)
    graph = bregpath.ContactGraph().fit(family)
    print(family)
    print(f"effective number of sequences: {graph.n_effective_:.0f}")
    contacts = graph.contacts(min_separation=4)
    contacts.to_csv(out / "contacts.csv", index=False)
    print(contacts.head(10).to_string(index=False))

    length, touches = family.shape[1], None
    if args.distances:
        touches = true_contacts(args.distances, length)
        counts = [length // 5, length // 2, length, 2 * length]
        shares = bregpath.graphs.contact_precision(graph.contact_scores(), touches, counts)
        for count, share in zip(counts, shares, strict=True):
            print(f"of the highest {count} scores {share:.0%} touch")
    graph.plot_contacts(touches=touches).figure.savefig(out / "contacts.png", dpi=100)
    print(f"written: {out}/contacts.csv, contacts.png")


if __name__ == "__main__":
    main()
