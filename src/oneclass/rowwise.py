"""A run of rows, each tested and then learnt, on the per-row path.

The same steps as judging and learning row after row, with the same bits, but what a row costs besides its n² numbers is paid once
for the run: a window of 150 rows is followed three times as fast. The kernel values of the rows to come are computed in blocks,
against the window and against each other: k(x, y) does not depend on when it is computed.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from oneclass.inverse import RingInverse
from oneclass.normality import Normality, in_window, leave_one_out
from oneclass.threshold import leave_one_out_threshold, p_value, training_threshold
from oneclass.types import Bools, Floats
from oneclass.window import Ring

_LOOK_AHEAD = 64


class Trace(NamedTuple):
    """What was said of each row before it was learnt, and whether it was."""

    distances: Floats
    thresholds: Floats
    p_values: Floats
    learnt: Bools

    def first(self, count: int) -> "Trace":
        """The same of the first rows."""
        return Trace(self.distances[:count], self.thresholds[:count], self.p_values[:count], self.learnt[:count])


class Follower:
    """A full window on the move: the arrays of a `Normality`, written over in place, and the inverse that belongs to them."""

    def __init__(self, now: Normality, inverse: RingInverse, rule: str, alarm_rate: float) -> None:
        self.inverse = inverse
        self.is_sound = True
        self._now = now
        self._rule, self._alarm_rate = rule, alarm_rate
        self._head = now.ring.head
        self._rows, self._scaled = now.rows.copy(), now.scaled.copy()
        self._beta, self._threshold = now.beta, now.threshold
        self._left_out = now.left_out_ascending  # in ascending order only where the threshold is read from it

    def run(self, rows: Floats, wants: Callable[[int, bool], bool]) -> Trace:
        """Test each row and learn it if `wants(row, alarm)`; stops before a row where the inverse fails, `is_sound` then False."""
        distances, thresholds, p_values_ = np.empty((3, len(rows)))
        trace = Trace(distances, thresholds, p_values_, np.zeros(len(rows), dtype=bool))
        kernel = self._now.parameters.kernel
        for start in range(0, len(rows), _LOOK_AHEAD):
            block = rows[start : start + _LOOK_AHEAD]
            scaled = self._now.parameters.scaled(block)
            ahead, own = kernel(scaled, self._scaled), kernel(scaled, scaled)
            for offset in range(len(block)):
                at = start + offset
                alarm = self._test(at, scaled[offset : offset + 1], ahead[offset : offset + 1], trace)
                if wants(at, alarm):
                    # The rows still to come meet this one in its slot, where they had met the row it replaces.
                    ahead[:, self._head] = own[:, offset]
                    if not self._learn(block[offset], scaled[offset], ahead[offset]):
                        return trace.first(at)
                    trace.learnt[at] = True
        return trace

    def normality(self) -> Normality:
        """What is normal after the rows learnt so far."""
        now, size = self._now, self._now.ring.size
        scaled = self._rows if now.parameters.is_raw else self._scaled
        ring = Ring(now.ring.capacity, size, self._head)
        beta = np.ascontiguousarray(self._beta)
        left_out = np.sort(self._left_out)
        return Normality(now.framework, now.parameters, ring, self._rows, scaled, now.ridge, beta, self._threshold, left_out)

    def _test(self, at: int, row: Floats, kernel: Floats, trace: Trace) -> bool:
        framework = self._now.framework
        distances = framework.distances(framework.residuals(row, framework.outputs(kernel, self._beta)))
        trace.distances[at], trace.thresholds[at] = distances[0], self._threshold
        trace.p_values[at] = p_value(self._left_out, distances[0])
        return bool(distances[0] > self._threshold)

    def _learn(self, row: Floats, scaled: Floats, kernel: Floats) -> bool:
        slot, now, inverse = self._head, self._now, self.inverse
        before = self._scaled[slot].copy()  # put back if the inverse fails: the row is then learnt by the factor
        self._scaled[slot] = scaled
        targets = now.framework.targets(self._scaled)
        if inverse.replaced < now.ring.size:
            self.is_sound = inverse.replace(slot, kernel, now.ridge, targets[slot])
        else:
            self.is_sound = inverse.replace_afresh(slot, kernel, now.ridge, targets)
        self.is_sound = self.is_sound and inverse.settle(1, now.ridge, targets)
        if not self.is_sound:
            self._scaled[slot] = before
            return False
        self._rows[slot] = row
        self._head = (slot + 1) % now.ring.size
        self._beta = np.ascontiguousarray(inverse.solution)
        self._left_out = leave_one_out(now.framework, self._beta, inverse.diagonal())
        if self._rule == "leave-one-out":
            self._left_out.sort()
            self._threshold = leave_one_out_threshold(self._left_out, self._alarm_rate)
        else:
            trained = np.sort(in_window(now.framework, now.ridge, self._beta))
            self._threshold = training_threshold(trained, self._alarm_rate)
        return True
