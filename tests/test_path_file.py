"""Round trips of saved paths: everything that can be read comes back to the last bit."""

from __future__ import annotations

import io
import json
import pathlib
import zipfile

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import bregpath
from bregpath.losses import LOSSES
from bregpath.path_file import FORMAT_VERSION, load_path, write_path
from bregpath.penalties import PENALTIES


@pytest.fixture(scope="module", name="X")
def make_design():
    return np.random.default_rng(0).normal(size=(60, 6))


def response(X, loss):
    """A response that suits the loss."""
    eta = X[:, 0] - 0.8 * X[:, 1]
    if loss == "logistic":
        return np.where(eta + 0.5 * X[:, 5] > 0, "yes", "no")
    if loss == "multinomial":
        return np.digitize(eta + 0.5 * X[:, 5], [-0.5, 0.5])
    if loss == "poisson":
        return np.round(np.exp(np.clip(eta, -3, 2)))
    return eta + 0.1 * X[:, 4]


def round_trip(path, folder):
    file = folder / "path.npz"
    path.save(file)
    return load_path(file)


def assert_same_path(again, path, X):
    middle = float(np.sqrt(path.t[0] * path.t[-1]))
    for name in ("t", "coef", "intercept", "deviance", "df", "entry_times", "exit_times"):
        assert_array_equal(getattr(again, name), getattr(path, name), err_msg=name)
    for t in (middle, 0.5 * path.t[0]):
        assert_array_equal(again.at(t).coef, path.at(t).coef)
        assert_array_equal(again.at(t).intercept, path.at(t).intercept)
    assert_array_equal(again.predict(X, middle), path.predict(X, middle))
    assert again.null_deviance == path.null_deviance
    assert again.kappa == path.kappa
    assert again.result is path.result
    assert again.stats == path.stats
    assert again.feature_names == path.feature_names
    assert repr(again) == repr(path)
    assert_array_equal(again.coef_sparse.toarray(), path.coef_sparse.toarray())
    if path.classes is None:
        assert again.classes is None
    else:
        assert again.classes.dtype == path.classes.dtype
        assert_array_equal(again.classes, path.classes)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("loss", LOSSES)
def test_round_trip(loss, penalty, X, tmp_path):
    groups = None if penalty == "l1" else [0, 0, 1, 1, 2, 2]
    path = bregpath.trace_path(X, response(X, loss), loss=loss, penalty=penalty, groups=groups, t_ratio=8, n_times=12)
    again = round_trip(path, tmp_path)
    assert_same_path(again, path, X)
    assert repr(again.loss) == repr(path.loss)
    twice = round_trip(again, tmp_path)
    assert_same_path(twice, path, X)


def test_options_come_back(X, tmp_path):
    y = response(X, "gaussian")
    lower, upper = np.full(6, -0.5), np.full(6, 0.7)
    lower[0], upper[0] = -np.inf, np.inf  # a free column keeps its optimum
    options = dict(penalty_factor=[0, 1, 1, 1, np.inf, 2], lower=lower, upper=upper, step=0.05, kappa=5.0)
    path = bregpath.trace_path(X, y, loss=bregpath.losses.HuberLoss(2.0), t_ratio=5, n_times=9, **options)
    again = round_trip(path, tmp_path)
    assert_same_path(again, path, X)
    assert again.loss.threshold == 2.0
    assert again.entry_times[0] == 0.0


@pytest.mark.parametrize("kappa", [0.1, 0.3, 0.7, 3.0, 7.0, 10.0, 30.0])
def test_intercepts_that_are_counted_in_units_of_kappa(kappa, X, tmp_path):
    for shift in np.random.default_rng(0).normal(size=20):  # an eighth of all numbers x differ from kappa * (x / kappa)
        path = bregpath.trace_path(X, response(X, "gaussian") + shift, kappa=kappa, standardize="X", t_ratio=3.0)
        assert_array_equal(round_trip(path, tmp_path).coef, path.coef)


def test_path_that_never_moves(X, tmp_path):
    path = bregpath.trace_path(X, np.ones(len(X)), t=[1.0, 2.0])
    assert path.result is bregpath.Result.AT_REST
    again = round_trip(path, tmp_path)
    assert_array_equal(again.coef, path.coef)
    assert_array_equal(again.at(1.5).coef, np.zeros(6))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frame_with_categories(library, tmp_path):
    frames = pytest.importorskip(library)
    pytest.importorskip("narwhals")
    rng = np.random.default_rng(1)
    region = rng.choice(["north", "süd", "west"], size=80)
    frame = frames.DataFrame({"age": rng.normal(size=80), "region": region.tolist()})
    y = np.where(region == "süd", 2.0, 0.0) + rng.normal(size=80)
    path = bregpath.trace_path(frame, y, t_ratio=10, n_times=8)
    again = round_trip(path, tmp_path)
    assert_same_path(again, path, frame)
    assert again.feature_names == ["age", "region[north]", "region[süd]", "region[west]"]


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array(["no", "yes"], dtype=object),
        np.array([0, 7], dtype=np.int8),
        np.array([1, 2], dtype=object),
        np.array([0.5, 1.5]),
        np.array([False, True]),
    ],
    ids=lambda labels: labels.dtype.str,
)
def test_class_labels_keep_their_kind(labels, X, tmp_path):
    y = labels[(response(X, "logistic") == "yes").astype(int)]
    path = bregpath.trace_path(X, y, loss="logistic", t_ratio=3, n_times=4)
    again = round_trip(path, tmp_path)
    assert_same_path(again, path, X)
    assert [type(c) for c in again.classes] == [type(c) for c in path.classes]


class CauchyLoss:
    """A user's loss: value and gradient, nothing else."""

    def value(self, eta, y, w):
        return float(w @ np.log1p((eta - y) ** 2))

    def gradient(self, eta, y, w):
        return w * 2 * (eta - y) / (1 + (eta - y) ** 2)

    def predict(self, eta):
        return 100 * eta


class HalfGaussian(bregpath.losses.GaussianLoss):
    """A subclass that goes by the name of a shipped loss must not be taken for it."""

    def predict(self, eta):
        return 0.5 * eta


@pytest.mark.parametrize("loss", [CauchyLoss(), HalfGaussian()], ids=["object", "subclass"])
def test_user_loss_is_saved_by_name(loss, X, tmp_path):
    path = bregpath.trace_path(X, response(X, "gaussian"), loss=loss, t_ratio=4, n_times=5)
    again = round_trip(round_trip(path, tmp_path), tmp_path)
    assert_array_equal(again.coef, path.coef)
    t = path.t[-1]
    assert_array_equal(again.predict(X, t), path.decision_function(X, t))
    assert type(loss).__name__ in repr(again.loss)
    assert "not saved" in repr(again.loss)
    with pytest.raises(ValueError, match="not saved"):
        again.loss.gradient(np.zeros(2), np.zeros(2), np.ones(2))


@pytest.fixture
def saved(X, tmp_path):
    file = tmp_path / "path.npz"
    bregpath.trace_path(X, response(X, "gaussian"), t_ratio=4, n_times=5).save(file)
    return file


def test_name_is_kept_as_given(X, tmp_path):
    path = bregpath.trace_path(X, response(X, "gaussian"), t_ratio=4, n_times=5)
    write_path(path, str(tmp_path / "without suffix"))
    write_path(path, tmp_path / "a.path")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.path", "without suffix"]
    assert_array_equal(load_path(str(tmp_path / "without suffix")).coef, path.coef)


def test_no_pickle_inside(saved):
    with np.load(saved, allow_pickle=False) as arrays:
        kinds = {name: arrays[name].dtype.kind for name in arrays.files}
        header = json.loads(str(arrays["header"]))
    assert "O" not in kinds.values()
    assert header["version"] == FORMAT_VERSION
    assert header["penalty"] == {"kind": "l1"}


def test_loaded_path_cannot_be_extended(saved):
    path = load_path(saved)
    with pytest.raises(ValueError, match="cannot be extended"):
        path.extend(10 * path.t[-1])


def test_truncated(saved):
    whole = saved.read_bytes()
    for keep in (0, 3, len(whole) // 2, len(whole) - 1):
        saved.write_bytes(whole[:keep])
        with pytest.raises(ValueError, match=r"path\.npz' is not a path saved by bregpath, or it is damaged"):
            load_path(saved)


def test_damaged_inside(saved):
    whole = bytearray(saved.read_bytes())
    whole[len(whole) // 3 : len(whole) // 3 + 40] = bytes(40)
    saved.write_bytes(whole)
    with pytest.raises(ValueError, match="damaged"):
        load_path(saved)


def rewrite(file: pathlib.Path, change):
    """The same file, its arrays changed by a function."""
    with np.load(file) as arrays:
        content = {name: arrays[name] for name in arrays.files}
    change(content)
    stream = io.BytesIO()
    np.savez(stream, **content)
    file.write_bytes(stream.getvalue())


def change_header(**news):
    def change(content):
        content["header"] = np.array(json.dumps(json.loads(str(content["header"])) | news))

    return change


def test_other_versions(saved):
    rewrite(saved, change_header(version=FORMAT_VERSION + 1))
    with pytest.raises(ValueError, match=f"version {FORMAT_VERSION + 1} of the path format"):
        load_path(saved)


def test_files_from_before_means(saved):
    from bregpath._archive import digest_of

    def as_version_2(content):
        header = json.loads(str(content["header"])) | {"version": 2}
        del header["average"], header["digest"]
        arrays = {name: array for name, array in content.items() if name != "header"}
        content["header"] = np.array(json.dumps({**header, "digest": digest_of(header, arrays)}))

    coef = load_path(saved).coef
    rewrite(saved, as_version_2)
    again = load_path(saved)
    assert again.average is None and np.array_equal(again.coef, coef)


def test_unknown_means(saved):
    rewrite(saved, change_header(average="cubic"))
    with pytest.raises(ValueError, match="an unknown mean"):
        load_path(saved)


def test_unregistered_loss(saved):
    rewrite(saved, change_header(loss={"name": "tweedie"}))
    with pytest.raises(ValueError, match="'tweedie', which is not registered"):
        load_path(saved)


@pytest.mark.parametrize("missing", ["t", "chunk_z", "weights"])
def test_missing_array(missing, saved):
    rewrite(saved, lambda content: content.pop(missing))
    with pytest.raises(ValueError, match="not a path saved by bregpath"):
        load_path(saved)


def test_wrong_lengths(saved):
    rewrite(saved, lambda content: content.update(chunk_z=np.append(content["chunk_z"], 1.0)))
    with pytest.raises(ValueError, match="not a path saved by bregpath"):
        load_path(saved)


def test_other_files(tmp_path):
    text, array, archive, zipped = (tmp_path / name for name in ("a.txt", "a.npy", "a.npz", "a.zip"))
    text.write_text("t,coef\n1,2\n")
    np.save(array, np.ones(3))
    np.savez(archive, a=np.ones(3))
    with zipfile.ZipFile(zipped, "w") as z:
        z.writestr("header", "{}")
    for file in (text, array, archive, zipped):
        with pytest.raises(ValueError, match="not a path saved by bregpath"):
            load_path(file)
    with pytest.raises(FileNotFoundError):
        load_path(tmp_path / "nothing.npz")


def test_labels_that_json_cannot_hold(X, tmp_path):
    from fractions import Fraction

    labels = np.array([Fraction(1, 2), Fraction(3, 2)], dtype=object)
    y = labels[(response(X, "logistic") == "yes").astype(int)]
    path = bregpath.trace_path(X, y, loss="logistic", t_ratio=3, n_times=4)
    with pytest.raises(ValueError, match="class labels of type Fraction"):
        path.save(tmp_path / "path.npz")
    assert not list(tmp_path.iterdir())
