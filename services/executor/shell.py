"""shell: a command in the sandbox, in the workspace."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
from typing import Final

from vigil.errors import InvalidInput
from vigil.sections import Executor

from .arguments import Shell
from .marks import Marks
from .sandbox.box import Limits, Sandbox, environment_of
from .sandbox.commands import FLOOD_BYTES, Outcome, run
from .source import Call, Told
from .workspace import Workspace

FRAME_BYTES: Final = 512
"""Of what is said about how it ended."""
DISK_LOOK_S: Final = 0.5
NO_ROOM: Final = "the disk was almost full"
_SIGNALS: Final = {
    128 + 9: "was killed; it may have needed too much memory or processor time",
    128 + 24: "had used up its processor time",
    128 + 25: "wrote a file that was too large",
    128 + 31: "made a system call that is not allowed",
}


class Commands:
    """Runs commands.

    Args:
        free_bytes_min: below this much room on the disk, commands are ended and none is begun.
    """

    def __init__(self, sandbox: Sandbox, settings: Executor, *, free_bytes_min: int) -> None:
        self._sandbox = sandbox
        self._settings = settings
        self._free_bytes_min = free_bytes_min

    async def run(self, workspace: Workspace, arguments: Shell, call: Call) -> Told:
        """Run a command to its end, or to the end of its time.

        Raises:
            InvalidInput: no command line can hold it.
            Unavailable: it surely did not run.
        """
        if "\0" in arguments.command:
            raise InvalidInput("command", "must not contain a null character")
        if workspace.free_bytes() < self._free_bytes_min:
            return Told(content=f"not run: {NO_ROOM}", is_error=True)
        marks = Marks(workspace)
        is_tainted = call.is_tainted or self._settings.network
        running = await _begun(marks, is_tainted=is_tainted)
        try:
            outcome = await self._run(workspace, arguments, call)
        finally:
            has_seen = await asyncio.to_thread(marks.end, running)
        return Told(
            content=told_of(outcome, self._timeout_s(arguments)),
            is_error=outcome.exit_code != 0,
            is_tainted=is_tainted or has_seen,
        )

    async def _run(self, workspace: Workspace, arguments: Shell, call: Call) -> Outcome:
        timeout_s = self._timeout_s(arguments)
        argv = self._sandbox.argv_of(
            [shutil.which("bash") or "/bin/sh", "-c", arguments.command],
            workspace=workspace.folder,
            network=self._settings.network,
            limits=self._limits(timeout_s),
            uid=workspace.uid,
        )
        return await run(
            argv,
            environment_of(workspace=workspace.folder),
            kind=self._sandbox.kind,
            timeout_s=timeout_s,
            output_bytes_max=call.tool.output_bytes_max - FRAME_BYTES,
            watch=lambda: self._full(workspace),
        )

    def _timeout_s(self, arguments: Shell) -> float:
        return min(arguments.timeout_s or math.inf, self._settings.shell_timeout_s)

    def _limits(self, timeout_s: float) -> Limits:
        return Limits(
            cpu_s=math.ceil(timeout_s) + 1,
            memory_bytes=self._settings.memory_bytes_max,
            processes=self._settings.processes_max,
            file_bytes=self._settings.file_bytes_max,
        )

    async def _full(self, workspace: Workspace) -> str:
        """Wait until the disk is almost full: one file has its limit, all together have this."""
        while True:
            if workspace.free_bytes() < self._free_bytes_min:
                return NO_ROOM
            await asyncio.sleep(DISK_LOOK_S)


async def _begun(marks: Marks, *, is_tainted: bool) -> int:
    """Let the command run; let go of that again if nobody wants it any more."""
    beginning = asyncio.ensure_future(asyncio.to_thread(marks.begin, is_tainted=is_tainted))
    try:
        return await asyncio.shield(beginning)
    except asyncio.CancelledError:
        beginning.add_done_callback(_let_go)
        raise


def _let_go(beginning: asyncio.Future[int]) -> None:
    if beginning.exception() is None:
        os.close(beginning.result())


def told_of(outcome: Outcome, timeout_s: float) -> str:
    """Return a command's output, and how it ended if that needs to be said. Pure."""
    text = outcome.output
    if ending := _ending(outcome, timeout_s):
        return f"{text.rstrip()}\n[{ending}]".lstrip()
    return text if text.strip() else "[it wrote nothing, exit code 0]"


def _ending(outcome: Outcome, timeout_s: float) -> str:
    match outcome.ended:
        case "timeout":
            return f"ended after {timeout_s:g} s: it took too long"
        case "flood":
            return f"ended: it wrote more than {FLOOD_BYTES // 1024**2} MiB"
        case "stopped":
            return f"ended: {outcome.why}"
    code = outcome.exit_code or 0
    if reason := _SIGNALS.get(code):
        return f"exit code {code}: it {reason}"
    return f"exit code {code}" if code else ""
