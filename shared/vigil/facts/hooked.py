"""Facts that events of a hook tell without a model: which value of their JSON is which (F-9). Pure.

As a configuration has them: `ci = "one_of[success, failure] at /workflow_run/conclusion"`; with
`news to failure` behind that only such a change is news.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..errors import InvalidInput
from ..minds import mind_of
from ..subjects import Scope, SessionKey, token_of
from ..texts.pointer import at_pointer, parts_of
from .shown import HOOK, NamedSource
from .wanted import WantedFact, read_wanted, shapes_of_wanted


class FactHook(Protocol):
    """A hook, as far as facts go (`vigil.settings.sections.Hook`)."""

    @property
    def user(self) -> str: ...

    @property
    def agent(self) -> str: ...

    @property
    def thread(self) -> str: ...

    @property
    def facts(self) -> Mapping[str, str]: ...


def read_hooked(given: Mapping[str, str]) -> dict[str, WantedFact]:
    """Read the facts of a hook. Raises: InvalidInput.

    >>> read_hooked({"up": "yes_no at /status/up"})
    {'up': WantedFact(shape=YesNo(), where='/status/up', rule='')}
    """
    found = read_wanted(given)
    for name, one in found.items():
        if not one.where:
            reason = f"{given[name][:40]!r} must be SHAPE at /JSON/POINTER"
            raise InvalidInput(f"facts.{name[:40]}", reason)
        parts_of(one.where)
    return found


def values_in(facts: Mapping[str, WantedFact], text: str) -> dict[str, object]:
    """Return what an event says of them: only what it has.

    >>> values_in(read_hooked({"up": "yes_no at /up", "n": "count at /n"}), '{"up": true, "x": 1}')
    {'up': True}
    """
    found: dict[str, object] = {}
    for name, one in facts.items():
        try:
            value = at_pointer(text, one.where)
        except InvalidInput:
            continue
        if value is not None:
            found[name] = value
    return found


def hooks_for(hooks: Mapping[str, FactHook], whose: Scope) -> tuple[NamedSource, ...]:
    """Return the hooks of an owner and agent that tell facts."""
    return tuple(
        NamedSource(f"{HOOK}{name}", source_id(name, session), shapes)
        for name, hook in hooks.items()
        for session in [session_of_hook(hook.user, hook.agent, hook.thread)]
        if session.scope == whose and (shapes := shapes_of_wanted(read_hooked(hook.facts)))
    )


def session_of_hook(user: str, agent: str, thread: str) -> SessionKey:
    """Return whom a hook tells: a conversation, or the agent's mind."""
    return SessionKey.of(user, agent, thread) if thread else mind_of(Scope.of(agent, user))


def source_id(hook: str, session: SessionKey) -> str:
    """Return by which id the facts of a hook are kept: those of another session are others."""
    return token_of("hook", hook, str(session))
