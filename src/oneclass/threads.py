"""BLAS on one thread, where two are slower or would change the bits.

The matrices of a window of a few hundred rows are done before a second thread has woken up; on a busy machine waiting for it made
the update 75 times slower. Those of thousands of rows are factorised in blocks of a hundred, which no BLAS divides among threads.
And how BLAS divides the rest decides how it rounds: the same rows give the same bits only with the same number of threads.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, local
from typing import Any, NamedTuple

from threadpoolctl import ThreadpoolController

FEW_ROWS = 512


class _Libraries(NamedTuple):
    """The BLAS libraries of the process: those with one setting for all its threads, and those with one for each (OpenMP)."""

    shared: tuple[Any, ...]
    per_thread: tuple[Any, ...]


@cache
def _blas() -> _Libraries:
    # Made once: looking through the libraries of the process takes milliseconds, setting their threads microseconds.
    every = ThreadpoolController().select(user_api="blas").lib_controllers
    per_thread = tuple(each for each in every if getattr(each, "threading_layer", None) == "openmp")
    return _Libraries(tuple(each for each in every if each not in per_thread), per_thread)


def _set(libraries: tuple[Any, ...], threads: list[int], before: list[int]) -> None:
    if all(found == 1 for found in before):
        return
    # threadpoolctl ignores all threads but the first that ever set OpenBLAS, lest they undo each other's setting; here a count of
    # the holders sees to that. Cleared again afterwards, so that others may set it, too.
    clears = [library.clear_controlling_thread for library in libraries[:1] if hasattr(library, "clear_controlling_thread")]
    for clear in clears:
        clear(force=True)
    for library, number in zip(libraries, threads, strict=True):
        library.set_num_threads(number)
    for clear in clears:
        clear(force=True)


class _Held:
    """How many threads of the process ask for one BLAS thread; where the setting is the process's, the last puts it back."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders = 0
        self._before: list[int] = []

    def take(self) -> None:
        """One thread more that wants BLAS on one thread."""
        with self._lock:
            if self._holders == 0:
                self._before = [library.num_threads for library in _blas().shared]
                _set(_blas().shared, [1] * len(self._before), self._before)
            self._holders += 1

    def release(self) -> None:
        """One less; the last one puts the old setting back."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                _set(_blas().shared, self._before, self._before)


_held = _Held()
_here = local()


@cache
def _openmp() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="openmp")


@contextmanager
def one_openmp_thread(rows: int) -> Iterator[None]:
    """A context in which scikit-learn's own loops use one thread if so few rows are better off with it.

    Threads of OpenMP wait for each other at full speed: where neighbours have the cores, sixty k-means of 300 rows took ten seconds
    instead of half a one.
    """
    if rows > FEW_ROWS:
        yield
        return
    with _openmp().limit(limits=1):
        yield


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which BLAS uses one thread. Nested, it does nothing."""
    if getattr(_here, "is_inside", False):
        yield
        return
    libraries = _blas().per_thread
    before = [library.num_threads for library in libraries]
    _held.take()
    _here.is_inside = True
    try:
        _set(libraries, [1] * len(before), before)
        yield
    finally:
        _set(libraries, before, before)
        _here.is_inside = False
        _held.release()
