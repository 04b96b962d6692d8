"""The memory tools that a model sees (SPEC M-8): their arguments, as types. Pure.

The cortex shows the schemas; the memory service checks the arguments against the same types and
serves the calls. Nothing here lets a model choose a source, an owner or whether to be trusted.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from ..contracts import MemoryType
from ..contracts.arguments import Arguments
from .questions import CONTENT_BYTES_MAX, Sort, Unit

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=CONTENT_BYTES_MAX)]
QueryText = Annotated[str, msgspec.Meta(min_length=1, max_length=2000)]
Few = Annotated[int, msgspec.Meta(ge=1, le=50)]


class MemorySave(Arguments, frozen=True, kw_only=True):
    """Remember something for good, so that you know it in every later conversation.

    Write one self-contained sentence or two: who, what, when, with names and dates instead of
    "he" and "tomorrow". Save what will matter later, not small talk, and not what is saved already.
    """

    content: Text
    type: MemoryType = "fact"
    importance: Unit | None = None
    """0 to 1; leave it out for the type's usual importance."""


class MemoryRecall(Arguments, frozen=True, kw_only=True):
    """Search your memory. Ask with the words that the memory would have."""

    query: QueryText
    types: tuple[MemoryType, ...] = ()
    source: Annotated[str, msgspec.Meta(max_length=200)] = ""
    limit: Few = 10


class Remember(Arguments, frozen=True, kw_only=True):
    """Note a fact, in a sentence."""

    text: Text


class Search(Arguments, frozen=True, kw_only=True):
    """Search your memory for a few words."""

    query: QueryText


class ListMemory(Arguments, frozen=True, kw_only=True):
    """List what you remember, newest or most important first."""

    sort: Sort = "recent"
    types: tuple[MemoryType, ...] = ()
    limit: Few = 20


class Summarize(Arguments, frozen=True, kw_only=True):
    """Gather what you remember about a topic, for you to sum up; empty: what matters most."""

    topic: Annotated[str, msgspec.Meta(max_length=2000)] = ""


TOOLS: Final[dict[str, type[Arguments]]] = {
    "memory_save": MemorySave,
    "memory_recall": MemoryRecall,
    "remember": Remember,
    "search": Search,
    "list_memory": ListMemory,
    "summarize": Summarize,
}
"""Name -> arguments. All may be run twice: a save has its call's id as the key."""
