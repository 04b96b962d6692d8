"""What a command writes that is watched: in the sandbox, in the workspace of whose row it is."""

from __future__ import annotations

import asyncio
from typing import Final

from vigil.contracts.board import LastSeen, WatchedCommand
from vigil.errors import InvalidInput

from ..own_tools.shell import CommandRun, Commands, ending_of, words_of
from ..workspace.workspace import Workspace
from .result import ProbeResult, compared, difference, seen_of

TIMEOUT_S: Final = 20.0
OUTPUT_BYTES_MAX: Final = 64 * 1024
"""The beginning and the end are compared, and how much is between them."""
LINE_LENGTH_MAX: Final = 150


async def probe(
    commands: Commands, workspace: Workspace, watch: WatchedCommand, before: LastSeen | None
) -> ProbeResult:
    """Run the command to its end, or to the end of its time.

    Raises:
        InvalidInput: it failed.
        Unavailable: it couldn't be run.
    """
    ran = await commands.execute(
        workspace,
        words_of(watch.command),
        timeout_s=TIMEOUT_S,
        output_bytes_max=OUTPUT_BYTES_MAX,
        is_tainted=False,
    )
    if why := _why_failed(ran):
        raise InvalidInput("command", why if why.startswith("ended") else f"ended with {why}")
    seen = seen_of(watch, ran.end.output)
    change = await asyncio.to_thread(difference, before, seen)
    return ProbeResult(seen, change, ran.is_tainted, observation=compared(change))


def _why_failed(ran: CommandRun) -> str:
    """Return why a command counts as failed, with its last line; empty: it doesn't."""
    ending = ending_of(ran.end, TIMEOUT_S)
    last = ran.end.output.rstrip().rpartition("\n")[2].strip()[:LINE_LENGTH_MAX]
    return ": ".join(filter(None, (ending, last))) if ending else ""
