"""The leave-one-out threshold flags the share of fresh normal rows that was asked for; the paper's flags more, up to all."""

import sys
from functools import cache
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from oneclass import KernelBoundary, KernelReconstruction

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))
alarm_rate = import_module("alarm_rate")

measured = cache(alarm_rate.measure)
every_d = pytest.mark.parametrize("features", alarm_rate.EVERY_D)
each_ridge = pytest.mark.parametrize("C", alarm_rate.EVERY_C)
DRAWS = 100
both_models = pytest.mark.parametrize(
    "kind", [KernelBoundary, pytest.param(KernelReconstruction, marks=pytest.mark.slow)], ids=lambda kind: kind.__name__
)


@both_models
@every_d
@each_ridge
def test_leave_one_out_keeps_the_alarm_rate(kind: type, features: int, C: float) -> None:
    """Of fresh normal rows 3.5 to 5.5 % are flagged when 5 % was asked for, from 150 rows, in the mean of 100 draws."""
    assert 0.035 <= measured(kind, features, C, DRAWS).flagged["leave-one-out"] <= 0.055


@both_models
@every_d
@each_ridge
def test_the_training_threshold_flags_more_than_was_asked_for(kind: type, features: int, C: float) -> None:
    """The paper's threshold, set by rows the model has learnt, flags at least 6 % where 5 % was asked for."""
    assert measured(kind, features, C, DRAWS).flagged["training"] > 0.06


@both_models
@every_d
@each_ridge
def test_p_values_are_uniform_at_their_levels(kind: type, features: int, C: float) -> None:
    """A share of about k/(n+1) of fresh normal rows has a p-value up to k/(n+1): to `alarm_rate.tolerance`."""
    excess = measured(kind, features, C, DRAWS).excess
    assert (np.abs(excess) <= alarm_rate.tolerance(DRAWS)).all(), excess
