"""A detector that owes nothing to the library but its contract: the distance to the mean of the rows it keeps."""

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted, validate_data


class MeanDistance(OutlierMixin, BaseEstimator):
    """score = -||x - mean of the window||; a share `alarm_rate` of the rows in the window lies below `offset_`."""

    def __init__(self, alarm_rate=0.05, window=None):
        self.alarm_rate = alarm_rate
        self.window = window

    def fit(self, X, y=None):
        return self._keep(np.empty((0, 0)), self._taken(X, y))

    def partial_fit(self, X, y=None):
        if not hasattr(self, "window_"):
            return self.fit(X, y)
        rows = validate_data(self, X, reset=False, dtype=float, copy=True)
        return self._keep(self.window_, self._unlabelled(rows, y))

    def score_samples(self, X):
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, dtype=float)
        return -np.sqrt(((rows - self.mean_) ** 2).sum(axis=1))

    def decision_function(self, X):
        return self.score_samples(X) - self.offset_

    def predict(self, X):
        return np.where(self.decision_function(X) >= 0, 1, -1)

    def _taken(self, X, y):
        before = dict(vars(self))
        try:
            return self._unlabelled(validate_data(self, X, dtype=float, copy=True), y)
        except (TypeError, ValueError):
            vars(self).clear()
            vars(self).update(before)
            raise

    def _unlabelled(self, rows, y):
        return rows if y is None else rows[np.asarray(y) != -1]

    def _keep(self, old, new):
        rows = np.concatenate([old, new]) if len(old) else new
        self.window_ = rows if self.window is None else rows[-self.window :]
        self.mean_ = self.window_.mean(axis=0)
        self.offset_ = float(np.quantile(-np.sqrt(((self.window_ - self.mean_) ** 2).sum(axis=1)), self.alarm_rate))
        return self
