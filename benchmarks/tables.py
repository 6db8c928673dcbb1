"""The tables of docs/performance.md, from what the benchmarks wrote: ``python -m benchmarks.tables``.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``, as far to the right as its marker. All else on the
page is written by hand. Tables without results, or with those of a quick run, are left as they are.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.graph_report import machine_line, seconds
from benchmarks.peers import OURS, PEERS
from benchmarks.processes import ROOT
from benchmarks.report import cell, cell_of_ratio, markdown, number, yes

Record = dict[str, Any]
FIGURES = {"times.json": "times.png", "growth.json": "growth.png"}
POTTS_TARGET = 10.0  # seconds
TITLES = {"cancer": "breast cancer", "sklearn": "scikit-learn"}
_MARKED = re.compile(r"^( *)<!-- table: (\S+) -->\n(.*?)^ *<!-- end -->", re.MULTILINE | re.DOTALL)


def fill(page: str, tables: dict[str, str]) -> str:
    """The page with new tables between its markers."""
    found = {match[2] for match in _MARKED.finditer(page)}
    if page.count("<!-- table: ") != len(found) or page.count("<!-- end -->") != len(found):
        raise ValueError("every `<!-- table: NAME -->` of the page needs its own name and its own `<!-- end -->`.")
    if missing := tables.keys() - found:
        raise ValueError(f"the page has no marker `<!-- table: {min(missing)} -->`; add it and `<!-- end -->`.")

    def replaced(match: re.Match[str]) -> str:
        if match[2] not in tables:
            return match[0]
        lines = [f"<!-- table: {match[2]} -->", "", *tables[match[2]].splitlines(), "", "<!-- end -->"]
        return "\n".join(match[1] + line if line else "" for line in lines)

    return _MARKED.sub(replaced, page)


# --- one table each ------------------------------------------------------------------------------------------------


def _title(row: Record) -> str:
    return f"{TITLES.get(row['case'], row['case'])} {row['n']} x {row['p']}" + (", sparse" if row["sparse"] else "")


def _target(verdict: Record) -> str:
    return "-" if verdict["target"] is None else f"{verdict['target']:g} ({yes(verdict['met'])})"


def _compared(rows: list[Record]) -> list[str]:
    """Systems that were run at all, in the order of `PEERS`."""
    return [name for name in PEERS if any(name in row["systems"] for row in rows)]


def machine(record: Record) -> str:
    versions = {name: r["version"] for row in record["rows"] for name, r in row["systems"].items() if "version" in r}
    peers = ", ".join(f"{TITLES.get(name, name)} {value}" for name, value in versions.items() if name != OURS)
    return f"{machine_line(record['machine'])}; {peers}."


def paths(record: Record) -> str:
    names = _compared(record["rows"])
    head = ["case", "loss", *(TITLES.get(name, name) for name in names), "Libra", "best peer / ours", "target"]
    lines = []
    for row in record["rows"]:
        libra = number(row["libra_seconds"]) if "libra_seconds" in row else "-"
        systems = [cell(row["systems"].get(name)) for name in names]
        lines.append([_title(row), row["loss"], *systems, libra, cell_of_ratio(row), _target(row)])
    return markdown(head, lines)


def cross_validation(record: Record) -> str:
    names = _compared([row["cv"] for row in record["rows"]])
    head = ["case", "loss", *(TITLES.get(name, name) for name in names), "best peer / ours", "target"]
    lines = []
    for row in record["rows"]:
        systems = [cell(row["cv"]["systems"].get(name)) for name in names]
        lines.append([_title(row), row["loss"], *systems, cell_of_ratio(row["cv"]), _target(row["cv"])])
    return markdown(head, lines)


def chosen(record: Record) -> str:
    """Seconds, and in brackets the variables of the model at the end."""
    names = _compared([row["chosen"] for row in record["rows"]])
    head = ["case", "loss", *(f"{name} (variables)" for name in names), "best peer / ours", "target"]
    lines = []
    for row in record["rows"]:
        results = [row["chosen"]["systems"].get(name) for name in names]
        systems = [cell(r) + (f" ({r['nnz']})" if r and "nnz" in r else "") for r in results]
        lines.append([_title(row), row["loss"], *systems, cell_of_ratio(row["chosen"]), _target(row["chosen"])])
    return markdown(head, lines)


def graphs(record: Record) -> str:
    """Whole paths of all parts that were run, one line for each way to learn a graph."""
    lines = []
    for row in [row for part in ("ising", "gaussian") for row in record.get(part, {}).get("rows", [])]:
        peers = [f"{name} {seconds(row['systems'].get(name))}" for name in (row["peer"], row["also"]) if name]
        for name in row["ours"]:
            first, ratio = name == row["ours"][0], row["ratios"].get(name)
            ratios = [("> " if row["at_least"] else "") + f"{ratio:.2f}" if ratio else "-"]
            if first and row["also"] in row["ratios"]:
                ratios.append(f"{row['ratios'][row['also']]:.2f}")
            target = f"{row['target']:g} ({yes(row['met'])})" if first else "-"
            title = f"{row['model'].capitalize()} p = {row['p']}, n = {row['n']}, {name}"
            lines.append([title, seconds(row["systems"].get(name)), "; ".join(peers), "; ".join(ratios), target])
    for row in record.get("potts", {}).get("rows", []):
        title = f"Potts p = {row['p']}, q = {row['q']}, n = {row['n']}, to {100 * row['level']:g} % of its edges"
        if "path_seconds" in row:
            time, met = row["path_seconds"], yes(row["path_seconds"] <= POTTS_TARGET)
            lines.append([title, f"{number(time)}, {row['peak_mb']:.0f} MB", "-", "-", f"{POTTS_TARGET:g} s ({met})"])
        else:
            lines.append([title, seconds(row), "-", "-", f"{POTTS_TARGET:g} s"])
    return markdown(["graph", "bregpath", "peer", "peer / ours", "target"], lines)


def accuracy(record: Record) -> str:
    head = ["case", "loss", "steps (default)", "variables", "that differ", "Kendall tau of entries"]
    head += ["largest deviation", "plain iteration / ours"]
    lines = []
    for row in record["rows"]:
        fine, plain = row["references"]["tol/100"], row.get("plain")
        counts = [str(value) for value in (row["steps"], fine["variables"], fine["different_variables"])]
        size = "-" if plain is None else f"{plain['ratio']:.1f}" + (" (extrapolated)" if plain["extrapolated"] else "")
        deviation = f"{100 * fine['deviation']:.2f} %"
        lines.append([row["case"], row["loss"], *counts, f"{fine['kendall_tau']:.4f}", deviation, size])
    return markdown(head, lines)


def memory(record: Record) -> str:
    keys = ("x_mb", "extra_mb", "allowed_mb")
    lines = [
        [row["case"], row["loss"], *(f"{row[key]:.0f}" for key in keys), yes(row["memory_met"])]
        for row in record["rows"]
    ]
    first = [
        f"{row['first']['seconds']:.2f} s ({row['case']}, {row['loss']})" for row in record["rows"] if "first" in row
    ]
    text = markdown(["case", "loss", "X, MB", "above the data, MB", "allowed, MB", "met"], lines)
    return f"{text}\n\nImport and first fit in a fresh process: {', '.join(first)}." if first else text


def growth(record: Record) -> str:
    series = {name: part for name, part in record["series"].items() if name != "kappa"}
    rows = [(name, row) for name, part in series.items() for row in part["rows"]]
    names = _compared([row for _, row in rows])
    lines = [
        [f"{name} = {row['value']:,.0f}", row["loss"], *(cell(row["systems"].get(system)) for system in names)]
        for name, row in rows
    ]
    return markdown(["size", "loss", *names], lines)


def kappas(record: Record) -> str:
    rows = record["series"].get("kappa", {}).get("rows", [])
    losses = list(dict.fromkeys(row["loss"] for row in rows))

    def ours(value: float, loss: str) -> str:
        result = next(r["systems"][OURS] for r in rows if (r["value"], r["loss"]) == (value, loss))
        return f"{result['stats']['steps']}, {number(result['seconds'])}" if "seconds" in result else cell(result)

    values = dict.fromkeys(row["value"] for row in rows)
    lines = [[f"{value:g}", *(ours(value, loss) for loss in losses)] for value in values]
    return markdown(["kappa (1000 x 200)", *(f"{loss}: steps, seconds" for loss in losses)], lines)


def inverse_scale_space(record: Record) -> str:
    lines = [
        [row["case"], str(row["steps"]), *(number(row[key]) if row[key] else "-" for key in ("ours", "glmnet"))]
        for row in record["whole"]
    ]
    first = record["first"]
    title = f"{first['case']}, the first events ({first['working_columns']} columns worked on)"
    lines.append([title, str(first["knots"]), number(first["seconds"]), "-"])
    return markdown(["case", "knots", "to least squares", "glmnet's window"], lines)


SOURCES: dict[str, tuple[str, Callable[[Record], str]]] = {
    "machine": ("times.json", machine),
    "paths": ("times.json", paths),
    "cross-validation": ("cv.json", cross_validation),
    "chosen": ("cv.json", chosen),
    "graphs": ("graphs.json", graphs),
    "accuracy": ("accuracy.json", accuracy),
    "memory": ("memory.json", memory),
    "inverse-scale-space": ("inverse_scale_space.json", inverse_scale_space),
    "growth": ("growth.json", growth),
    "kappas": ("growth.json", kappas),
}


def read_tables(folder: Path) -> dict[str, str]:
    """All tables whose results are in a folder."""
    tables = {}
    for name, (file, render) in SOURCES.items():
        record = json.loads((folder / file).read_text()) if (folder / file).is_file() else {"quick": True}
        if not record["quick"]:
            tables[name] = render(record)
    return tables


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tables", description=__doc__)
    parser.add_argument("--out", default="benchmarks/results", help="folder of the results")
    parser.add_argument("--page", default=str(ROOT / "docs" / "performance.md"), help="page to write")
    args = parser.parse_args(argv)
    page, folder = Path(args.page), Path(args.out)
    tables = read_tables(folder)
    page.write_text(fill(page.read_text(encoding="utf-8"), tables), encoding="utf-8")
    for file, figure in FIGURES.items():
        measured = any(SOURCES[name][0] == file for name in tables)
        if measured and (folder / figure).is_file():
            shutil.copyfile(folder / figure, page.parent / "images" / figure)
    kept = [name for name in SOURCES if name not in tables]
    print(f"{page}: written {', '.join(tables) or 'nothing'}" + (f"; as before {', '.join(kept)}" if kept else ""))


if __name__ == "__main__":
    main()
