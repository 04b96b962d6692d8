"""What the subject and the headers of a turn tell of it, without it being read. Pure."""

from __future__ import annotations

from typing import Final

from vigil.contracts import ORDINAL_HEADER, OWES_HEADER, POSITION_HEADER, CallTool, Turn
from vigil.observe import trace

from ..core import owes

_CARRIED: Final = {
    "s": {"send_message"},
    "t": {"schedule_timer", "cancel_timer"},
    "m": {"save_memory"},
    "x": {
        "spawn_session",
        "cancel_call",
        "tell_parent",
        "tell_person",
        "send_verdict",
        "raise_budget",
        "board_change",
    },
}
"""Letter of a service -> the effects that it carries out; calls go by their service."""
_LETTERS: Final = {kind: letter for letter, kinds in _CARRIED.items() for kind in kinds}
_SERVED: Final = {"memory": "m", "executor": "x"}


def headers_of(turn: Turn, traceparent: str) -> dict[str, str]:
    """Headers that let others find a turn's position without reading it."""
    headers = {
        POSITION_HEADER: str(turn.state.position),
        ORDINAL_HEADER: str(turn.ordinal),
        trace.HEADER: traceparent,
    }
    if owes(turn.state):
        headers[OWES_HEADER] = "1"
    return headers


def letters_of(turn: Turn) -> str:
    """Return the letters of those who have something to do for the turn."""
    letters = {
        _SERVED[effect.payload.service]
        if isinstance(effect, CallTool)
        else _LETTERS[str(effect.__struct_config__.tag)]
        for effect in turn.effects
    }
    return "".join([letter for letter in _CARRIED if letter in letters])
