"""A toy tool, all of it."""

from __future__ import annotations

from typing import Annotated

import msgspec

from services.executor.tools.declaration import ToolContext, tool
from services.executor.tools.source import Call, ToolOutput
from vigil.contracts.arguments import Arguments


class WordCount(Arguments, frozen=True, kw_only=True):
    """Count the words of a text."""

    text: Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]


@tool(risk="read", timeout_s=5.0, is_idempotent=True, profiles=("channel",))
async def word_count(given: WordCount, call: Call, context: ToolContext) -> ToolOutput:
    return ToolOutput(content=f"{len(given.text.split())} words")
