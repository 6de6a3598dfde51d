"""Support vector data description over a window: rows are learnt and forgotten exactly, from the solution at hand."""

from copy import deepcopy
from dataclasses import replace
from os import PathLike
from typing import Any, Self

import numpy as np

from oneclass.errors import NotLearntError
from oneclass.kernels import Kernel
from oneclass.rivals.rival import Rival
from oneclass.rivals.sliding_sphere import Held, SlidingSphere
from oneclass.rivals.sphere import terms
from oneclass.saved import model_from_envelope, model_to_envelope
from oneclass.state import Envelope, is_count, readable, require_claims, write_file
from oneclass.threshold import p_values
from oneclass.types import Floats, KernelFunction
from oneclass.validation import checked_indices, checked_rows, learnable, rows_to_fit, unchanged_on_error


class IncrementalSVDD(Rival):
    """`SVDD` of the rows in a window, which learns and forgets rows exactly; d(x) = ||φ(x) - centre||².

    After each call the sphere is that of `SVDD` fitted to `window_` under the same parameters, to rounding, however the rows came
    and went. A row costs one row of K and a few steps of O(n·f + f³), f the rows on the sphere, or, where those are most and K is
    well-conditioned, of some n²; a row inside that comes or goes needs none of these. θ is the square of the radius, as those on
    it are scored. Needs the n² numbers of K, which are not saved.

    Parameters
    ----------
    kernel : {"rbf", "laplacian", "polynomial", "linear", "rational_quadratic"}, a `Kernel`, or a function k(X, Y) -> matrix
    width : the σ of exp(-||x - y||²/σ²), on the rows as they are; "auto": the median distance of rows scaled by `scale_`, chosen
        with every chunk until 150 rows (or the window) are learnt, and then kept
    C : the largest weight of a row; "auto": 1 / (n · alarm_rate) for the n rows held. A number is kept, but for n rows fewer than
        1/C, whose weights could not add up to 1: it is 1/n for them
    alarm_rate : the share of the rows held that may lie outside
    window : rows kept; None: all

    Learnt: `window_`, oldest row first, `weights_` of its rows, `C_`, `width_`, `scale_`, `offset_`.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> model = IncrementalSVDD(width=4.0, window=100).fit(rng.normal(size=(100, 2)))
    >>> model = model.partial_fit(rng.normal(size=(50, 2)) + 0.2).forget([0, 1])
    >>> model.window_.shape, model.predict([[0.0, 0.0], [9.0, 9.0]])
    ((98, 2), array([ 1, -1]))
    """

    _spheres: SlidingSphere | None = None
    _held: Held | None = None

    def __init__(
        self,
        kernel: str | Kernel | KernelFunction = "rbf",
        *,
        width: float | str = "auto",
        C: float | str = "auto",
        alarm_rate: float = 0.05,
        window: int | None = None,
    ) -> None:
        self.kernel = kernel
        self.width = width
        self.C = C
        self.alarm_rate = alarm_rate
        self.window = window

    # Learning and forgetting

    def fit(self, X: object, y: object = None) -> Self:
        """Start afresh on rows X of shape (n, d), n >= 2; the last `window` of them are kept. Rows with y = -1 are not learnt.

        Parameters are read here (or at the first `partial_fit`) and hold until the next `fit`.
        """
        with unchanged_on_error(self):
            rows = rows_to_fit(self, X, y)
            self._spheres = self._afresh()
            self._hold(self._spheres.learn(None, rows))
        return self

    def partial_fit(self, X: object, y: object = None) -> Self:
        """Learn a chunk of one row or more and forget the oldest rows beyond `window`; without a window the model grows.

        Rows with y = -1 are not learnt. How the rows are cut into calls makes no difference beyond rounding, once the automatic
        width is settled.
        """
        with unchanged_on_error(self):
            self._spheres = self._spheres or self._afresh()
            rows = learnable(checked_rows(self, X, first_time=not hasattr(self, "n_features_in_")), y)
            if len(rows):
                self._hold(self._spheres.learn(self._held, rows))
        return self

    def forget(self, indices: object) -> Self:
        """Remove rows of the window as if they had never been learnt; `indices` count in `window_`, 0 = oldest.

        An automatic width that they helped to choose is chosen again from those that remain. The window refills before it forgets.
        Forgetting every row leaves a model that has learnt nothing.
        """
        held = self._now
        ages = checked_indices(indices, len(held.rows))
        kept = np.delete(np.arange(len(held.rows)), ages)
        with unchanged_on_error(self):
            if not len(kept):
                self._held = None
                del self.offset_
            elif len(ages) and self._spheres is not None:
                self._hold(self._spheres.forget(held, kept))
        return self

    # Scoring

    def p_values(self, X: object) -> Floats:
        """(1 + number of training distances >= that of the row) / (n + 1); the first call after learning measures those."""
        distances = self._judged(X)
        return p_values(self._now.ascending, distances)

    # What has been learnt

    @property
    def training_distances_(self) -> Floats:
        """The distances that the p-values rest on, those of the rows held, in ascending order, shape (n,)."""
        return self._now.ascending.copy()

    @property
    def window_(self) -> Floats:
        """The rows learnt and not forgotten, oldest first, shape (n, d)."""
        return self._now.rows[self._now.order]

    @property
    def weights_(self) -> Floats:
        """The weight of each row of `window_`, shape (n,), 1 in sum: 0 inside the sphere, `C_` outside, between them on it."""
        return self._now.weights[self._now.order]

    @property
    def width_(self) -> float:
        """The width of the kernel in force; NaN for a kernel without one."""
        return self._now.parameters.width

    @property
    def C_(self) -> float:
        """The largest weight a row may have at present."""
        return self._now.parameters.C

    @property
    def scale_(self) -> Floats:
        """What each feature is divided by before the kernel sees it: chosen along with an automatic width, otherwise ones."""
        return self._now.parameters.scale.copy()

    # Saving

    def to_bytes(self) -> bytes:
        """Everything learnt, without pickle: the same bytes for the same state, and the model resumes with the same bits."""
        envelope = model_to_envelope(self, None)
        values: dict[str, Any] = dict(envelope.values)
        arrays: dict[str, Floats] = {}
        if self._spheres is not None:
            values["terms"] = self._spheres.to_values()
        if self._held is not None:
            values["held"] = self._held.to_values()
            arrays = self._held.to_arrays()
        return replace(envelope, values=values, arrays=arrays).to_bytes()

    def save(self, path: str | PathLike[str]) -> None:
        """Write `to_bytes()` to a file: all of it or, if that fails, nothing; read it with `oneclass.load`."""
        write_file(path, self.to_bytes())

    @classmethod
    def from_bytes(cls, data: bytes, *, kernel: KernelFunction | Kernel | None = None) -> Self:
        """The model that `to_bytes` saved; a kernel function is code, is not saved, and must be handed in again."""
        model, envelope = cls(), Envelope.from_bytes(data)
        model_from_envelope(model, envelope, kernel)
        with readable():
            model._restore(envelope, kernel)
        return model

    # Inside

    @property
    def _now(self) -> Held:
        if self._held is None:
            name = type(self).__name__
            raise NotLearntError(
                f"this {name} has learnt no rows yet: call fit(X) or partial_fit(X) before scoring or reading from it"
            )
        return self._held

    def _judged(self, X: object) -> Floats:
        held = self._now
        return held.sphere.distances(checked_rows(self, X, first_time=False))

    def _hold(self, held: Held) -> None:
        self._held = held
        self.offset_ = -held.sphere.threshold

    def _restore(self, envelope: Envelope, kernel: KernelFunction | Kernel | None) -> None:
        values, features = envelope.values, envelope.values["n_features"]
        names = values["feature_names"]
        require_claims(
            {
                "rows come with their terms": "terms" in values or "held" not in values,
                "what is held has rows, and no rows come without": ("held" in values) == bool(envelope.arrays),
                "features are a count": features is None or (is_count(features) and features > 0),
                "features have a name each, or none has": names is None or len(names) == features,
            }
        )
        if "terms" in values:
            self._spheres = SlidingSphere.from_values(values["terms"], kernel)
        if self._spheres is not None and "held" in values:
            require_claims({"rows have as many columns as there are features": envelope.arrays["rows"].shape[1:] == (features,)})
            self._hold(Held.restored(values["held"], envelope.arrays, self._spheres.terms, kernel))

    def _afresh(self) -> SlidingSphere:
        return SlidingSphere(terms(kernel=self.kernel, width=self.width, C=self.C, alarm_rate=self.alarm_rate, window=self.window))

    def __copy__(self) -> Self:
        """A copy that learns on its own: the cache is written to, so it cannot be shared."""
        return deepcopy(self)
