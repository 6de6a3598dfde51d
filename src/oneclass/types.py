"""The shapes of data that the rooms of oneclass hand to each other."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.random import RandomState
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]
Seed: TypeAlias = int | RandomState | None
"""A `random_state` of scikit-learn."""

KernelFunction: TypeAlias = Callable[[Floats, Floats], Floats]
"""A user's kernel: (m, d) rows and (n, d) rows to the (m, n) matrix of their similarities."""
