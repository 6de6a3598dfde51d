"""BLAS on one thread where two are slower.

The matrices of a window of a few hundred rows are done before a second thread has woken up; on a busy machine waiting for it made
the update 75 times slower. Above `ONE_THREAD_UP_TO` rows the threads are left as they are.
"""

from contextlib import AbstractContextManager, nullcontext
from functools import cache

from threadpoolctl import ThreadpoolController

ONE_THREAD_UP_TO = 512


@cache
def _blas() -> ThreadpoolController:
    # Made once: looking through the libraries of the process takes milliseconds, setting their threads microseconds.
    controller: ThreadpoolController = ThreadpoolController().select(user_api="blas")
    return controller


def one_blas_thread(window: int) -> AbstractContextManager[object]:
    """A context in which BLAS uses one thread if a window of so many rows is better off with it."""
    if window > ONE_THREAD_UP_TO or all(library.num_threads == 1 for library in _blas().lib_controllers):
        return nullcontext()
    limited: AbstractContextManager[object] = _blas().limit(limits=1)
    return limited
