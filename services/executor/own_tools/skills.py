"""skill_read and skill_copy: what a person enabled that the agent may do as it is told there.

A model first knows names and descriptions, reads a SKILL.md when it fits, and further files as that
names them. Scripts aren't run here: they are copied to the workspace, where `shell` runs them in
the sandbox, and asks as it does for any command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Final

import msgspec

from vigil.contracts import Tool
from vigil.contracts.arguments import Arguments
from vigil.errors import InvalidInput, NotFound
from vigil.skills import folder
from vigil.skills.form import FILE
from vigil.words.amounts import count_of

from ..tools.declaration import ToolContext, tool
from ..tools.source import Call, ToolOutput
from ..workspace.disk import Disk
from ..workspace.marks import Marks
from ..workspace.workspace import Workspace

TIMEOUT_S: Final = 10.0
TARGET: Final = "skills"
"""The folder of the workspace that copies are in."""

SkillName = Annotated[str, msgspec.Meta(min_length=1, max_length=64)]


class SkillRead(Arguments, frozen=True, kw_only=True):
    """Read a skill: how the person wants something done. Without a name: which there are, and when
    to use each. Look there before you do something at length."""

    name: SkillName | None = None
    path: Annotated[str, msgspec.Meta(min_length=1, max_length=500)] = FILE
    """A file of the skill."""


class SkillCopy(Arguments, frozen=True, kw_only=True):
    """Copy a skill's files to skills/NAME of your workspace, where `shell` can run its scripts."""

    name: SkillName


OF_SERVERS: Final = (
    "\n\nSkills of servers, which are tools: call one as it is named here, `find_tools` tells more."
)


def listed(home: Path, offered: Iterable[Tool] = ()) -> str:
    """Return the skills that may be used, a line each; blocks.

    Args:
        offered: all tools: of those that are skills, too, what they say of themselves is told by
            the tool alone.
    """
    lines = []
    for name in sorted(folder.names(home)):
        try:
            lines.append(f"- {name}: {folder.find(home, name).text.description}")
        except (InvalidInput, NotFound) as error:
            lines.append(f"- {name}: can't be used ({error})")
    found = "\n".join(lines) or "No skill is enabled."
    others = sorted(one.name for one in offered if one.is_skill)
    return found + "\n- ".join((OF_SERVERS, *others)) if others else found


def read(home: Path, given: SkillRead, offered: Iterable[Tool] = ()) -> ToolOutput:
    """Read a file of a skill, or list all skills; blocks."""
    if given.name is None:
        return ToolOutput(content=listed(home, offered))
    try:
        found = folder.find(home, given.name)
    except (NotFound, InvalidInput) as error:
        return ToolOutput(content=str(error), is_error=True)
    data = found.files.get(given.path)
    if data is None:
        there = ", ".join(found.files)
        return ToolOutput(content=f"{given.path!r} is none of its files: {there}", is_error=True)
    text = folder.text_of(data)
    if text is None:
        return ToolOutput(content=f"is no text; {len(data)} bytes: copy it", is_error=True)
    if given.path != FILE:
        return ToolOutput(content=text)
    others = "\n".join(f"- {path}" for path in found.files if path != FILE)
    more = f"\n\n[Its other files, read by path:]\n{others}" if others else ""
    return ToolOutput(content=f"{found.text.body}{more}")


def copy(workspace: Workspace, home: Path, given: SkillCopy, call: Call, disk: Disk) -> ToolOutput:
    """Copy a skill to the workspace, if there is room for it; blocks."""
    try:
        found = folder.find(home, given.name)
    except (NotFound, InvalidInput) as error:
        return ToolOutput(content=str(error), is_error=True)
    allowance = disk.allowance(workspace.folder)
    if allowance.why_not or sum(map(len, found.files.values())) > allowance.bytes_left:
        return ToolOutput(content=f"not copied: {allowance.limit}", is_error=True)
    for path, data in found.files.items():
        names = workspace.names_of(f"{TARGET}/{given.name}/{path}")
        with Marks(workspace).writing(names, is_tainted=call.is_tainted):
            workspace.write(names, data, part=call.id)
    return ToolOutput(
        content=f"Copied {count_of(len(found.files), 'file')} to {TARGET}/{given.name}."
    )


@tool(
    risk="read",
    timeout_s=TIMEOUT_S,
    profiles=("channel", "branch", "worker", "cron", "autonomy", "planner"),
    is_idempotent=True,
)
async def skill_read(given: SkillRead, call: Call, context: ToolContext) -> ToolOutput:
    """Read one; see `read`."""
    return await asyncio.to_thread(read, context.skills, given, list(context.offered()))


@tool(
    risk="write",
    timeout_s=TIMEOUT_S,
    profiles=("channel", "worker", "cron", "planner"),
    is_idempotent=True,
)
async def skill_copy(given: SkillCopy, call: Call, context: ToolContext) -> ToolOutput:
    """Copy one. Raises: Unavailable; see `copy`."""
    workspace = await context.open_workspace(call)
    return await asyncio.to_thread(copy, workspace, context.skills, given, call, context.disk)
