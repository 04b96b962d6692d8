"""What a conversation with tools needs, in this process: a model that answers at once, and a tool
that does nothing, beside a real broker that syncs every write.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import datetime
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from services.cortex import choice
from services.cortex.model import ModelAnswer, ModelRequest
from services.executor import sources
from services.executor.tools.registry import Registry
from services.executor.tools.source import Call, ToolOutput
from tests.support.scripted_model import only
from tests.support.stack import Stack, running_stack
from vigil.contracts import Shelf, TextBlock, Tool, ToolUseBlock, Usage
from vigil.runtime import Context

NOOP: Final = "bench__noop"

# ---------------------------------------------------------------- a tool that does nothing


class Noop:
    """A source with one tool, which answers at once."""

    def __init__(self, now: Callable[[], datetime]) -> None:
        tool = Tool(
            name=NOOP, description="Do nothing.", input_schema={"type": "object"}, risk="read",
            is_idempotent=True,
        )  # fmt: skip
        self.shelf = Shelf(source="bench", at=now(), tools=(tool,))

    async def run(self, call: Call) -> ToolOutput:
        return ToolOutput(content="")

    async def close(self) -> None:
        """Nothing is open."""


_start_as_ever: Final = sources.start


@contextlib.asynccontextmanager
async def _start(context: Context, registry: Registry) -> AsyncIterator[None]:
    """Start what the executor always has, and that."""
    async with _start_as_ever(context, registry):
        registry.set(Noop(context.clock.now))
        yield


# ---------------------------------------------------------------- a model that answers at once


class Instant:
    """A model whose answer follows from the last row alone."""

    name = "instant"
    is_free = True

    def __init__(self, answer: Callable[[ModelRequest], list[tuple[str, dict[str, Any]]]]) -> None:
        """`answer`: the calls to make next; none: say that it's done."""
        self._calls = answer

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        uses = tuple(
            ToolUseBlock(id=f"c{uuid4().hex}", name=name, input=arguments)
            for name, arguments in self._calls(request)
        )
        return ModelAnswer(
            blocks=uses or (TextBlock(text="done"),),
            stop_reason="tool_use" if uses else "end_turn",
            usage=Usage(model=self.name, input_tokens=0, output_tokens=0),
        )

    async def close(self) -> None:
        """Nothing is open."""


@contextlib.asynccontextmanager
async def running(home: Path, thinks: Instant, **sections: dict[str, Any]) -> AsyncIterator[Stack]:
    """Run what a conversation with tools needs, with that model and the tool of the bench."""
    chosen = choice.choose
    choice.choose, sources.start = only(thinks), _start
    services = ("executor", "cortex", "scheduler", "delivery")
    try:
        async with running_stack(home, services=services, **sections) as stack:
            yield stack
    finally:
        choice.choose, sources.start = chosen, _start_as_ever
