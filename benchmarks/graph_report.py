"""Tables of `benchmarks.graphs` in Markdown."""

from __future__ import annotations

from typing import Any

from benchmarks.report import markdown, number, yes

LIBRA = "Quoted, not measured in this run: Libra 1.7's `ising` took 2.2 s at p = 36 on a comparable machine."


def to_markdown(parts: dict[str, Any]) -> str:
    """All parts that were run, each with the machine it was run on."""
    writers = {"ising": _ising, "gaussian": _gaussian, "potts": _potts, "recovery": _recovery, "gibbs": _gibbs}
    texts = [
        text for name, part in parts.items() for text in (writers[name](part["rows"]), machine_line(part["machine"]))
    ]
    return "\n\n".join(texts)


def machine_line(machine: dict[str, Any]) -> str:
    packages = machine["packages"]
    load = machine["load_average"] or [float("nan")]
    return (
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB; one thread; Python "
        f"{machine['python']}, NumPy {packages['numpy']}, scikit-learn {packages['scikit-learn']}; kernels "
        f"{machine['kernels']}; commit {machine['commit']}; load {load[0]:.1f}; {machine['date'][:10]}"
    )


def seconds(result: dict[str, Any] | None) -> str:
    if not result:
        return "-"
    if "over" in result:
        return f"> {result['over']:g}"
    if "seconds" not in result:
        return "error"
    return number(result["seconds"]) + (" (once)" if result.get("single") else "")


def _paths(rows: list[dict[str, Any]], title: str, notes: list[str]) -> str:
    if not rows:
        return title
    also = rows[0].get("also") or ""
    names = [*rows[0]["ours"], rows[0]["peer"], *filter(None, [also])]
    head = ["p", "n", *names, f"{rows[0]['peer']} / {rows[0]['ours'][0]}", "others", "target", "met"]
    lines = []
    for row in rows:
        sign = "> " if row["at_least"] else ""
        ratios = {name: f"{sign}{ratio:.2f}" for name, ratio in row["ratios"].items()}
        others = ", ".join(f"{name} {ratios[name]}" for name in [*row["ours"][1:], also] if name in ratios) or "-"
        systems = [seconds(row["systems"].get(name)) for name in names]
        first = ratios.get(row["ours"][0], "-")
        lines.append([str(row["p"]), str(row["n"]), *systems, first, others, f"{row['target']:g}", yes(row["met"])])
    return "\n\n".join([title, markdown(head, lines), *notes, *_ends(rows)])


def _ends(rows: list[dict[str, Any]]) -> list[str]:
    """Edges and loss at the end of the window; what failed; how quiet the machine was."""
    lines = []
    for row in rows:
        ends = [
            f"{name} {r['edges']} edges, loss {r['loss']:.4g}, {r['points']} points"
            + (f", {r['unconverged']} not converged, {r['failed']} failed" if "failed" in r else "")
            for name, r in row["systems"].items()
            if "edges" in r
        ]
        errors = [f"{name}: {r['error']}" for name, r in row["systems"].items() if "error" in r]
        low, high = min(row["calibration"]), max(row["calibration"])
        quiet = f"calibration loop {low:.4f} to {high:.4f} s"
        lines.append(f"p = {row['p']}, at the end of the window: " + "; ".join([*ends, *errors, quiet]) + ".")
    return lines


def _ising(rows: list[dict[str, Any]]) -> str:
    notes = [
        "composite, mpf: the path from t0 to 100 t0 and its 100 graphs; composite+ebic: `IsingGraph().fit(X)`; glmnet: "
        "a logistic path a node over 100 common lambdas, the largest lambda_max to a hundredth of it (or to a "
        "thousandth), `standardize=FALSE`. Median of alternating rounds.",
        LIBRA,
    ]
    return _paths(rows, "### Ising grid, T = 1.5, seconds for a whole path", notes)


def _gaussian(rows: list[dict[str, Any]]) -> str:
    notes = [
        "likelihood: the path from t0 to 100 t0 and its 100 graphs; graphical lasso: scikit-learn's path of "
        "`GraphicalLassoCV` over 100 alphas, alpha_max to a hundredth of it, each started from the one before. "
        "Median of alternating rounds.",
    ]
    return _paths(rows, "### Gaussian graph, seconds for a whole path", notes)


def _potts(rows: list[dict[str, Any]]) -> str:
    head = ["n", "p", "q", "edges at the end", "t / t0", "steps", "seconds (path)", "seconds (fit)", "peak MB"]
    head += ["above data MB", "AUC"]
    lines = []
    for row in rows:
        size = [str(row[key]) for key in ("n", "p", "q")]
        if "seconds" not in row:
            lines.append([*size, "-", "-", "-", f"> {row['over']:g}" if "over" in row else "error", "-", "-", "-", "-"])
            continue
        lines.append([
            *size, f"{row['edges']} of {row['p'] * (row['p'] - 1) // 2}", f"{row['t_ratio']:.1f}", str(row["steps"]),
            number(row["path_seconds"]), number(row["seconds"]), f"{row['peak_mb']:.0f}", f"{row['extra_mb']:.0f}",
            f"{row['auc']:.4f}",
        ])  # fmt: skip
    errors = [f"error: {row['error']}" for row in rows if "error" in row]
    note = "`PottsGraph(max_sparsity=...)`, full blocks, a fresh process; fit: with EBIC. Above data: imports included."
    return "\n\n".join(["### Potts graph of the size of a protein family", markdown(head, lines), note, *errors])


def _recovery(rows: list[dict[str, Any]]) -> str:
    head = ["model", "loss", "AUC (sd)", "median", "target", "met", "EBIC: recall", "precision", "exact"]
    lines = []
    for row in rows:
        for name, r in row["graphs"].items():
            target = "-" if r["target"] is None else f">= {r['target']:g}"
            lines.append([
                row["title"], name, f"{r['auc']:.4f} ({r['sd']:.4f})", f"{r['median']:.4f}", target, yes(r["met"]),
                f"{r['recall']:.3f}",
                f"{r['precision']:.3f}", f"{r['exact']} of {row['seeds']}",
            ])  # fmt: skip
    note = (
        f"Mean over {rows[0]['seeds'] if rows else 0} models. AUC: edges ranked by entry time, those that never enter "
        "tied last; node-wise: the AND rule. EBIC: the graph chosen by default."
    )
    return "\n\n".join(["### Recovery of edges", markdown(head, lines), note])


def _gibbs(rows: dict[str, Any]) -> str:
    lines = [[name, f"{row['ms']:.1f}"] for name, row in rows.items()]
    return "### Gibbs sampling\n\n" + markdown(["model", "ms for a million updates of a node"], lines)
