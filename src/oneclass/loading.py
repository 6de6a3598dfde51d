"""Models out of files and bytes."""

from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Any

from oneclass.errors import StateError
from oneclass.kernels import Kernel
from oneclass.state import Envelope
from oneclass.types import KernelFunction

HOMES = {
    "KernelBoundary": "oneclass.boundary",
    "KernelReconstruction": "oneclass.reconstruction",
    "IncrementalSVDD": "oneclass.rivals",
    "OnlineKernelPCA": "oneclass.rivals",
    "Refitted": "oneclass.rivals",
}
"""Where the classes are that can be read back. By name: a watcher of a kernel model need not wait until every rival is imported."""


def load(path: str | PathLike[str], *, kernel: KernelFunction | Kernel | None = None, detector: Any = None) -> Any:
    """The model that `save` wrote, with the same bits; `kernel` or `detector` is the code it was made with, if it was."""
    try:
        return model_from_bytes(Path(path).read_bytes(), kernel=kernel, detector=detector)
    except StateError as error:
        raise StateError(f"{path}: {error}") from error


def model_from_bytes(data: bytes, *, kernel: KernelFunction | Kernel | None = None, detector: Any = None) -> Any:
    """The model, of whichever kind, that `to_bytes` saved."""
    kind = Envelope.from_bytes(data).kind  # the checksum is looked at here, before anything is made of the bytes
    if kind not in HOMES:
        models = ", ".join(HOMES)
        raise StateError(f"this is the saved state of a {kind}; models are {models}, other classes have a from_bytes of their own")
    code = {name: value for name, value in (("kernel", kernel), ("detector", detector)) if value is not None}
    return getattr(import_module(HOMES[kind]), kind).from_bytes(data, **code)


def can_be_read_back(model: object) -> bool:
    """Whether `model_from_bytes` knows the class of this model."""
    home = HOMES.get(type(model).__name__)
    return home is not None and type(model).__module__.startswith(home)
