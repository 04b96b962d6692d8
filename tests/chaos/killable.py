"""A broker in this process, and services as processes of their own that end where a plan says."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from tests.chaos.arena import ENVIRONMENT
from tests.chaos.processes import Processes, Step
from tests.support.stack import Stack, running_broker, settings_of

Plan = Mapping[str, Sequence[str]]
"""The crash points at which each service ends, one after the other; of one without, none."""
NO_SANDBOX: Final = {"VIGIL_EXECUTOR__SANDBOX": "off"}


def steps_of(plan: Plan, passages: Mapping[str, int] | None = None) -> dict[str, list[Step]]:
    """Return a plan as steps: each at the first passage of its point, or as said."""
    at = passages or {}
    return {
        service: [Step(point=point, passage=at.get(point, 1)) for point in points]
        for service, points in plan.items()
    }


@asynccontextmanager
async def killable(
    home: Path, steps: Mapping[str, Sequence[Step]], settings: Mapping[str, str]
) -> AsyncIterator[tuple[Stack, Processes]]:
    """Start a broker, which comes back when it's killed, and a process for each service.

    Args:
        settings: variables beside those of all such tests.
    """
    async with running_broker(home) as broker:
        broker.watch()
        stack = Stack(broker, settings_of(home))
        processes = Processes(home, ENVIRONMENT | settings | {"NATS_URL": broker.url})
        try:
            for service, points in steps.items():
                processes.start(service, points)
            yield stack, processes
        finally:
            await processes.stop()
            await stack.close()


def assert_each_was_killed(processes: Processes, plan: Plan) -> None:
    """Check that the services ended at all points of the plan, and told of no error."""
    passed = Counter(
        exit_.crash_at.partition(":")[0] for exit_ in processes.exits if exit_.is_crash
    )
    assert passed == Counter(point for points in plan.values() for point in points)
    assert not [fault for fault in processes.faults() if "Traceback" in fault]
