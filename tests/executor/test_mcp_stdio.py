"""A program that is an MCP server, from its start to its end, without a box or a broker."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import mcp_types as types
import pytest
from mcp.shared.message import SessionMessage

from services.executor.mcp import stdio
from services.executor.mcp.stdio import Program, StdioWire
from services.executor.sandbox.commands import Watches

WAIT_S = 20.0


@contextlib.asynccontextmanager
async def freely() -> AsyncIterator[None]:
    yield


class Idle:
    """Looks after a program that may do what it likes."""

    why = ""

    async def watch(self, pid: int) -> str:
        return str(await asyncio.get_running_loop().create_future())


async def run_once(script: str, told: int) -> str:
    """Start a program, hear the first line that it says, tell it so many bytes, and end it."""
    heard: asyncio.Queue[str] = asyncio.Queue()
    program = Program(argv=("sh", "-c", script), env=dict(os.environ), cwd="/")
    wire = StdioWire(program, heard.put_nowait, lambda: None, freely, lambda: Watches(Idle()))
    async with asyncio.timeout(WAIT_S), wire.connect() as (_, outbound):
        line = await heard.get()
        message = types.JSONRPCNotification(jsonrpc="2.0", method="x" * told)
        await outbound.send(SessionMessage(message))
        await asyncio.sleep(0.05)  # it is written, as far as the pipe takes it
        return line


async def test_nothing_stays_open_of_a_program_whose_pipes_others_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Started again each time that it is lost, it would take all that may be open."""
    monkeypatch.setattr(stdio, "QUIT_S", 0.1)
    await run_once("echo ready; exec cat", 1)
    before = len(list(Path("/dev/fd").iterdir()))
    other = int(
        await run_once("exec 3<&0; setsid sleep 600 <&3 & echo $!; exec sleep 600", 1_000_000)
    )
    try:
        await asyncio.sleep(0.01)  # pipes are closed in the next turn of the loop
        assert len(list(Path("/dev/fd").iterdir())) == before
    finally:
        os.kill(other, signal.SIGKILL)
