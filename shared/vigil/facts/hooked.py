"""Facts that events of a hook tell without a model: which value of their JSON is which (F-9). Pure.

As a configuration has them: `ci = "one_of[success, failure] at /workflow_run/conclusion"`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from ..contracts.board import FactShape
from ..errors import InvalidInput
from ..minds import mind_of
from ..subjects import Scope, SessionKey, token_of
from ..texts.pointer import at_pointer, parts_of
from .shape import check_shapes, read_shape


class HookedFact(NamedTuple):
    """A fact of a hook."""

    shape: FactShape
    pointer: str
    """To its value in an event's JSON, by RFC 6901."""


def read_hooked(given: Mapping[str, str]) -> dict[str, HookedFact]:
    """Read the facts of a hook. Raises: InvalidInput.

    >>> read_hooked({"up": "yes_no at /status/up"})
    {'up': HookedFact(shape=YesNo(), pointer='/status/up')}
    """
    found: dict[str, HookedFact] = {}
    for name, text in given.items():
        shape, is_parted, pointer = text.rpartition(" at ")
        pointer = pointer.strip()
        if not is_parted or not pointer:
            reason = f"{text[:40]!r} must be SHAPE at /JSON/POINTER"
            raise InvalidInput(f"facts.{name[:40]}", reason)
        parts_of(pointer)
        found[name] = HookedFact(read_shape(name, shape), pointer)
    check_shapes(shapes_of_hooked(found))
    return found


def shapes_of_hooked(facts: Mapping[str, HookedFact]) -> dict[str, FactShape]:
    return {name: one.shape for name, one in facts.items()}


def told_by(facts: Mapping[str, HookedFact], text: str) -> dict[str, object]:
    """Return what an event says of them: only what it has.

    >>> told_by(read_hooked({"up": "yes_no at /up", "n": "count at /n"}), '{"up": true, "x": 1}')
    {'up': True}
    """
    found: dict[str, object] = {}
    for name, one in facts.items():
        try:
            value = at_pointer(text, one.pointer)
        except InvalidInput:
            continue
        if value is not None:
            found[name] = value
    return found


def session_of_hook(user: str, agent: str, thread: str) -> SessionKey:
    """Return whom a hook tells: a conversation, or the agent's mind."""
    return SessionKey.of(user, agent, thread) if thread else mind_of(Scope.of(agent, user))


def source_id(hook: str, session: SessionKey) -> str:
    """Return by which id the facts of a hook are kept: those of another session are others."""
    return token_of("hook", hook, str(session))
