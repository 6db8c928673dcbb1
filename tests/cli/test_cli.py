"""The command line, called in-process."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import bregpath
from bregpath.cli import fit, main, output
from tests.cli.commands import drop, error_of, hide


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


NUMBERS = drop("id", "grade", "level", "even")


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
        (["--target", "y", "--kappa", "0", *NUMBERS], "--kappa must be above 0"),
        (["--target", "y", "--kappa", "big"], "--kappa must be a number, a list such as 1,3,10, or cv, found 'big'."),
        (["--target", "y", "--kappa", "10,1", *NUMBERS], "--kappa must be a list of numbers that increase strictly"),
        (["--target", "y", "--kappa", "1,10", "--stop", "bic"], "chosen from by cross-validation"),
        (["--target", "y", "--average", "median"], "--average: invalid choice: 'median'"),
        (["--target", "y", "--kappa", "cv", "--stop", "bic"], "chosen from by cross-validation"),
        (["--target", "y", "--stop", "cv-sparse"], "chooses among several values of --kappa; pass --kappa cv"),
        (["--target", "y", "--loss", "lasso"], "invalid choice: 'lasso'"),
        (["--target", "y", "--loss", "logistic", *NUMBERS], "--target 'y' has 120 classes"),
        (["--target", "y", "--t-ratio", "0.5", *NUMBERS], "--t-ratio must be a finite number above 1"),
        (["--target", "y", "--cv", "1", *NUMBERS], "--cv 1 is not possible"),
        (["--target", "y", "--cv", "3", "--stop", "bic"], "--cv must go with a rule that has folds"),
        (["--target", "y", "--seed", "-1"], "--seed must be a whole number of at least 0"),
        (["--target", "y", "--weights", "nope"], "--weights 'nope' is no column of"),
        (["--target", "y", "--weights", "y"], "--weights 'y' is the target"),
        (["--target", "y", "--weights", "grade", *drop("id", "level")], "--weights 'grade' must hold numbers"),
        (["--target", "y", "--weights", "c", *drop("id", "grade", "level")], "--weights must be finite"),
        (["--target", "y", "--penalty-free", "y", *NUMBERS], "--penalty-free 'y' is none of the predictors a, b, c"),
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
        ("--out", "", "Is a directory"),
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


@pytest.mark.usefixtures("reader")
def test_folds_weights_and_columns_without_penalty(table, tmp_path, capsys):
    def fitted(*options):
        file = str(tmp_path / "path.npz")
        assert main(["fit", table, "--target", "y", *drop("id", "grade", "level"), "--out", file, *options]) == 0
        return bregpath.load_path(file), capsys.readouterr().out

    _, text = fitted("--cv", "3", "--seed", "7")
    assert "3-fold cross-validation" in text
    path, _ = fitted("--penalty-free", "c", "--penalty-free", "even", "--stop", "2")
    assert path.entry_times[2] == path.entry_times[3] == 0 < path.entry_times[0]
    path, _ = fitted("--weights", "even", "--stop", "bic")
    values = np.genfromtxt(table, delimiter=",", skip_header=1, usecols=(1, 2, 3, 4))[1::2]
    odd_rows = bregpath.trace_path(values[:, :3], values[:, 3])
    assert path.feature_names == ["a", "b", "c"]
    np.testing.assert_allclose(path.coef, odd_rows.coef, rtol=1e-6, atol=1e-8)


def test_text_without_penalty(table, capsys):
    pytest.importorskip("pandas")
    pytest.importorskip("narwhals")
    free = ["--penalty-free", "level", *drop("id", "grade", "even")]
    assert main(["fit", table, "--target", "y", "--stop", "bic", *free]) == 0
    first_row = capsys.readouterr().out.split("enters (-leaves)\n")[1].split()
    assert first_row[0] == "3"


def test_unknown_command(capsys):
    assert "invalid choice: 'fti'" in error_of(capsys, ["fti"])


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "file.csv"),
        ("y\n1\n2\n", "no column besides the target"),
        ("y,a\n1,2\n3,\n5,7\n", "missing values"),
        ("y;a\n1,5;2\n3;4,5\n", "separated by semicolons; save it with commas"),
        ("y\ta\n1\t2\n3\t4\n", "separated by tabs; save it with commas"),
        ("größe,y\n1,2\n3,4\n", "no text in UTF-8"),
    ],
)
def test_bad_files(content, message, tmp_path, capsys):
    file = tmp_path / "file.csv"
    file.write_text(content, encoding="latin-1")
    assert message in error_of(capsys, ["fit", str(file), "--target", "y"])


def test_advice_names_options(tmp_path, capsys):
    file = tmp_path / "file.csv"
    file.write_text("y,a\n" + "".join(f"{name},{i}\n" for i, name in enumerate("uuuuuw")))
    assert "choose t by --stop bic" in error_of(capsys, ["fit", str(file), "--target", "y"])


def test_uneven_rows_and_text_without_pandas(tmp_path, capsys, monkeypatch):
    hide(monkeypatch, "pandas")
    file = tmp_path / "file.csv"
    file.write_text("y,a\n1,2\n3,4,5\n")
    assert "another number of cells in row 3" in error_of(capsys, ["fit", str(file), "--target", "y"])
    file.write_text("y,a\n1,north\n3,south\n")
    assert "pip install pandas narwhals" in error_of(capsys, ["fit", str(file), "--target", "y"])


def test_time_beyond_the_end(tmp_path, capsys):
    file = tmp_path / "exact.csv"
    file.write_text("y,a\n" + "".join(f"{2 * i},{i}\n" for i in range(20)))
    assert "--stop 1e+06 lies beyond the end of the path" in error_of(
        capsys, ["fit", str(file), "--target", "y", "--stop", "1e6"]
    )


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
