"""The command line, called in-process."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import bregpath
from bregpath.cli import fit, main, output


@pytest.fixture(scope="module", name="table")
def make_table(tmp_path_factory):
    """A CSV file with a number, a text and two targets."""
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 120))
    y = 3 * a - 2 * b + 0.3 * rng.normal(size=120)
    lines = ["id,a,b,c,y,grade,level,even"]
    for i in range(120):
        grade = "good" if y[i] + rng.normal() > 0 else "bad"
        level = ["low", "mid", "high"][int(np.digitize(y[i], [-1.5, 1.5]))]
        lines.append(f"{i},{a[i]:.4f},{b[i]:.4f},{c[i]:.4f},{y[i]:.4f},{grade},{level},{i % 2}")
    file = tmp_path_factory.mktemp("data") / "table.csv"
    file.write_text("\n".join(lines) + "\n")
    return str(file)


@pytest.fixture(params=[True, False], ids=["pandas", "plain"])
def reader(request, monkeypatch):
    """With pandas, and as if it were missing."""
    if request.param:
        pytest.importorskip("pandas")
        pytest.importorskip("narwhals")
    else:
        hide(monkeypatch, "pandas")


def hide(monkeypatch, *modules):
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *a: None if name in modules else find_spec(name, *a))


def drop(*names):
    return [part for name in names for part in ("--drop", name)]


NUMBERS = drop("id", "grade", "level", "even")


def error_of(capsys, arguments, code=2):
    """The one line on stderr of a command that fails."""
    try:
        assert main(arguments) == code
    except SystemExit as exit:
        assert exit.code == code
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("bregpath: error: ")
    return lines[0]


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("stop", ["cv", "cv-1se", "bic", "ebic", "2.5"])
def test_fit(table, stop, capsys):
    assert main(["fit", table, "--target", "y", "--stop", stop, *NUMBERS]) == 0
    out = capsys.readouterr().out
    assert "120 rows, target 'y', loss gaussian" in out
    assert "enters (-leaves)" in out
    model = out.split("variable")[-1]
    assert float(model.split("\na ")[1].split()[0]) == pytest.approx(3, abs=0.2)
    assert float(model.split("\nb ")[1].split()[0]) == pytest.approx(-2, abs=0.2)


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(("target", "loss"), [("grade", "logistic"), ("level", "multinomial")])
def test_text_targets_choose_their_loss(table, target, loss, capsys):
    others = {"id", "y", "grade", "level", "even"} - {target}
    assert main(["fit", table, "--target", target, "--stop", "1.5", *drop(*others)]) == 0
    out = capsys.readouterr().out
    assert f"loss {loss}" in out
    assert ("speak for good" if loss == "logistic" else "high") in out


def test_text_columns(table, capsys):
    pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    assert main(["fit", table, "--target", "y", "--stop", "bic", *drop("id", "grade", "even")]) == 0
    assert "level[low]" in capsys.readouterr().out


@pytest.mark.usefixtures("reader")
def test_saved_path_and_figure(table, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    saved, figure = tmp_path / "path.npz", tmp_path / "path.png"
    files = ["--out", str(saved), "--plot", str(figure)]
    assert main(["fit", table, "--target", "y", "--stop", "bic", *NUMBERS, *files]) == 0
    path = bregpath.load_path(saved)
    assert path.feature_names == ["a", "b", "c"]
    assert figure.read_bytes()[:4] == b"\x89PNG"
    out = capsys.readouterr().out
    assert str(saved) in out and str(figure) in out


def test_demo(tmp_path, capsys):
    folder = tmp_path / "new" / "figures"
    assert main(["demo", "--out", str(folder)]) == 0
    out = capsys.readouterr().out
    for name in ("worst concave points", "bmi", "Breast cancer", "Diabetes", "held-out"):
        assert name in out
    if importlib.util.find_spec("matplotlib"):
        made = {file.name for file in folder.iterdir()}
        assert made == {f"{d}_{f}.png" for d in ("breast_cancer", "diabetes") for f in ("path", "selection")}
        assert all(str(folder / name) in out for name in made)


def test_demo_without_matplotlib(tmp_path, capsys, monkeypatch):
    hide(monkeypatch, "matplotlib")
    assert main(["demo", "--out", str(tmp_path)]) == 0
    assert "pip install bregpath[plot]" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


def test_version_and_help(capsys):
    for arguments, text in (["--version"], bregpath.__version__), (["--help"], "demo"), (["fit", "-h"], "--stop"):
        with pytest.raises(SystemExit) as exit:
            main(arguments)
        assert exit.value.code == 0
        assert text in capsys.readouterr().out
    assert main([]) == 0
    assert "commands:" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (["--target", "nope"], "--target 'nope' is no column of"),
        (["--target", "y", "--drop", "nope"], "--drop 'nope' is no column of"),
        (["--target", "y", "--stop", "soon"], "--stop must be cv, cv-1se, cv-sparse, aic, bic, ebic or a time"),
        (["--target", "y", "--stop", "-1"], "--stop must be a positive time"),
        (["--target", "y", "--kappa", "0", *NUMBERS], "`kappa` must be a finite number above 0"),
        (["--target", "y", "--kappa", "big"], "--kappa must be a number, a list such as 1,3,10, or cv, found 'big'."),
        (["--target", "y", "--kappa", "10,1", *NUMBERS], "`kappa` must be a list of numbers that increase strictly"),
        (["--target", "y", "--kappa", "1,10", "--stop", "bic"], "chosen from by cross-validation"),
        (["--target", "y", "--average", "median"], "--average: invalid choice: 'median'"),
        (["--target", "y", "--kappa", "cv", "--stop", "bic"], "chosen from by cross-validation"),
        (["--target", "y", "--stop", "cv-sparse"], "chooses among several values of `kappa`"),
        (["--target", "y", "--loss", "lasso"], "invalid choice: 'lasso'"),
        (["--target", "y", "--loss", "logistic", *NUMBERS], "120 classes"),
        (["--target", "y", "--out", "/no/where.npz", *NUMBERS], "/no/where.npz: No such file"),
        ([], "required: --target"),
    ],
)
def test_bad_arguments(table, extra, message, capsys):
    assert message in error_of(capsys, ["fit", table, *extra])


@pytest.mark.parametrize(
    ("option", "file", "message"),
    [
        ("--out", "nowhere/path.npz", "path.npz: No such file or directory"),
        ("--plot", "nowhere/path.png", "path.png: No such file or directory"),
        ("--plot", "path.picture", "endings may be"),
        ("--plot", "path", "endings may be"),
    ],
)
def test_files_are_refused_before_anything_is_computed(table, option, file, message, tmp_path, capsys, monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(fit, "choose", lambda *_: pytest.fail("computed in vain"))
    assert message in error_of(capsys, ["fit", table, "--target", "y", option, str(tmp_path / file)])


def test_kappas_and_means(table, tmp_path, capsys):
    def fitted(*options):
        file = str(tmp_path / "path.npz")
        assert main(["fit", table, "--target", "y", *NUMBERS, "--out", file, *options]) == 0
        return bregpath.load_path(file), capsys.readouterr().out

    path, text = fitted("--kappa", "1,10")
    assert path.kappa in (1.0, 10.0) and path.average is None and "of 2 kappas" in text
    assert fitted("--kappa", "1,10", "--average", "linear", "--stop", "cv-1se")[0].average == "linear"
    path, text = fitted("--average", "uniform", "--stop", "2")
    assert path.average == "uniform" and path.kappa == 10.0
    path, text = fitted("--kappa", "cv", "--average", "none")
    assert path.average is None and "path itself" not in text


def test_unknown_command(capsys):
    assert "invalid choice: 'fti'" in error_of(capsys, ["fti"])


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "file.csv"),
        ("y\n1\n2\n", "no column besides the target"),
        ("y,a\n1,2\n3,\n5,7\n", "missing values"),
    ],
)
def test_bad_files(content, message, tmp_path, capsys):
    file = tmp_path / "file.csv"
    file.write_text(content)
    assert message in error_of(capsys, ["fit", str(file), "--target", "y"])


def test_uneven_rows_and_text_without_pandas(tmp_path, capsys, monkeypatch):
    hide(monkeypatch, "pandas")
    file = tmp_path / "file.csv"
    file.write_text("y,a\n1,2\n3,4,5\n")
    assert "another number of cells in row 3" in error_of(capsys, ["fit", str(file), "--target", "y"])
    file.write_text("y,a\n1,north\n3,south\n")
    assert "pip install pandas narwhals" in error_of(capsys, ["fit", str(file), "--target", "y"])


def test_missing_file(capsys):
    error = error_of(capsys, ["fit", "nowhere.csv", "--target", "y"])
    assert error == "bregpath: error: nowhere.csv: No such file or directory"


def test_warnings_are_notes(table, capsys):
    assert main(["fit", table, "--target", "y", "--t-ratio", "1.2", *NUMBERS]) == 0
    err = capsys.readouterr().err
    assert err.startswith("bregpath: note: ") and "Warning" not in err


def test_tables_by_rich(capsys, monkeypatch):
    pytest.importorskip("rich")
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    output._print_table(["name", "value"], [["region[north]", "1"]], left={0})
    out = capsys.readouterr().out
    assert "region[north]" in out and "─" in out


def test_interrupt(table, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit, "read_csv", interrupt)
    assert main(["fit", table, "--target", "y"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_bench_says_where_it_runs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["bench", "--quick"]) == 2
    assert "source tree" in capsys.readouterr().err
