"""How far an installation is after a start: cold, warming, warm, degraded (SPEC C-3). Pure.

    cold       no memory answers
    warming    it reads its log, or makes vectors
    warm       recall is whole
    degraded   recall goes by full text alone, and nothing of that is about to change

Who writes is served in each of them, and a session that begins before is counted as begun cold;
what begins unasked waits until it's warm, or degraded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final, Literal

from .health import Health

Warmth = Literal["cold", "warming", "warm", "degraded"]
COLD: Final = "memory does not answer: nothing is recalled, and nobody can save"
"""What is told of that."""
FACT: Final = "warmth"
"""Of the health of a replica of memory."""
OWED: Final = "bulletins_owed"
"""Of the health of the active scheduler: people whose first bulletin isn't written yet."""
Lacked = Literal["memory", "bulletin"]
COLD_SESSIONS: Final = "cold_sessions"
"""Of the health of a cortex: how many sessions began cold there, by what they lacked."""
_BEST_FIRST: Final[tuple[Warmth, ...]] = ("warm", "degraded", "warming")


def of(replicas: Iterable[Health]) -> Warmth:
    """Return how far they are: as the replica that is furthest.

    >>> one = Health(service="memory", instance="", pid=1, version="", ready=False)
    >>> of([]), of([one])
    ('cold', 'warming')
    """
    found = {one.facts.get(FACT, "warming") for one in replicas if one.service == "memory"}
    return next((one for one in _BEST_FIRST if one in found), "cold")


def cold_sessions(replicas: Iterable[Health]) -> dict[Lacked, int]:
    """Return how many sessions those that answer began cold, each since its start.

    >>> here = Health(
    ...     service="cortex", instance="", pid=1, version="", ready=True,
    ...     facts={COLD_SESSIONS: {"memory": 2}},
    ... )
    >>> cold_sessions([here, here])
    {'memory': 4}
    """
    found: Counter[Lacked] = Counter()
    for one in replicas:
        found.update(one.facts.get(COLD_SESSIONS, {}))
    return dict(found)


def owed(replicas: Iterable[Health]) -> int:
    """Return of how many people the first bulletin is still to be written.

    >>> here = Health(service="scheduler", instance="", pid=1, version="", ready=True)
    >>> owed([here])
    0
    """
    return max((one.facts.get(OWED, 0) for one in replicas), default=0)
