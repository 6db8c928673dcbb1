"""The benchmark harness runs and writes what it promises; its times are not tested."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]


def _run(module: str, *words: str) -> str:
    # A process of its own: importing `benchmarks` limits the threads of the process.
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{module}", *words], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_side_by_side(tmp_path: Path) -> None:
    words = ("--cases", "tiny", "--losses", "gaussian", "--peers", "bregpath,sklearn", "--repeats", "2")
    printed = _run("run", *words, "--out", str(tmp_path))
    record = json.loads((tmp_path / "times.json").read_text())
    (row,) = record["rows"]
    assert row["best_peer"] == "sklearn"
    assert row["ratio"] == pytest.approx(row["systems"]["sklearn"]["seconds"] / row["systems"]["bregpath"]["seconds"])
    for system in row["systems"].values():
        assert len(system["rounds"]) == 2
        assert system["points"] == 100
        assert system["loss"] < 0.1  # of 0.5 without variables: the window was followed
    assert (tmp_path / "times.png").stat().st_size > 10_000
    assert "best/ours" in printed


def test_several_classes(tmp_path: Path) -> None:
    words = ("--losses", "multinomial", "--peers", "bregpath", "--quick", "--out", str(tmp_path))
    for module, file, cases in (("run", "times.json", "classes,digits"), ("cv", "cv.json", "digits")):
        _run(module, "--cases", cases, *words)
        rows = json.loads((tmp_path / file).read_text())["rows"]
        systems = [row["systems"]["bregpath"] if module == "run" else row["cv"]["systems"]["bregpath"] for row in rows]
        assert len(rows) == len(cases.split(","))
        assert all(0 < system["loss"] < np.log(10) and system["nnz"] > 10 for system in systems)


def test_cross_validation(tmp_path: Path) -> None:
    words = ("--cases", "tiny", "--losses", "gaussian", "--peers", "bregpath,sklearn", "--repeats", "1")
    printed = _run("cv", *words, "--out", str(tmp_path))
    (row,) = json.loads((tmp_path / "cv.json").read_text())["rows"]
    ours, peer = (row["cv"]["systems"][name] for name in ("bregpath", "sklearn"))
    assert row["cv"]["ratio"] == pytest.approx(peer["seconds"] / ours["seconds"])
    assert peer["loss"] < 0.1
    # The path that ends at the chosen model ends at the same model, and only a system that can be asked for it has one.
    (end,) = row["chosen"]["systems"].values()
    assert end["nnz"] == ours["nnz"] and end["loss"] == pytest.approx(ours["loss"], rel=0.01)
    assert end["points"] < 100
    assert "chosen" in printed


def test_accuracy(tmp_path: Path) -> None:
    _run("accuracy", "--cases", "tiny", "--losses", "logistic", "--plain", "tiny", "--out", str(tmp_path))
    (row,) = json.loads((tmp_path / "accuracy.json").read_text())["rows"]
    assert row["references"]["tol/100"]["different_variables"] == 0
    assert row["plain"]["steps"] > row["steps"]


def test_graphs(tmp_path: Path) -> None:
    words = ("--quick", "--cases", "gaussian 100", "--repeats", "2", "--out", str(tmp_path))
    printed = _run("graphs", "--parts", "gaussian,recovery,gibbs", *words)
    record = json.loads((tmp_path / "graphs.json").read_text())
    (row,) = record["gaussian"]["rows"]
    ours, peer = row["systems"]["likelihood"], row["systems"]["graphical lasso"]
    assert row["ratios"]["likelihood"] == pytest.approx(peer["seconds"] / ours["seconds"])
    assert ours["loss"] == pytest.approx(peer["loss"], rel=0.01)  # both windows end close to the unpenalised fit
    for study in record["recovery"]["rows"]:
        for graph in study["graphs"].values():
            assert 0.9 < graph["auc"] <= 1.0
    assert all(row["ms"] > 0 for row in record["gibbs"]["rows"].values())
    assert (tmp_path / "graphs.md").read_text().count("###") == 3
    assert "| Gaussian chain" in printed


def test_structure(tmp_path: Path) -> None:
    pytest.importorskip("cvxpy")
    printed = _run("structure", "--quick", "--tasks", "jumps", "--noises", "0.3", "--out", str(tmp_path))
    assert "l1 (cvxpy)" in printed
    rows = [line.split(" | ") for line in (tmp_path / "structure.md").read_text().splitlines()[2:]]
    errors = [float(row[3].split()[0]) for row in rows]
    assert len(errors) == 3 and max(errors) < 0.3 * 0.3**2 and errors[1] <= errors[2]


def test_contacts(tmp_path: Path) -> None:
    """All methods find the one planted contact of a small family first, and tell what it cost."""
    rng = np.random.default_rng(0)
    letters = rng.choice(list("ACDE"), (300, 12))
    same = rng.random(300) < 0.7
    letters[same, 8] = letters[same, 1]
    (tmp_path / "a.fasta").write_text("".join(f">{i}\n{''.join(row)}\n" for i, row in enumerate(letters)))
    lines = [f"{i},{j},{5.0 if (i, j) == (1, 8) else 12.0}" for i in range(12) for j in range(i + 1, 12)]
    (tmp_path / "d.csv").write_text("i,j,distance\n" + "\n".join(lines))
    head, *rows = _run("contacts", str(tmp_path / "a.fasta"), str(tmp_path / "d.csv")).splitlines()
    assert head.split()[:2] == ["method", "L/5"]
    assert [row.split()[:3] for row in rows] == [[name, "0.50", "0.17"] for name in ("bregpath", "plmDCA", "mfDCA")]
    assert all(float(row.split()[-1]) > 10 for row in rows)  # megabytes


def test_area_under_the_curve_of_entry_times() -> None:
    code = (
        "import numpy as np\n"
        "from benchmarks.graph_recovery import auc\n"
        "truth = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], dtype=bool)\n"
        "inf = np.inf\n"
        "early = np.array([[inf, 1, 3], [1, inf, 2], [3, 2, inf]])\n"
        "late = np.array([[inf, 1, inf], [1, inf, inf], [inf, inf, inf]])\n"
        "print(auc(early, truth), auc(late, truth), auc(-early, truth))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["1.0", "0.75", "0.0"], done.stderr  # never entered: tied, one half


@pytest.mark.parametrize("density", [None, 0.2])
def test_data_survive_the_way_to_a_worker(tmp_path: Path, density: float | None) -> None:
    code = (
        "import sys, numpy as np\n"
        "from benchmarks.cases import Case, make_data, read_data, write_data\n"
        "case = Case('x', 40, 7, 2, density=eval(sys.argv[2]))\n"
        "data = make_data(case, 'logistic'); write_data(sys.argv[1], data); again = read_data(sys.argv[1])\n"
        "full = lambda X: X if isinstance(X, np.ndarray) else X.toarray()\n"
        "assert (full(data.X) == full(again.X)).all() and (data.y == again.y).all() and again.sparse == data.sparse\n"
        "print(np.abs(full(data.X).std(axis=0) - 1).max())\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path), repr(density)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(float(done.stdout), 0.0, atol=1e-12)


def test_inverse_scale_space(tmp_path: Path) -> None:
    printed = _run("inverse_scale_space", "--quick", "--repeats", "2", "--out", str(tmp_path))
    record = json.loads((tmp_path / "inverse_scale_space.json").read_text())
    assert all(row["ours"] > 0 for row in record["whole"]) and record["first"]["knots"] >= 20
    assert (tmp_path / "inverse_scale_space.png").stat().st_size > 10_000
    assert "| a |" in printed


def test_theory(tmp_path: Path) -> None:
    _run("theory_guarantees", "--quick", "--only", "imitated", "--out", str(tmp_path))
    kept, failed = (tmp_path / "theory_guarantees.md").read_text().split("\n\n")
    assert "| 10 | 0 | 0 (0) |" in kept  # ten draws, and nothing is guaranteed
    assert "x39 10 times" in failed
    _run("theory_signs", "--quick", "--out", str(tmp_path))
    record = json.loads((tmp_path / "theory_signs.json").read_text())
    for shares in record["shares"]["4"].values():
        assert shares[0] <= shares[-1] == 1.0  # 60 and 200 rows
    assert (tmp_path / "theory_signs.png").stat().st_size > 10_000


def test_nested_cross_validation(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    words = ("--data", "digits 4 and 9", "--repeats", "1", "--who", "bregpath", "--page", str(page))
    printed = _run("real_data", *words, "--out", str(tmp_path))
    stored = json.loads((tmp_path / "real_data.json").read_text())["data"]["digits 4 and 9"]
    for figures in stored["methods"].values():
        assert len(figures["error"]) == 5 and np.mean(figures["error"]) < 0.05 and np.all(figures["seconds"])
    sizes = {name: np.mean(figures["variables"]) for name, figures in stored["methods"].items()}
    assert sizes["kappa 10, 1se glmnet"] <= sizes["kappa 10"]
    assert sizes["kappa cv, pruned"] <= sizes["kappa cv, sparse"]
    assert 'kappa = "cv", sparse choice, pruned' in printed and "## Digits 4 and 9, 361 x" in page.read_text()


def test_other_processes_see_the_same_splits(tmp_path: Path) -> None:
    """A method of another process that returns what it was given to train on."""
    from benchmarks.nested import Problem, make_splits, run_there

    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), rng.normal(size=30)
    problem = Problem("own", X, y, "gaussian", make_splits(y, "gaussian", 1))
    script = tmp_path / "mean.py"
    script.write_text(
        "import sys, pathlib, numpy as np\n"
        "home = pathlib.Path(sys.argv[1])\n"
        "X, y = np.fromfile(home / 'x.bin').reshape(3, 30).T, np.fromfile(home / 'y.bin')\n"
        "splits = np.fromfile(home / 'splits.bin').reshape(5, 30)\n"
        "rows = [[0.5, y[s > 0].mean(), X[s == 1].sum(), 0, 0] for s in splits]\n"
        "np.array(rows).tofile(home / 'model_mean.bin')\n"
    )
    record = run_there(problem, [sys.executable, str(script)], 60.0)["mean"]
    for j, (intercept, coef) in enumerate(record.models):
        train, test = problem.parts(j)
        assert set(train) | set(test) == set(range(30)) and not set(train) & set(test)
        assert intercept == pytest.approx(y[train].mean())
        assert coef[0] == pytest.approx(X[problem.splits[j] == 1].sum())
        assert record.error[j] == pytest.approx(np.mean((y[test] - intercept - X[test] @ coef) ** 2))
    assert record.seconds == [0.5] * 5


def test_kappa_cost() -> None:
    table = _run("kappa_cost", "--cases", "tiny", "--losses", "gaussian", "--repeats", "1")
    assert all(float(cell) > 0 for cell in table.splitlines()[-1].split("|")[2:5])


def test_ends() -> None:
    """Two rules end a curve no later than one of them."""
    table = _run("ends", "--problems", "6", "--data", "")
    bars, pairs = (float(line.split("|")[3]) for line in table.splitlines()[2:])
    assert 0 < pairs <= bars <= 1


def test_many_problems(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    words = ("--groups", "digits", "--most", "1", "--repeats", "1", "--page", str(page))
    _run("many_problems", *words, "--out", str(tmp_path))
    (stored,) = json.loads((tmp_path / "many_problems.json").read_text())["digits"].values()
    sparse = ("kappa cv, sparse", "kappa cv, sparse 1se", "kappa cv, pruned")
    for name in ("kappa 10", "kappa 10, mean", "kappa cv, path", "kappa cv", *sparse):
        assert len(stored[name]["error"]) == 5 and np.mean(stored[name]["error"]) < 0.05
    assert np.mean(stored["kappa 10"]["variables"]) < np.mean(stored["kappa cv"]["variables"])
    count = int("lasso" in stored)  # what the peers are not there for is not in the tables
    for title in ("Digits", "One variable from the others"):
        assert f"## {title}, {count}" in page.read_text()
