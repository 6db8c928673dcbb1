"""The examples run on small files in the format of the real ones, and write what they promise."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

pd = pytest.importorskip("pandas")
matplotlib = pytest.importorskip("matplotlib")
pytest.importorskip("narwhals")

EXAMPLES = Path(__file__).resolve().parents[1] / "examples"


def _load(name: str) -> ModuleType:
    file = EXAMPLES / f"{name}.py"
    if not file.exists():
        pytest.skip("not in this source tree")
    spec = importlib.util.spec_from_file_location(f"example_{name}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _no_window(monkeypatch):
    matplotlib.use("Agg")
    yield
    matplotlib.pyplot.close("all")


@pytest.fixture
def senate(tmp_path):
    """Two parties, the first two senators of each from one state and close; one hardly votes, one never says nay."""
    rng = np.random.default_rng(0)
    party = np.array(list("DDDDDIRRRRRR"))
    line = rng.choice([-1.0, 1.0], (150, 2))[:, (party == "R").astype(int)]
    lean = 1.2 * line + rng.normal(size=(150, 12))
    lean[:, 1], lean[:, 7] = lean[:, 0] + 0.3 * rng.normal(size=150), lean[:, 6] + 0.3 * rng.normal(size=150)
    votes = pd.DataFrame((lean > 0).astype(float), columns=[str(100 + j) for j in range(12)])
    votes = votes.mask(rng.random(votes.shape) < 0.05)
    votes.iloc[:, 4] = votes.iloc[:, 4].mask(rng.random(150) < 0.7)
    votes.iloc[:, 11] = 1.0
    votes.index.name = "roll"
    names = [f"{'McA' if j == 2 else 'A'}{'BCDEFGHIJKLM'[j] * 3}, X." for j in range(11)] + ["ABBB, Y."]
    state = ["NJ", "NJ", "NY", "MA", "CA", "VT", "GA", "GA", "TX", "UT", "ID", "KS"]
    senators = pd.DataFrame({"icpsr": votes.columns, "name": names, "party": party, "state": state})
    votes.to_csv(tmp_path / "votes.csv")
    senators.to_csv(tmp_path / "senators.csv", index=False)
    return tmp_path


def test_senate_votes(senate, capsys):
    example = _load("senate_votes")
    files = str(senate / "votes.csv"), str(senate / "senators.csv")
    votes, senators = example.read_votes(*files)
    assert votes.shape == (150, 10)  # without those of too few votes, and of one vote only
    assert set(np.unique(votes)) == {0, 1}
    assert list(senators.index) == list(votes.columns)
    assert votes.columns[2] == "McAddd"

    example.main([*files, "--out", str(senate / "out")])
    edges = pd.read_csv(senate / "out" / "edges.csv")
    strongest = edges.sort_values("strength", ascending=False).head(2)
    assert {frozenset(pair) for pair in strongest[["source", "target"]].values} == {
        frozenset(["Abbb", "Accc"]),
        frozenset(["Ahhh", "Aiii"]),
    }
    assert "of the" in capsys.readouterr().out
    for name in ("senate.png", "compare.png"):
        assert (senate / "out" / name).stat().st_size > 10_000


def test_abstentions_follow_the_party():
    example = _load("senate_votes")
    votes = pd.DataFrame({"a": [1.0, np.nan], "b": [1.0, 0.0], "c": [np.nan, 0.0], "d": [0.0, 1.0], "e": [np.nan, 1.0]})
    filled = example.fill_with_party(votes, pd.Series(list("DDDRR"), index=votes.columns))
    assert filled.to_numpy().tolist() == [[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]]


def test_journey_to_the_west(tmp_path, capsys):
    rng = np.random.default_rng(1)
    together = rng.random(300) < 0.5
    scenes = {name: np.where(rng.random(300) < 0.9, together, ~together) for name in ("Zhubajie", "Shaseng")}
    scenes |= {name: rng.random(300) < 0.3 for name in ("Nezha", "Muzha")} | {"Somebody": np.zeros(300, dtype=bool)}
    pd.DataFrame(scenes).astype(int).to_csv(tmp_path / "scenes.csv", index=False)
    _load("journey_to_the_west").main([str(tmp_path / "scenes.csv"), "--out", str(tmp_path / "out")])
    edges = pd.read_csv(tmp_path / "out" / "edges.csv")
    assert edges[["source", "target"]].values.tolist() == [["Pigsy", "Sandy"]]
    assert "4 characters" in capsys.readouterr().out
    for name in ("west.png", "path.png"):
        assert (tmp_path / "out" / name).stat().st_size > 5_000


def test_structures(tmp_path, capsys):
    _load("structures").main(["--small", "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert printed.count("pieces") == 3 and printed.count("relative error") == 2
    for name in ("signals.png", "image.png", "spectrum.png"):
        assert (tmp_path / name).stat().st_size > 5_000


def test_proteins(tmp_path, capsys):
    rng = np.random.default_rng(2)
    cells = rng.normal(size=(400, 4))
    for j in (1, 2, 3):  # a chain: raf - mek - erk - jnk
        cells[:, j] += 0.6 * cells[:, j - 1]
    frame = pd.DataFrame(np.exp(cells), columns=["raf", "mek", "erk", "jnk"])
    frame.to_csv(tmp_path / "cells.csv", index=False)
    example = _load("proteins")
    assert example.consensus(["raf", "mek", "erk", "jnk"]).sum() == 2 * 2
    example.main([str(tmp_path / "cells.csv"), "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert "in the consensus (2 of 2): raf-mek, mek-erk" in printed
    assert "not in it: erk-jnk" in printed
    assert (tmp_path / "out" / "proteins.png").stat().st_size > 10_000
    assert len(pd.read_csv(tmp_path / "out" / "edges_composite.csv")) >= 3


def test_contacts(tmp_path, capsys):
    rng = np.random.default_rng(3)
    letters = rng.choice(list("ACDE"), (400, 12))
    same = rng.random(400) < 0.7
    letters[same, 6] = letters[same, 1]
    text = "".join(f">{i}\n{''.join(row)}\n" for i, row in enumerate(letters))
    (tmp_path / "family.fasta").write_text(text)
    pairs = [(i, j) for i in range(12) for j in range(i + 1, 12)]
    table = pd.DataFrame(pairs, columns=["i", "j"]).assign(distance=[5.0 if pair == (1, 6) else 12.0 for pair in pairs])
    table.to_csv(tmp_path / "distances.csv", index=False)
    words = [str(tmp_path / "family.fasta"), "--distances", str(tmp_path / "distances.csv")]
    _load("contacts").main([*words, "--out", str(tmp_path / "out")])
    printed = capsys.readouterr().out
    assert "of the highest 2 scores 50% touch" in printed
    assert pd.read_csv(tmp_path / "out" / "contacts.csv")[["i", "j"]].values[0].tolist() == [1, 6]
    assert (tmp_path / "out" / "contacts.png").stat().st_size > 5_000


def test_kappa_and_t(tmp_path, capsys):
    _load("kappa_and_t").main(["--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "best: kappa = " in printed and "sparse: kappa = " in printed
    for name in ("kappa_paths", "kappa_choice"):
        assert (tmp_path / f"{name}.png").stat().st_size > 10_000
