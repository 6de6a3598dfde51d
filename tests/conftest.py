"""Hypothesis (the same examples every time in continuous integration, never against the clock) and the toolbox's outputs."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("desk", deadline=None, max_examples=30)
settings.register_profile("ci", deadline=None, max_examples=30, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "desk")


@pytest.fixture
def toolbox():
    """Reads the numbers of one file of the authors' MATLAB toolbox."""
    folder = os.environ.get("ONECLASS_REFERENCE")
    if not folder:
        pytest.skip("ONECLASS_REFERENCE is not set: it names the folder of the toolbox's outputs")
    return lambda name: np.loadtxt(Path(folder) / name, delimiter=",")
