"""Chat networks: the agents' accounts, how each is, and who is paired there."""

from __future__ import annotations

from typing import Any

from ....events.networks import NetworkAccountList
from ...second_thoughts import Confirmation
from ...visit import Visit
from . import paired


async def show(visit: Visit) -> dict[str, Any]:
    found = await visit.api.get(NetworkAccountList, "/api/networks")
    return {
        "accounts": found.accounts,
        "made": None,
        "tried": paired.tried(visit),
    }


async def ask(visit: Visit) -> Confirmation | None:
    """Ask before an address is given up."""
    return paired.second_thought(visit)


async def act(visit: Visit) -> str | dict[str, Any]:
    """Make a code, give an address up, or send a test. Raises: Problem."""
    return await paired.done(visit, "/networks")
