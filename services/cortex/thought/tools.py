"""The tools of a conversation as the model sees them, from the types that check their input."""

from __future__ import annotations

import functools
from datetime import datetime
from typing import Annotated, Any, Final

import msgspec

from vigil.contracts import ToolService
from vigil.memory.tools import TOOLS as MEMORY_TOOLS

from ..profiles import starters
from .model import ToolSpec

TimerId = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class ScheduleFollowup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Come back to the person later.

    Give delay_seconds or fire_at. With `message`, exactly that text is sent; without it you are
    asked again then, and may stay silent. Set keep to true only for a reminder that the person
    explicitly asked for: it survives their next message. Everything else is dropped as soon as
    they write. The same timer_id replaces the earlier one.
    """

    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
    timer_id: TimerId | None = None
    delay_seconds: Annotated[float, msgspec.Meta(ge=-3_155_760_000, le=3_155_760_000)] | None = None
    fire_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    message: Annotated[str, msgspec.Meta(min_length=1, max_length=16000)] | None = None
    keep: bool = False


class CancelFollowup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cancel an open follow-up or reminder by its timer_id."""

    timer_id: TimerId


class SendMessage(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Say something to the person now, before your answer is finished.

    Your final answer is sent by itself; use this only for an additional message.
    """

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=16000)]
    channel: Annotated[str, msgspec.Meta(max_length=64)] | None = None


class AskUser(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Ask the person a question that you can't go on without.

    In a conversation their next message is the answer. Ask once, with all that they need to know.
    """

    question: Annotated[str, msgspec.Meta(min_length=1, max_length=8000)]


TOOLS: Final[dict[str, type[msgspec.Struct]]] = {
    "schedule_followup": ScheduleFollowup,
    "cancel_followup": CancelFollowup,
    "send_message": SendMessage,
}
"""Those that the core answers by itself."""
ASKING: Final[dict[str, type[msgspec.Struct]]] = {"ask_user": AskUser}
"""Those that a person answers."""
SERVED: Final[dict[str, ToolService]] = dict.fromkeys(MEMORY_TOOLS, "memory")
"""Those that another service runs, and which."""


@functools.cache
def arguments() -> dict[str, type[msgspec.Struct]]:
    """Return what each tool takes, but for those of the executor."""
    starting = {name: p.starter.arguments for name, p in starters().items() if p.starter}
    return {**TOOLS, **MEMORY_TOOLS, **ASKING, **starting}


def _schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([kind])
    schema: dict[str, Any] = dict(components[kind.__name__])
    schema.pop("description", None)
    schema.pop("title", None)
    return schema


@functools.cache
def specs() -> tuple[ToolSpec, ...]:
    """Return those tools as the model sees them."""
    return tuple(
        ToolSpec(
            name=name,
            description=" ".join((kind.__doc__ or "").split()),
            input_schema=_schema(kind),
        )
        for name, kind in arguments().items()
    )


def reflection_specs() -> tuple[ToolSpec, ...]:
    """Return what a model may call that sums up or looks back: nobody is there to whom it could
    speak."""
    return tuple(spec for spec in specs() if spec.name == "memory_save")
