"""Find what fits best."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec

from ...subjects import Scope
from ..answer_text import AnswerText, lines, without
from ..operation import McpTool, Operation, Route, outside, tool
from ..questions import (
    CONTENT_BYTES_MAX,
    Few,
    FewWords,
    Filters,
    Hit,
    Limit,
    Mode,
    Name,
    Question,
    Reply,
    described,
)
from ..view import Pick, picked
from ..wire import MemoryPage, shown
from .list import ListMemories

SUMMARY_LIMIT: Final = 30
"""Memories that `summarize` gathers."""


class Recall(Filters, frozen=True, kw_only=True):
    """Find what fits `query` best."""

    query: Annotated[
        str,
        msgspec.Meta(max_length=CONTENT_BYTES_MAX),
        described("What to look for, in the words that the memory would have."),
    ]
    limit: Annotated[Limit, described("How many at most.")] = 10
    mode: Annotated[Mode, described("By words, by meaning, or both.")] = "hybrid"
    with_pruned: Annotated[bool, described("Also what has expired or faded.")] = False
    only_trusted: bool = False
    """Leave out what descends from untrusted content."""
    tokens: Annotated[int, msgspec.Meta(ge=0)] = 0
    """How many they may take in a prompt: then what says the same is given once, and of a long one
    the best passage (`Hit.text`). 0: no such bound."""
    counts: bool = True
    """Whether what is shown counts as accessed."""


class Recalled(Reply, frozen=True, kw_only=True):
    """The best first."""

    hits: tuple[Hit, ...]
    degraded: tuple[str, ...] = ()
    """What could not be asked: `DEGRADED_VECTORS`, `DEGRADED_NEWEST`. The hits are of the rest."""
    left_out: int = 0
    """Hits that did not fit into the answer."""
    is_empty: bool = False
    """There is nothing in this memory at all."""


def page(scope: Scope, found: Recalled) -> MemoryPage:
    """Return hits as a page."""
    return MemoryPage(
        user_id=scope.owner,
        agent_id=scope.agent,
        memories=tuple(shown(hit.memory, hit) for hit in found.hits),
        next_after=None,
        degraded=found.degraded,
        left_out=found.left_out,
        is_empty=found.is_empty,
    )


def in_words(found: Recalled) -> AnswerText:
    memories = [hit.memory for hit in found.hits]
    return lines(memories, found.left_out, without(found.degraded))


_few_words: Final = Pick(kind=FewWords)


@tool(
    Recall,
    picked("types", "with_pruned", query=_few_words, source=Pick(kind=Name), limit=Pick(kind=Few)),
)
def memory_recall(by: str, **given: Any) -> Recall:
    """Search your memory. Ask with the words that the memory would have."""
    return Recall(**given)


@tool(Recall, picked(query=_few_words))
def search(by: str, **given: Any) -> Recall:
    """Search your memory for a few words."""
    return Recall(**given)


_topic: Final = Annotated[str, msgspec.Meta(max_length=2000)]


@tool(Recall, picked(topic=Pick(field="query", kind=_topic, default="")))
def summarize(by: str, query: str) -> Question:
    """Gather what you remember about a topic, for you to sum up; empty: what matters most."""
    if query:
        return Recall(query=query, limit=SUMMARY_LIMIT)
    return ListMemories(sort="importance", limit=SUMMARY_LIMIT)


OPERATION: Final = Operation(
    name="recall",
    question=Recall,
    reply=Recalled,
    is_reading=True,
    shown=MemoryPage,
    show=page,
    describe=in_words,
    route=Route(
        name="find_memories",
        text="Recall what fits `q`, the best first, each with its score; without `q`, list.",
        method="GET",
        path="/api/memories",
        picks=outside(Recall),
    ),
    mcp=McpTool(
        name="memory_recall",
        title="Recall",
        text=(
            "Search the memory by meaning and by words. Returns the best first, each with its "
            "score and why it was found. `degraded` says what could not be searched."
        ),
        picks=picked(
            "types",
            "source",
            "thread",
            "since",
            "until",
            "importance_min",
            "as_of",
            "with_pruned",
            query=_few_words,
            limit=Pick(kind=Few),
        ),
        is_reading=True,
    ),
)
