"""Which sandbox works here: tried, not guessed.

Whether namespaces may be made depends on the kernel, on the container around us, on what AppArmor
thinks of bwrap; a version tells nothing. So each candidate gets a real command that tries to read
what it may not and to reach a port of this machine; the first whose command finds itself shut in is
taken. If a person asked for one, no other takes its place.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from vigil.errors import Unavailable
from vigil.settings import config
from vigil.settings.sections import Executor

from . import bubblewrap as bwrap
from .box import CommandLimits, Kind, Sandbox, environment_of, python
from .bubblewrap import bubblewrap
from .commands import run
from .landlock import landlock, unconfined
from .users import ROOT_TRIES_AS

TRY_S: Final = 10.0
OFF: Final = "executor.sandbox is off"
NO_PROGRAM: Final = "bubblewrap: the program bwrap is not installed"
_TRY: Final = """
import socket, sys
canary, port = sys.argv[1:]
with open("probe", "w") as file:
    file.write("made")
wrong = []
try:
    open(canary).close()
    wrong.append("files outside of it can be read")
except OSError:
    pass
try:
    socket.create_connection(("127.0.0.1", int(port)), 1).close()
    wrong.append("this machine's ports can be reached")
except OSError:
    pass
print("; ".join(wrong) or "works")
"""


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """What was found."""

    kind: Kind
    reasons: tuple[str, ...] = ()
    """Why it is none of those before it, one sentence each."""
    is_offered: bool = True
    """Whether commands may run at all."""

    @property
    def problem(self) -> str:
        """Why there are no commands; empty: there are."""
        return "" if self.is_offered else "no sandbox: " + "; ".join(self.reasons)

    def sandbox(self) -> Sandbox | None:
        """Return it; None: commands may not run."""
        return sandbox_of(self.kind) if self.is_offered else None


def sandbox_of(kind: Kind) -> Sandbox:
    """Return a sandbox of that kind, whether it works here or not."""
    match kind:
        case "bubblewrap":
            return bubblewrap(bwrap.find() or "bwrap")
        case "landlock":
            return landlock()
        case "off":
            return unconfined()


async def choose(settings: Executor) -> Choice:
    """Return the best that works here and that the configuration allows."""
    if settings.sandbox == "off":
        return Choice(kind="off", reasons=(OFF,), is_offered=settings.allow_unsafe)
    reasons: list[str] = []
    candidates: tuple[Kind, ...] = ("bubblewrap", "landlock")
    for kind in candidates:
        if settings.sandbox not in ("auto", kind):
            continue
        if reason := await why_not(kind):
            reasons.append(reason)
        else:
            return Choice(kind=kind, reasons=tuple(reasons))
    return Choice(kind="off", reasons=tuple(reasons), is_offered=False)


async def why_not(kind: Kind) -> str:
    """Return why a kind of sandbox doesn't work here; empty: it works."""
    program = bwrap.find()
    if kind == "bubblewrap" and program is None:
        return NO_PROGRAM
    try:
        told = await _try(sandbox_of(kind))
    except (Unavailable, OSError) as error:
        told = str(error)
    return "" if told == "works" else f"{kind}: {told}"


async def _try(sandbox: Sandbox) -> str:
    """Start a command that tries to get out -> ``works``, or what is wrong."""
    uid = ROOT_TRIES_AS if os.geteuid() == 0 else None
    with tempfile.TemporaryDirectory(prefix="vigil-sandbox-") as name, _listener() as listener:
        box, canary = _scene(Path(name), uid)
        port = str(listener.getsockname()[1])
        command = [str(python()), "-I", "-S", "-c", _TRY, str(canary), port]
        outcome = await run(
            sandbox.argv_of(command, workspace=box, limits=CommandLimits(), uid=uid),
            environment_of(workspace=box),
            kind=sandbox.kind,
            timeout_s=TRY_S,
            output_bytes_max=4096,
        )
        if outcome.exit_code == 0 and not (box / "probe").exists():
            return "what is written in it is lost"
    if outcome.ended == "timeout":
        return f"a command did not end within {TRY_S:g} s"
    lines = outcome.output.strip().splitlines()
    return lines[-1][:300] if lines else f"ended with {outcome.exit_code} and said nothing"


def _scene(folder: Path, uid: int | None) -> tuple[Path, Path]:
    """Make a box, and a file beside it that can't be read from inside."""
    canary = folder / "canary"
    canary.write_text("outside")
    box = folder / "box"
    box.mkdir(mode=0o700)
    if uid is not None:
        os.chown(box, uid, uid)
    return box, canary


def _listener() -> socket.socket:
    """Return a port of this machine that a command in a box must not reach."""
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
    return listener


def main() -> None:
    """Tell what is found here, for `vigil doctor`: a line of JSON."""
    found = asyncio.run(choose(config.load().config.executor))
    sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
