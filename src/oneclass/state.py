"""Saved state: one flat envelope of named float64 arrays, without pickle.

    magic "oneclass" · version (uint16) · length of the header (uint32) · header (JSON, UTF-8) · arrays (raw little-endian
    float64, one after the other, in the order of the header) · nested envelopes (bytes) · CRC-32 of all before (uint32)

JSON writes a float so that the same float is read back, arrays are copied byte by byte: a saved model resumes with the same bits.
"""

import json
import os
import shutil
import struct
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from oneclass.errors import OneClassError, StateError
from oneclass.types import Floats

MAGIC = b"oneclass"
VERSION = 1
_HEAD = struct.Struct("<8sHI")
_CHECKSUM = struct.Struct("<I")


@contextmanager
def readable() -> Iterator[None]:
    """Bytes whose checksum fits, and which are yet not what they should be, fail as a StateError."""
    try:
        yield
    except OneClassError:
        raise
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        MemoryError,
        RecursionError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        raise StateError(f"this saved state is not made as it should be ({error!r}). Was it written by oneclass?") from error


def require_claims(claims: Mapping[str, object]) -> None:
    """Raise StateError naming the claims about a saved state that do not hold."""
    broken = [claim for claim, holds in claims.items() if not holds]
    if broken:
        raise StateError(
            f"this saved state does not fit together: {'; '.join(broken)} does not hold. Take an older copy, or learn anew"
        )


def plain(value: Any) -> Any:
    """A number of NumPy's own as Python's, which JSON knows."""
    return value.item() if isinstance(value, np.generic) else value


def is_count(value: object) -> bool:
    """Whether a saved value is a whole number, 0 or more."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


@dataclass(frozen=True)
class Envelope:
    """What is saved of one object: its kind, plain values, named arrays, and the envelopes of objects inside it."""

    kind: str
    values: Mapping[str, Any]
    arrays: Mapping[str, Floats] = field(default_factory=dict)
    parts: Mapping[str, bytes] = field(default_factory=dict)

    def to_bytes(self) -> bytes:
        """The envelope as bytes; the same content gives the same bytes."""
        # Little-endian by name, whatever the machine: a state may travel.
        arrays = {name: np.asarray(array, dtype="<f8") for name, array in self.arrays.items()}
        header = {
            "kind": self.kind,
            "values": self.values,
            "arrays": {name: list(array.shape) for name, array in arrays.items()},
            "parts": {name: len(part) for name, part in self.parts.items()},
        }
        try:
            text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
        except TypeError as error:
            raise StateError(f"this {self.kind} cannot be saved: its parameters are {self.values.get('parameters')}") from error
        pieces = [_HEAD.pack(MAGIC, VERSION, len(text)), text]
        pieces += [array.tobytes() for array in arrays.values()]
        pieces += self.parts.values()
        body = b"".join(pieces)
        return body + _CHECKSUM.pack(zlib.crc32(body))

    @classmethod
    @readable()
    def from_bytes(cls, data: bytes) -> "Envelope":
        """The envelope that `to_bytes` wrote. StateError if it is foreign, newer or damaged."""
        data = bytes(data)  # whatever a store hands back: bytearray, memoryview
        if len(data) < _HEAD.size + _CHECKSUM.size or data[: len(MAGIC)] != MAGIC:
            raise StateError("these bytes are no saved state of oneclass: they do not begin with its mark")
        _, version, length = _HEAD.unpack_from(data)
        # Before the checksum: a newer version may well have another one.
        if version > VERSION:
            raise StateError(f"this state was saved as version {version}; this oneclass reads up to {VERSION}. Upgrade oneclass")
        if version < 1:
            raise StateError("this saved state is damaged: it has no version")
        body, (checksum,) = data[: -_CHECKSUM.size], _CHECKSUM.unpack(data[-_CHECKSUM.size :])
        if zlib.crc32(body) != checksum:
            raise StateError("this saved state is damaged: its checksum does not fit. Take an older copy, or learn anew")
        header = json.loads(body[_HEAD.size : _HEAD.size + length])
        return cls(header["kind"], header["values"], *_contents(body, _HEAD.size + length, header))


def _contents(body: bytes, at: int, header: Mapping[str, Any]) -> tuple[dict[str, Floats], dict[str, bytes]]:
    arrays: dict[str, Floats] = {}
    for name, shape in header["arrays"].items():
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(body, "<f8", count, at).reshape(shape).astype(np.float64)
        at += 8 * count
    parts: dict[str, bytes] = {}
    for name, length in header["parts"].items():
        parts[name] = body[at : at + length]
        at += length
    return arrays, parts


def write_file(path: str | PathLike[str], data: bytes) -> None:
    """Put `data` into the file at `path`: all of it, or the file stays as it was. Links are followed, permissions kept."""
    target = Path(path).resolve()
    draft = target.with_name(f".{target.name}.{os.getpid()}.{threading.get_ident()}")
    try:
        with draft.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())  # on the disk before the old file goes
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)  # still there only if something failed
