"""Who may read and act for an owner: a person for themselves, members for their team. Pure.

An owner is the user in a session key, in a place of the board, in a scope of memory. An agent is
either everybody's, each person owning what it does for them, or that of one team, which owns all
that it does; then the owner is :data:`TEAM`, which no person can be called.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from .errors import InvalidInput
from .subjects import Scope, check_part

TEAM: Final = "team"
"""The owner of what a team's agent does and knows; no user has this name."""
DEFAULT_AGENT: Final = "vigil"
"""The agent of who names none."""
Teams = Mapping[str, tuple[str, ...]]
"""The members of the team behind an agent, for agents that have one (`Config.teams`)."""


def may_act(user: str, owner: str, agent: str, teams: Teams) -> bool:
    """Return whether `user` may read and act for `owner` with that agent; admins aside.

    The one rule: HTTP, WebSocket, MCP, the bus, channels and verdicts ask it, and nothing else
    decides.

    >>> teams = {"desk": ("ann", "ben")}
    >>> may_act("ann", "ann", "vigil", teams), may_act("ann", "team", "desk", teams)
    (True, True)
    >>> may_act("eve", "team", "desk", teams), may_act("eve", "eve", "desk", teams)
    (False, False)
    """
    if agent in teams:
        return owner == TEAM and user in teams[agent]
    return owner == user


def owner_of(user: str, agent: str, teams: Teams) -> str:
    """Return who owns what the agent does for `user`, who need not be a member.

    >>> owner_of("ann", "desk", {"desk": ("ann",)}), owner_of("ann", "vigil", {"desk": ("ann",)})
    ('team', 'ann')
    """
    return TEAM if agent in teams else user


def holding(owner: str, agent: str) -> Scope:
    """Return among which an owner's things are counted and named: a team's, of its agent.

    >>> holding("ann", "vigil"), holding("team", "desk")
    (Scope(agent='*', owner='ann'), Scope(agent='desk', owner='team'))
    """
    return Scope(agent if owner == TEAM else "*", owner)


def reach_of(user: str, teams: Teams) -> tuple[Scope, ...]:
    """Return whose things are `user`'s to read: their own, and those of their teams.

    >>> reach_of("ann", {"desk": ("ann", "ben"), "den": ("ben",)})
    (Scope(agent='*', owner='ann'), Scope(agent='desk', owner='team'))
    """
    own = Scope("*", user)
    return own, *(Scope(agent, TEAM) for agent, members in teams.items() if user in members)


def check_user(value: object) -> str:
    """Return `value` if a person may have that name.

    Raises:
        InvalidInput: it can't be a part of a session key, or it's `TEAM`.
    """
    name = check_part("user", value)
    if name == TEAM:
        raise InvalidInput("user", f"{TEAM!r} owns what a team's agent does")
    return name
