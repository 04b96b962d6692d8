"""The circuits that a stack's services stored."""

from __future__ import annotations

from tests.support.stack import Stack
from vigil.circuits import each
from vigil.contracts import Circuit
from vigil.subjects import ANYBODY


async def circuits_of(stack: Stack) -> list[Circuit]:
    """Return the circuits that ever opened, in the order of their newest change."""
    return [one async for one in each(await stack.bus("admin"), (ANYBODY,))]
