"""Rivals that keep a window of rows: what is learnt is a function of those rows, learnt anew whenever they change."""

from os import PathLike
from typing import Any, Self

import numpy as np

from oneclass.errors import NotLearntError, StateError
from oneclass.rivals.rival import Rival
from oneclass.saved import features_to_values, restore_features
from oneclass.state import Envelope, plain, readable, require_claims, write_file
from oneclass.types import Floats
from oneclass.validation import (
    checked_indices,
    checked_rows,
    checked_whole,
    learnable,
    rows_to_fit,
    unchanged_on_error,
)


class SlidingRival(Rival):
    """A rival with `partial_fit` and `forget`: it learns its window afresh each time.

    A window of a single row can be held but not learnt; until a second comes the detector is as good as unfitted.
    """

    window: int | None
    _window: Floats
    _unchanged: int = 0
    """How many of the oldest rows were learnt before, if none of those has left: what was summed over them still holds."""

    def fit(self, X: object, y: object = None) -> Self:
        """Start afresh on rows X of shape (n, d), n >= 2; the last `window` are kept, rows with y = -1 are not learnt."""
        with unchanged_on_error(self):
            rows = rows_to_fit(self, X, y)
            self._is_going_on = False
            self._slide_to(rows)
        return self

    def partial_fit(self, X: object, y: object = None) -> Self:
        """Learn a chunk of one row or more, and forget the oldest rows beyond `window`; rows with y = -1 are not learnt."""
        with unchanged_on_error(self):
            is_new = not hasattr(self, "n_features_in_")
            rows = learnable(checked_rows(self, X, first_time=is_new), y)
            if is_new:
                self._slide_to(rows)
            elif len(rows):
                self._slide_to(np.concatenate([self._window, rows]), unchanged=len(self._window))
        return self

    def forget(self, indices: object) -> Self:
        """Remove rows of the window as if they had never been learnt; `indices` count in `window_`, 0 = oldest.

        What they may have helped to choose is chosen again from the rows that remain.
        """
        self._require_rows()
        ages = checked_indices(indices, len(self._window))
        with unchanged_on_error(self):
            if len(ages):
                self._is_going_on = False
                self._slide_to(np.delete(self._window, ages, axis=0))
        return self

    @property
    def window_(self) -> Floats:
        """The rows learnt and not forgotten, oldest first, shape (n, d)."""
        self._require_rows()
        return self._window.copy()

    def _slide_to(self, rows: Floats, unchanged: int = 0) -> None:
        most = None if self.window is None else checked_whole("window", self.window, at_least=2, hint="rows, or None to keep all")
        rows, given = rows if most is None else rows[-most:].copy(), len(rows)
        self._unchanged = unchanged if self._is_going_on and len(rows) == given else 0
        if len(rows) >= 2:
            self._fit_rows(rows)
            self._is_going_on = True
        else:
            self._unlearn()
        self._window = rows

    def _unlearn(self) -> None:
        # Parameters and rows remain, and nothing that rows which are gone have helped to make.
        kept = {*self.get_params(deep=False), "n_features_in_", "feature_names_in_", "_window", "_unchanged"}
        for name in set(vars(self)) - kept:
            delattr(self, name)

    def _require_rows(self) -> None:
        if not hasattr(self, "_window"):
            raise NotLearntError(f"this {type(self).__name__} has learnt no rows yet: call fit(X) or partial_fit(X) first")


class RefittedRival(SlidingRival):
    """A sliding rival that is a function of its window and its parameters: these are its state, and it is fitted again on load."""

    def to_bytes(self) -> bytes:
        """The window and the parameters, without pickle: the same bytes for the same state."""
        values = {"parameters": self._parameters_to_values(), **features_to_values(self)}
        return Envelope(type(self).__name__, values, {"window": self._window} if hasattr(self, "_window") else {}).to_bytes()

    def save(self, path: str | PathLike[str]) -> None:
        """Write `to_bytes()` to a file: all of it or, if that fails, nothing; read it with `oneclass.load`."""
        write_file(path, self.to_bytes())

    @classmethod
    @readable()
    def from_bytes(cls, data: bytes, **code: Any) -> Self:
        """The detector that `to_bytes` saved, fitted to its window; it goes on with the same bits."""
        envelope = Envelope.from_bytes(data)
        if envelope.kind != cls.__name__:
            raise StateError(f"this is the saved state of a {envelope.kind}, not of a {cls.__name__}")
        restored = cls(**cls._parameters_from_values(envelope.values["parameters"], **code))
        features, names = envelope.values["n_features"], envelope.values["feature_names"]
        window = envelope.arrays.get("window", np.empty((0, features or 0)))
        require_claims(
            {
                "the window is a matrix of finite numbers": window.ndim == 2 and np.isfinite(window).all(),
                "features and names are as many": features in {None, window.shape[-1]}
                and (names is None or len(names) == features),
                "the window holds its rows": restored.window is None or len(window) <= restored.window,
            }
        )
        restore_features(restored, envelope.values)
        if "window" in envelope.arrays:
            restored._slide_to(window)
        return restored

    def _parameters_to_values(self) -> dict[str, Any]:
        given = self.get_params(deep=False)
        return {name: plain(value) for name, value in given.items()}

    @classmethod
    def _parameters_from_values(cls, values: dict[str, Any]) -> dict[str, Any]:
        return values
