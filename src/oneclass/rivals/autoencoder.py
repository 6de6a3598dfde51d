"""The rival that squeezes each row through a few hidden nodes, and looks at what is lost."""

import warnings
from typing import Literal

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPRegressor
from sklearn.utils import check_random_state

from oneclass.rivals.rival import Rival
from oneclass.sliding import levels_to_the_caller
from oneclass.tuning import scale_of
from oneclass.types import Floats, Seed
from oneclass.validation import checked_number, checked_whole


class AutoEncoder(Rival):
    """A network of one hidden layer that returns each row; d(x) = ||x - x̂||². autoenc_dd of dd_tools.

    Source: Japkowicz, Myers, Gluck 1995.

    tanh nodes, linear output, least squares with a small weight decay, minimised by scikit-learn's L-BFGS from a random start. Rows
    are centred and divided by their standard deviations (`scale_`) first, and d is measured there. `hidden` None: 5, as in
    dd_tools, but no more than half of the features, for otherwise the network may return anything as it is. ConvergenceWarning
    where `steps` steps are not enough. Costs about 12 n d h flops a step to fit, 4 d h a row to score.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-1.0, 1.0, size=200)
    >>> model = AutoEncoder(hidden=4).fit(np.column_stack([x, x**2]) + 0.01 * rng.normal(size=(200, 2)))
    >>> model.predict([[0.5, 0.25], [0.0, 1.0]])
    array([ 1, -1])
    """

    def __init__(
        self,
        *,
        hidden: int | None = None,
        decay: float = 1e-4,
        steps: int = 2000,
        alarm_rate: float = 0.05,
        threshold: Literal["training", "held-out"] = "held-out",
        random_state: Seed = 0,
    ) -> None:
        self.hidden = hidden
        self.decay = decay
        self.steps = steps
        self.alarm_rate = alarm_rate
        self.threshold = threshold
        self.random_state = random_state

    def _learn(self, rows: Floats) -> Floats:
        d = rows.shape[1]
        hidden = max(1, min(5, d // 2)) if self.hidden is None else checked_whole("hidden", self.hidden, at_least=1, hint="nodes")
        steps = checked_whole("steps", self.steps, at_least=1, hint="of L-BFGS")
        decay = checked_number("decay", self.decay, takes_zero=True, hint="0 or more")
        self.location_, self.scale_ = rows.mean(axis=0), scale_of(rows)
        scaled = self._scaled(rows)
        network = MLPRegressor(
            hidden_layer_sizes=(hidden,),
            activation="tanh",
            solver="lbfgs",
            alpha=decay,
            max_iter=steps,
            max_fun=20 * steps,
            random_state=check_random_state(self.random_state),
        )
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", ConvergenceWarning)  # said below, in the words of this class
            self._network = network.fit(scaled, scaled.ravel() if d == 1 else scaled)
        if said:
            warnings.warn(
                f"the network had not settled after {network.n_iter_} of {steps} steps: raise steps, or decay={decay:g}",
                ConvergenceWarning,
                stacklevel=levels_to_the_caller(),
            )
        return self._distances(rows)

    def _distances(self, rows: Floats) -> Floats:
        scaled = self._scaled(rows)
        lost: Floats = scaled - self._network.predict(scaled).reshape(scaled.shape)
        return np.asarray(np.vecdot(lost, lost))

    def _scaled(self, rows: Floats) -> Floats:
        scaled: Floats = (rows - self.location_) / self.scale_
        return scaled
