"""The only way in for outside data: what passes here is a C-ordered float64 matrix of finite numbers with the features learnt."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, time, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from oneclass.errors import InvalidParameterError, InvalidRowsError, InvalidRowTypeError
from oneclass.types import Bools, Floats, Ints

LARGEST = 1e100
"""Numbers beyond it leave no room for squares and sums of squares."""

_NUMBERS = ("float", "int", "uint", "bool", "double", "sparse")
_TIMES = ("date", "time", "duration", "period")
"""How the names of types begin, in NumPy, pandas and polars."""


def checked_rows(estimator: BaseEstimator, X: object, *, first_time: bool, at_least: int = 1) -> Floats:
    """The rows as numbers, in an array that shares nothing with X; the number, names and order of features must be those learnt."""
    if not first_time and len(plain := _plain_rows(estimator, X)) >= max(1, at_least):
        require_finite_rows(estimator, plain)
        return plain
    _require_no_text_or_times(X)
    try:
        rows = validate_data(
            estimator,
            np.ma.filled(X.astype(np.float64), np.nan) if isinstance(X, np.ma.MaskedArray) else X,  # what is masked is missing
            reset=first_time,
            dtype=np.float64,
            order="C",
            copy=True,
            ensure_all_finite=False,  # the check below says where
            ensure_min_samples=at_least,
        )
    except TypeError as error:
        raise InvalidRowTypeError(f"{error}{_first_cell(X, _is_no_number)}") from error
    except (ValueError, OverflowError) as error:
        raise InvalidRowsError(f"{error}{_first_cell(X, _is_no_number)}") from error
    require_finite_rows(estimator, rows)
    return np.ascontiguousarray(rows, dtype=np.float64)


def _plain_rows(estimator: BaseEstimator, X: object) -> Floats:
    """A copy of X if there is nothing to ask of it but finite numbers, else no rows.

    What scikit-learn looks at besides takes as long as learning a row: 120 µs for an array that needs none of it.
    """
    if type(X) is np.ndarray and X.dtype == np.float64 and X.ndim == 2 and not hasattr(estimator, "feature_names_in_"):
        rows: Floats = np.array(X, order="C")
        if rows.shape[1] == getattr(estimator, "n_features_in_", None):
            return rows
    return np.empty((0, 0))


def learnable(rows: Floats, y: object) -> Floats:
    """The rows whose label is not -1; all of them without labels."""
    if y is None:
        return rows
    kept: Floats = rows[checked_labels(y, len(rows)) != -1]
    return kept


def rows_to_fit(estimator: BaseEstimator, X: object, y: object) -> Floats:
    """The rows that `fit` learns: the checked ones of X whose label is not -1, at least two."""
    rows = learnable(checked_rows(estimator, X, first_time=True, at_least=2), y)
    require_rows(rows, 2)
    return rows


def places_among_all(y: object) -> Callable[[int], int]:
    """From the place of a row among those to be learnt to its place in the caller's call; what is negative stays as it is."""
    if y is None:
        return lambda row: row
    # Looked for only when there is an error to tell of.
    return lambda row: int(np.flatnonzero(np.asarray(y).reshape(-1) != -1)[row]) if row >= 0 else row


def checked_labels(labels: object, count: int) -> NDArray[Any]:
    """Labels as an array of numbers, one per row."""
    array = np.asarray(labels)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.shape != (count,):
        raise InvalidRowsError(f"{count} rows came with labels of shape {array.shape}: give one label per row")
    # "-1" is not -1 to NumPy, and True may stand for a normal row or for an anomaly: either would be learnt without a word.
    if array.dtype.kind not in "iuf":
        for row, label in enumerate(array):
            if isinstance(label, str | bytes | bool | np.bool_) or _is_no_number(label):
                raise _no_label(row, label)
        array = array.astype(np.float64)
    if np.isnan(array).any():
        row = int(np.argmax(np.isnan(array)))
        raise _no_label(row, array[row])
    return array


def checked_signs(labels: object, count: int) -> Ints:
    """Labels +1 (normal), -1 (not) or 0 (unknown), one per row; nothing else is taken for a label."""
    array = checked_labels(labels, count)
    is_sign = np.isin(array, (-1, 0, 1))
    if not is_sign.all():
        row = int(np.argmin(is_sign))
        raise _no_label(row, array[row])
    signs: Ints = array.astype(np.int64)
    return signs


def _no_label(row: int, label: object) -> InvalidRowsError:
    return InvalidRowsError(f"the label of row {row} is {label!r}: labels are 1 (normal), -1 (not normal) or 0 (unknown)")


def checked_indices(indices: object, count: int) -> Ints:
    """Different whole numbers from 0 to count - 1, ascending; a mask of `count` booleans does as well."""
    array = np.atleast_1d(np.asarray(indices))
    if array.dtype == bool and array.shape == (count,):
        return np.flatnonzero(array)
    if array.size == 0:
        return np.empty(0, dtype=np.int64)
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise InvalidRowsError(f"indices {indices!r}: give whole numbers that count rows of window_, 0 = oldest")
    if array.min() < 0 or array.max() >= count:
        worst = array.min() if array.min() < 0 else array.max()
        raise InvalidRowsError(f"there is no row {worst}: the window has {count} rows, counted from 0 (oldest) to {count - 1}")
    return np.unique(array).astype(np.int64)


@contextmanager
def unchanged_on_error(subject: object) -> Iterator[None]:
    """Whatever fails inside, the attributes of the subject are afterwards those it had before.

    A shallow copy is enough: states are replaced, not written to.
    """
    before, is_done = dict(vars(subject)), False
    try:
        yield
        is_done = True
    finally:  # an interrupt counts as a failure, too
        if not is_done:
            vars(subject).clear()
            vars(subject).update(before)


def require_finite_rows(estimator: object, rows: Floats) -> None:
    """Raise if a cell is NaN, infinite or as good as infinite, naming the first one."""
    # One sum of squares instead of a mask: what it does not exceed, none of its terms does, and only then is a closer look needed.
    with np.errstate(over="ignore", invalid="ignore"):
        if np.vdot(rows, rows) <= LARGEST:
            return
    bad: Bools = ~(np.abs(rows) <= LARGEST)
    if not bad.any():
        return
    row, column = (int(place[0]) for place in np.nonzero(bad))
    names = getattr(estimator, "feature_names_in_", None)
    name = f" ({names[column]!r})" if names is not None else ""
    value = rows[row, column]
    kind = "NaN" if np.isnan(value) else "infinity" if np.isinf(value) else f"{value:g}, which is beyond {LARGEST:g},"
    raise InvalidRowsError(
        f"Input X contains {kind} in row {row}, column {column}{name}; {int(bad.any(axis=1).sum())} of {len(rows)} rows are "
        f"affected. Leave such rows out, or fill them in, before they reach the model"
    )


def _require_no_text_or_times(X: object) -> None:
    """Raise for what would be converted to numbers without a word: text that spells one, and nanoseconds since 1970."""
    columns = list(getattr(X, "columns", ()))
    for place, kind in enumerate(_types(X)):
        if kind.startswith(_TIMES):
            name = f" ({columns[place]!r})" if columns else ""
            raise InvalidRowTypeError(
                f"Input X holds {kind} in row 0, column {place}{name}: turn times into a number that means something to the model, "
                f"such as seconds since the row before, or leave the column out"
            )
        if not kind.startswith(_NUMBERS):
            if found := _first_cell(X, _is_text_or_time):
                raise InvalidRowTypeError(f"Input X holds a string argument where a number must be{found}")
            return


def _types(X: object) -> list[str]:
    """The names of the types in X, column by column where they may differ, in lower case."""
    try:
        types = getattr(X, "dtypes", None)
        types = [getattr(X, "dtype", None) or np.asarray(X).dtype] if types is None else list(types)
    except ValueError:  # ragged lists, which scikit-learn has words for
        return []
    return [str(each).lower() for each in types]


def _first_cell(X: object, is_bad: Callable[[Any], bool]) -> str:
    """Where the trouble is, for a message; empty if no single cell is to blame."""
    to_numpy = getattr(X, "to_numpy", None)
    try:
        cells = np.asarray(to_numpy() if to_numpy else X, dtype=object)
    except ValueError:  # ragged lists
        return ""
    if cells.ndim != 2:
        return ""
    for row, column in np.ndindex(*cells.shape):
        cell = cells[row, column]
        if is_bad(cell):
            return f" (row {row}, column {column} holds {cell!r}: turn it into a number or leave the column out)"
    return ""


def _is_no_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError, OverflowError):
        return True
    return False


def _is_text_or_time(cell: Any) -> bool:
    return isinstance(cell, str | bytes | date | time | timedelta)


def require_rows(rows: Floats, at_least: int) -> None:
    """Raise if fewer rows than needed are left once those labelled -1 are taken out."""
    if len(rows) < at_least:
        raise InvalidRowsError(
            f"{len(rows)} rows to learn (n_samples = {len(rows)}): at least {at_least} that are not labelled -1 are needed"
        )


def checked_number(name: str, value: object, *, below: float = np.inf, takes_zero: bool = False, hint: str) -> float:
    """A parameter that is a number above 0, or 0 itself if it `takes_zero`, and below another, as a float."""
    is_number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not is_number or not (0 < value < below or (takes_zero and value == 0)):  # type: ignore[operator]  # a number, as just checked
        least = "of at least 0" if takes_zero else "above 0"
        bounds = least if below == np.inf else f"{least} and below {below:g}"
        raise InvalidParameterError(f"{name}={value!r}: give a finite number {bounds} ({hint})")
    return float(value)  # type: ignore[arg-type]  # a number, as just checked


def checked_rate(alarm_rate: object) -> float:
    """The parameter alarm_rate."""
    return checked_number("alarm_rate", alarm_rate, below=1.0, hint="a share of normal rows, such as 0.05")


def checked_whole(name: str, value: object, *, at_least: int, hint: str) -> int:
    """A parameter that is a whole number, as an int."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < at_least:
        raise InvalidParameterError(f"{name}={value!r}: give a whole number, at least {at_least} ({hint})")
    return int(value)
