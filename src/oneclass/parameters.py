"""From the parameters a user asked for to those in force: a kernel with a width, a C, and a scale for each feature."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, cast

import numpy as np

from oneclass.errors import InvalidParameterError
from oneclass.kernels import WITH_WIDTH, WITHOUT_WIDTH, FunctionKernel, Kernel, Laplacian, from_spec
from oneclass.tuning import balanced_C, median_width, scale_of
from oneclass.types import Floats, KernelFunction
from oneclass.validation import checked_number, checked_rate, checked_whole

ThresholdRule = Literal["leave-one-out", "training"]
THRESHOLD_RULES = ("leave-one-out", "training")


@dataclass(frozen=True)
class Parameters:
    """The kernel and regularisation in force, and what each feature is divided by before anything else."""

    kernel: Kernel
    C: float
    scale: Floats

    @cached_property
    def is_raw(self) -> bool:
        """Whether the kernel sees the rows as they are."""
        return bool((self.scale == 1.0).all())

    def scaled(self, rows: Floats) -> Floats:
        """The rows as the kernel sees them; the very same array if it sees them as they are."""
        return rows if self.is_raw else rows / self.scale

    def ridge(self, size: int) -> Floats:
        """The diagonal added to K, one number per slot; rows of different weight will differ here."""
        return np.full(size, 1.0 / self.C)

    def steepness(self, scaled: Floats) -> float:
        """C · k(x, x) at its largest: about the condition of K + I/C, per row."""
        return self.C * self.kernel.peak(scaled)

    @property
    def width(self) -> float:
        """The width of the kernel; NaN where it has none."""
        return float(getattr(self.kernel, "width", np.nan))

    def to_values(self) -> dict[str, Any]:
        """The parameters as plain data."""
        return {"kernel": self.kernel.spec(), "C": self.C, "scale": self.scale.tolist()}

    @classmethod
    def from_values(cls, values: dict[str, Any], function: KernelFunction | Kernel | None) -> "Parameters":
        """What `to_values` described."""
        return cls(from_spec(values["kernel"], function), values["C"], np.array(values["scale"], dtype=float))


@dataclass(frozen=True)
class Request:
    """What the user asked for, checked."""

    kernel: str | Kernel
    width: float | None  # None: choose
    C: float | None  # None: choose
    alarm_rate: float
    threshold: ThresholdRule
    window: int | None

    def to_values(self) -> dict[str, Any]:
        """What was asked for as plain data."""
        kernel = self.kernel if isinstance(self.kernel, str) else self.kernel.spec()
        return {**vars(self), "kernel": kernel}

    @classmethod
    def from_values(cls, values: dict[str, Any], function: KernelFunction | Kernel | None) -> "Request":
        """What `to_values` described."""
        kernel = values["kernel"]
        given = {name: "auto" if value is None and name != "window" else value for name, value in values.items()}
        return request(**{**given, "kernel": kernel if isinstance(kernel, str) else from_spec(kernel, function)})

    @property
    def chooses_width(self) -> bool:
        """Whether width and scale come from the rows. A given width means raw rows, as in the paper; so does a kernel object."""
        return self.width is None and self.kernel in WITH_WIDTH

    @property
    def depends_on_rows(self) -> bool:
        """Whether other rows would give other parameters."""
        return self.chooses_width or self.C is None

    def parameters_for(self, rows: Floats) -> Parameters:
        """The parameters in force for these rows."""
        # A width in numbers is meant for raw rows, as in the paper.
        scale = scale_of(rows) if self.chooses_width else np.ones(rows.shape[1])
        scaled = rows / scale
        kernel = self._kernel_for(scaled)
        C = balanced_C(kernel.diagonal(scaled)) if self.C is None else self.C
        return Parameters(kernel, C, scale)

    def _kernel_for(self, scaled: Floats) -> Kernel:
        if isinstance(self.kernel, Kernel):
            return self.kernel
        if self.kernel in WITHOUT_WIDTH:
            plain: Kernel = WITHOUT_WIDTH[self.kernel]()
            return plain
        kind = WITH_WIDTH[self.kernel]
        return kind(width=median_width(scaled, is_cityblock=kind is Laplacian) if self.width is None else self.width)


def request(*, kernel: object, width: object, C: object, alarm_rate: object, threshold: object, window: object) -> Request:
    """The public parameters of a model, checked; InvalidParameterError says which one is wrong, and what it may be."""
    chosen = _checked_kernel(kernel)
    if isinstance(chosen, Kernel) and not isinstance(chosen, FunctionKernel) and not _is_auto(width):
        raise InvalidParameterError(f"width={width!r}: the kernel {chosen!r} brings its own width; leave width at 'auto'")
    rate = checked_rate(alarm_rate)
    if threshold not in THRESHOLD_RULES:
        raise InvalidParameterError(f"threshold={threshold!r}: choose one of {', '.join(map(repr, THRESHOLD_RULES))}")
    rows = None if window is None else checked_whole("window", window, at_least=2, hint="rows, or None to keep all")
    return Request(
        kernel=chosen,
        width=None if _is_auto(width) else checked_number("width", width, hint="the σ of exp(-||x-y||²/σ²), or 'auto'"),
        C=None if _is_auto(C) else _checked_C(C),
        alarm_rate=rate,
        threshold=threshold,  # type: ignore[arg-type]  # one of THRESHOLD_RULES, checked above
        window=rows,
    )


def _checked_kernel(kernel: object) -> str | Kernel:
    if isinstance(kernel, str) and kernel in (*WITH_WIDTH, *WITHOUT_WIDTH):
        return kernel
    if isinstance(kernel, Kernel):
        return kernel
    if callable(kernel) and not isinstance(kernel, type):
        return FunctionKernel(cast("KernelFunction", kernel))
    names = ", ".join(map(repr, (*WITH_WIDTH, *WITHOUT_WIDTH)))
    raise InvalidParameterError(
        f"kernel={kernel!r}: choose one of {names}, an object of oneclass.kernels such as RBF(2.0), or a function k(X, Y) -> matrix"
    )


def _checked_C(C: object) -> float:
    number = checked_number("C", C, hint="the λ of I/λ, larger is less regularised, or 'auto'")
    if not np.isfinite(1.0 / number):
        raise InvalidParameterError(f"C={C!r} is so small that 1/C is infinite: with C = 1 the ridge weighs as much as a row")
    return number


def _is_auto(value: object) -> bool:
    return isinstance(value, str) and value == "auto"
