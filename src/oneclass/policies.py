"""Which rows a watcher learns when nobody has said what they are. A policy is one small object with one method.

To add one, give it a `learns` and put it into `POLICIES`.
"""

from typing import Protocol

import numpy as np

from oneclass.errors import InvalidParameterError
from oneclass.types import Bools


class Policy(Protocol):
    """Decides over rows without a label; labelled rows are learnt (+1) or not (-1) whatever it says.

    Its answer for a row depends on that row's verdict alone: a policy that kept state would depend on how rows are cut into calls.
    """

    def learns(self, alarms: Bools) -> Bools:
        """Whether each row is to be learnt; `alarms` are their verdicts, all False while the watcher warms up."""
        ...


class All:
    """Everything is learnt: never locked in, but a burst of anomalies longer than the window becomes normal."""

    def learns(self, alarms: Bools) -> Bools:
        """Every row."""
        return np.ones(len(alarms), dtype=bool)


class Accepted:
    """Only rows that were no alarm are learnt: safe from anomalies, but locked in when the normal class moves away too fast."""

    def learns(self, alarms: Bools) -> Bools:
        """The rows without an alarm."""
        return ~alarms


class Labelled:
    """Only rows confirmed as normal are learnt: the protocol of the paper."""

    def learns(self, alarms: Bools) -> Bools:
        """No row without a label."""
        return np.zeros(len(alarms), dtype=bool)


POLICIES: dict[str, Policy] = {"auto": All(), "all": All(), "accepted": Accepted(), "labelled": Labelled()}
"""By name; "auto" is the one that measurement shows safest when nobody labels."""


def policy_for(learn: str | Policy) -> Policy:
    """The policy of that name, or the policy itself."""
    if isinstance(learn, str):
        if learn in POLICIES:
            return POLICIES[learn]
        raise InvalidParameterError(f"learn={learn!r}: choose one of {', '.join(map(repr, POLICIES))}, or an object with `learns`")
    if not callable(getattr(learn, "learns", None)):
        raise InvalidParameterError(f"learn={learn!r} is no policy: it has no method learns(alarms) -> mask")
    return learn
