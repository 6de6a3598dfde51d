"""Rivals that slide over a stream: by learning their window anew, by sums, and by fitting any detector again."""

import numpy as np
import pytest
from pairs import normal
from sklearn.base import clone
from sklearn.ensemble import IsolationForest
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import oneclass as oc
from oneclass import rivals
from oneclass.errors import InvalidParameterError, InvalidRowsError, NotLearntError, StateError
from oneclass.loading import model_from_bytes
from oneclass.state import Envelope


@pytest.mark.parametrize("rival", [rivals.OnlineKernelPCA(window=50), rivals.Refitted(rivals.KNearest(k=3), window=50)], ids=repr)
@pytest.mark.parametrize("chunks", [[1] * 7, [20, 5, 60], [70]])
def test_sliding_is_fitting_the_window(rival, chunks):
    """After any chunks the scores have the bits of a fit to the rows of the window."""
    X, rival = normal(60 + sum(chunks)), rivals.Refitted(rivals.KNearest(k=3), window=50) if "KNearest" in repr(rival) else rival
    rival.fit(X[:60])
    at = 60
    for count in chunks:
        rival.partial_fit(X[at : at + count])
        at += count
    again = type(rival)(**rival.get_params(deep=False)).fit(X[at - 50 : at])
    np.testing.assert_array_equal(rival.window_, X[at - 50 : at])
    np.testing.assert_array_equal(rival.score_samples(X), again.score_samples(X))
    assert rival.offset_ == again.offset_


def test_a_single_row_is_held_until_a_second_comes():
    """partial_fit of one row learns nothing yet, and forgets nothing; forgetting down to one row is the same."""
    rival = rivals.OnlineKernelPCA(window=50).partial_fit(normal(1))
    with pytest.raises(NotLearntError):
        rival.predict(normal(1))
    rival.partial_fit(normal(30, seed=1))
    assert len(rival.window_) == 31
    rival.forget(np.arange(30))
    assert len(rival.window_) == 1
    with pytest.raises(NotLearntError):
        rival.predict(normal(1))
    rival.partial_fit(normal(30, seed=2)).predict(normal(1))


SLIDING = [
    rivals.IncrementalSVDD(),
    rivals.OnlineKernelPCA(),
    rivals.OnlineKernelPCA(window=20),
    rivals.RandomFeatureBoundary(nodes=20),
    rivals.RandomFeatureReconstruction(nodes=20, window=50),
    rivals.Refitted(rivals.Gaussian(), window=20),
]


@pytest.mark.filterwarnings("ignore::oneclass.errors.NoAlarmWarning")
@pytest.mark.parametrize("rival", SLIDING, ids=repr)
def test_a_stream_may_begin_with_single_rows(rival):
    """Row after row from nothing is as good as one chunk, and so is what remains when all rows but one, or all, are forgotten."""
    X, fresh = normal(40), normal(9, seed=1)
    one_by_one = clone(rival)
    for row in X:
        one_by_one.partial_fit(row[None])
    together = clone(rival).partial_fit(X)
    np.testing.assert_allclose(one_by_one.score_samples(fresh), together.score_samples(fresh), rtol=1e-8, atol=1e-10)
    assert one_by_one.offset_ == pytest.approx(together.offset_, rel=1e-8)
    for left in (1, 0):
        again = clone(rival).fit(100.0 * X)
        again.forget(np.arange(len(again.window_) - left))
        if left:
            again.forget([0])
        again.partial_fit(X)
        np.testing.assert_allclose(again.score_samples(fresh), together.score_samples(fresh), rtol=1e-8, atol=1e-10)


def test_an_outlier_detector_of_scikit_learn_slides():
    """IsolationForest in a window follows a moving class that a forest fitted once loses; θ is the quantile that was asked for."""
    X = normal(600, features=2) + np.linspace(0, 12, 600)[:, None]
    rival = rivals.Refitted(IsolationForest(n_estimators=50), window=100, alarm_rate=0.1).fit(X[:100])
    for at in range(100, 600, 50):
        rival.partial_fit(X[at : at + 50])
    fresh = normal(200, features=2, seed=1) + 12.0
    assert np.mean(rival.predict(fresh) == 1) > 0.6
    assert np.mean(IsolationForest(random_state=0).fit(X[:100]).predict(fresh) == 1) == 0.0
    assert np.sum(rival.score_samples(rival.window_) < rival.offset_) == 10


def test_a_pipeline_slides_too():
    """A scaler before the detector is refitted with it: the answer to a Pipeline that has no partial_fit."""
    rival = rivals.Refitted(make_pipeline(StandardScaler(), LocalOutlierFactor(novelty=True)), window=80)
    rival.fit(normal(80) * [1.0, 1e3, 1e-3]).partial_fit(normal(40, seed=1) * [1.0, 1e3, 1e-3])
    assert rival.predict(np.array([[0.0, 0.0, 9e-3]])) == [-1]
    assert rival.predict(np.array([[0.0, 0.0, 0.0]])) == [1]


def test_a_refitted_detector_comes_back_from_its_bytes():
    """Of this library and of scikit-learn by themselves; anything else is code and asked for."""
    X = normal(90)
    for inner in (rivals.SelfOrganisingMap(shape=(2, 2)), IsolationForest(n_estimators=10), oc.KernelReconstruction(C=3.0)):
        rival = rivals.Refitted(inner, window=60).fit(X)
        again = rivals.Refitted.from_bytes(rival.to_bytes())
        np.testing.assert_array_equal(again.score_samples(X), rival.score_samples(X))
        np.testing.assert_array_equal(again.p_values(X), rival.p_values(X))
        assert again.to_bytes() == rival.to_bytes()
    foreign = rivals.Refitted(Foreign()).fit(X)
    with pytest.raises(StateError, match="detector=Foreign"):
        rivals.Refitted.from_bytes(foreign.to_bytes())
    restored = rivals.Refitted.from_bytes(foreign.to_bytes(), detector=Foreign())
    np.testing.assert_array_equal(restored.score_samples(X), foreign.score_samples(X))
    with pytest.raises(StateError, match="saved state of a Refitted"):
        rivals.OnlineKernelPCA.from_bytes(foreign.to_bytes())


@pytest.mark.parametrize(
    "detector",
    [
        {"home": "sklearn.utils._testing", "kind": "check_output", "parameters": {"args": ["touch", "made-by-bytes"]}},
        {"kind": "sklearn.check_output", "parameters": {"args": ["touch", "made-by-bytes"]}},
        {"kind": "sklearn.utils._testing.check_output", "parameters": {"args": ["touch", "made-by-bytes"]}},
        {"kind": "sklearn.clear_data_home", "parameters": {"data_home": "somewhere"}},
        {"kind": "oneclass.rivals.by_name", "parameters": {"name": "knndd"}},
        {"kind": "oneclass.KNearest", "parameters": {"reach": 3}},
        {"kind": "oneclass.KNearest", "parameters": 3},
        {"parameters": {}},
    ],
)
def test_bytes_from_outside_call_for_nothing_but_known_detectors(detector, tmp_path, monkeypatch):
    """Whatever a forged state names, no function is called and no module imported but those of the list."""
    monkeypatch.chdir(tmp_path)
    envelope = Envelope.from_bytes(rivals.Refitted(rivals.KNearest(), window=30).fit(normal(30)).to_bytes())
    values = {**envelope.values, "parameters": {**envelope.values["parameters"], "detector": detector}}
    forged = Envelope("Refitted", values, envelope.arrays).to_bytes()
    with pytest.raises(StateError):
        rivals.Refitted.from_bytes(forged)
    with pytest.raises(StateError):
        model_from_bytes(forged)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "value"),
    [("window", np.full((5, 2), np.nan)), ("window", np.zeros(3)), ("window", np.zeros((5, 3))), ("n_features", 7)],
)
@pytest.mark.parametrize("rival", [rivals.Refitted(rivals.KNearest(k=2)), rivals.OnlineKernelPCA()], ids=repr)
def test_made_up_windows_are_refused(rival, name, value):
    """A right checksum over rows that are no rows, or of other features than were learnt, is a StateError."""
    envelope = Envelope.from_bytes(clone(rival).fit(normal(30, features=2)).to_bytes())
    values = {**envelope.values, name: value} if name in envelope.values else envelope.values
    arrays = {**envelope.arrays, name: value} if name in envelope.arrays else envelope.arrays
    with pytest.raises(StateError):
        type(rival).from_bytes(Envelope(envelope.kind, values, arrays).to_bytes())


def test_a_refitted_detector_cannot_spoil_the_window():
    """What a detector does to the rows it is given, or returns from `fit`, is its own affair; scores must be numbers."""

    class Careless(Foreign):
        def fit(self, X):
            super().fit(X)
            X[:] = 0.0

    class Silent(Foreign):
        def score_samples(self, X):
            return np.full(len(X), np.nan)

    careless = rivals.Refitted(Careless(), window=30).fit(normal(40))
    np.testing.assert_array_equal(careless.window_, normal(40)[-30:])
    assert careless.predict([[9.0] * 3]) == [-1]
    with pytest.raises(InvalidRowsError, match="row 0 no score"):
        rivals.Refitted(Silent()).fit(normal(40))
    with pytest.raises(InvalidParameterError, match=r"is a class: give an object of it, IsolationForest\(\)"):
        rivals.Refitted(IsolationForest).fit(normal(40))


class Foreign:
    """A detector with two calls and nothing else."""

    def fit(self, X):
        self.mean = X.mean(axis=0)
        return self

    def score_samples(self, X):
        return -np.linalg.norm(X - self.mean, axis=1)


def test_a_rival_can_be_watched():
    """A watcher takes a rival with `partial_fit` as it takes the models."""
    X = normal(500, features=2)
    X[400] = 9.0
    verdicts = oc.Watcher(rivals.Refitted(rivals.KNearest(k=5), window=100)).watch(X)
    assert verdicts.alarm[400]
    assert verdicts.alarm[verdicts.state == "watching"].mean() < 0.12
    assert (verdicts.p_value[verdicts.state == "watching"] > 0).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda: rivals.IncrementalSVDD(window=60),
        lambda: rivals.OnlineKernelPCA(window=60),
        lambda: rivals.Refitted(rivals.KNearest(k=5), window=60),
        lambda: rivals.Refitted(LocalOutlierFactor(novelty=True), window=60),
    ],
    ids=["IncrementalSVDD", "OnlineKernelPCA", "KNearest", "LocalOutlierFactor"],
)
def test_a_watched_rival_survives_any_cut_and_save(make, tmp_path):
    """Verdicts have the same bits however the rows are cut into calls, and when watcher and rival go through bytes in between."""
    X = normal(230, features=2)
    whole, cut = oc.Watcher(make(), chunk=20), oc.Watcher(make(), chunk=20)
    expected, parts = whole.watch(X).to_dict(), []
    for start, stop in ((0, 1), (1, 75), (75, 90), (90, 163), (163, 230)):
        parts.append(cut.watch(X[start:stop]).to_dict())
        cut = oc.Watcher.from_bytes(cut.to_bytes())
    for name, column in expected.items():
        np.testing.assert_array_equal(np.concatenate([part[name] for part in parts]), column, err_msg=name)
    assert cut.to_bytes() == whole.to_bytes()
    whole.model.save(tmp_path / "rival")
    np.testing.assert_array_equal(oc.load(tmp_path / "rival").score_samples(X), whole.model.score_samples(X))


def test_a_watched_detector_that_is_code_is_handed_in_again():
    """A watcher round a Refitted round a stranger says what it needs."""
    watcher = oc.Watcher(rivals.Refitted(Foreign(), window=60))
    watcher.watch(normal(100))
    with pytest.raises(StateError, match="detector=Foreign"):
        oc.Watcher.from_bytes(watcher.to_bytes())
    assert oc.Watcher.from_bytes(watcher.to_bytes(), detector=Foreign()).to_bytes() == watcher.to_bytes()
