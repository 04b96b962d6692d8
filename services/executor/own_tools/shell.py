"""shell: a command in the sandbox, in the workspace."""

from __future__ import annotations

import asyncio
import math
import os
import shutil
from collections.abc import Sequence
from typing import Annotated, Final, NamedTuple

import msgspec

from vigil.contracts import Argv
from vigil.contracts.arguments import Arguments
from vigil.errors import InvalidInput
from vigil.grants.command import parse
from vigil.settings.sections import Executor

from ..sandbox.box import CommandLimits, Sandbox, environment_of
from ..sandbox.commands import FLOOD_BYTES, CommandEnd, Watches, run
from ..sandbox.memory import MemoryWatch, hint_of
from ..tools.declaration import ToolContext, tool
from ..tools.source import Call, ToolOutput
from ..workspace.disk import Allowance, Disk
from ..workspace.marks import Marks
from ..workspace.workspace import Workspace

COMMAND_LENGTH_MAX: Final = 32_000
END_S: Final = 10.0
"""How long what a command started may take to end."""
FRAME_BYTES: Final = 512
"""Of what is said about how it ended."""
ONLY_REMOVE: Final = "nothing could be written: {why}. Remove files; that still works"
_SIGNALS: Final = {
    128 + 9: "was killed; it may have needed too much memory or processor time",
    128 + 24: "had used up its processor time",
    128 + 25: "wrote a file that was too large",
    128 + 31: "made a system call that is not allowed",
}


class Shell(Arguments, frozen=True, kw_only=True):
    """Run a command in a shell, in your workspace: a folder whose files stay from call to call.

    You get what it wrote and how it ended. It can't see other files of this machine, and what it
    leaves running in the background is ended with it.
    """

    command: Annotated[str, msgspec.Meta(min_length=1, max_length=COMMAND_LENGTH_MAX)]
    timeout_s: Annotated[float, msgspec.Meta(gt=0, le=3600)] | None = None
    """Seconds after which it is ended, if that is to be less than what is allowed."""


class CommandRun(NamedTuple):
    """What came of a command."""

    end: CommandEnd
    why_not: str
    """Why it could write nothing; empty: it could."""
    is_tainted: bool
    """Whether it may have seen what is from outside."""


class Commands:
    """Runs commands.

    Args:
        room: what tells how much of the disk each may take.
    """

    def __init__(self, sandbox: Sandbox, settings: Executor, disk: Disk) -> None:
        self._sandbox = sandbox
        self._settings = settings
        self._room = disk

    async def run(self, workspace: Workspace, arguments: Shell, call: Call) -> ToolOutput:
        """Run a command to its end, or to the end of its time.

        Raises:
            InvalidInput: no command line can hold it.
            Unavailable: it surely did not run.
        """
        timeout_s = self._timeout_s(arguments)
        ran = await self.execute(
            workspace,
            _words(arguments, call),
            timeout_s=timeout_s,
            is_tainted=call.is_tainted,
            output_bytes_max=call.tool.output_bytes_max - FRAME_BYTES,
        )
        return ToolOutput(
            content=described(ran.end, timeout_s, ran.why_not),
            is_error=ran.end.exit_code != 0,
            is_tainted=ran.is_tainted,
        )

    async def execute(
        self,
        workspace: Workspace,
        words: Sequence[str],
        *,
        timeout_s: float,
        output_bytes_max: int,
        is_tainted: bool,
    ) -> CommandRun:
        """Run what stands in words to its end, or to the end of its time.

        Args:
            is_tainted: what it does comes from outside.

        Raises:
            InvalidInput: no command line can hold it.
            Unavailable: it surely did not run.
        """
        if any("\0" in word for word in words):
            raise InvalidInput("command", "must not contain a null character")
        marks = Marks(workspace)
        is_tainted = is_tainted or self._settings.network
        running = await _begun(marks, is_tainted=is_tainted)
        try:
            allowance = await asyncio.to_thread(self._room.allowance, workspace.folder)
            argv = self._sandbox.argv_of(
                words,
                workspace=workspace.folder,
                network=self._settings.network,
                limits=self._limits(timeout_s, allowance),
                uid=workspace.uid,
            )
            end = await run(
                argv,
                environment_of(workspace=workspace.folder),
                kind=self._sandbox.kind,
                timeout_s=timeout_s,
                output_bytes_max=output_bytes_max,
                watch=Watches(
                    self._room.guard(workspace.folder, allowance, self._sandbox.kind),
                    MemoryWatch(self._settings.memory_bytes_max),
                ),
            )
        finally:
            has_seen = await asyncio.to_thread(marks.end, running)
        return CommandRun(end, allowance.why_not, is_tainted or has_seen)

    def _timeout_s(self, arguments: Shell) -> float:
        return min(arguments.timeout_s or math.inf, self._settings.shell_timeout_s)

    def _limits(self, timeout_s: float, allowance: Allowance) -> CommandLimits:
        may_write = not allowance.why_not
        return CommandLimits(
            cpu_s=math.ceil(timeout_s) + 1,
            memory_bytes=self._settings.memory_bytes_max,
            processes=self._settings.processes_max,
            file_bytes=may_write * min(self._settings.file_bytes_max, allowance.bytes_left),
        )


def _words(arguments: Shell, call: Call) -> Sequence[str]:
    """Return what to start: a shell; or for a grant of some arguments exactly those, without one.

    Raises:
        InvalidInput: the grant doesn't cover the command.
    """
    rules = () if call.grant is None else call.grant.constraints
    if any(isinstance(rule, Argv) for rule in rules):
        return parse(arguments.command)
    return words_of(arguments.command)


def words_of(command: str) -> list[str]:
    """Return what to start to have a shell run a command."""
    return [shutil.which("bash") or "/bin/sh", "-c", command]


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


def described(outcome: CommandEnd, timeout_s: float, why_not: str = "") -> str:
    """Return a command's output, and how it ended if that needs to be said. Pure.

    Args:
        why_not: why it could write nothing.
    """
    text = outcome.output
    ending = ending_of(outcome, timeout_s)
    if why_not:
        ending = "; ".join(filter(None, (ending, ONLY_REMOVE.format(why=why_not))))
    if ending:
        return f"{text.rstrip()}\n[{ending}]".lstrip()
    return text if text.strip() else "[it wrote nothing, exit code 0]"


def ending_of(outcome: CommandEnd, timeout_s: float) -> str:
    """Say how a command ended; empty: well."""
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
    if code and (hint := hint_of(outcome.output)):
        return f"exit code {code}: {hint}"
    return f"exit code {code}" if code else ""


@tool(
    risk="external",
    timeout_s=lambda config: config.executor.shell_timeout_s + END_S,
    profiles=("channel", "worker", "cron", "planner"),
    needs_sandbox=True,
    aims={"command": "run", "timeout_s": "detail"},
)
async def shell(given: Shell, call: Call, context: ToolContext) -> ToolOutput:
    """Run a command. Raises: InvalidInput, Unavailable; see `Commands`."""
    if context.commands is None:
        return ToolOutput(content=f"not run: {context.problem}", is_error=True)
    return await context.commands.run(await context.open_workspace(call), given, call)
