"""oneclass learns what normal looks like from normal rows, goes on learning as data drift, and says how abnormal a row is, and why.

>>> import numpy as np
>>> import oneclass as oc
>>> rng = np.random.default_rng(0)
>>> watcher = oc.Watcher(oc.KernelBoundary(window=150))
>>> verdicts = watcher.watch(rng.normal(size=(1000, 3)))
>>> bool(verdicts.alarm.mean() < 0.1)
True
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oneclass import checks as checks
    from oneclass import errors as errors
    from oneclass import kernels as kernels
    from oneclass import rivals as rivals
    from oneclass import streams as streams
    from oneclass.boundary import KernelBoundary as KernelBoundary
    from oneclass.loading import load as load
    from oneclass.reconstruction import KernelReconstruction as KernelReconstruction
    from oneclass.verdicts import Verdicts as Verdicts
    from oneclass.watcher import Watcher as Watcher

__version__ = "0.1.0"

_HOMES = {
    "KernelBoundary": "boundary",
    "KernelReconstruction": "reconstruction",
    "Verdicts": "verdicts",
    "Watcher": "watcher",
    "load": "loading",
}
_MODULES = ("checks", "errors", "kernels", "rivals", "streams")

__all__ = [
    "KernelBoundary",
    "KernelReconstruction",
    "Verdicts",
    "Watcher",
    "checks",
    "errors",
    "kernels",
    "load",
    "rivals",
    "streams",
]


def __getattr__(name: str) -> object:
    # Resolved on first use (PEP 562): `import oneclass` and `oneclass --help` need not wait for scikit-learn.
    if name in _MODULES:
        return import_module(f"oneclass.{name}")
    if name in _HOMES:
        value = getattr(import_module(f"oneclass.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'oneclass' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
