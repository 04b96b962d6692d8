"""The tools that a memory has as an MCP server: what each takes, does and answers. Pure.

The arguments are structs of ours: their schemas are what a client sees, and unknown arguments are
refused. No argument names a user or an agent: on whose behalf a tool acts, the transport says.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Final, Protocol

import msgspec

from ..contracts import Instant, MemoryType, Stability
from ..contracts.arguments import Arguments
from . import wire
from .questions import Sort, Unit

Described = msgspec.Meta


class Memories(Protocol):
    """Whatever asks for the memory: the gateway for one caller, or a client of it."""

    async def save(self, body: wire.SaveBody) -> wire.SavedMemory: ...

    async def look(self, wanted: wire.Look) -> wire.MemoryPage: ...

    async def get(self, whose: wire.Whose, id_: str) -> wire.MemoryDetail: ...

    async def forget(self, whose: wire.Whose, id_: str) -> wire.ForgottenMemories: ...

    async def graph(self, wanted: wire.LookAround) -> wire.MemoryGraph: ...


class Acting(msgspec.Struct, frozen=True):
    """On whose behalf a call is made."""

    memories: Memories
    whose: wire.Whose


# ---------------------------------------------------------------- arguments


_Id = Annotated[wire.MemoryId, Described(description="Of a memory: 32 hex digits, as recalled.")]
_Types = Annotated[
    tuple[MemoryType, ...],
    Described(description="Only memories of these types. Leave it out for all."),
]
_Source = Annotated[wire.Filter, Described(description="Only what came from exactly this source.")]
_Thread = Annotated[wire.Filter, Described(description="Only this conversation.")]
_Since = Annotated[
    Instant | None, Described(description="Only what happened then or later (RFC 3339).")
]
_Until = Annotated[
    Instant | None, Described(description="Only what happened then or before (RFC 3339).")
]
_LeastImportance = Annotated[Unit, Described(description="Only what is at least so important.")]
_Limit = Annotated[int, Described(ge=1, le=50, description="How many at most.")]


class SaveArguments(Arguments, frozen=True, kw_only=True):
    content: Annotated[
        str,
        Described(min_length=1, description="One or two self-contained sentences; at most 16 KiB."),
    ]
    type: Annotated[MemoryType, Described(description="What kind of memory it is.")] = "fact"
    importance: Annotated[
        Unit | None, Described(description="0 to 1. Leave it out for the type's usual importance.")
    ] = None
    source: Annotated[
        wire.Name, Described(description="Where it comes from; a source can be undone as a whole.")
    ] = wire.MCP_SOURCE
    thread: Annotated[
        wire.Name | None, Described(description="The conversation that it is part of.")
    ] = None
    occurred_at: Annotated[
        Instant | None,
        Described(description="When it happened (RFC 3339, with a zone). Leave it out for now."),
    ] = None
    stability: Annotated[
        Stability,
        Described(description="volatile: a passing note, which may be merged after a week."),
    ] = "stable"


class RecallArguments(Arguments, frozen=True, kw_only=True):
    query: Annotated[
        str,
        Described(
            min_length=1,
            max_length=2000,
            description="What to look for, in the words that the memory would have.",
        ),
    ]
    limit: _Limit = 10
    types: _Types = ()
    source: _Source = ""
    thread: _Thread = ""
    since: _Since = None
    until: _Until = None
    importance_min: _LeastImportance = 0.0
    as_of: Annotated[
        Instant | None, Described(description="What was known at that moment (RFC 3339).")
    ] = None


class ListArguments(Arguments, frozen=True, kw_only=True):
    sort: Annotated[Sort, Described(description="What comes first.")] = "recent"
    limit: _Limit = 20
    types: _Types = ()
    source: _Source = ""
    thread: _Thread = ""
    since: _Since = None
    until: _Until = None
    importance_min: _LeastImportance = 0.0
    after: Annotated[
        wire.Filter, Described(description="The next_after of the page before, to go on with it.")
    ] = ""


class GetArguments(Arguments, frozen=True, kw_only=True):
    id: _Id


class ForgetArguments(Arguments, frozen=True, kw_only=True):
    id: _Id


class GraphArguments(Arguments, frozen=True, kw_only=True):
    id: Annotated[
        wire.MemoryId | None,
        Described(description="The memory to begin with. Leave it out for the best connected."),
    ] = None
    depth: Annotated[int, Described(ge=1, le=3, description="How many steps away.")] = 1
    limit: Annotated[int, Described(ge=1, le=200, description="How many at most.")] = 50


# ---------------------------------------------------------------- tools


async def _save(acting: Acting, wanted: SaveArguments) -> wire.SavedMemory:
    return await acting.memories.save(
        wire.SaveBody(
            user_id=acting.whose.user_id,
            agent_id=acting.whose.agent_id,
            content=wanted.content,
            type=wanted.type,
            importance=wanted.importance,
            source=wanted.source,
            thread_id=wanted.thread,
            occurred_at=wanted.occurred_at,
            stability=wanted.stability,
        )
    )


async def _recall(acting: Acting, wanted: RecallArguments) -> wire.MemoryPage:
    return await acting.memories.look(
        wire.Look(
            user_id=acting.whose.user_id,
            agent_id=acting.whose.agent_id,
            q=wanted.query,
            as_of=wanted.as_of,
            **_filters(wanted),
        )
    )


async def _list(acting: Acting, wanted: ListArguments) -> wire.MemoryPage:
    return await acting.memories.look(
        wire.Look(
            user_id=acting.whose.user_id,
            agent_id=acting.whose.agent_id,
            sort=wanted.sort,
            after=wanted.after,
            **_filters(wanted),
        )
    )


def _filters(wanted: RecallArguments | ListArguments) -> dict[str, Any]:
    return {
        "limit": wanted.limit,
        "type": wanted.types,
        "source": wanted.source,
        "thread_id": wanted.thread,
        "since": wanted.since,
        "until": wanted.until,
        "importance_min": wanted.importance_min,
    }


async def _get(acting: Acting, wanted: GetArguments) -> wire.MemoryDetail:
    return await acting.memories.get(acting.whose, wanted.id)


async def _forget(acting: Acting, wanted: ForgetArguments) -> wire.ForgottenMemories:
    return await acting.memories.forget(acting.whose, wanted.id)


async def _graph(acting: Acting, wanted: GraphArguments) -> wire.MemoryGraph:
    return await acting.memories.graph(
        wire.LookAround(
            user_id=acting.whose.user_id,
            agent_id=acting.whose.agent_id,
            id=wanted.id,
            depth=wanted.depth,
            limit=wanted.limit,
        )
    )


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """What a client sees of a tool, and what it does."""

    name: str
    title: str
    description: str
    run: Callable[[Acting, Any], Awaitable[msgspec.Struct]]
    arguments: type[Arguments]
    result: type[msgspec.Struct]
    is_reading: bool = False
    is_destructive: bool = False
    is_idempotent: bool = False


TOOLS: Final = (
    Tool(
        name="memory_save",
        title="Remember",
        description=(
            "Remember something for good, so that it is known in every later conversation. Not for "
            "small talk, and not for what is remembered already: recall first if you aren't sure."
        ),
        run=_save,
        arguments=SaveArguments,
        result=wire.SavedMemory,
    ),
    Tool(
        name="memory_recall",
        title="Recall",
        description=(
            "Search the memory by meaning and by words. Returns the best first, each with its "
            "score and why it was found. `degraded` says what could not be searched."
        ),
        run=_recall,
        arguments=RecallArguments,
        result=wire.MemoryPage,
        is_reading=True,
    ),
    Tool(
        name="memory_list",
        title="List memories",
        description="List memories, newest, most important or most used first, page by page.",
        run=_list,
        arguments=ListArguments,
        result=wire.MemoryPage,
        is_reading=True,
    ),
    Tool(
        name="memory_get",
        title="Show a memory",
        description="Show one memory: where it comes from, what became of it, its associations.",
        run=_get,
        arguments=GetArguments,
        result=wire.MemoryDetail,
        is_reading=True,
    ),
    Tool(
        name="memory_forget",
        title="Forget",
        description=(
            "Forget a memory for good: nothing shows it again, and this can't be undone. Only when "
            "the person wants it forgotten."
        ),
        run=_forget,
        arguments=ForgetArguments,
        result=wire.ForgottenMemories,
        is_destructive=True,
        is_idempotent=True,
    ),
    Tool(
        name="memory_graph",
        title="Show associations",
        description="Show the memories that are associated with one, and how; or the hubs of all.",
        run=_graph,
        arguments=GraphArguments,
        result=wire.MemoryGraph,
        is_reading=True,
    ),
)


def schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON Schema of a struct, with an object at its root as MCP wants it."""
    (reference,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    root: dict[str, Any] = components.pop(reference["$ref"].rpartition("/")[2])
    return root | ({"$defs": components} if components else {})
