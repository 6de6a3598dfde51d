"""Both models keep scikit-learn's contract and the one of `oneclass.checks`, which in turn catches detectors that do not."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from foreign import MeanDistance
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.covariance import EllipticEnvelope
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import OneClassSVM
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import check_is_fitted

from oneclass import KernelBoundary, KernelReconstruction
from oneclass.checks import CHECKS, check_callers_array_is_left_alone, check_detector, check_scoring_is_pure, yield_checks
from oneclass.errors import InvalidRowsError

MODELS = (KernelBoundary, KernelReconstruction)
EIGHT = [
    model(window=window, threshold=rule) for model in MODELS for window in (None, 150) for rule in ("leave-one-out", "training")
]
both_models = pytest.mark.parametrize("model", MODELS)
either_frame = pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])


def normal(count=120, features=3, seed=0):
    return np.random.default_rng(seed).normal(size=(count, features))


def named(frame, names, rows):
    return frame(dict(zip(names, rows.T, strict=True)))


# Several of scikit-learn's checks fit ten rows or so, too few for any p-value of 0.05: the warning is then the right answer.
@pytest.mark.filterwarnings("ignore::oneclass.errors.NoAlarmWarning")
@parametrize_with_checks(EIGHT)
def test_scikit_learns_contract(estimator, check):
    """Each check of scikit-learn's `check_estimator` passes for both models, with and without a window, both thresholds."""
    check(estimator)


@pytest.mark.parametrize(("detector", "check"), [(each, check) for each in EIGHT for check in yield_checks(each)])
def test_our_contract(detector, check):
    """Each check of `oneclass.checks` passes for both models, with and without a window, both thresholds."""
    check(detector)


@both_models
def test_every_check_applies_to_the_models(model):
    """Nothing of the contract is waived for the library's own models."""
    assert list(yield_checks(model())) == list(CHECKS)


def test_every_check_states_its_claim():
    """Each check has a sentence of its own that could stand in a specification."""
    claims = [check.__doc__ for check in CHECKS]
    assert all(claim.partition("\n")[0].endswith((".", ",", ";")) for claim in claims)
    assert len(set(claims)) == len(claims)


def test_a_foreign_detector_can_keep_the_contract():
    """A detector without forget, p-values or bytes passes all checks that apply, and those alone are asked."""
    check_detector(MeanDistance())
    names = {check.__name__ for check in yield_checks(MeanDistance())}
    assert "check_window_is_respected" in names
    assert names.isdisjoint({"check_forget_is_fit_without", "check_p_values_follow_scores"})


class BatchOnly(OutlierMixin, BaseEstimator):
    """A detector with `fit` and scores alone."""

    def __init__(self, alarm_rate=0.05, random_state=None):
        self.alarm_rate = alarm_rate
        self.random_state = random_state

    def fit(self, X, y=None):
        self.inner_ = MeanDistance(self.alarm_rate).fit(X, y)
        self.offset_, self.feature_names_in_ = self.inner_.offset_, getattr(self.inner_, "feature_names_in_", None)
        assert self.random_state == 0
        return self

    def score_samples(self, X):
        check_is_fitted(self)
        return self.inner_.score_samples(X)

    def decision_function(self, X):
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        return np.where(self.decision_function(X) >= 0, 1, -1)


def test_a_batch_detector_is_asked_for_nothing_it_has_not():
    """Without `partial_fit` nothing of streams is asked; a `random_state` is held fast while the checks run."""
    check_detector(BatchOnly())
    assert len(list(yield_checks(BatchOnly()))) < len(list(yield_checks(MeanDistance())))
    assert BatchOnly().random_state is None


def test_the_checks_leave_the_detector_as_it_was():
    """`check_detector` works on copies: the instance handed in has learnt nothing afterwards."""
    detector = KernelBoundary()
    before = detector.to_bytes()
    check_detector(detector)
    assert detector.to_bytes() == before


class FlippedSign(MeanDistance):
    def score_samples(self, X):
        return -super().score_samples(X)


class LearnsFromScoring(MeanDistance):
    def score_samples(self, X):
        scores = super().score_samples(X)
        self.mean_ = self.mean_ + 1e-3 * (np.mean(X, axis=0) - self.mean_)
        return scores


class ScoresAgainstTheBatch(MeanDistance):
    def score_samples(self, X):
        scores = super().score_samples(X)
        return scores - 1e-3 * scores.mean()


class KeepsTheCallersArray(MeanDistance):
    def fit(self, X, y=None):
        super().fit(X, y)
        self.kept_ = X
        return self

    def score_samples(self, X):
        return super().score_samples(X) - float(np.abs(np.asarray(self.kept_, dtype=float)).max())


class WritesIntoTheCallersArray(MeanDistance):
    def fit(self, X, y=None):
        X -= X.mean(axis=0)
        return super().fit(X, y)


class OffsetNotUsed(MeanDistance):
    def decision_function(self, X):
        return self.score_samples(X) + 2.0


class PredictsTruth(MeanDistance):
    def predict(self, X):
        return self.decision_function(X) >= 0


class RefusesTheThreshold(MeanDistance):
    def predict(self, X):
        return np.where(self.decision_function(X) > 0, 1, -1)


class WindowIgnored(MeanDistance):
    def _keep(self, old, new):
        window, self.window = self.window, None
        super()._keep(old, new)
        self.window = window
        return self


class WindowMisread(MeanDistance):
    def _keep(self, old, new):
        super()._keep(old, new)
        self.window_ = self.window_[::-1]
        return self


class AcceptsNaN(MeanDistance):
    def fit(self, X, y=None):
        return super().fit(np.nan_to_num(X) if isinstance(X, np.ndarray) and X.dtype.kind == "f" else X, y)


class ForgetsOnFailure(MeanDistance):
    def partial_fit(self, X, y=None):
        rows, self.mean_ = self.window_ if hasattr(self, "window_") else None, None
        if rows is not None and np.asarray(X).ndim == 2 and len(X):
            self.mean_ = rows.mean(axis=0)
        return super().partial_fit(X, y)


class LearnsLabelledOutliers(MeanDistance):
    def fit(self, X, y=None):
        return super().fit(X)


class RemembersTheLastFit(MeanDistance):
    def fit(self, X, y=None):
        rows = self.window_ if hasattr(self, "window_") else None
        super().fit(X, y)
        return self if rows is None else self._keep(self.window_, np.resize(rows, (len(rows), self.n_features_in_)))


class IgnoresTheRate(MeanDistance):
    def _keep(self, old, new):
        super()._keep(old, new)
        self.offset_ = float(np.quantile(-np.sqrt(((self.window_ - self.mean_) ** 2).sum(axis=1)), 0.05))
        return self


class DoesNotLearnOn(MeanDistance):
    def partial_fit(self, X, y=None):
        return self if hasattr(self, "window_") else super().fit(X, y)


class BoundaryThatForgetsTheWrongRows(KernelBoundary):
    def forget(self, indices):
        return super().forget([index + 1 if index < len(self.window_) - 1 else 0 for index in indices])


class BoundaryWithCoarsePValues(KernelBoundary):
    def p_values(self, X):
        return 1.0 - super().p_values(X)


class BoundaryThatLosesBits(KernelBoundary):
    @classmethod
    def from_bytes(cls, data, *, kernel=None):
        model = super().from_bytes(data, kernel=kernel)
        return model.partial_fit(model.window_[-1:])


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (FlippedSign, "check_far_rows_score_lower"),
        (LearnsFromScoring, "check_scoring_is_pure"),
        (ScoresAgainstTheBatch, "check_rows_are_scored_alone"),
        (KeepsTheCallersArray, "check_callers_array_is_left_alone"),
        (WritesIntoTheCallersArray, "check_callers_array_is_left_alone"),
        (OffsetNotUsed, "check_decision_and_predict_follow_scores"),
        (PredictsTruth, "check_decision_and_predict_follow_scores"),
        (RefusesTheThreshold, "check_decision_and_predict_follow_scores"),
        (WindowIgnored, "check_window_is_respected"),
        (WindowMisread, "check_window_is_respected"),
        (AcceptsNaN, "check_bad_rows_are_refused"),
        (ForgetsOnFailure, "check_bad_rows_are_refused"),
        (LearnsLabelledOutliers, "check_rows_labelled_minus_one_are_not_learnt"),
        (RemembersTheLastFit, "check_fit_starts_afresh"),
        (IgnoresTheRate, "check_alarm_rate_is_kept"),
        (DoesNotLearnOn, "check_partial_fit_goes_on"),
        (BoundaryThatForgetsTheWrongRows, "check_forget_is_fit_without"),
        (BoundaryWithCoarsePValues, "check_p_values_follow_scores"),
        (BoundaryThatLosesBits, "check_saved_detectors_resume"),
    ],
)
def test_a_broken_detector_is_caught(broken, check):
    """A detector with one fault fails the check of that fault, and `check_detector` refuses it by name."""
    checks = {each.__name__: each for each in yield_checks(broken())}
    with pytest.raises(AssertionError):
        checks[check](broken())
    with pytest.raises(AssertionError, match=f"{broken.__name__}.* fails check_"):
        check_detector(broken())


def test_a_detector_without_an_alarm_rate_is_refused():
    """scikit-learn's OneClassSVM, whose rate goes by another name, does not keep the contract."""
    with pytest.raises(AssertionError, match="OneClassSVM"):
        check_detector(OneClassSVM(gamma=0.1, nu=0.05))


def test_a_grid_search_finds_the_better_width():
    """GridSearchCV clones, fits and scores the models: of two widths it keeps the one that tells the far rows."""
    X = np.concatenate([normal(), normal(20, seed=1) * 0.3 + 4.0])
    y = np.where(np.arange(140) < 120, 1, -1)
    shuffled = np.random.default_rng(2).permutation(140)
    search = GridSearchCV(KernelBoundary(C=1.0), {"width": [0.01, 3.0]}, scoring=make_scorer(lambda y, p: np.mean(y == p)), cv=3)
    search.fit(X[shuffled], y[shuffled])
    assert search.best_params_ == {"width": 3.0}
    assert search.best_score_ > 0.9


@both_models
def test_a_pipeline_is_the_model_on_scaled_rows(model):
    """Behind a StandardScaler the model fits, scores and predicts as it does on rows scaled by hand."""
    X, fresh = normal() * [1.0, 100.0, 0.01], np.vstack([normal(5, seed=1), 9 * np.eye(3)]) * [1.0, 100.0, 0.01]
    pipeline = make_pipeline(StandardScaler(), model(width=2.0, C=1.0)).fit(X)
    scaler = StandardScaler().fit(X)
    alone = model(width=2.0, C=1.0).fit(scaler.transform(X))
    np.testing.assert_array_equal(pipeline.decision_function(fresh), alone.decision_function(scaler.transform(fresh)))
    assert pipeline.predict(fresh)[-3:].tolist() == [-1, -1, -1]


@both_models
@either_frame
def test_a_frame_is_its_numbers(model, frame):
    """pandas and polars frames are learnt and scored as the numbers in them, and their columns remembered."""
    X, fresh = normal(), normal(9, seed=1)
    from_frame = model(window=100).fit(named(frame, "abc", X)).partial_fit(named(frame, "abc", fresh))
    from_numbers = model(window=100).fit(X).partial_fit(fresh)
    np.testing.assert_array_equal(from_frame.score_samples(named(frame, "abc", fresh)), from_numbers.score_samples(fresh))
    assert from_frame.feature_names_in_.tolist() == ["a", "b", "c"]


@both_models
@either_frame
@pytest.mark.parametrize(
    "call", ["partial_fit", "score_samples", "decision_function", "predict", "p_values", "expected", "explain"]
)
@pytest.mark.parametrize("names", ["bac", "abd"])
def test_other_columns_are_refused(model, frame, call, names):
    """A frame whose columns have another order or other names is refused by every call, and nothing changes."""
    fitted = model().fit(named(frame, "abc", normal()))
    before = fitted.to_bytes()
    with pytest.raises(InvalidRowsError, match="feature names"):
        getattr(fitted, call)(named(frame, names, normal(5)))
    assert fitted.to_bytes() == before


@both_models
def test_feature_names_survive_a_save(model):
    """A model out of its bytes still refuses columns in another order."""
    fitted = model().fit(named(pd.DataFrame, "abc", normal()))
    restored = model.from_bytes(fitted.to_bytes())
    assert restored.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(InvalidRowsError, match="feature names"):
        restored.predict(named(pd.DataFrame, "cba", normal(5)))


@both_models
def test_a_clone_has_the_parameters_and_nothing_learnt(model):
    """`clone` copies the six parameters and none of what was learnt."""
    fitted = model("laplacian", width=2.0, C=3.0, alarm_rate=0.1, threshold="training", window=40).fit(normal())
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    assert not hasattr(copy, "n_features_in_")
    assert not copy.is_fitted


def test_the_kit_does_justice_to_detectors_of_others():
    """A tree that counts its queries has not changed in scoring; a detector may want rows that differ."""
    check_scoring_is_pure(LocalOutlierFactor(novelty=True))
    check_callers_array_is_left_alone(EllipticEnvelope(random_state=0))
