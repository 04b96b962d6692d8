"""List memories, sorted, page by page."""

from __future__ import annotations

from typing import Annotated, Any, Final

from ...subjects import Scope
from ..answer_text import AnswerText, lines, without
from ..operation import McpTool, Operation, Route, outside, tool
from ..questions import Few, Filters, Limit, MemoryView, Name, Reply, Sort, described
from ..view import Pick, picked
from ..wire import MemoryPage, all_shown


class ListMemories(Filters, frozen=True, kw_only=True):
    """List memories that stand, sorted."""

    sort: Annotated[Sort, described("What comes first.")] = "recent"
    limit: Annotated[Limit, described("How many at most.")] = 50
    after: Annotated[Name, described("The next_after of the page before, to go on with it.")] = ""
    with_ended: Annotated[bool, described("Those that stand no more, too.")] = False
    """But for what somebody asked to forget."""


class Listed(Reply, frozen=True, kw_only=True):
    """A page of a list."""

    memories: tuple[MemoryView, ...]
    next_after: str | None = None
    """Continues the list; None: that was all."""
    degraded: tuple[str, ...] = ()
    """What could not be asked: `DEGRADED_NEWEST`."""


def page(scope: Scope, found: Listed) -> MemoryPage:
    """Return a list as a page."""
    return MemoryPage(
        user_id=scope.owner,
        agent_id=scope.agent,
        memories=all_shown(found.memories),
        next_after=found.next_after,
        degraded=found.degraded,
    )


def in_words(found: Listed) -> AnswerText:
    return lines(found.memories, 0, without(found.degraded))


_fewer: Final = Pick(kind=Few, default=20)


@tool(ListMemories, picked("sort", "types", "source", "since", limit=_fewer))
def list_memory(by: str, **given: Any) -> ListMemories:
    """List what you remember, newest or most important first."""
    return ListMemories(**given)


OPERATION: Final = Operation(
    name="list",
    question=ListMemories,
    reply=Listed,
    is_reading=True,
    shown=MemoryPage,
    show=page,
    describe=in_words,
    route=Route(
        name="find_memories",
        text="List memories.",
        method="GET",
        path="/api/memories",
        picks=outside(ListMemories),
    ),
    mcp=McpTool(
        name="memory_list",
        title="List memories",
        text="List memories, newest, most important or most used first, page by page.",
        picks=picked(
            "sort",
            "types",
            "source",
            "thread",
            "since",
            "until",
            "importance_min",
            "after",
            limit=_fewer,
        ),
        is_reading=True,
    ),
)
