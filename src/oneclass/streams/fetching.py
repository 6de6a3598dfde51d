"""From a data set to its file: in the folders of ONECLASS_DATA, in the cache, or fetched from its public source and checked.

A file that someone put into a folder is taken as it is, provided that columns, rows and targets are those of the data set: it is
the owner's decision, a hash would have to read it all before the first row, and other line ends or 1.0 for 1 change a hash but no
number. `verify=True` asks for the hash as well. What comes over the network has no owner: it reaches the cache only if its hash is
right.
"""

import gzip
import hashlib
import lzma
import os
import zipfile
import zlib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from oneclass.errors import StreamError
from oneclass.streams.datasets import Dataset
from oneclass.streams.records import opened, readable

HOST = "https://raw.githubusercontent.com"
SECONDS = 30
"""How long a server may keep silent."""

ENDINGS = (".csv.gz", ".csv")


def located(dataset: Dataset, *, verify: bool = False) -> Path:
    """The file of a data set, fetched if it is in no folder; with `verify`, its content must be the original's, byte for byte."""
    cache = _cache()
    for folder in (*_folders(), *([cache] if cache else [])):
        for path in (folder / f"{dataset.name}{ending}" for ending in ENDINGS):
            if path.is_file():
                if verify:
                    require_original(path, dataset)
                return path
    return _fetched(dataset, cache)


def require_original(path: Path, dataset: Dataset) -> None:
    """Raise unless a file of records has the bytes of the original; UG-2C-3D and UG-2C-5D are known by what follows the header."""
    with readable(path), opened(path) as file:
        content = file.read()
    if dataset.sha256:
        is_original = hashlib.sha256(content).hexdigest() == dataset.sha256
    else:
        body = content.partition(b"\n")[2]
        is_original = dataset.source.blob in {blob_id(body), blob_id(body.removesuffix(b"\n"))}
    if not is_original:
        raise StreamError(
            f"{path} does not have the bytes of {dataset.name} as it was first read ({_fingerprint(dataset)}). "
            f"Replace it by the original, or load it without verify=True"
        )


def blob_id(content: bytes) -> str:
    """The name that git has for a file of this content: SHA-1 of its length and its bytes."""
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def _fetched(dataset: Dataset, cache: Path | None) -> Path:
    """The file in the cache, after it was fetched, converted and found to be the original; else nothing is left there."""
    if dataset.source.reader is None:
        raise StreamError(f"{_missing(dataset, cache)}. The format of its source is not read here: convert it once")
    pooch = _pooch()
    if pooch is None or cache is None:
        raise StreamError(f"{_missing(dataset, cache)}. To have it fetched, install the extra: pip install 'oneclass[paper]'")
    source = dataset.source
    url = f"{HOST}/{source.repository}/{source.commit}/{source.path}"
    path = cache / f"{dataset.name}{ENDINGS[0]}"
    try:
        cache.mkdir(parents=True, exist_ok=True)
        # In the cache's own file system, so that the last step is one rename: others see the whole file or none.
        with TemporaryDirectory(dir=cache, prefix=".fetch-") as work:
            raw, records = Path(work) / "raw", Path(work) / path.name
            pooch.HTTPDownloader(timeout=SECONDS)(url, str(raw), None)
            _convert(raw, records, dataset)
            records.replace(path)
    except (OSError, EOFError) as error:  # requests' errors are OSErrors
        if (response := getattr(error, "response", None)) is not None:
            response.close()  # pooch leaves the connection open, and Python warns of it
        raise StreamError(f"{_missing(dataset, cache)}. Fetching {url} failed: {error}") from error
    except (StreamError, ValueError, LookupError, RuntimeError, zipfile.BadZipFile, zlib.error, lzma.LZMAError) as error:
        raise StreamError(f"{_missing(dataset, cache)}. What {url} sent is something else ({_fingerprint(dataset)})") from error
    return path


def _convert(raw: Path, records: Path, dataset: Dataset) -> None:
    """Write the records of a source's file; whatever of it is known must be right."""
    if dataset.source.blob and blob_id(raw.read_bytes()) != dataset.source.blob:
        raise StreamError("another blob")
    with gzip.open(records, "wt", compresslevel=6, encoding="ascii", newline="\n") as file:
        file.writelines(f"{line}\n" for line in _lines(raw, dataset))
    if dataset.sha256:
        require_original(records, dataset)


def _lines(raw: Path, dataset: Dataset) -> Iterator[str]:
    yield dataset.header
    if dataset.source.reader is not None:
        yield from dataset.source.reader(raw)


def _folders() -> list[Path]:
    """The folders that ONECLASS_DATA names."""
    return [Path(name).expanduser() for name in os.environ.get("ONECLASS_DATA", "").split(os.pathsep) if name]


def _cache() -> Path | None:
    """ONECLASS_CACHE, or where this system keeps such files; None if only pooch could tell."""
    if named := os.environ.get("ONECLASS_CACHE"):
        return Path(named).expanduser()
    pooch = _pooch()
    return Path(pooch.os_cache("oneclass")) if pooch else None


def _pooch() -> Any:
    """The module, or None: it belongs to the extra `paper`."""
    try:
        return import_module("pooch")
    except ImportError:
        return None


def _missing(dataset: Dataset, cache: Path | None) -> str:
    """What is missing, where it was looked for, and where to put what."""
    folders = [*_folders(), *([cache] if cache else [])]
    looked = ", ".join(f"{folder}{'' if folder.is_dir() else ' (no such folder)'}" for folder in folders) or "no folder"
    there = folders[0] if folders else "a folder that ONECLASS_DATA names"
    return (
        f"{dataset.name} is not at hand (looked in: {looked}). Put {dataset.name}.csv.gz or {dataset.name}.csv into {there}: "
        f"a line {_shortened(dataset.header)!r}, then {dataset.count:,} records made from {dataset.source}"
    )


def _shortened(header: str) -> str:
    return header if len(header) <= 40 else f"{header[:16]}...{header[-9:]}"


def _fingerprint(dataset: Dataset) -> str:
    return f"sha256 {dataset.sha256}" if dataset.sha256 else f"git blob {dataset.source.blob}"
