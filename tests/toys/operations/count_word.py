"""A toy operation, all of it but its handler in the memory service."""

from __future__ import annotations

from typing import Annotated, Any, Final

from vigil.memory.operation import McpTool, Operation, Route, tool
from vigil.memory.questions import Named, Question, Reply, described
from vigil.memory.view import picked


class CountWord(Question, frozen=True, kw_only=True):
    """How many memories have a word."""

    word: Annotated[Named, described("The word.")]


class WordCounted(Reply, frozen=True, kw_only=True):
    """How many have it."""

    count: int


@tool(CountWord, picked("word"))
def count_word(by: str, **given: Any) -> CountWord:
    """Count the memories that have a word."""
    return CountWord(**given)


OPERATION: Final = Operation(
    name="count",
    question=CountWord,
    reply=WordCounted,
    is_reading=True,
    route=Route(
        name="count_word",
        text="Count the memories that have a word.",
        method="GET",
        path="/api/memories/count",
    ),
    mcp=McpTool(
        name="memory_count",
        title="Count",
        text="Count the memories that have a word.",
        picks=picked("word"),
        is_reading=True,
    ),
)
