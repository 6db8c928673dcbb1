"""``bregpath predict``, called in-process, and once in a process of its own."""

from __future__ import annotations

import csv
import shlex
import subprocess
import sys

import numpy as np
import pytest

import bregpath
from bregpath.cli import main
from tests.cli.commands import error_of


@pytest.fixture(scope="module", name="folder")
def make_folder(tmp_path_factory):
    """Tables with a number, classes and rows to predict, whose columns have another order."""
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(3, 90))
    y = 3 * a - 2 * b + 0.3 * rng.normal(size=90)
    folder = tmp_path_factory.mktemp("predict")
    targets = {"number": y, "two": np.where(y > 0, "good", "bad")}
    targets["three"] = np.array(["low", "mid", "high"])[np.digitize(y, [-2, 2])]
    for name, target in targets.items():
        rows = zip(a.tolist(), b.tolist(), c.tolist(), target.tolist(), strict=True)
        write(folder / f"{name}.csv", [["a", "b", "c", "y"], *rows])
    write(folder / "new.csv", [["note", "c", "b", "a"], ["x", 0.0, 0.0, 2.0], ["y", 0.0, 3.0, 0.0]])
    return folder


def write(file, rows):
    with open(file, "w", newline="") as stream:
        csv.writer(stream).writerows(rows)


def predict_command(folder, name, capsys):
    """Fit, and the command that is printed then, for the new rows."""
    files = ["--out", str(folder / f"{name}.npz")]
    assert main(["fit", str(folder / f"{name}.csv"), "--target", "y", "--stop", "bic", *files]) == 0
    line = capsys.readouterr().out.split("To predict new rows by this model:\n")[1].splitlines()[0]
    program, *arguments = shlex.split(line)
    assert program == "bregpath"
    return [str(folder / "new.csv") if part == "NEW.csv" else part for part in arguments]


@pytest.mark.usefixtures("reader")
def test_numbers(folder, capsys):
    assert main(predict_command(folder, "number", capsys)) == 0
    header, *rows = csv.reader(capsys.readouterr().out.splitlines())
    assert header == ["prediction"]
    assert [float(row[0]) for row in rows] == pytest.approx([6.0, -6.0], abs=0.4)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("name", "classes", "expected"), [("two", ["bad", "good"], "good"), ("three", ["high", "low", "mid"], "high")]
)
def test_classes(folder, name, classes, expected, capsys):
    out = folder / "predictions.csv"
    command = predict_command(folder, name, capsys)
    assert main([*command, "--out", str(out)]) == 0
    assert f"2 predictions of the model at t = {float(command[-1]):.4g} saved in {out}" in capsys.readouterr().out
    with open(out, newline="") as stream:
        header, *rows = csv.reader(stream)
    assert header == ["prediction", *(f"probability[{label}]" for label in classes)]
    assert [row[0] for row in rows] == [expected, "low" if name == "three" else "bad"]
    shares = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert classes[shares[0].argmax()] == expected


def test_output_that_is_cut_off(folder, capsys):
    """As by ``bregpath predict ... | head``: no error, no traceback."""
    command = predict_command(folder, "number", capsys)
    write(folder / "many.csv", [["a", "b", "c"], *[[1, 2, 3]] * 20000])
    command[2] = str(folder / "many.csv")
    code = f"import sys; from bregpath.cli import main; sys.exit(main({command!r}))"
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stderr is not None
    assert process.stdout.readline() == "prediction\n"
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) == 0


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ([], "--t is missing: {}/number.npz holds models of all sizes, from t = "),
        (["--t", "1e9"], "--t 1e+09 is not on the path"),
        (["--t", "-1"], "--t -1 is not on the path"),
        (["--t", "soon"], "--t: invalid float value: 'soon'"),
        (["--t", "1", "--out", "{}/nowhere/p.csv"], "nowhere/p.csv: No such file or directory"),
        (["--t", "1", "--out", "{}/new.csv"], "new.csv is the file that is read"),
    ],
)
def test_bad_arguments(folder, extra, message, capsys):
    command = predict_command(folder, "number", capsys)[:3]
    error = error_of(capsys, [*command, *(part.format(folder) for part in extra)])
    assert message.format(folder) in error


@pytest.mark.usefixtures("reader")
def test_missing_columns_are_named(folder, tmp_path, capsys):
    program, path, _, *t = predict_command(folder, "number", capsys)
    write(tmp_path / "few.csv", [["b", "d"], [1, 2]])
    error = error_of(capsys, [program, path, str(tmp_path / "few.csv"), *t])
    assert error.endswith("few.csv lacks columns that the path needs: a, c.")


def test_missing_cells(folder, tmp_path, capsys):
    pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    program, path, _, *t = predict_command(folder, "number", capsys)
    file = tmp_path / "gaps.csv"
    write(file, [["a", "b", "c"], [1, "", 3], [1, 2, 3]])
    assert f"{file} has missing values in 'b'" in error_of(capsys, [program, path, str(file), *t])


def test_files_that_hold_no_regression(folder, tmp_path, capsys):
    new = str(folder / "new.csv")
    assert "new.csv' is not a path saved by bregpath" in error_of(capsys, ["predict", new, new, "--t", "1"])
    assert "nowhere.npz: No such file" in error_of(capsys, ["predict", "nowhere.npz", new, "--t", "1"])
    data = bregpath.datasets.make_ising_grid(3, T=1.5, n=100, seed=0)
    bregpath.IsingGraph().fit(data.X).save(tmp_path / "graph.npz")
    error = error_of(capsys, ["predict", str(tmp_path / "graph.npz"), new, "--t", "1"])
    assert "holds graphs, which have no target to predict" in error
