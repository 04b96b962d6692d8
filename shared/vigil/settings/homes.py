"""Where who is behind a session is told what belongs to no conversation (LOOPS L-11, L-17)."""

from __future__ import annotations

from msgspec.structs import replace

from ..subjects import SessionKey
from ..teams import DEFAULT_AGENT, TEAM
from .config import Config


def homes_of(config: Config, key: SessionKey) -> tuple[SessionKey, ...]:
    """Return the home of a session's person; of a team's, where its members are told: each at home
    with the agent that is their own, or all at the team's if they have none.

    >>> from vigil.settings.sections import Agent
    >>> desk = Agent(kind="team", members=("ann", "ben"))
    >>> key = SessionKey("team", "desk", "_planner-1f")
    >>> [str(home) for home in homes_of(Config(agents={"desk": desk}), key)]
    ['ann:vigil:main', 'ben:vigil:main']
    >>> str(homes_of(Config(), SessionKey("ann", "vigil", "t1"))[0])
    'ann:vigil:main'
    """
    if key.user != TEAM or DEFAULT_AGENT in config.teams:
        return (replace(key, thread=config.person_of(key.user).home_thread),)
    return tuple(
        SessionKey(member, DEFAULT_AGENT, config.person_of(member).home_thread)
        for member in config.teams.get(key.agent, ())
    )
