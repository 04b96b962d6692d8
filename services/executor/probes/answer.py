"""What a tool of an MCP server answers that is watched: of class ``read``, whatever it says of
itself."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

from vigil.contracts.board import LastSeen, WatchedTool
from vigil.errors import InvalidInput
from vigil.subjects import SessionKey, token_of
from vigil.texts.pointer import at_pointer
from vigil.trust.kept import TrustedSources
from vigil.watching.watched import shelf_of, tool_of

from ..tools.registry import Registry
from ..tools.source import Call, is_outside
from .page import shown
from .result import ProbeResult, compared, difference, seen_of


async def probe(
    registry: Registry,
    key: SessionKey,
    watch: WatchedTool,
    before: LastSeen | None,
    now: datetime,
    trusted: TrustedSources,
) -> ProbeResult:
    """Ask the tool, for the session that it may lead to; its owner may trust who answers.

    Raises:
        InvalidInput: there is no such tool, it may do more than look, or it answers an error.
        Unavailable: it can't be reached.
    """
    shelf = registry.shelves.get(shelf_of(watch))
    tool = tool_of(watch, () if shelf is None else shelf.tools)
    source = next(one for one in registry.sources if one.shelf is shelf)
    call = Call(
        id=token_of("watch", str(key)),
        key=key,
        tool=tool,
        input=watch.arguments,
        due_at=now + timedelta(seconds=tool.timeout_s),
    )
    output = await source.run(call)
    if output.is_error:
        raise InvalidInput("tool", f"answers an error: {output.content}")
    text = shown(at_pointer(output.content, watch.pointer)) if watch.pointer else output.content
    seen = seen_of(watch, text)
    change = await asyncio.to_thread(difference, before, seen)
    observation = compared(change, output.content)
    return ProbeResult(
        seen, change, is_outside(output, key.scope, trusted), observation=observation
    )
