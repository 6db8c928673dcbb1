"""``bregpath graph``, called in-process."""

from __future__ import annotations

import numpy as np
import pytest

import bregpath
from bregpath.cli import graph, main
from tests.cli.commands import drop, error_of, hide

pd = pytest.importorskip("pandas")
pytest.importorskip("narwhals")


@pytest.fixture(scope="module", name="table")
def make_table(tmp_path_factory):
    """A CSV file with columns of all kinds, each of which follows the one before it."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    b = a + 0.5 * rng.normal(size=300)
    yes = np.where(b + 0.5 * rng.normal(size=300) > 0, "yes", "no")
    bit = np.where(rng.random(300) < 0.9, yes == "yes", yes == "no").astype(int)
    level = np.where(rng.random(300) < 0.2, "mid", np.where(bit == 1, "high", "low"))
    columns = {"id": [f"p{i}" for i in range(300)], "a": a, "b": b, "c": rng.normal(size=300)}
    frame = pd.DataFrame({**columns, "yes": yes, "bit": bit, "level": level})
    frame.loc[::50, "bit"] = None  # so that the others are read as 0.0 and 1.0
    file = tmp_path_factory.mktemp("data") / "table.csv"
    frame.to_csv(file, index=False)
    return str(file)


@pytest.mark.parametrize(
    ("dropped", "kind", "why", "edge"),
    [
        (("id", "a", "b", "c", "level"), "ising", "no column has more than two values", "yes - bit"),
        (("id", "a", "b", "c"), "potts", "all columns hold labels", "bit - level"),
        (("id", "yes", "bit", "level"), "gaussian", "all columns hold numbers", "a - b"),
        (("id",), "mixed", "3 columns hold numbers, 3 labels: yes, bit, level", "a - b"),
    ],
)
def test_kinds(table, dropped, kind, why, edge, capsys):
    assert main(["graph", table, *drop(*dropped)]) == 0
    out = capsys.readouterr().out
    assert f"300 rows, {7 - len(dropped)} columns, kind {kind} ({why})" in out
    assert f"{kind.capitalize()}Graph: " in out
    assert edge in out.split("Strongest edges")[1]
    assert "--stop stable" in out and "stability()" not in out


def test_kind_as_asked_for(table, capsys):
    numbers = drop("id", "yes", "bit", "level")
    assert main(["graph", table, "--kind", "mixed", "--stop", "3", *numbers]) == 0
    out = capsys.readouterr().out
    assert "kind mixed (as asked for)" in out and "MixedGraph" in out and "the time given by --stop 3" in out


def test_files(table, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    edges, figure, saved = (str(tmp_path / name) for name in ("edges.csv", "graph.png", "path.npz"))
    files = ["--out", edges, "--plot", figure, "--save", saved]
    assert main(["graph", table, *drop("id", "yes", "bit", "level"), *files]) == 0
    out = capsys.readouterr().out
    assert all(file in out for file in (edges, figure, saved))
    first = pd.read_csv(edges).iloc[0]
    assert {first.source, first.target} == {"a", "b"} and first.weight > 0.5
    assert (tmp_path / "graph.png").read_bytes()[:4] == b"\x89PNG"
    assert tuple(bregpath.load_path(saved).names) == ("a", "b", "c")


def test_graphml(table, tmp_path):
    networkx = pytest.importorskip("networkx")
    file = str(tmp_path / "graph.graphml")
    assert main(["graph", table, *drop("id", "yes", "bit", "level"), "--out", file]) == 0
    assert networkx.read_graphml(file).has_edge("a", "b")


def test_several_kappas(table, capsys):
    options = ["--kappa", "1,10", "--stop", "cv"]
    assert main(["graph", table, *drop("id", "yes", "bit", "level"), *options]) == 0
    assert "kappa = " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ([], "column 'id' of {} holds 300 different texts, which are hardly labels; leave it out with --drop id"),
        (["--drop", "nope"], "--drop 'nope' is no column of {}"),
        (drop("id", "a", "b", "c", "yes", "bit"), "{} has 1 column(s); a graph needs at least 2 nodes"),
        (["--kind", "lasso"], "--kind: invalid choice: 'lasso'"),
        (["--kind", "gaussian", "--drop", "id"], "use --kind potts for labels"),
        (["--kind", "ising", "--drop", "id"], "use --kind potts"),
        (["--stop", "aic"], "--stop must be ebic, bic, cv, cv-1se, cv-sparse, mdc, stars, stable or a time"),
        (["--stop", "mdc", "--drop", "id"], "--stop must be one of"),
        (["--kappa", "cv"], "use --stop cv"),
        (["--kappa", "-1"], "--kappa must be above 0"),
        (["--t-ratio", "0.5", "--drop", "id"], "--t-ratio must be a finite number above 1"),
    ],
)
def test_bad_arguments(table, extra, message, capsys):
    assert message.format(table) in error_of(capsys, ["graph", table, *extra])


@pytest.mark.parametrize(
    ("option", "file", "message"),
    [
        ("--out", "nowhere/edges.csv", "edges.csv: No such file or directory"),
        ("--out", "edges.txt", "--out must name a file that ends in .csv or .graphml"),
        ("--out", "", "Is a directory"),
        ("--save", "nowhere/path.npz", "path.npz: No such file or directory"),
        ("--plot", "graph.picture", "endings may be"),
    ],
)
def test_files_are_refused_before_anything_is_read(table, option, file, message, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(graph, "read_csv", lambda *_: pytest.fail("read in vain"))
    assert message in error_of(capsys, ["graph", table, option, str(tmp_path / file)])


def test_data_are_not_replaced(table, capsys):
    assert "is the file that is read" in error_of(capsys, ["graph", table, "--out", table])


def test_without_pandas(table, capsys, monkeypatch):
    hide(monkeypatch, "pandas")
    assert "pip install bregpath[frames]" in error_of(capsys, ["graph", table])
