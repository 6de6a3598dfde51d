"""Learning and forgetting: how one state of the window becomes the next. Rows come in checked; what comes out is a `Normality`.

The state proper is small: the rows in their slots, β, the threshold, the leave-one-out distances. Two things are kept beside it:
the factor, which is a cache (a pure function of the rows in their slots) and is never saved, and the explicit inverse of the
per-row path, which is that path's memory and is saved.
"""

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from oneclass.errors import KernelError, NoAlarmWarning
from oneclass.factor import Factor, IndefiniteError, block_size
from oneclass.inverse import RingInverse
from oneclass.kernels import is_built_in
from oneclass.normality import Framework, Judgement, Normality, in_window, leave_one_out, require_finite
from oneclass.parameters import Parameters, Request
from oneclass.rowwise import Follower, Trace
from oneclass.threads import one_blas_thread
from oneclass.threshold import threshold_of
from oneclass.types import Floats, Ints
from oneclass.window import Parts, Ring, counted, overwritten

ROWS_TO_CHOOSE_FROM = 150
"""Automatic parameters are chosen again with every chunk until the model has learnt so many rows (or its window), and then kept."""

_INVERSE_WINDOW_PER_ROW = 40
"""The per-row path is for chunks of at most window / 40 rows; benchmarks/paths.py shows where the two paths cross."""
_FEW_IN_A_ROW = 4
"""... and is entered only with the fourth of them in a row: a fresh inverse costs as much as some chunks learnt by the factor, and
chunks of few rows and of many in turns would pay for one again and again."""
_INVERSE_LARGEST_C = 1e4
"""... and for C · k(x, x) up to this: beyond, the explicit inverse loses digits that a factor keeps."""
_COPY_FROM_ROWS = 64
"""A copy of the inverse costs about as much as two rows learnt with it."""
_REFINE_ABOVE_C = 1e4
"""For C · k(x, x) above this, β from a factor that needs it is refined once: at n = 400, C = 1e8 its error falls tenfold."""


class _Step(NamedTuple):
    """The window after a chunk, before anything is solved for it."""

    ring: Ring
    rows: Floats  # in slots, raw
    scaled: Floats  # in slots, as the kernel sees them
    parameters: Parameters
    ridge: Floats  # in slots
    slots: Parts  # the slots that are new, oldest row first
    kernel: Floats  # K[slots, :]
    is_continued: bool  # the other slots are as they were, rows and parameters
    chosen_from: int  # how many of the oldest rows the parameters were chosen from


class SlidingModel:
    """A kernel model of the rows in a window that learns chunks and forgets rows exactly.

    Learning a chunk equals fitting the window afresh: to rounding always, and on the factor's path to the last bit for the same
    rows in the same slots. A call that raises leaves everything as it was.
    """

    def __init__(self, framework: Framework, request: Request) -> None:
        self.framework = framework
        self.request = request
        self.reset()

    def reset(self) -> None:
        """Back to nothing learnt."""
        self.now: Normality | None = None
        self.learnt = 0  # rows learnt since the beginning, less those taken back
        self.chosen_from = 0
        self.rest = 0  # rows to learn by the factor after the inverse was given up
        self.few = 0  # chunks of few rows that have come in a row, counted up to `_FEW_IN_A_ROW`
        self.inverse: RingInverse | None = None
        self._factor: Factor | None = None
        self.has_warned = False

    def learn(self, rows: Floats, judged: Judgement | None = None) -> None:
        """Learn a chunk of one row or more and forget the oldest rows beyond the window: Algorithms 1 and 2.

        `judged` is what `now.judge(rows, to_learn=True)` answered, if it was asked: its kernel values are then used again.
        """
        with one_blas_thread():
            step = self._appended(rows, judged)
            is_few = len(rows) * _INVERSE_WINDOW_PER_ROW <= step.ring.size
            self.few = min(self.few + 1, _FEW_IN_A_ROW) if is_few else 0
            if not (self._takes_inverse(step) and self._learn_by_inverse(step)):
                self._learn_by_factor(step)
            self.learnt += len(rows)
            self.rest = max(0, self.rest - len(rows))

    def follow(self, rows: Floats, wants: Callable[[int, bool], bool]) -> Trace | None:
        """Test each row and learn those that `wants(row, alarm)`, one by one, as far as the per-row path goes; None if it does not.

        The same, to the last bit, as `now.judge` and `learn` of one row after the other.
        """
        now, inverse = self.now, self.inverse
        if now is None or inverse is None or self.rest or not now.parameters.kernel.is_bounded:
            return None
        inverse.know(lambda: now.parameters.kernel(now.scaled, now.scaled))  # K is not saved
        self.inverse = None  # taken out while it is written to
        follower = Follower(now, inverse, self.request.threshold, self.request.alarm_rate)
        trace = follower.run(rows, wants)
        self.now = follower.normality()
        learnt = int(trace.learnt.sum())
        self.learnt += learnt
        self.chosen_from = max(0, self.chosen_from - learnt)
        if follower.is_sound:
            self.inverse = inverse
        else:
            self.rest = now.ring.size  # the factor's for one turn, by then no row is left that spoilt the inverse
        return trace

    def forget(self, ages: Ints) -> None:
        """Remove rows, counted from the oldest, as if they had never been learnt; no cache, inverse or parameter keeps a trace."""
        now = self.now
        if now is None:
            return
        kept = np.delete(np.arange(now.ring.size), ages)
        if not len(kept):
            self.reset()
            return
        # Parameters that forgotten rows helped to choose would be a trace of them.
        survivors = int(np.searchsorted(kept, self.chosen_from))
        is_tainted = self.request.depends_on_rows and survivors < self.chosen_from
        with one_blas_thread():
            self._learn_by_factor(self._anew(now.window[kept], None if is_tainted else now.parameters, survivors))
            self.learnt -= now.ring.size - len(kept)
            self.rest = 0  # there is no inverse left that forgotten rows could have spoilt

    @contextmanager
    def all_or_nothing(self, rows: int, *, is_risky: bool) -> Iterator[None]:
        """Whatever fails inside, the state is afterwards what it was before. A call with many chunks in it is one piece.

        Only the inverse is written over in place, so a copy of it is kept where the kernel may overflow in mid-call or the caller
        runs what `is_risky`, and for calls of so many `rows` that it costs next to nothing. Other calls can only be stopped by an
        interrupt; then the inverse is dropped, and computed afresh from the rows, which are those before the call: right, but not
        to the last bit.
        """
        # Without the factor: it would hold rows that were never learnt, and kept for this it could not be let go along the way.
        before, inverse, is_done = self.__getstate__(), self.inverse, False
        may_fail = is_risky or (self.now is not None and not self.now.parameters.kernel.is_bounded)
        copy = None
        if inverse is not None:
            inverse.is_touched = False
            copy = inverse.copy() if may_fail or rows >= _COPY_FROM_ROWS else None
        try:
            yield
            is_done = True
        finally:
            if not is_done:
                vars(self).update(before)
                if inverse is not None and inverse.is_touched:
                    self.inverse = copy

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copies: all but the cache."""
        return {**vars(self), "_factor": None}

    # What the window becomes

    def _appended(self, rows: Floats, judged: Judgement | None) -> _Step:
        now, capacity = self.now, self.request.window
        if now is None:
            known = rows if capacity is None else rows[-capacity:]
            return self._anew(known, None, 0, first=len(rows) - len(known))
        parameters = None if self._is_choosing else now.parameters
        # A function kernel is asked for the whole matrix at once: nothing says that it rounds a part of it in the same way.
        if parameters is None or not parameters.kernel.is_pairwise or not now.ring.can_place(len(rows)):
            known = np.concatenate([now.window, rows])
            known = known if capacity is None else known[-capacity:]
            left = now.ring.size + len(rows) - len(known)
            return self._anew(known, parameters, max(0, self.chosen_from - left), first=len(rows) - len(known))
        ring, slots = now.ring.place(len(rows))  # lines 6 to 8 of the algorithms: the oldest rows lose their slots
        scaled = parameters.scaled(rows)
        window = overwritten(now.rows, slots, rows)
        return _Step(
            ring,
            window,
            window if parameters.is_raw else overwritten(now.scaled, slots, scaled),
            parameters,
            now.ridge if ring.size == now.ring.size else parameters.ridge(ring.size),
            slots,
            _kernel_rows(now, scaled, slots, judged),
            is_continued=True,
            chosen_from=max(0, self.chosen_from - (now.ring.size + len(rows) - ring.size)),
        )

    def _anew(self, rows: Floats, parameters: Parameters | None, chosen_from: int, first: int = 0) -> _Step:
        """A window whose every slot is new, rows in order of age; parameters are chosen from it unless they are given.

        `first` is the place of the oldest row in the caller's chunk, for messages; negative if it came with an earlier one.
        """
        ring, slots = Ring(self.request.window).place(len(rows))
        rows = rows.copy()
        if parameters is None:
            parameters, chosen_from = self.request.parameters_for(rows), len(rows)
        scaled = parameters.scaled(rows)
        kernel = parameters.kernel(scaled, scaled)
        require_finite(kernel, first)
        if not is_built_in(parameters.kernel):
            require_positive_semidefinite(kernel, parameters)
        ridge = parameters.ridge(len(rows))  # equations (9) and (10), lines 1 and 2
        return _Step(ring, rows, scaled, parameters, ridge, slots, kernel, is_continued=False, chosen_from=chosen_from)

    @property
    def _is_choosing(self) -> bool:
        enough = min(self.request.window or ROWS_TO_CHOOSE_FROM, ROWS_TO_CHOOSE_FROM)
        return self.request.depends_on_rows and self.learnt < enough

    # Solving for it

    def _takes_inverse(self, step: _Step) -> bool:
        """The fixed rule in n, s and C that chooses the path; timing never does."""
        # An inverse needs a ring whose rows stay where they are, and a ridge that keeps its condition low.
        is_worth_it = self.few == _FEW_IN_A_ROW or (self.few > 0 and self.inverse is not None)
        if not (is_worth_it and step.is_continued and self.now is not None and self.now.ring.is_full and self.rest == 0):
            return False
        return step.parameters.steepness(step.scaled) <= _INVERSE_LARGEST_C

    def _learn_by_inverse(self, step: _Step) -> bool:
        """Overwrite row by row in the explicit inverse; False, with nothing learnt, if it has lost its accuracy."""
        now, ridge, targets = self.now, step.ridge, self.framework.targets(step.scaled)
        # Taken out while it is written to: whatever interrupts this leaves no half-written inverse behind.
        inverse, self.inverse = self.inverse, None
        self._factor = None  # its numbers, too, are let go before others are made
        if inverse is not None and now is not None and inverse.replaced < step.ring.size:
            inverse.know(lambda: now.parameters.kernel(now.scaled, now.scaled))
            is_sound = all(
                inverse.replace(slot, row, ridge, targets[slot])
                for slot, row in zip(_each(step.slots), self._rows_to_write(step), strict=True)
            )
        else:
            inverse = None  # its n² numbers are let go before their successors are made
            inverse = RingInverse.afresh(step.parameters.kernel(step.scaled, step.scaled), ridge, targets)
            is_sound = inverse is not None
        if inverse is None or not is_sound or not inverse.settle(len(step.kernel), ridge, targets):
            self.rest = step.ring.size
            return False
        self._commit(step, inverse.solution, inverse.diagonal())
        self.inverse = inverse
        return True

    def _rows_to_write(self, step: _Step) -> Floats:
        """K[slots, :] at the moment each row is written: the slots of the rows after it still hold what was there before."""
        if len(step.kernel) == 1 or self.now is None:
            return step.kernel
        slots = _each(step.slots)
        rows = step.kernel.copy()
        before = step.parameters.kernel(step.scaled[slots], self.now.scaled[slots])
        rows[:, slots] = np.triu(before, 1) + np.tril(rows[:, slots])
        return rows

    def _learn_by_factor(self, step: _Step) -> None:
        """Factorise what the chunk has changed; raises KernelError, with nothing learnt, if that cannot be done."""
        ridge, targets = step.ridge, self.framework.targets(step.scaled)
        factor, self._factor = self._factor, None  # taken out, for the same reason as the inverse
        if factor is not None and step.is_continued:
            for part, chosen in zip(step.slots, counted(step.slots), strict=True):
                factor.write(part, step.kernel[chosen])
        else:
            factor = Factor(block_size(step.ring.capacity))
            whole = step.parameters.kernel(step.scaled, step.scaled) if step.is_continued else step.kernel
            factor.write(slice(0, step.ring.size), whole)
        # Line 12 without P: forgetting by (24) and learning by (15)-(19) are one factorisation of what has changed.
        try:
            factor.factorise(ridge)
        except IndefiniteError as failure:
            raise KernelError(_not_positive_definite(step, failure.slot)) from None
        beta = factor.solve(targets)  # line 14, β = PR or PX
        if factor.is_hasty and step.parameters.C * factor.peak > _REFINE_ABOVE_C:
            beta = factor.refined(beta, targets, ridge)
        needs_diagonal = self.request.threshold == "leave-one-out"
        self._commit(step, beta, factor.inverse_diagonal() if needs_diagonal else None)
        self._factor, self.inverse = factor, None

    def _commit(self, step: _Step, beta: Floats, inverse_diagonal: Floats | None) -> None:
        """Equations (26) and (27): distances and threshold; then, as nothing can fail any more, the new state."""
        # Lines 15 to 18, by β/C and β/diag P instead of by f: exact, and without a kernel product.
        left_out = None if inverse_diagonal is None else np.sort(leave_one_out(self.framework, beta, inverse_diagonal))
        trained = in_window(self.framework, step.ridge, beta) if self.request.threshold == "training" else None
        threshold = threshold_of(left_out, trained, self.request.alarm_rate)
        if threshold == np.inf and not self.has_warned:
            warn_of_no_alarm(step.ring.size, self.request.alarm_rate)
            self.has_warned = True
        beta = np.ascontiguousarray(beta)
        self.now = Normality(
            self.framework, step.parameters, step.ring, step.rows, step.scaled, step.ridge, beta, threshold, left_out
        )
        self.chosen_from = step.chosen_from


def warn_of_no_alarm(size: int, alarm_rate: float) -> None:
    """NoAlarmWarning: so few rows cannot give a p-value as small as the alarm rate."""
    needed = int(np.ceil(1.0 / alarm_rate)) - 1
    warnings.warn(
        f"{size} rows are too few for alarm_rate={alarm_rate}: no leave-one-out p-value of {size} rows is that small, so no row "
        f"will be flagged before {needed} rows are learnt (the threshold is infinite until then)",
        NoAlarmWarning,
        stacklevel=levels_to_the_caller(),
    )


def levels_to_the_caller() -> int:
    """How far up the stack the first line is that is not of this package: a warning is the caller's concern."""
    # warnings.warn can skip a package by itself from Python 3.12 on.
    frame, levels = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").startswith("oneclass."):
        frame, levels = frame.f_back, levels + 1
    return levels


def _each(slots: Parts) -> list[int]:
    return [slot for part in slots for slot in range(part.start, part.stop)]


def _kernel_rows(now: Normality, scaled: Floats, slots: Parts, judged: Judgement | None) -> Floats:
    """K[slots, :] as the window will be: the chunk against the rows that stay and against itself, equations (12) and (13)."""
    kernel, size = now.parameters.kernel, now.ring.size
    if judged is not None and judged.by is now and judged.kernel is not None:
        rows = judged.kernel
    else:
        rows = kernel(scaled, np.concatenate([now.scaled, scaled]))
    if not kernel.is_bounded:
        require_finite(rows)
    if not now.ring.is_full:
        return rows
    # In place, which may happen twice and changes nothing then: what is read here lies behind what is written.
    for part, chosen in zip(slots, counted(slots), strict=True):
        rows[:, part] = rows[:, size + chosen.start : size + chosen.stop]
    return rows[:, :size]


def require_positive_semidefinite(kernel: Floats, parameters: Parameters) -> None:
    """What is taken on trust of the built-in kernels is looked at in a user's."""
    size = float(np.abs(kernel).max()) or 1.0
    if float(np.abs(kernel - kernel.T).max()) > 1e-8 * size:
        raise KernelError(f"{parameters.kernel!r} is no kernel: k(x, y) and k(y, x) differ")
    smallest = float(np.linalg.eigvalsh(kernel)[0])
    if smallest < -1e-8 * size * len(kernel):
        raise KernelError(
            f"{parameters.kernel!r} is not positive definite on these {len(kernel)} rows: the smallest eigenvalue of its matrix is "
            f"{smallest:.3g}. Choose a function whose matrix has none below zero, such as a product or sum of kernels"
        )


def _not_positive_definite(step: _Step, slot: int) -> str:
    row = int(np.flatnonzero(step.ring.by_age == slot)[0])
    return (
        f"K + I/C is not positive definite at row {row} of the window (0 = oldest): with {step.parameters.kernel!r} and "
        f"C={step.parameters.C:g} the rows are too alike for float64. Choose a smaller C, or a smaller width"
    )
