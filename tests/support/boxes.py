"""Commands in sandboxes that really work here, and what they leave behind.

`python -m tests.support.boxes KIND WORKSPACE COMMAND` runs one.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Final, cast

import psutil
import pytest

from services.executor.sandbox import bubblewrap, choice
from services.executor.sandbox.box import CommandLimits, Kind, Sandbox, environment_of
from services.executor.sandbox.choice import sandbox_of
from services.executor.sandbox.commands import CommandEnd, CommandWatch, run
from services.executor.sandbox.users import ROOT_TRIES_AS
from vigil.settings.sections import Executor

KINDS: Final = ("bubblewrap", "landlock")
BEST: Final = "best"
ANY_KIND: Final = (BEST, *(pytest.param(kind, marks=pytest.mark.long) for kind in KINDS))
"""For what isn't about the sandbox of a command: the one that an executor takes here, and in
`make chaos` each."""
UID: Final = ROOT_TRIES_AS if os.geteuid() == 0 else None
_why_not = choice.why_not
_reasons: Final[dict[tuple[Kind, str | None], str]] = {}


async def _why_not_once(kind: Kind) -> str:
    tried = (kind, bubblewrap.find())
    if tried not in _reasons:
        _reasons[tried] = await _why_not(kind)
    return _reasons[tried]


def share() -> None:
    """Have each kind of sandbox be tried once by this process: else each executor tries it anew."""
    choice.why_not = _why_not_once  # type: ignore[assignment]


class Boxes:
    """One kind of sandbox, and a workspace."""

    def __init__(self, sandbox: Sandbox, workspace: Path) -> None:
        self.sandbox = sandbox
        self.workspace = workspace

    async def run(
        self, command: str, *, timeout_s: float = 20.0, output_bytes_max: int = 16384,
        network: bool = False, limits: CommandLimits | None = None,
        env: dict[str, str] | None = None, folders: tuple[Path, ...] = (), uid: int | None = UID,
        watch: CommandWatch | None = None,
    ) -> CommandEnd:  # fmt: skip
        """Run a command of bash in the box."""
        argv = self.sandbox.argv_of(
            ["/bin/bash", "-c", command], workspace=self.workspace, network=network,
            limits=limits, env=env, folders=folders, uid=uid,
        )  # fmt: skip
        return await run(
            argv, environment_of(env, workspace=self.workspace), kind=self.sandbox.kind,
            timeout_s=timeout_s, output_bytes_max=output_bytes_max, watch=watch,
        )  # fmt: skip


async def kind_of(name: str) -> Kind:
    """Return a kind of sandbox, if it works here; else the test is skipped, with the reason."""
    if name == BEST:
        found = await choice.choose(Executor())
        if not found.is_offered:
            pytest.skip(found.problem)
        return found.kind
    kind = cast(Kind, name)
    if reason := await choice.why_not(kind):
        pytest.skip(reason)
    return kind


async def boxes_of(kind: str, folder: Path) -> Boxes:
    """Return a kind of sandbox, if it works here; else the test is skipped, with the reason."""
    sandbox = sandbox_of(await kind_of(kind))
    workspace = folder / "workspaces" / "vigil" / "ann"
    workspace.mkdir(parents=True, mode=0o700)
    if UID is not None:
        os.chown(workspace, UID, UID)
    return Boxes(sandbox, workspace)


def running(marker: str) -> list[int]:
    """Return the processes that have `marker` on their command line, but for the launchers."""
    found = []
    for process in psutil.process_iter(["cmdline", "status"]):
        words = process.info["cmdline"] or []
        if marker in words and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(process.pid)
    return found


async def gone(marker: str, within_s: float = 5.0) -> bool:
    """Wait until the kernel has ended them all; a namespace takes some milliseconds."""
    for _ in range(int(within_s / 0.02)):
        if not running(marker):
            return True
        await asyncio.sleep(0.02)
    return False


async def appeared(marker: str, within_s: float = 10.0) -> bool:
    """Wait until there is one."""
    for _ in range(int(within_s / 0.02)):
        if running(marker):
            return True
        await asyncio.sleep(0.02)
    return False


if __name__ == "__main__":  # an executor that can be killed, with a command in a box
    _kind, _workspace, _command = sys.argv[1:]
    _boxes = Boxes(sandbox_of(cast(Kind, _kind)), Path(_workspace))
    asyncio.run(_boxes.run(_command, timeout_s=60))
