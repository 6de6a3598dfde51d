"""A sphere over a window that moves: from one solution of the dual to the next, exactly. Rows come in checked."""

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
from oneclass.threads import one_blas_thread
from oneclass.types import Floats, Ints, KernelFunction
from oneclass.window import Ring, overwritten


@dataclass(frozen=True, eq=False)
class Held:
    """What has been learnt, at one moment: the rows in their slots, the weight of each, and the sphere they describe."""

    ring: Ring
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
            "head": self.ring.head,
            "capacity": self.ring.capacity,
            "norm": self.sphere.norm,
            "threshold": self.sphere.threshold,
            "learnt": self.learnt,
            "chosen_from": self.chosen_from,
        }

    @classmethod
    def from_values(cls, values: dict[str, Any], rows: Floats, weights: Floats, function: KernelFunction | Kernel | None) -> "Held":
        """What `to_values` described."""
        if rows.ndim != 2 or weights.shape != rows.shape[:1]:
            raise StateError(f"this saved state does not fit together: rows of shape {rows.shape}, weights of {weights.shape}")
        parameters = Parameters.from_values(values["parameters"], function)
        scaled = parameters.scaled(rows)
        chosen = np.flatnonzero(weights)
        sphere = Sphere(parameters, scaled[chosen], weights[chosen], values["norm"], values["threshold"])
        ring = Ring(values["capacity"], len(rows), values["head"])
        if not is_built_in(parameters.kernel):
            _require_the_same_kernel(sphere)
        return cls(ring, rows, scaled, weights, sphere, values["learnt"], values["chosen_from"])

    def start(self, C: float) -> Floats:
        """These weights as a start under another C: rows outside stay outside."""
        return np.where(self.weights >= self.parameters.C, C, np.minimum(self.weights, C))


class _Step(NamedTuple):
    """The window after a change, before anything is solved for it; `start` is where the weights start from."""

    ring: Ring
    rows: Floats
    scaled: Floats
    parameters: Parameters
    kernel: Floats
    start: Floats | None
    learnt: int
    chosen_from: int
    sphere: Sphere | None = None  # that of the start, where it is known


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
        with one_blas_thread(self.terms.request.window or len(rows) + (held.ring.size if held else 0)):
            return self._settled(self._appended(held, rows))

    def forget(self, held: Held, kept: Ints) -> Held:
        """What is held once only these rows are left, counted from the oldest; at least one."""
        places, gone = held.ring.by_age[kept], held.ring.size - len(kept)
        survivors = int(np.searchsorted(kept, held.chosen_from))
        # Parameters that forgotten rows helped to choose would be a trace of them.
        is_tainted = self.terms.request.chooses_width and survivors < held.chosen_from
        learnt, start = held.learnt - gone, held.start(self.terms.C_for(len(kept)))[places]
        with one_blas_thread(len(kept)):
            if is_tainted or not held.parameters.kernel.is_pairwise:
                parameters = None if is_tainted else held.parameters
                return self._settled(self._anew(held.rows[places], start, parameters, learnt, survivors))
            return self._settled(
                _Step(
                    Ring(self.terms.request.window).place(len(kept))[0],
                    held.rows[places],
                    held.scaled[places],
                    replace(held.parameters, C=self.terms.C_for(len(kept))),
                    self._gram.keep(held, places),
                    start,
                    learnt,
                    survivors,
                )
            )

    def to_values(self) -> dict[str, Any]:
        """The terms as plain data."""
        return {"request": self.terms.request.to_values(), "C": self.terms.C}

    @classmethod
    def from_values(cls, values: dict[str, Any], function: KernelFunction | Kernel | None) -> "SlidingSphere":
        """What `to_values` described."""
        return cls(Terms(Request.from_values(values["request"], function), values["C"]))

    # What the window becomes

    def _appended(self, held: Held | None, rows: Floats) -> _Step:
        capacity = self.terms.request.window
        if held is None:
            return self._anew(rows if capacity is None else rows[-capacity:], None, None, len(rows), 0)
        learnt, is_choosing = held.learnt + len(rows), self._is_choosing(held)
        # A function kernel is asked for the whole matrix at once: nothing says that it rounds a part of it in the same way.
        if not (is_choosing or not held.parameters.kernel.is_pairwise) and held.ring.can_place(len(rows)):
            return self._continued(held, rows, learnt)
        by_age = held.ring.by_age
        every = held.ring.size + len(rows)
        left = 0 if capacity is None else max(0, every - capacity)
        known = np.concatenate([held.rows[by_age], rows])[left:]
        start = np.concatenate([held.start(self.terms.C_for(len(known)))[by_age], np.zeros(len(rows))])[left:]
        return self._anew(known, start, None if is_choosing else held.parameters, learnt, max(0, held.chosen_from - left))

    def _continued(self, held: Held, rows: Floats, learnt: int) -> _Step:
        """Rows that stay keep their slots."""
        ring, slots = held.ring.place(len(rows))
        parameters, C = held.parameters, self.terms.C_for(ring.size)
        is_as_before = C == parameters.C
        parameters = parameters if is_as_before else replace(parameters, C=C)
        start = np.concatenate([held.start(C), np.zeros(ring.size - held.ring.size)])
        for part in slots:
            is_as_before = is_as_before and not start[part].any()
            start[part] = 0.0
        new = parameters.scaled(rows)
        window, scaled = overwritten(held.rows, slots, rows), overwritten(held.scaled, slots, new)
        kernel = parameters.kernel(new, scaled)
        if not parameters.kernel.is_bounded:
            require_finite(kernel)
        return _Step(
            ring,
            window,
            scaled,
            parameters,
            self._gram.write(held, slots, kernel, ring.capacity),
            start,
            learnt,
            max(0, held.chosen_from - (held.ring.size + len(rows) - ring.size)),
            held.sphere if is_as_before else None,
        )

    def _anew(self, rows: Floats, start: Floats | None, parameters: Parameters | None, learnt: int, chosen_from: int) -> _Step:
        """A window whose every slot is new, rows in order of age; parameters are chosen from it unless they are given."""
        ring, _ = Ring(self.terms.request.window).place(len(rows))
        rows = rows.copy()
        if parameters is None:
            parameters, chosen_from = self.terms.parameters_for(rows), len(rows)
        parameters = replace(parameters, C=self.terms.C_for(len(rows)))
        scaled = parameters.scaled(rows)
        kernel = self._gram.fill(kernel_matrix(parameters, scaled))
        return _Step(ring, rows, scaled, parameters, kernel, start, learnt, chosen_from)

    def _is_choosing(self, held: Held) -> bool:
        enough = min(self.terms.request.window or ROWS_TO_CHOOSE_FROM, ROWS_TO_CHOOSE_FROM)
        return self.terms.request.chooses_width and held.learnt < enough

    def _settled(self, step: _Step) -> Held:
        solution = solve(step.kernel, step.parameters.C, step.start)
        if not solution.is_settled:
            solution = solve(step.kernel, step.parameters.C)
        if not solution.is_settled:
            warn_of_no_convergence("IncrementalSVDD")
        sphere = step.sphere
        # With no row on the sphere, rows inside have a say in its radius.
        if sphere is None or solution.steps or not len(solution.free):
            sphere = sphere_of(step.parameters, step.scaled, solution)
        held = Held(step.ring, step.rows, step.scaled, solution.weights, sphere, step.learnt, step.chosen_from)
        self._gram.give_to(held)
        return held


def _require_the_same_kernel(sphere: Sphere) -> None:
    """Raise if ||centre||² is not a'Ka: then the function handed in is another than the one that was learnt with."""
    kernel = sphere.parameters.kernel(sphere.support, sphere.support)
    if not abs(sphere.weights @ kernel @ sphere.weights - sphere.norm) <= 1e-6 * np.abs(kernel).max():
        raise KernelError(f"{sphere.parameters.kernel!r} is not the kernel this was saved with: the weights do not fit it")
