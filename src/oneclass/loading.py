"""Models out of files and bytes."""

from os import PathLike
from pathlib import Path

from oneclass.boundary import KernelBoundary
from oneclass.errors import StateError
from oneclass.kernels import Kernel
from oneclass.model import KernelModel
from oneclass.reconstruction import KernelReconstruction
from oneclass.state import Envelope
from oneclass.types import KernelFunction

KINDS: dict[str, type[KernelModel]] = {kind.__name__: kind for kind in (KernelBoundary, KernelReconstruction)}


def load(path: str | PathLike[str], *, kernel: KernelFunction | Kernel | None = None) -> KernelModel:
    """The model that `save` wrote, with the same bits; `kernel` is the function it was made with, if it was made with one."""
    try:
        return model_from_bytes(Path(path).read_bytes(), kernel=kernel)
    except StateError as error:
        raise StateError(f"{path}: {error}") from error


def model_from_bytes(data: bytes, *, kernel: KernelFunction | Kernel | None = None) -> KernelModel:
    """The model, of whichever kind, that `to_bytes` saved."""
    kind = Envelope.from_bytes(data).kind  # the checksum is looked at here, before anything is made of the bytes
    if kind not in KINDS:
        models = ", ".join(KINDS)
        raise StateError(f"this is the saved state of a {kind}; models are {models}, other classes have a from_bytes of their own")
    return KINDS[kind].from_bytes(data, kernel=kernel)
