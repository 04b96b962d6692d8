"""Which agents somebody may mean: those of this home, and those that they have something with.

Whoever talks with a name makes an agent of it. Where something is to be done to one, or is told to
one by a program, a name that no agent has is a mistake: it would be done to nobody, and be told as
done; and what is told would make an agent that thinks about it, and that nobody knows.
"""

from __future__ import annotations

import asyncio

from vigil.errors import InvalidInput
from vigil.local.identity_files import agents_there, naming
from vigil.past import places
from vigil.settings.tokens import Principal
from vigil.subjects import Scope, board_of, check_part
from vigil.teams import DEFAULT_AGENT
from vigil.words.nearest import meant

from .state.edge import Edge


async def check_agent(edge: Edge, caller: Principal, agent: str, field: str = "agentId") -> str:
    """Return the name of an agent that there is; of a configured one, without asking the broker.

    Args:
        field: names the agent in the request.

    Raises:
        InvalidInput: nobody can be called so, or nobody is: with the nearest that there is.
        Unavailable: the broker can't tell.
    """
    check_part(field, agent)
    if agent == DEFAULT_AGENT or agent in edge.context.settings.config.agents:
        return agent
    configured = await asyncio.to_thread(_configured, edge, caller)
    if agent in configured or await _has_past(edge, caller, agent):
        return agent
    talked = [await edge.recency.of(whose) for whose in caller.reach]
    known = configured.union(key.split(":")[1] for keys in talked for key in keys)
    wanted = f"must be one that there is, and none is called {agent}"
    theirs = sorted(one for one in known if caller.may_reach(caller.owner_of(one), one))
    raise InvalidInput(field, wanted + meant(agent, theirs))


def _configured(edge: Edge, caller: Principal) -> set[str]:
    """Return the agents of this home, and those that a section names which is the caller's or
    nobody's: a channel, a hook."""
    settings = edge.context.settings
    named = {
        one.agent
        for _, one in naming(settings.config)
        if caller.is_admin or getattr(one, "user", "") in ("", caller.user)
    }
    return {*agents_there(settings), *named}


async def _has_past(edge: Edge, caller: Principal, agent: str) -> bool:
    """Whether something of an agent's is there that the caller may reach: what somebody said to it,
    or what it remembers or has to do."""
    bus = edge.bus
    for one in caller.reach:
        if one.agent not in ("*", agent):
            continue
        whose = Scope(agent, one.owner)
        logs = (await bus.layout()).streams("SESSIONS")
        asked = [(log, places.by_person(whose)) for log in logs]
        asked += [("BOARD", board_of(whose)), ("MEMORIES", whose.everything)]
        found = await asyncio.gather(*(bus.get_next(log, where, 1) for log, where in asked))
        if any(message is not None for message in found):
            return True
    return False
