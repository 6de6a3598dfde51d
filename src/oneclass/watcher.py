"""One stream: test each row, then learn, chunk by chunk. Every row of every stream goes through here, whoever calls."""

from collections.abc import Sized
from copy import deepcopy
from typing import Any, NamedTuple, Self

import numpy as np

from oneclass.errors import InvalidParameterError, StateError
from oneclass.kernels import Kernel
from oneclass.learners import Judged, learner_for
from oneclass.loading import HOMES, can_be_read_back, model_from_bytes
from oneclass.normality import counted_from
from oneclass.policies import Policy, policy_for
from oneclass.rowwise import Trace
from oneclass.state import Envelope, is_count, readable, require_claims
from oneclass.threads import one_blas_thread
from oneclass.types import Bools, Floats, Ints, KernelFunction
from oneclass.validation import checked_signs, checked_whole, unchanged_on_error
from oneclass.verdicts import Verdicts, with_p_values

DEFAULT_WARM_UP = 150
_PENDING_NUMBERS = 2**22
"""Windows kept for p-values that nobody has read yet: 32 MB of them; when more come together in a call, they are computed there."""
_COUNTS = ("_is_watching", "_seen", "_in_chunk")


class _Bundle(NamedTuple):
    """Rows of the stream with what is known of them, in order of arrival."""

    rows: Floats
    numbers: Ints  # the rows' places in the stream
    signs: Ints  # +1 normal, -1 not, 0 unknown
    alarms: Bools

    @classmethod
    def empty(cls, features: int) -> "_Bundle":
        """No rows."""
        return cls(np.empty((0, features)), np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, bool))

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self.numbers)

    def of(self, chosen: Bools | slice) -> "_Bundle":
        """Some of the rows."""
        return _Bundle(self.rows[chosen], self.numbers[chosen], self.signs[chosen], self.alarms[chosen])

    def copied(self) -> "_Bundle":
        """The same in arrays of its own: rows that wait do not keep the whole call they came in alive."""
        return _Bundle(self.rows.copy(), self.numbers.copy(), self.signs.copy(), self.alarms.copy())

    def labelled(self, numbers: Ints, signs: Ints) -> "_Bundle":
        """The same rows with late labels for some of them."""
        if not len(numbers):
            return self
        order = np.argsort(numbers)
        at = np.searchsorted(numbers, self.numbers, sorter=order)
        at = order[np.minimum(at, len(order) - 1)]
        return self._replace(signs=np.where(numbers[at] == self.numbers, signs[at], self.signs))

    def with_(self, other: "_Bundle") -> "_Bundle":
        """These rows and then the others."""
        if not self.size:
            return other
        return _Bundle(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.numbers, other.numbers]),
            np.concatenate([self.signs, other.signs]),
            np.concatenate([self.alarms, other.alarms]),
        )


class Watcher:
    """One stream under watch: each row is tested with the model as it stands, and learnt afterwards, `chunk` by `chunk`.

    Parameters
    ----------
    model : `KernelBoundary`, `KernelReconstruction`, or any detector with `partial_fit`, `score_samples` and `offset_`; fitted or
        not. The watcher owns it from then on.
    learn : which rows without a label are learnt: "auto", "all", "accepted", "labelled", or a policy object
    chunk : rows seen between one learning and the next
    warm_up : rows to learn before anything is tested; None: the window (150 without one), or 0 if the model is fitted

    The verdicts do not depend on how the rows were cut into calls, nor on saves and loads between them, to the last bit.

    Examples
    --------
    >>> import numpy as np, oneclass as oc
    >>> rng = np.random.default_rng(0)
    >>> watcher = oc.Watcher(oc.KernelBoundary(window=100), chunk=20)
    >>> verdicts = watcher.watch(rng.normal(size=(100, 2)))
    >>> verdicts.state[0], len(verdicts)
    (np.str_('warming'), 100)
    >>> watcher.watch([[0.0, 0.0], [8.0, 8.0]]).alarm
    array([False,  True])
    """

    def __init__(self, model: Any, learn: str | Policy = "auto", chunk: int = 50, warm_up: int | None = None) -> None:
        self.model = model
        self.learn = learn
        self.chunk = checked_whole("chunk", chunk, at_least=1, hint="rows")
        self.warm_up = None if warm_up is None else checked_whole("warm_up", warm_up, at_least=0, hint="rows")
        self._learner = learner_for(model)
        self._policy = policy_for(learn)
        self._is_watching = self._learner.is_fitted and not self.warm_up
        self._seen = 0
        self._in_chunk = 0
        self._waiting = self._skipped = _Bundle.empty(0)
        # The places in the stream of the rows in the model's window, oldest first; -1 for rows learnt before the watch began.
        self._learnt = np.full(self._learner.held, -1)

    def __copy__(self) -> Self:
        """A copy that watches on its own: the model cannot be shared."""
        return deepcopy(self)

    def __repr__(self) -> str:
        return f"Watcher({self.model!r}, learn={self.learn!r}, chunk={self.chunk}, warm_up={self.warm_up})"

    def watch(self, X: object, labels: object = None) -> Verdicts:
        """The verdict on each row of X, shape (n, d), in order; the rows are learnt along the way as the policy says. n may be 0.

        `labels`: +1 normal (always learnt), -1 not (never learnt), 0 or absent: the policy decides. A call that fails has watched
        nothing.
        """
        count = len(X) if isinstance(X, Sized) else 0
        with unchanged_on_error(self), self._learner.all_or_nothing(count, is_risky=not isinstance(self.learn, str)):
            rows = self._learner.admit(X, at_least=0)
            signs = np.zeros(len(rows), np.int64) if labels is None else checked_signs(labels, len(rows))
            with one_blas_thread():
                return self._watch(rows, signs)

    def confirm(self, rows: object, labels: object) -> Bools:
        """Late labels for rows already watched, by their `row`; whether each was still known.

        -1 takes a learnt row back out of the model, exactly; +1 hands in one that was skipped. Skipped rows are kept as long as the
        window is; for older ones the answer is False.
        """
        numbers = np.atleast_1d(np.asarray(rows))
        if not numbers.size:
            return np.zeros(0, dtype=bool)
        signs = checked_signs(np.atleast_1d(np.asarray(labels)), len(numbers))
        if numbers.dtype.kind not in "iu" or not signs.all() or len(np.unique(numbers)) < len(numbers):
            raise InvalidParameterError("confirm takes different row numbers, and a label of 1 (normal) or -1 (not) for each")
        with unchanged_on_error(self), self._learner.all_or_nothing(len(numbers)):
            return self._confirm(numbers, signs)

    def to_bytes(self) -> bytes:
        """The watcher with its model and the rows that wait, without pickle."""
        if not can_be_read_back(self.model):
            raise StateError(f"{self.model!r} cannot be saved with its watcher, which can only bring back {', '.join(HOMES)}")
        values = {
            "learn": self.learn if isinstance(self.learn, str) else None,
            **{name: getattr(self, name) for name in ("chunk", "warm_up", *_COUNTS)},
        }
        arrays = {"learnt": self._learnt}
        for name, bundle in (("waiting", self._waiting), ("skipped", self._skipped)):
            arrays |= {f"{name}.{column}": array for column, array in bundle._asdict().items()}
        return Envelope("Watcher", values, arrays, {"model": self.model.to_bytes()}).to_bytes()

    @classmethod
    @readable()
    def from_bytes(
        cls,
        data: bytes,
        *,
        kernel: KernelFunction | Kernel | None = None,
        detector: Any = None,
        learn: Policy | None = None,
    ) -> Self:
        """The watcher that `to_bytes` saved.

        What was code must be handed in again: a kernel function, the detector inside a `Refitted`, a policy of one's own.
        """
        envelope = Envelope.from_bytes(data)
        if envelope.kind != "Watcher":
            raise StateError(f"this is the saved state of a {envelope.kind}, not of a Watcher")
        values, arrays = envelope.values, envelope.arrays
        policy = values["learn"] if learn is None else learn
        if policy is None:
            raise StateError("this watcher was saved with a policy of its own, which is code: from_bytes(data, learn=policy)")
        watcher = cls(
            model_from_bytes(envelope.parts["model"], kernel=kernel, detector=detector), policy, values["chunk"], values["warm_up"]
        )
        for name in _COUNTS:
            setattr(watcher, name, values[name])
        require_claims({"counts are counts": all(is_count(values[name]) for name in ("_seen", "_in_chunk"))})
        watcher._learnt = arrays["learnt"].astype(np.int64)
        for name in ("waiting", "skipped"):
            rows, numbers, signs, alarms = (arrays[f"{name}.{column}"] for column in ("rows", "numbers", "signs", "alarms"))
            require_claims(
                {"rows and what is known of them are as many": len({len(rows), len(numbers), len(signs), len(alarms)}) == 1}
            )
            setattr(watcher, f"_{name}", _Bundle(rows, numbers.astype(np.int64), signs.astype(np.int64), alarms.astype(bool)))
        return watcher

    # Testing and learning

    def _watch(self, rows: Floats, signs: Ints) -> Verdicts:
        first = self._seen
        with counted_from(lambda number: number - first):
            warmed = 0 if self._is_watching else self._warm(rows, signs)
        count = len(rows)
        numbers = np.arange(first, first + count)
        score, threshold, p_value = np.full((3, count), np.nan)
        alarm = np.zeros(count, dtype=bool)
        pending: list[tuple[int, Judged]] = []
        at = warmed
        while at < count:
            if self.chunk == 1 and (trace := self._follow(rows[at:], signs[at:])) is not None:
                part = slice(at, at + len(trace.distances))
                score[part], threshold[part], p_value[part] = trace.distances, trace.thresholds, trace.p_values
                alarm[part] = score[part] > threshold[part]
                at = part.stop
                if at == count:
                    break
            part = slice(at, min(count, at + self.chunk - self._in_chunk))
            is_whole = part.stop - at == self.chunk  # then its kernel values can serve for testing and for learning
            with counted_from(at.__add__):
                judged: Judged = self._learner.judge(rows[part], to_learn=is_whole)
            score[part], threshold[part], alarm[part] = judged.distances, judged.threshold, judged.alarms
            # With the training threshold a p-value costs a factorisation: only who reads them pays for them.
            if judged.knows_p_values:
                p_value[part] = judged.p_values
            else:
                pending.append((at, judged.without_kernel()))
                if len(pending) * rows.shape[1] * len(self._learnt) > _PENDING_NUMBERS:
                    p_value, pending = with_p_values(p_value, pending), []
            with counted_from(lambda number: number - first):
                self._take(_Bundle(rows[part], numbers[part], signs[part], alarm[part]), judged if is_whole else None)
            at = part.stop
        state = np.where(np.arange(count) < warmed, "warming", "watching")
        return Verdicts(numbers, score, threshold, alarm, state, p_value, tuple(pending))

    def _warm(self, rows: Floats, signs: Ints) -> int:
        """Collect rows until there are enough to begin with; the number of rows that were used up."""
        alarms = np.zeros(len(rows), dtype=bool)
        wanted = self._wanted(signs, alarms)
        # The row that makes the warm-up complete is its last; what is behind it is tested.
        enough = np.searchsorted(np.cumsum(wanted), self._rows_to_begin - self._waiting.size) + 1
        used = slice(0, min(len(rows), int(enough)))
        arrived = _Bundle(rows[used], np.arange(self._seen, self._seen + used.stop), signs[used], alarms[used])
        self._seen += used.stop
        self._waiting = self._waiting.with_(arrived.of(wanted[used]))
        self._skip(arrived.of(~wanted[used]))
        self._begin_if_ready()
        return used.stop

    def _begin_if_ready(self) -> None:
        if not self._is_watching and self._waiting.size >= self._rows_to_begin:
            self._learn(self._waiting, None)
            self._waiting = _Bundle.empty(self._waiting.rows.shape[1])
            self._is_watching, self._in_chunk = True, 0

    @property
    def _rows_to_begin(self) -> int:
        enough = (self._learner.window or DEFAULT_WARM_UP) if self.warm_up is None else self.warm_up
        return enough if self._learner.is_fitted else max(2, enough)

    def _take(self, arrived: _Bundle, judged: Judged | None) -> None:
        """Rows that were tested wait until their chunk is full; then those that the policy wants are learnt.

        `judged` is there if a whole chunk arrived at once.
        """
        self._seen += arrived.size
        self._in_chunk += arrived.size
        waiting = self._waiting.with_(arrived)
        if self._in_chunk < self.chunk:
            self._waiting = waiting.copied()
            return
        wanted = self._wanted(waiting.signs, waiting.alarms)
        if np.count_nonzero(wanted) == len(wanted):
            self._learn(waiting, judged)
        else:
            self._learn(waiting.of(wanted), None if judged is None else judged.of(wanted))
            self._skip(waiting.of(~wanted))
        if self._waiting.size:
            self._waiting = _Bundle.empty(waiting.rows.shape[1])
        self._in_chunk = 0

    def _follow(self, rows: Floats, signs: Ints) -> Trace | None:
        """Chunks of one row in one go, as far as the model can; the rest goes the ordinary way."""
        # A policy looks at the verdict alone, so two answers say all it could say.
        answers = {alarm: bool(self._answer(np.array([alarm]))[0]) for alarm in (False, True)}
        trace: Trace | None = self._learner.follow(
            rows, lambda at, alarm: answers[alarm] if signs[at] == 0 else bool(signs[at] == 1)
        )
        if trace is not None:
            count = len(trace.distances)
            numbers = np.arange(self._seen, self._seen + count)
            self._seen += count
            arrived = _Bundle(rows[:count], numbers, signs[:count], trace.distances > trace.thresholds)
            self._remember(arrived.of(trace.learnt))
            self._skip(arrived.of(~trace.learnt))
        return trace

    def _wanted(self, signs: Ints, alarms: Bools) -> Bools:
        wanted = self._answer(alarms)
        return np.where(signs == 0, wanted, signs == 1) if np.count_nonzero(signs) else wanted

    def _answer(self, alarms: Bools) -> Bools:
        wanted: Any = self._policy.learns(alarms)
        if not isinstance(wanted, np.ndarray) or wanted.dtype.kind != "b" or wanted.shape != alarms.shape:
            raise InvalidParameterError(f"{self._policy!r} did not answer with an array of one boolean per row")
        return wanted

    def _learn(self, bundle: _Bundle, judged: Judged | None) -> None:
        if not bundle.size:
            return
        with counted_from(lambda row: int(bundle.numbers[row]) if row >= 0 else -1):
            self._learner.learn(bundle.rows, judged)
        self._remember(bundle)

    def _remember(self, bundle: _Bundle) -> None:
        held = self._learner.held
        self._learnt = np.concatenate([self._learnt, bundle.numbers])[-held:] if held else self._learnt

    def _skip(self, bundle: _Bundle) -> None:
        if bundle.size:
            self._skipped = self._skipped.with_(bundle).of(slice(-(self._learner.window or DEFAULT_WARM_UP), None))

    # Late labels

    def _confirm(self, numbers: Ints, signs: Ints) -> Bools:
        remembered = np.concatenate([self._learnt, self._waiting.numbers, self._skipped.numbers])
        known: Bools = np.isin(numbers, remembered) & (numbers >= 0)  # -1 marks rows from before the watch
        self._waiting = self._waiting.labelled(numbers, signs)
        self._skipped = self._skipped.labelled(numbers, signs)
        self._take_back(numbers[signs == -1])
        self._hand_in(numbers[signs == 1])
        return known

    def _take_back(self, numbers: Ints) -> None:
        ages = np.flatnonzero(np.isin(self._learnt, numbers) & (self._learnt >= 0))
        if len(ages):
            places = self._learnt[ages]
            rows = self._learner.take_back(ages)
            self._learnt = np.delete(self._learnt, ages)
            self._skip(_Bundle(rows, places, np.full(len(ages), -1), np.zeros(len(ages), dtype=bool)))
        if self._is_watching and not self._learner.is_fitted:
            self._is_watching = False  # every row was taken back: begin again, with those that wait
        if not self._is_watching:
            unwanted = self._waiting.signs == -1
            self._skip(self._waiting.of(unwanted))
            self._waiting = self._waiting.of(~unwanted)

    def _hand_in(self, numbers: Ints) -> None:
        confirmed = np.isin(self._skipped.numbers, numbers)
        bundle, self._skipped = self._skipped.of(confirmed), self._skipped.of(~confirmed)
        if self._is_watching:
            self._learn(bundle, None)
        elif bundle.size:
            self._waiting = self._waiting.with_(bundle)
            self._begin_if_ready()
