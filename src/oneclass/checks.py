"""The contract of a detector, as checks that any class can be held to.

scikit-learn's `check_estimator` knows nothing of `partial_fit`, `forget`, windows, p-values and saved bytes, and little of scores.
What a detector does not have (`partial_fit`, `forget`, `p_values`, `window`, `to_bytes`) is not asked of it. Everything else is:
`fit`, the three scoring calls, `offset_`, and a parameter `alarm_rate`.

>>> from oneclass import KernelBoundary
>>> check_detector(KernelBoundary(window=150))

With pytest, one test for each check: `@pytest.mark.parametrize("check", yield_checks(detector))`.
"""

import pickle
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeAlias

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from oneclass.types import Floats

Check: TypeAlias = Callable[[Any], None]
"""Takes a detector that has learnt nothing, leaves it so, and raises (in general AssertionError) if its claim does not hold."""

CHECKS: dict[Check, tuple[str, ...]] = {}
"""All checks, in the order in which they are run, and the calls and parameters each needs."""

_FAILURES = (ArithmeticError, AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError, Warning)
"""What a check that does not hold raises itself, a detector not made for such a call, or a warning where that is an error."""

_SCORING = ("score_samples", "decision_function", "predict", "p_values")
_WINDOW = 30


def check_detector(detector: Any) -> None:
    """Every check that applies to the detector holds; AssertionError names the first that does not, and its claim.

    `detector` is an instance that has learnt nothing, and stays so: each check works on copies. Its parameters must be such that
    standard normal rows of three features lie inside and rows ten deviations away lie outside.
    """
    for check in yield_checks(detector):
        try:
            check(detector)
        except _FAILURES as error:
            message = f"{detector!r} fails {check.__name__}: {check.__doc__}\n{type(error).__name__}: {error}"
            raise AssertionError(message) from error


def yield_checks(detector: Any) -> Iterator[Check]:
    """The checks that apply to the detector: those whose calls and parameters it has."""
    return (check for check, needs in CHECKS.items() if all(hasattr(detector, name) for name in needs))


def _check(*needs: str) -> Callable[[Check], Check]:
    def enter(check: Check) -> Check:
        """Put the check on the list."""
        CHECKS[check] = needs
        return check

    return enter


@_check()
def check_far_rows_score_lower(detector: Any) -> None:
    """A row ten deviations away scores below almost every normal row, and is an alarm; most normal rows are not."""
    fitted, fresh = _new(detector).fit(_normal()), _normal(seed=1)
    _require(fitted.score_samples(_far()).max() < np.quantile(fitted.score_samples(fresh), 0.05), "far rows score like near ones")
    _require(np.all(fitted.predict(_far()) == -1), "a far row is accepted")
    _require(np.mean(fitted.predict(fresh) == 1) > 0.5, "most normal rows are alarms")


@_check()
def check_decision_and_predict_follow_scores(detector: Any) -> None:
    """decision_function is score_samples - offset_; predict is the integer +1 where it is >= 0, on the threshold too, else -1."""
    fitted = _new(detector).fit(_normal())
    rows = np.concatenate([_mixed(), *(_at_the_threshold(fitted, far) for far in _far())])
    decision, predicted = fitted.decision_function(rows), np.asarray(fitted.predict(rows))
    _require_close(decision, fitted.score_samples(rows) - fitted.offset_, "decision_function and score_samples - offset_")
    _require(predicted.dtype.kind == "i", f"predict answers in {predicted.dtype}")
    _require(np.array_equal(predicted, np.where(decision >= 0, 1, -1)), "predict is not the sign of decision_function")


@_check()
def check_scoring_is_pure(detector: Any) -> None:
    """Scoring changes nothing: the same state before and after, and the same scores twice."""
    fitted = _new(detector).fit(_normal())
    before, scores = _state(fitted), fitted.score_samples(_mixed())
    for name in _calls(fitted):
        getattr(fitted, name)(_mixed())
    _require(_state(fitted) == before, "the state has changed")
    _require(np.array_equal(fitted.score_samples(_mixed()), scores), "the second scores differ from the first")


@_check()
def check_rows_are_scored_alone(detector: Any) -> None:
    """A score does not depend on the rows beside it: to the last bit where there is a `to_bytes`, otherwise to rounding."""
    fitted, rows, exact = _new(detector).fit(_normal()), _mixed(), hasattr(detector, "to_bytes")
    together = fitted.score_samples(rows)
    alone = np.concatenate([fitted.score_samples(row) for row in rows[:, None, :]])
    _require_close(alone, together, "scores of rows alone and together", exact=exact)
    _require_close(fitted.score_samples(rows[::-1])[::-1], together, "scores in another order", exact=exact)


@_check("p_values")
def check_p_values_follow_scores(detector: Any) -> None:
    """p-values lie in (0, 1] and never fall as scores rise; with threshold="leave-one-out" an alarm is a p-value <= alarm_rate."""
    fitted = _new(detector).fit(_normal())
    p, scores = fitted.p_values(_mixed()), fitted.score_samples(_mixed())
    _require(np.all((p > 0) & (p <= 1)), f"p-values from {p.min()} to {p.max()}")
    _require(np.all(np.diff(p[np.lexsort([p, scores])]) >= 0), "a higher score has a smaller p-value")
    if getattr(detector, "threshold", None) == "leave-one-out":
        _require(np.array_equal(fitted.predict(_mixed()) == -1, p <= detector.alarm_rate), "alarms differ from p <= alarm_rate")


@_check()
def check_alarm_rate_is_kept(detector: Any) -> None:
    """The parameter `alarm_rate` is about the share of normal rows that is flagged, and a higher one flags more."""
    shares = []
    for rate in (0.1, 0.4):
        fitted = _new(detector, alarm_rate=rate).fit(_normal(200))
        trained, fresh = (float(np.mean(fitted.predict(rows) == -1)) for rows in (_normal(200), _normal(1000, seed=1)))
        _require(trained <= rate + 0.05, f"alarm_rate={rate}: {trained:.0%} of the training rows are flagged")
        _require(rate / 3 <= fresh <= rate + 0.15, f"alarm_rate={rate}: {fresh:.0%} of fresh normal rows are flagged")
        shares.append(fresh)
    _require(shares[0] < shares[1], "a higher alarm_rate does not flag more rows")


@_check()
def check_clones_and_the_unfitted_know_nothing(detector: Any) -> None:
    """Before anything is learnt, scoring raises NotFittedError; so it does in a clone, whose learning leaves the original alone."""
    fitted = _new(detector).fit(_normal())
    before, copy = _state(fitted), clone(fitted, safe=False) if hasattr(detector, "get_params") else _new(detector)
    for name in _calls(detector):
        _require_raises((NotFittedError,), getattr(copy, name), _normal(), f"{name} before fit")
    copy.fit(_normal(seed=1) * 4)
    _require(_state(fitted) == before, "fitting a clone has changed the original")


@_check()
def check_bad_rows_are_refused(detector: Any) -> None:
    """NaN, infinity, text, no rows and a wrong number of features raise ValueError or TypeError and change nothing."""
    fitted = _new(detector).fit(_normal())
    before, scores = _state(fitted), fitted.score_samples(_mixed())
    for what, rows in _bad_rows().items():
        for name in ("fit", "partial_fit", *_calls(fitted)):
            if hasattr(fitted, name) and not (name == "fit" and what.endswith("features")):
                _require_raises((ValueError, TypeError), getattr(fitted, name), rows, f"{name} with {what}")
                is_as_before = _state(fitted) == before and np.array_equal(fitted.score_samples(_mixed()), scores)
                _require(is_as_before, f"{name} with {what} has changed the detector")


@_check()
def check_callers_array_is_left_alone(detector: Any) -> None:
    """The caller's array may be read-only, is not changed, and is not kept: what becomes of it later changes nothing."""
    for name in ("fit", "partial_fit"):
        if hasattr(detector, name):
            fitted, rows = _new(detector), _normal()
            _require(getattr(fitted, name)(rows) is fitted, f"{name} does not return the detector")
            _require(np.array_equal(rows, _normal()), f"{name} has changed the rows of the caller")
            scores = fitted.score_samples(_normal())
            rows[:] = 7.0
            _require(np.array_equal(fitted.score_samples(_normal()), scores), f"{name} keeps the array of the caller")
            read_only = _normal()
            read_only.setflags(write=False)
            getattr(fitted, name)(read_only)


@_check()
def check_feature_names_are_kept(detector: Any) -> None:
    """The columns of a data frame become `feature_names_in_`; other names or another order are refused. Needs pandas."""
    if find_spec("pandas") is None:
        return
    frame = import_module("pandas").DataFrame(_normal(), columns=list("abc"))
    fitted = _new(detector).fit(frame)
    _require(list(fitted.feature_names_in_) == list("abc"), "feature_names_in_ are not the columns")
    for wrong in (frame[list("bac")], frame.set_axis(list("xyz"), axis=1)):
        for name in ("partial_fit", *_calls(fitted)):
            if hasattr(fitted, name):
                _require_raises((ValueError,), getattr(fitted, name), wrong, f"{name} with columns {list(wrong.columns)}")


@_check()
def check_rows_labelled_minus_one_are_not_learnt(detector: Any) -> None:
    """Rows with y = -1 are not learnt, by `fit` or `partial_fit`."""
    y = np.where(np.arange(len(_mixed())) < 60, 1, -1)
    for name in ("fit", "partial_fit"):
        if hasattr(detector, name):
            _require_alike(
                getattr(_new(detector), name)(_mixed(), y), _new(detector).fit(_normal()), f"{name} with y and without them"
            )


@_check()
def check_fit_starts_afresh(detector: Any) -> None:
    """`fit` leaves nothing of what was learnt before, the number of features included."""
    again = _new(detector).fit(_normal()[:, :2] * 5 + 3).fit(_normal())
    _require_alike(again, _new(detector).fit(_normal()), "fit again and fit")


@_check()
def check_saved_detectors_resume(detector: Any) -> None:
    """A detector out of pickle, or out of `from_bytes(to_bytes())`, goes on with the same bits."""
    fitted = _new(detector).fit(_normal())
    restored = [pickle.loads(pickle.dumps(fitted))]  # noqa: S301 - read where it was written
    if hasattr(detector, "to_bytes"):
        restored.append(type(detector).from_bytes(fitted.to_bytes()))
        _require(restored[-1].to_bytes() == fitted.to_bytes(), "to_bytes differs after from_bytes")
    for rows in (None, _normal(7, seed=3), _normal(1, seed=4)):
        for each in (fitted, *restored):
            if rows is not None and hasattr(detector, "partial_fit"):
                each.partial_fit(rows)
            is_equal = (
                np.array_equal(each.score_samples(_mixed()), fitted.score_samples(_mixed())) and each.offset_ == fitted.offset_
            )
            _require(is_equal, "scores or offset_ have other bits")


@_check("partial_fit")
def check_partial_fit_goes_on(detector: Any) -> None:
    """One `partial_fit` equals `fit`; further ones learn on, so that rows of a new place score higher than before."""
    learnt, moved = _new(detector).partial_fit(_normal()), _normal(seed=1) + 5.0
    _require_alike(learnt, _new(detector).fit(_normal()), "partial_fit and fit")
    before = learnt.score_samples(moved).mean()
    for start in range(0, len(moved), 20):
        learnt.partial_fit(moved[start : start + 20])
    _require(learnt.score_samples(moved).mean() > before, "rows score no higher once they are learnt")


@_check("partial_fit", "window")
def check_window_is_respected(detector: Any) -> None:
    """Only the last `window` rows count: `window_` holds them, oldest first, and rows before them score lower again."""
    old, new = _normal(), _normal(seed=1) + 20.0
    for name in ("fit", "partial_fit"):
        larger = getattr(_new(detector, window=_WINDOW), name)(old)
        _require_alike(
            larger, _new(detector, window=_WINDOW).fit(old[-_WINDOW:]), f"{name} of more rows than the window and of its rows"
        )
    for chunk in (1, 7, _WINDOW, len(new)):
        fitted = _new(detector, window=_WINDOW).fit(old)
        before = fitted.score_samples(old).mean()
        for start in range(0, len(new), chunk):
            fitted.partial_fit(new[start : start + chunk])
        _require(np.array_equal(fitted.window_, new[-_WINDOW:]), f"window_ after chunks of {chunk} is not the last rows")
        _require(fitted.score_samples(old).mean() < before, f"chunks of {chunk}: rows before the window still count")


@_check("forget")
def check_forget_is_fit_without(detector: Any) -> None:
    """`forget` of some rows of `window_` equals `fit` of the others."""
    fitted, gone = _new(detector).fit(_normal()), [0, 3, 10, 11, 59]
    fitted.forget(gone)
    rest = np.delete(_normal(), gone, axis=0)
    _require_alike(fitted, _new(detector).fit(rest), "forget and fit without")
    _require(np.array_equal(fitted.window_, rest), "window_ is not the rows that stay, oldest first")


def _new(detector: Any, **parameters: Any) -> Any:
    copy = clone(detector, safe=False)
    if "random_state" in (copy.get_params() if hasattr(copy, "get_params") else ()):
        parameters["random_state"] = 0
    return copy.set_params(**parameters) if parameters else copy


def _normal(count: int = 60, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(size=(count, 3))


def _far() -> Floats:
    return np.concatenate([10.0 * np.eye(3), -10.0 * np.eye(3)])


def _mixed() -> Floats:
    return np.concatenate([_normal(), _normal(40, seed=2) * 3.0, _far()])


def _bad_rows() -> dict[str, Any]:
    nan, infinity, text = _normal(), _normal(), _normal().astype(object)
    nan[5, 1], infinity[6, 2], text[7, 0] = np.nan, np.inf, "seven"
    rows = {"NaN": nan, "infinity": infinity, "text": text, "no rows": nan[:0], "one number a row": _normal()[:, 0]}
    return rows | {"too many features": np.repeat(_normal(), 2, axis=1), "too few features": _normal()[:, :2]}


def _at_the_threshold(fitted: Any, outside: Floats) -> Floats:
    """Rows whose decision is zero to rounding, on both sides: where the way from the most normal row to a far one crosses it."""
    inside = _normal()[np.argmax(fitted.decision_function(_normal()))]
    low, high = 0.0, 1.0
    while low < (middle := (low + high) / 2) < high:
        decision = fitted.decision_function((inside + middle * (outside - inside))[None])[0]
        low, high = (middle, high) if decision >= 0 else (low, middle)
    steps = high * (1.0 + np.finfo(float).eps * np.arange(-50, 51))
    return np.asarray(inside + steps[:, None] * (outside - inside))


def _calls(detector: Any) -> list[str]:
    return [name for name in _SCORING if hasattr(detector, name)]


def _state(detector: Any) -> bytes:
    if hasattr(detector, "to_bytes"):
        return bytes(detector.to_bytes())
    # What is shown of a fit; behind it a tree may well count how often it was asked.
    return pickle.dumps({name: value for name, value in vars(detector).items() if not name.startswith("_")})


def _require(holds: object, otherwise: str) -> None:
    # No assert statement: the kit must work under `python -O` too.
    if not holds:
        raise AssertionError(otherwise)


def _require_close(found: Any, expected: Any, what: str, *, exact: bool = False) -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    _require(found.shape == expected.shape, f"{what} have shapes {found.shape} and {expected.shape}")
    worst = float(np.abs(found - expected).max())
    _require(worst <= (0.0 if exact else 1e-8 * float(np.abs(expected).max())), f"{what} differ by up to {worst:.3g}")


def _require_alike(found: Any, expected: Any, what: str) -> None:
    _require_close(found.score_samples(_mixed()), expected.score_samples(_mixed()), f"scores after {what}")
    _require_close(found.offset_, expected.offset_, f"offset_ after {what}")


def _require_raises(kinds: tuple[type[Exception], ...], call: Callable[[Any], Any], rows: Any, what: str) -> None:
    try:
        call(rows)
    except kinds:
        return
    raise AssertionError(f"{what} raises nothing")
