"""How many of what people have elsewhere can't be read, as a warning: who asks whether Vigil is
ready is nobody in particular, so which of them it is, and why, is told elsewhere, to its owner."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Protocol


class WithWarnings(Protocol):
    """A replica."""

    @property
    def facts(self) -> dict[str, Any]: ...

    @property
    def warnings(self) -> dict[str, str]: ...


def count_failing(replica: WithWarnings, fact: str, kind: str, configured: Collection[str]) -> None:
    """Warn of those whose state in a fact has a problem, or no more.

    Args:
        fact: holds their states, by name; it's also what the warning is called.
        kind: what several are called.
    """
    states: Mapping[str, Mapping[str, Any]] = replica.facts.get(fact, {})
    if count := sum(bool(one["problem"]) for one in states.values()):
        replica.warnings[fact] = f"{kind} fail: {count} of {len(configured)}"
    else:
        replica.warnings.pop(fact, None)
