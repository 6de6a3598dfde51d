"""The exceptions of oneclass, one tree.

    OneClassError
    ├── InvalidRowsError          (ValueError)      rows that cannot be learnt or scored: what, which row, which column
    │   └── InvalidRowTypeError   (TypeError)       cells that are no numbers at all
    ├── InvalidParameterError     (ValueError)      a parameter outside its range
    ├── KernelError               (ValueError)      a kernel that has the wrong shape, or is not positive definite
    │   └── KernelOverflowError                     a kernel value that is not finite: at which row
    ├── NotLearntError            (NotFittedError)  scored before anything was learnt
    ├── StateError                (ValueError)      bytes that are damaged, foreign or from a newer version
    └── StreamError               (ValueError)      a data set that is unknown, out of reach, or not what it should be

Each also derives from the class that scikit-learn's checks expect. After any of them the model is as it was before the call.
"""

from sklearn.exceptions import NotFittedError


class OneClassError(Exception):
    """The root of every exception that oneclass raises itself."""


class InvalidRowsError(OneClassError, ValueError):
    """Rows that cannot be learnt or scored; the message says what is wrong, where, and what to do."""


class InvalidRowTypeError(InvalidRowsError, TypeError):
    """Cells that are neither numbers nor text that spells one."""


class InvalidParameterError(OneClassError, ValueError):
    """A parameter outside its range; the message names the value and the range."""


class KernelError(OneClassError, ValueError):
    """A kernel that overflows, returns the wrong shape, or is not positive definite on the rows at hand."""


class KernelOverflowError(KernelError):
    """A kernel value that is not finite; `row` is the row of the call to blame, counted from 0; negative: one of earlier calls."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row

    def __str__(self) -> str:
        which = f"row {self.row}" if self.row >= 0 else "a row of an earlier call"
        return f"the kernel overflows at {which}: k(x, y) is not finite. Scale the features, or choose a bounded kernel: 'rbf'"


class NotLearntError(OneClassError, NotFittedError):
    """Something was asked of a model that has learnt no row yet."""


class StateError(OneClassError, ValueError):
    """Saved bytes that are damaged, not ours, or written by a newer version."""


class StreamError(OneClassError, ValueError):
    """A data set that nobody knows, that is in no folder and cannot be fetched, or whose file is not what it should be."""


class NoAlarmWarning(UserWarning):
    """The window is too small for the alarm rate: no row can be flagged, and the threshold is infinite."""
