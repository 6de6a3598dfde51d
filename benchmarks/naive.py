"""The model as the formulas read, in NumPy: the rival in benchmarks/engine.py. Right, and computed anew with each chunk."""

import numpy as np


class Naive:
    """A boundary model of a window: kernel matrix by squared norms and one product, `np.linalg.inv`, β = P 1, a sort.

    At moderate C it flags the same rows as KernelBoundary. `inverts=False`: `np.linalg.solve` where P itself is not needed, which
    it is for the leave-one-out threshold only.
    """

    def __init__(
        self, rows: np.ndarray, *, width: float, C: float, alarm_rate: float, leave_one_out: bool, inverts: bool = True
    ) -> None:
        self.rows, self.size = rows, len(rows)
        self.width, self.C, self.alarm_rate, self.leave_one_out = width, C, alarm_rate, leave_one_out
        self.inverts = inverts or leave_one_out
        self._solve()

    def watch(self, rows: np.ndarray, chunk: int) -> np.ndarray:
        """Whether each row is an alarm; chunk by chunk, tested first and learnt then."""
        alarms = []
        for start in range(0, len(rows), chunk):
            part = rows[start : start + chunk]
            alarms.append(np.abs(self._kernel(part, self.rows) @ self.beta - 1.0) > self.theta)
            self.rows = np.concatenate([self.rows[len(part) :], part])
            self._solve()
        return np.concatenate(alarms)

    def _kernel(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        squares = (X * X).sum(axis=1)[:, None] + (Y * Y).sum(axis=1) - 2.0 * (X @ Y.T)
        return np.exp(np.maximum(squares, 0.0) / -(self.width**2))

    def _solve(self) -> None:
        n = self.size
        regularised = self._kernel(self.rows, self.rows) + np.eye(n) / self.C
        if self.inverts:
            P = np.linalg.inv(regularised)
            self.beta = P @ np.ones(n)
        else:
            self.beta = np.linalg.solve(regularised, np.ones(n))
        if self.leave_one_out:
            ascending = np.sort(np.abs(self.beta / P.diagonal()))
            self.theta = ascending[int(np.ceil((n + 1) * (1.0 - self.alarm_rate) - 1e-9)) - 1]
        else:
            ascending = np.sort(np.abs(self.beta) / self.C)
            self.theta = ascending[int(np.ceil(n * (1.0 - self.alarm_rate) - 1e-9)) - 1]
