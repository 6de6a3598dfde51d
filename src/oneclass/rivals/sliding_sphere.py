"""A sphere over a window that moves: from one solution of the dual to the next, exactly. Rows come in checked."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from oneclass.errors import KernelError, StateError
from oneclass.kernels import Kernel, is_built_in
from oneclass.normality import require_finite
from oneclass.parameters import Parameters, Request
from oneclass.rivals.dual import solve
from oneclass.rivals.gram import Gram
from oneclass.rivals.sphere import Sphere, Terms, sphere_of
from oneclass.rivals.svdd import kernel_matrix, warn_of_no_convergence
from oneclass.sliding import ROWS_TO_CHOOSE_FROM
from oneclass.state import is_count, require_claims
from oneclass.threads import one_blas_thread
from oneclass.types import Floats, Ints, KernelFunction

_SLACK = 1e-6
"""By how much saved numbers may miss what they are computed from, as a part of the largest k(x, x)."""


@dataclass(frozen=True, eq=False)
class Held:
    """What has been learnt, at one moment: the rows in their slots, the weight of each, and the sphere they describe.

    A row keeps its slot until it leaves. A new one takes the slot of the row it replaces, or the next behind the last; where rows
    are forgotten, those in the last slots move up.
    """

    order: Ints  # the slot of each row, oldest first
    rows: Floats  # in slots, raw
    scaled: Floats  # in slots, as the kernel sees them
    weights: Floats  # in slots; exactly 0 inside the sphere and exactly C outside
    sphere: Sphere
    learnt: int  # rows learnt since the beginning, less those taken back
    chosen_from: int  # how many of the oldest rows the parameters were chosen from

    @property
    def parameters(self) -> Parameters:
        """Kernel, scale and C in force."""
        return self.sphere.parameters

    @cached_property
    def ascending(self) -> Floats:
        """The training distances, sorted."""
        return np.sort(self.sphere.distances_of_scaled(self.scaled))

    def to_values(self) -> dict[str, Any]:
        """All but the rows and their weights as plain data."""
        return {
            "parameters": self.parameters.to_values(),
            "norm": self.sphere.norm,
            "threshold": self.sphere.threshold,
            "learnt": self.learnt,
            "chosen_from": self.chosen_from,
        }

    def to_arrays(self) -> dict[str, Floats]:
        """The rows, their weights and their order."""
        return {"rows": self.rows, "weights": self.weights, "order": self.order.astype(np.float64)}

    @classmethod
    def restored(
        cls, values: dict[str, Any], arrays: Mapping[str, Floats], terms: Terms, function: KernelFunction | Kernel | None
    ) -> "Held":
        """What `to_values` and `to_arrays` described; StateError where that is no solution of its window under these terms."""
        parameters = Parameters.from_values(values["parameters"], function)
        _require_fit(values, arrays, parameters, terms)
        rows, weights = arrays["rows"], arrays["weights"]
        scaled = parameters.scaled(rows)
        chosen = np.flatnonzero(weights)
        sphere = Sphere(parameters, scaled[chosen], weights[chosen], values["norm"], values["threshold"])
        _require_the_same_kernel(sphere)
        distances, slack = sphere.distances_of_scaled(scaled), _SLACK * np.abs(parameters.kernel.diagonal(scaled)).max()
        is_radius = distances.min() - slack <= sphere.threshold <= distances.max() + slack
        require_claims({"the radius is between the distances of the rows": is_radius})
        return cls(arrays["order"].astype(np.int64), rows, scaled, weights, sphere, values["learnt"], values["chosen_from"])

    def start(self, C: float) -> Floats:
        """These weights as a start under another C: rows outside stay outside."""
        return np.where(self.weights >= self.parameters.C, C, np.minimum(self.weights, C))


class _Step(NamedTuple):
    """The rows after a change, before anything is solved for them; `start` is where the weights start from."""

    order: Ints
    rows: Floats
    scaled: Floats
    parameters: Parameters
    kernel: Floats
    start: Floats | None
    learnt: int
    chosen_from: int


class SlidingSphere:
    """From what is held to what is held after learning or forgetting; remembers the terms, and K as a cache.

    The dual of the new window is solved from the weights of the old one: those of the rows that stay, rows outside moved to the C
    in force. The gradient is computed afresh from the weights each time, so that no error is carried from change to change.
    """

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self._gram = Gram()

    def learn(self, held: Held | None, rows: Floats) -> Held:
        """What is held after a chunk of one row or more, the oldest rows beyond the window forgotten."""
        with one_blas_thread():
            return self._settled(self._appended(held, rows))

    def forget(self, held: Held, kept: Ints) -> Held:
        """What is held once only these rows are left, counted from the oldest; at least one."""
        survivors = int(np.searchsorted(kept, held.chosen_from))
        # Parameters that forgotten rows helped to choose would be a trace of them.
        is_tainted = self.terms.request.chooses_width and survivors < held.chosen_from
        with one_blas_thread():
            if not is_tainted and held.parameters.kernel.is_pairwise:
                return self._settled(self._closed_up(held, kept, survivors))
            slots, learnt = held.order[kept], held.learnt - (len(held.order) - len(kept))
            start = held.start(self.terms.C_for(len(kept)))[slots]
            return self._settled(self._anew(held.rows[slots], start, None if is_tainted else held.parameters, learnt, survivors))

    def to_values(self) -> dict[str, Any]:
        """The terms as plain data."""
        return {"request": self.terms.request.to_values(), "C": self.terms.C}

    @classmethod
    def from_values(cls, values: dict[str, Any], function: KernelFunction | Kernel | None) -> "SlidingSphere":
        """What `to_values` described."""
        C = values["C"]
        require_claims({"C is a positive number, or chosen": C is None or (_is_number(C) and 0.0 < C < np.inf)})
        terms = Terms(Request.from_values(values["request"], function), C)
        if terms.request.window is not None:
            terms.require_feasible(terms.request.window)
        return cls(terms)

    # What the window becomes

    def _appended(self, held: Held | None, rows: Floats) -> _Step:
        capacity = self.terms.request.window
        if held is None:
            return self._anew(rows if capacity is None else rows[-capacity:], None, None, len(rows), 0)
        size = len(held.rows)
        leaving = 0 if capacity is None else max(0, size + len(rows) - capacity)
        is_choosing, learnt = self._is_choosing(held), held.learnt + len(rows)
        # A function kernel is asked for the whole matrix at once: nothing says that it rounds a part of it in the same way.
        if leaving < size and held.parameters.kernel.is_pairwise and not is_choosing:
            return self._continued(held, rows, leaving)
        known = np.concatenate([held.rows[held.order], rows])[leaving:]
        start = np.concatenate([held.start(self.terms.C_for(len(known)))[held.order], np.zeros(len(rows))])[leaving:]
        return self._anew(known, start, None if is_choosing else held.parameters, learnt, max(0, held.chosen_from - leaving))

    def _continued(self, held: Held, rows: Floats, leaving: int) -> _Step:
        """New rows take the slots of the oldest, which leave, and those behind the last; all others stay where they are."""
        before, added = len(held.rows), len(rows) - leaving
        slots = np.concatenate([held.order[:leaving], np.arange(before, before + added)])
        parameters = self._with_C(held, before + added)
        new = parameters.scaled(rows)
        window = _overwritten(held.rows, slots, rows, added)
        scaled = window if parameters.is_raw else _overwritten(held.scaled, slots, new, added)
        kernel = parameters.kernel(new, scaled)
        if not parameters.kernel.is_bounded:
            require_finite(kernel)
        return _Step(
            np.concatenate([held.order[leaving:], slots]),
            window,
            scaled,
            parameters,
            self._gram.write(held, slots, kernel, self.terms.request.window),
            _overwritten(held.start(parameters.C), slots, np.zeros(len(rows)), added),
            held.learnt + len(rows),
            max(0, held.chosen_from - leaving),
        )

    def _closed_up(self, held: Held, kept: Ints, chosen_from: int) -> _Step:
        """Rows in the last slots move into those of the rows that are gone."""
        before, size = len(held.rows), len(kept)
        is_kept = np.zeros(before, dtype=bool)
        is_kept[held.order[kept]] = True
        sources, targets = size + np.flatnonzero(is_kept[size:]), np.flatnonzero(~is_kept[:size])
        place = np.arange(before)
        place[sources] = targets
        origin = np.arange(size)
        origin[targets] = sources
        parameters = self._with_C(held, size)
        window = held.rows[origin]
        return _Step(
            place[held.order[kept]],
            window,
            window if parameters.is_raw else held.scaled[origin],
            parameters,
            self._gram.close_up(held, sources, targets, size),
            held.start(parameters.C)[origin],
            held.learnt - (before - size),
            chosen_from,
        )

    def _with_C(self, held: Held, size: int) -> Parameters:
        """The parameters with C for so many rows; the very same ones if it is the same."""
        C = self.terms.C_for(size)
        return held.parameters if C == held.parameters.C else replace(held.parameters, C=C)

    def _anew(self, rows: Floats, start: Floats | None, parameters: Parameters | None, learnt: int, chosen_from: int) -> _Step:
        """Every slot is new, rows in order of age; parameters are chosen from them unless they are given."""
        rows = rows.copy()
        if parameters is None:
            parameters, chosen_from = self.terms.parameters_for(rows), len(rows)
        parameters = replace(parameters, C=self.terms.C_for(len(rows)))
        scaled = parameters.scaled(rows)
        kernel = self._gram.fill(kernel_matrix(parameters, scaled))
        return _Step(np.arange(len(rows)), rows, scaled, parameters, kernel, start, learnt, chosen_from)

    def _is_choosing(self, held: Held) -> bool:
        enough = min(self.terms.request.window or ROWS_TO_CHOOSE_FROM, ROWS_TO_CHOOSE_FROM)
        return self.terms.request.chooses_width and held.learnt < enough

    def _settled(self, step: _Step) -> Held:
        solution = solve(step.kernel, step.parameters.C, step.start)
        if not solution.is_settled:
            solution = solve(step.kernel, step.parameters.C)
        if not solution.is_settled:
            warn_of_no_convergence("IncrementalSVDD")
        sphere = sphere_of(step.parameters, step.scaled, step.kernel, solution)
        held = Held(step.order, step.rows, step.scaled, solution.weights, sphere, step.learnt, step.chosen_from)
        self._gram.give_to(held)
        return held


def _overwritten(old: Floats, slots: Ints, new: Floats, added: int) -> Floats:
    """A copy of `old`, longer by `added`, with the rows of `new` in these slots."""
    rows = np.concatenate([old, new[len(new) - added :]])
    rows[slots] = new
    return rows


def _require_fit(values: dict[str, Any], arrays: Mapping[str, Floats], parameters: Parameters, terms: Terms) -> None:
    """Raise StateError unless what was saved belongs together: bytes with a right checksum may still be made up."""
    rows, weights, order = arrays["rows"], arrays["weights"], arrays["order"]
    require_claims({"rows are a matrix": rows.ndim == 2 and rows.size})
    n, d = rows.shape
    window, numbers = terms.request.window, (values["norm"], values["threshold"])
    counts = (values["learnt"], values["chosen_from"])
    require_claims(
        {
            "all numbers are finite": all(np.isfinite(array).all() for array in arrays.values()),
            "a scale for each feature, above 0": parameters.scale.shape == (d,) and (parameters.scale > 0).all(),
            "the scale is finite": np.isfinite(parameters.scale).all(),
            "the window holds its rows": window is None or n <= window,
            "each row has a place in the order": np.array_equal(np.sort(order), np.arange(n)),
            "C is that of so many rows": _is_number(parameters.C)
            and np.isclose(parameters.C, terms.C_for(n), rtol=1e-12, atol=0.0),
            "a weight from 0 to C for each row": weights.shape == (n,) and ((weights >= 0) & (weights <= parameters.C)).all(),
            "weights add up to 1": abs(weights.sum() - 1.0) <= 1e-6,
            "the norm and the threshold are finite": all(_is_number(number) and np.isfinite(number) for number in numbers),
            "counts are counts": all(is_count(number) for number in counts) and counts[1] <= n <= counts[0],
        }
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _require_the_same_kernel(sphere: Sphere) -> None:
    """Raise if ||centre||² is not a'Ka: the weights are made up, or the function handed in is another than was learnt with."""
    kernel = sphere.parameters.kernel(sphere.support, sphere.support)
    if abs(sphere.weights @ kernel @ sphere.weights - sphere.norm) <= _SLACK * np.abs(kernel).max():
        return
    if is_built_in(sphere.parameters.kernel):
        raise StateError(f"this saved state does not fit together: {sphere.norm:g} is not ||centre||² of its rows and weights")
    raise KernelError(f"{sphere.parameters.kernel!r} is not the kernel this was saved with: the weights do not fit it")
