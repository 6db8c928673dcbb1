from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import (
    check_sample_weight_equivalence_on_dense_data,
    check_sample_weight_equivalence_on_sparse_data,
    estimator_checks_generator,
)

import bregpath
from bregpath.estimators import BregmanClassifier, BregmanRegressor
from bregpath.selection.criteria import information_criterion
from bregpath.selection.cross_validation import cross_validate


def _checks():
    for estimator in (
        BregmanRegressor(cv=3, t_ratio=20.0),  # the defaults but for less to do
        BregmanClassifier(cv=3, t_ratio=20.0),
        BregmanRegressor("poisson", stop="aic"),
        BregmanRegressor("huber", stop="bic"),
        BregmanClassifier("multinomial", stop="ebic"),
    ):
        for instance, check in estimator_checks_generator(estimator):
            name = getattr(check, "func", check).__name__
            yield pytest.param(instance, check, id=f"{instance!r}-{name}".replace(" ", ""))


@pytest.mark.filterwarnings("ignore:`cv`=", "ignore:The best time is the last one")
@pytest.mark.parametrize(("estimator", "check"), list(_checks()))
def test_check_estimator(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check", [check_sample_weight_equivalence_on_dense_data, check_sample_weight_equivalence_on_sparse_data]
)
@pytest.mark.parametrize(
    "estimator",
    [
        BregmanRegressor(step=0.05, n_times=20, t_ratio=10),
        BregmanRegressor("huber", step=0.02, n_times=20, t_ratio=10),
        BregmanClassifier(step=0.1, n_times=20, t_ratio=10),
        BregmanRegressor(step=0.05, stop=4.0),
    ],
    ids=repr,
)
@pytest.mark.filterwarnings("ignore:The best time is the last one")
def test_weights_are_repetitions(estimator, check):
    check(type(estimator).__name__, estimator)


@pytest.fixture(scope="module")
def linear():
    return bregpath.datasets.make_linear(100, 12, 3, seed=7)


@pytest.fixture(scope="module")
def logistic():
    return bregpath.datasets.make_logistic(150, 12, 3, seed=7)


# --- where the time comes from -------------------------------------------------------------------------------


def test_rules_are_those_of_the_selection_layer(linear):
    X, y = linear.X, linear.y
    selection = cross_validate(X, y, cv=4, seed=3)
    model = BregmanRegressor(cv=4, random_state=3).fit(X, y)
    assert model.t_ == selection.t_min and model.selection_.t == model.t_
    assert BregmanRegressor(stop="cv-1se", cv=4, random_state=3).fit(X, y).t_ == selection.t_1se
    for kind in ("aic", "aicc", "bic", "ebic"):
        rule = information_criterion(selection.path, kind, 100, gamma=0.9)
        assert BregmanRegressor(stop=kind, gamma=0.9).fit(X, y).t_ == rule.t
    point = selection.path.at(selection.t)
    assert_allclose(model.coef_, point.coef)
    assert_allclose(model.predict(X), X @ point.coef + point.intercept)
    assert model.n_iter_ == model.path_.stats.steps > 0


def test_time_given_as_a_number(linear):
    whole = bregpath.trace_path(linear.X, linear.y)
    inside, beyond = 7.3 * whole.t[0], 300 * whole.t[0]
    for t in (inside, beyond, 0.5 * whole.t[0]):
        model = BregmanRegressor(stop=t).fit(linear.X, linear.y)
        assert model.t_ == model.path_.t[-1] == t and model.selection_ is None
    assert not np.any(model.coef_)
    model = BregmanRegressor(stop=inside).fit(linear.X, linear.y)
    assert_allclose(model.path_.t[:-1], whole.t[whole.t < inside], rtol=1e-9)
    assert_allclose(model.coef_, whole.at(inside).coef, atol=1e-8 * np.abs(model.coef_).max())


def test_time_beyond_a_saturated_path():
    X = np.random.default_rng(0).normal(size=(20, 40))
    with pytest.warns(UserWarning, match="`stop`=1e\\+06 lies beyond the end of the path"):
        model = BregmanRegressor(stop=1e6).fit(X, X[:, 0] - X[:, 1])
    assert model.t_ == model.path_.t[-1] < 1e6


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (BregmanRegressor(stop="best"), "`stop` must be one of"),
        (BregmanRegressor(stop=-1.0), "`stop` must be a finite number above 0"),
        (BregmanRegressor(loss="logistic"), "use BregmanClassifier"),
        (BregmanClassifier(loss="gaussian"), "use BregmanRegressor"),
        (BregmanClassifier(kappa=-1), "`kappa`"),
        (BregmanRegressor(cv=1), "`cv`=1 is not possible"),
    ],
)
def test_errors_name_the_argument(logistic, estimator, message):
    with pytest.raises(ValueError, match=message):
        estimator.fit(logistic.X, logistic.y)


def test_a_loss_for_labels_is_refused_before_they_are_taken_for_numbers(logistic):
    with pytest.raises(ValueError, match="use BregmanClassifier"):
        BregmanRegressor(loss="logistic").fit(logistic.X, np.where(logistic.y > 0, "yes", "no"))


def test_few_rows_lower_the_folds_then_use_bic():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(9, 3))
    with pytest.warns(UserWarning, match="`cv`=5 is too large for 4 rows; 4 folds"):
        model = BregmanRegressor().fit(X[:4], X[:4, 0])
    assert len(model.selection_.fold_scores) == 4
    with pytest.warns(UserWarning, match="`cv`=5 is too large for 3 rows; BIC chooses"):
        assert BregmanRegressor().fit(X[:3], X[:3, 0]).selection_.rule == "BIC"
    with pytest.warns(UserWarning, match=r"`cv`=5 is too large for 3 row\(s\) in the smallest class; 3 folds"):
        model = BregmanClassifier().fit(X, [0, 1, 1, 0, 1, 1, 0, 1, 1])
    assert len(model.selection_.fold_scores) == 3
    with pytest.warns(UserWarning, match=r"1 row\(s\) in the smallest class; BIC chooses"):
        BregmanClassifier().fit(X, [0, 1, 1, 1, 1, 1, 1, 1, 1])
    with pytest.raises(ValueError, match="one class only"):
        BregmanClassifier().fit(X, np.ones(9))


def test_constant_response_is_predicted():
    X = np.random.default_rng(0).normal(size=(30, 4))
    for stop in ("cv", "bic", 2.0):
        model = BregmanRegressor(stop=stop).fit(X, np.full(30, 4.2))
        assert_allclose(model.predict(X), 4.2)
        assert not model.coef_.any()


# --- classifiers ---------------------------------------------------------------------------------------------


def test_two_classes_by_either_loss(logistic):
    labels = np.where(logistic.y == np.max(logistic.y), "yes", "no")
    one = BregmanClassifier().fit(logistic.X, labels)
    two = BregmanClassifier("multinomial", kappa=5.0).fit(logistic.X, labels)
    assert one.path_.loss.name == "logistic" and two.path_.n_outputs == 2
    for model in (one, two):
        assert model.coef_.shape == (1, 12) and model.intercept_.shape == (1,)
        eta = model.decision_function(logistic.X)
        assert eta.shape == (150,)
        assert_array_equal(model.predict(logistic.X), np.where(eta > 0, "yes", "no"))
        assert_allclose(model.predict_proba(logistic.X)[:, 1], 1 / (1 + np.exp(-eta)))
    assert_allclose(two.predict_proba(logistic.X), two.path_.predict(logistic.X, two.t_), atol=1e-12)
    shift = np.column_stack([np.zeros(150), np.full(150, 0.7)])
    assert_allclose(two.decision_function(logistic.X, offset=shift), two.decision_function(logistic.X) + 0.7)


def test_several_classes():
    data = bregpath.datasets.make_multinomial(150, 8, 3, seed=2)
    model = BregmanClassifier(penalty="group", n_times=40).fit(data.X, data.y)
    assert model.coef_.shape == (3, 8) and model.decision_function(data.X).shape == (150, 3)
    assert_allclose(model.predict_proba(data.X).sum(axis=1), 1)
    assert model.score(data.X, data.y) > 0.6
    assert_array_equal(model.coef_.any(axis=0), model.coef_.all(axis=0))


# --- offsets, weights ----------------------------------------------------------------------------------------


def test_offset_in_fit_and_predict():
    data = bregpath.datasets.make_poisson(150, 6, 2, seed=0)
    exposure = np.random.default_rng(0).uniform(0.5, 3.0, 150)
    counts = np.random.default_rng(1).poisson(exposure * np.exp(0.5 + 0.5 * data.X[:, 0]))
    model = BregmanRegressor("poisson", n_times=40).fit(data.X, counts, offset=np.log(exposure))
    assert_allclose(model.predict(data.X, offset=np.log(exposure)), exposure * model.predict(data.X))
    assert abs(model.coef_[0] - 0.5) < 0.15
    with pytest.raises(ValueError, match="`offset` must have shape"):
        model.predict(data.X, offset=np.ones(3))


def test_zero_weights_are_absent_rows(linear):
    weight = np.r_[np.ones(70), np.zeros(30)]
    some = BregmanRegressor(n_times=40).fit(linear.X, linear.y, sample_weight=weight)
    part = BregmanRegressor(n_times=40).fit(linear.X[:70], linear.y[:70])
    assert_allclose(some.coef_, part.coef_, atol=1e-8 * np.abs(part.coef_).max())
    assert some.t_ == pytest.approx(part.t_, rel=1e-9)
    assert np.isfinite(part.score(linear.X, linear.y, sample_weight=weight))


# --- frames --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def survey():
    rng = np.random.default_rng(3)
    region = np.array(["north", "south", "west"])[rng.integers(3, size=120)]
    bmi, age = rng.normal(25, 4, 120), rng.integers(20, 70, 120)
    y = 0.5 * bmi + 3.0 * (region == "south") + rng.normal(size=120)
    return {"bmi": bmi, "region": region, "age": age}, y


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames_with_categories(survey, library):
    frames = pytest.importorskip(library)
    columns, y = survey
    frame = frames.DataFrame(columns)
    model = BregmanRegressor(n_times=40).fit(frame, y)
    assert model.feature_names_in_.tolist() == ["bmi", "region", "age"] and model.n_features_in_ == 3
    assert model.coef_.shape == (5,)
    assert model.path_.feature_names == ["bmi", "region[north]", "region[south]", "region[west]", "age"]
    assert_allclose(model.predict(frame[["age", "region", "bmi"]]), model.predict(frame))
    assert model.score(frame, y) > 0.7
    labels = np.where(y > np.median(y), "high", "low")
    classifier = BregmanClassifier(n_times=30, cv=3).fit(frame, labels)
    assert classifier.predict(frame[:5]).shape == (5,)
    with pytest.raises(TypeError, match="`X` must be a data frame"):
        model.predict(np.ones((2, 3)))
    with pytest.raises(ValueError, match="lacks 'age'"):
        model.predict(frame[["bmi", "region"]])
    with pytest.raises(ValueError, match="requires y to be passed"):
        BregmanRegressor().fit(frame, None)


def test_numeric_frames_and_refits(linear, survey):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(linear.X, columns=[f"gene{j}" for j in range(12)])
    model = BregmanRegressor(stop="bic").fit(frame, pd.Series(linear.y))
    assert model.feature_names_in_[0] == "gene0" and model.path_.feature_names == list(frame.columns)
    others = (BregmanRegressor(kappa="cv", cv=3), BregmanRegressor(stop=2.0))
    for one in (model, *(other.fit(frame, linear.y) for other in others)):
        assert "gene0" in one.summary() and "x0" not in one.summary()
    binary = BregmanClassifier(cv=3).fit(frame, linear.y > 0)
    assert "gene0" in binary.summary() and binary.predict(frame).shape == (100,)
    assert_allclose(model.coef_, BregmanRegressor(stop="bic").fit(linear.X, linear.y).coef_, rtol=1e-8)
    columns, y = survey
    model.fit(pd.DataFrame(columns), y).fit(linear.X, linear.y)  # nothing of the frame is left
    assert not hasattr(model, "feature_names_in_") and model.predict(linear.X).shape == (100,)
    assert model.path_.feature_names[:2] == ["x0", "x1"]


# --- life with scikit-learn ----------------------------------------------------------------------------------


def test_pipeline_and_grid_search(logistic):
    pipeline = make_pipeline(StandardScaler(), BregmanClassifier(stop="bic", n_times=30))
    search = GridSearchCV(
        pipeline, {"bregmanclassifier__kappa": [2.0, 20.0], "bregmanclassifier__stop": ["bic", 10.0]}, cv=3
    )
    search.fit(logistic.X, logistic.y)
    assert search.best_score_ > 0.7
    assert search.predict(logistic.X).shape == (150,)


def test_select_from_model(linear):
    keep = SelectFromModel(BregmanRegressor(stop="cv-1se", n_times=50)).fit(linear.X, linear.y)
    assert_array_equal(keep.get_support(), keep.estimator_.coef_ != 0)
    assert keep.get_support()[:3].all()


def test_sparse_data_and_splitters(linear):
    X = sp.random_array((100, 30), density=0.2, random_state=np.random.default_rng(0), format="csr")
    y = X.toarray()[:, :3].sum(axis=1) + 0.05 * linear.X[:, 0]
    folds = KFold(3, shuffle=True, random_state=1)
    sparse = BregmanRegressor(cv=folds, n_times=40).fit(X, y)
    dense = BregmanRegressor(cv=folds, n_times=40).fit(X.toarray(), y)
    assert_allclose(sparse.coef_, dense.coef_, atol=1e-8 * np.abs(dense.coef_).max())
    assert_allclose(sparse.predict(X), sparse.predict(X.toarray()))


@pytest.mark.filterwarnings("ignore:The best time is the last one")
@pytest.mark.parametrize("stop", ["cv", 3.0])
def test_pickle_leaves_the_data_behind(stop):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2000))
    model = BregmanRegressor(stop=stop, n_times=10, t_ratio=3, cv=2).fit(X, X[:, 0] + 0.1 * rng.normal(size=60))
    blob = pickle.dumps(model)
    assert len(blob) < 0.5 * X.nbytes
    again = pickle.loads(blob)
    assert_array_equal(again.predict(X), model.predict(X))
    assert again.t_ == model.t_ and again.path_.at(again.t_).t == model.t_
    with pytest.raises(ValueError, match="cannot be extended"):
        again.path_.extend(2 * again.path_.t[-1])


def test_clone_keeps_parameters():
    model = BregmanClassifier(kappa=3.0, penalty_factor=np.ones(4), random_state=9)
    twin = clone(model)
    assert twin.kappa == 3.0 and twin.random_state == 9
    assert set(BregmanRegressor().get_params()) == set(model.get_params())
