"""The kinds of sessions, by name: a `Profile` in a module of `cortex.profiles` each. Pure.

That folder is the registry, with the one in it of kinds that are asked one thing: a module that is
put there is a kind. What sessions of it are called for people stands in
`vigil.contracts.session_kinds`, which the gateway reads, too.
"""

from __future__ import annotations

import functools
from itertools import chain
from types import ModuleType
from typing import TYPE_CHECKING, Final

import msgspec

from vigil.registry import modules_of

if TYPE_CHECKING:
    from .profile import Profile

PROFILES: Final = ("services.cortex.profiles", "services.cortex.profiles.questions")

ANSWER = "answer"
"""The purpose of a session's own loops, whatever its kind."""


@functools.cache
def registered() -> dict[str, Profile]:
    """Return every profile by its name.

    Raises:
        ValueError: two modules claim one name, or one mark of their loops.
    """
    from .profile import Profile  # which asks for these

    found: dict[str, Profile] = {}
    modules = sorted(chain.from_iterable(map(modules_of, PROFILES)), key=_name_of)
    for module in modules:
        for profile in vars(module).values():
            if isinstance(profile, Profile):
                marks = {other.purpose for other in found.values()} - {ANSWER}
                if profile.name in found or profile.purpose in marks:
                    raise ValueError(f"{module.__name__}: the name or the purpose is taken")
                found[profile.name] = profile
    return found


def _name_of(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


def profile_of(kind: str) -> Profile:
    """Return the profile of a kind (`SessionKey.kind`); an unknown one may do nothing.

    >>> profile_of("worker").calls_max, profile_of("nonsense").tools
    (50, ())
    """
    found = registered().get(kind)
    if found is not None:
        return found
    worker = registered()["worker"]
    return msgspec.structs.replace(
        worker, name=kind, tools=(), calls_max=1, timeout_s=0.0, tier="main", starter=None
    )


def has_purpose(purpose: str) -> bool:
    """Whether loops with that mark are known.

    >>> has_purpose("save"), has_purpose("levitate")
    (True, False)
    """
    return any(profile.purpose == purpose for profile in registered().values())


def thinking(profile: Profile, purpose: str) -> Profile:
    """Return who thinks in a loop of such a session: the kind itself, or what it opens beside.

    >>> thinking(profile_of("worker"), "answer").name, thinking(profile_of("channel"), "save").name
    ('worker', 'look_back')
    """
    if profile.purpose == purpose:
        return profile
    return next(other for other in registered().values() if other.purpose == purpose)


@functools.cache
def starters() -> dict[str, Profile]:
    """Return the kinds that a model may start, by the tool that does it.

    >>> {tool: profile.name for tool, profile in starters().items()}
    {'branch': 'branch', 'research': 'reader', 'spawn_worker': 'worker'}
    """
    return {p.starter.name: p for p in registered().values() if p.starter is not None}
