"""Remember something."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from ...contracts import Instant, MemoryType, Relation, Stability
from ...errors import InvalidInput
from ...fields.bodies import IdempotencyKey
from ..answer_text import AnswerText
from ..operation import McpTool, Operation, Route, outside, tool
from ..questions import Content, Id, Name, Named, Question, Reply, Unit, described
from ..view import Pick, picked

MCP_SOURCE: Final = "mcp"
"""The source of what an MCP client saves, unless it names one."""


class Link(Question, frozen=True, kw_only=True):
    """An association to make with a memory that is saved."""

    to_id: Id
    relation: Relation = "related_to"
    weight: Unit = 0.5


class Save(Question, frozen=True, kw_only=True):
    """Remember something. With a `key`, a repeat is the same memory."""

    content: Annotated[Content, described("One or two self-contained sentences; at most 16 KiB.")]
    by: str
    """Stamped by the service that asks: ``user:{name}``, ``session:{key}``."""
    type: Annotated[MemoryType, described("What kind of memory it is.")] = "fact"
    importance: Annotated[
        Unit | None, described("0 to 1. Leave it out for the type's usual importance.")
    ] = None
    source: Annotated[
        Name, described("Where it comes from; a source can be undone as a whole.")
    ] = "api"
    stability: Annotated[
        Stability,
        described("volatile: a passing note, which may be merged after a week."),
    ] = "stable"
    thread: Annotated[Name, described("The conversation that it is part of.")] = ""
    """Those of one, in the order of `occurred_at`, are neighbours, and help to find one another."""
    occurred_at: Annotated[
        Instant | None,
        described("When it happened (RFC 3339, with a zone). Leave it out for now."),
    ] = None
    expires_at: Annotated[Instant | None, described("When it is forgotten by itself.")] = None
    valid_from: Annotated[
        Instant | None, described("From when on what it says holds. Leave it out for ever.")
    ] = None
    valid_to: Annotated[
        Instant | None, described("Until when what it says holds. Leave it out for ever.")
    ] = None
    provenance: Annotated[tuple[Name, ...], msgspec.Meta(max_length=100)] = ()
    is_tainted: Annotated[
        bool, described("Somebody else wrote it: whoever reads it is asked before they act on it.")
    ] = False
    links: Annotated[
        tuple[Link, ...], msgspec.Meta(max_length=100), described("Associations to make with it.")
    ] = ()
    key: Annotated[Name, described("A name of yours for it: repeating it saves nothing new.")] = ""


class Saved(Reply, frozen=True, kw_only=True):
    """It's stored, and the next recall finds it. `seq` is its place in MEMORIES."""

    id: str
    seq: int
    is_repeat: bool = False
    """That key was used before: this is the memory that it made."""


def check(save: Save) -> None:
    """Refuse a span that ends before it begins. Raises: InvalidInput."""
    if save.valid_from and save.valid_to and save.valid_to < save.valid_from:
        raise InvalidInput("valid_to", "is before valid_from")


def in_words(saved: Saved) -> AnswerText:
    return AnswerText(content=f"Remembered (id {saved.id}).")


@tool(Save, picked("content", "type", "importance"), aims={"type": "detail"})
def memory_save(by: str, **given: Any) -> Save:
    """Remember something for good, so that you know it in every later conversation.

    Write one self-contained sentence or two: who, what, when, with names and dates instead of
    "he" and "tomorrow". Save what will matter later, not small talk, and not what is saved already.
    """
    return Save(by=by, **given)


@tool(Save, picked(text=Pick(field="content")))
def remember(by: str, **given: Any) -> Save:
    """Note a fact, in a sentence."""
    return Save(by=by, **given)


_thread: Final = Pick(kind=Named | None, default=None)
OPERATION: Final = Operation(
    name="save",
    question=Save,
    reply=Saved,
    check=check,
    describe=in_words,
    route=Route(
        name="save_memory",
        text="Remember something. It's stored when this answers, and the next recall finds it.",
        method="POST",
        path="/api/memories",
        status=201,
        errors=(409,),
        picks=outside(Save)
        | {
            # Measured in bytes there, and refused as too large.
            "content": Pick(kind=str),
            "source": Pick(kind=Named),
            "thread": _thread,
            "key": Pick(kind=IdempotencyKey | None, default=None),
            # What a person saves is theirs, unless they say that it isn't.
            "is_tainted": Pick(),
        },
    ),
    mcp=McpTool(
        name="memory_save",
        title="Remember",
        text=(
            "Remember something for good, so that it is known in every later conversation. Not for "
            "small talk, and not for what is remembered already: recall first if you aren't sure."
        ),
        picks=picked(
            "type",
            "importance",
            "occurred_at",
            "stability",
            content=Pick(kind=Annotated[str, msgspec.Meta(min_length=1)]),
            source=Pick(kind=Named, default=MCP_SOURCE),
            thread=_thread,
        ),
    ),
)
