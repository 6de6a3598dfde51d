"""BLAS on one thread where two are slower.

The matrices of a window of a few hundred rows are done before a second thread has woken up; on a busy machine waiting for it made
the update 75 times slower. Above `ONE_THREAD_UP_TO` rows the threads are left as they are.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock, local

from threadpoolctl import ThreadpoolController

ONE_THREAD_UP_TO = 512


@cache
def _blas() -> ThreadpoolController:
    # Made once: looking through the libraries of the process takes milliseconds, setting their threads microseconds.
    controller: ThreadpoolController = ThreadpoolController().select(user_api="blas")
    return controller


class _Held:
    """How many threads of the process ask for one BLAS thread; the setting belongs to the process, so the last puts it back."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders = 0
        self._before: list[int] = []

    def take(self) -> None:
        """One thread more that wants BLAS on one thread."""
        with self._lock:
            if self._holders == 0:
                self._before = [library.num_threads for library in _blas().lib_controllers]
                self._set([1] * len(self._before))
            self._holders += 1

    def release(self) -> None:
        """One less; the last one puts the old setting back."""
        with self._lock:
            self._holders -= 1
            if self._holders == 0:
                self._set(self._before)

    def _set(self, threads: list[int]) -> None:
        for library, number, before in zip(_blas().lib_controllers, threads, self._before, strict=True):
            if before != 1:
                library.set_num_threads(number)


_held = _Held()
_here = local()


@contextmanager
def one_blas_thread(window: int) -> Iterator[None]:
    """A context in which BLAS uses one thread if a window of so many rows is better off with it. Nested, it does nothing."""
    if window > ONE_THREAD_UP_TO or getattr(_here, "is_inside", False):
        yield
        return
    _held.take()
    _here.is_inside = True
    try:
        yield
    finally:
        _here.is_inside = False
        _held.release()
