"""What all records share: their base, their version, and a few limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, Literal

import msgspec

Instant = Annotated[datetime, msgspec.Meta(tz=True)]
NEVER: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When something was changed that never was."""
SET_BACK_MIN: Final = timedelta(minutes=1)
"""A clock that goes back by less was set right: what was due meanwhile was decided."""
TIMER_ID_LENGTH_MAX: Final = 128
TEXT_BYTES_MAX: Final = 64 * 1024
TURN_BYTES_MAX: Final = 512 * 1024
"""A turn is one message; larger content belongs in an object store (ARCHITECTURE 2)."""
DEAD_LETTER_BYTES_MAX: Final = 512 * 1024
"""More of a message isn't kept: in base64 it would exceed the broker's limit of 1 MiB."""

EventType = Literal["user_message", "timer", "tool_result", "tick", "external", "control", "told"]
SOCKET: Final = "socket"
"""The channel that is always there: the transcript itself, followed by WebSockets."""
AGENT_FOLLOW_UP: Final = "Agent follow-up"
"""The tag of a message that a timer caused (SPEC S-9)."""


def _one() -> int:
    return 1


def _two() -> int:
    return 2


VERSION_1: Any = msgspec.field(default_factory=_one)
"""A default that `omit_defaults` doesn't omit: the version is always written out."""
VERSION_2: Any = msgspec.field(default_factory=_two)


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Base of what is stored."""
