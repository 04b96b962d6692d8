"""read_file and write_file: the files of a workspace, for a model."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated, Final

import msgspec

from vigil.attachments.examine import looks_like_one
from vigil.contracts.arguments import Arguments
from vigil.errors import InvalidInput, NotFound
from vigil.texts import excerpt
from vigil.words.amounts import count_of

from ..sandbox.commands import text_of
from ..tools.arguments import Offset
from ..tools.declaration import ToolContext, tool
from ..tools.source import Call, ToolOutput, output_file
from ..workspace.disk import Disk
from ..workspace.marks import Marks
from ..workspace.workspace import NAMES_MAX, FolderEntry, Names, Piece, Workspace

CONTENT_LENGTH_MAX: Final = 200_000
PATH_LENGTH_MAX: Final = 1024
TIMEOUT_S: Final = 10.0
FRAME_BYTES: Final = 512
"""Of what is said about a piece of a file."""


FilePath = Annotated[str, msgspec.Meta(min_length=1, max_length=PATH_LENGTH_MAX)]


class ReadFile(Arguments, frozen=True, kw_only=True):
    """Read a text file of your workspace, look at an image or a PDF file, or list a folder."""

    path: FilePath
    """Relative to the workspace; "." is the workspace itself."""
    offset: Offset = 0
    """The byte to begin at; a result that was cut tells the next one."""


class AttachFile(Arguments, frozen=True, kw_only=True):
    """Have an image, a PDF file or a text of your workspace go with what you say next to the
    person.

    At most 10. A file that isn't in your workspace must be written there first.
    """

    path: FilePath
    """Relative to the workspace."""


class WriteFile(Arguments, frozen=True, kw_only=True):
    """Write a text file in your workspace; what was in it before is gone.

    Folders on the way are made.
    """

    path: FilePath
    """Relative to the workspace."""
    content: Annotated[str, msgspec.Meta(max_length=CONTENT_LENGTH_MAX)]


NOT_REPLACED: Final = (
    "not written: there is a file of that name that nothing from outside had a part in. Take "
    "another name, or have the person name that file in their message."
)


def read(workspace: Workspace, arguments: ReadFile, call: Call, file_bytes_max: int) -> ToolOutput:
    """Read a file or list a folder. Blocks.

    Args:
        file_bytes_max: of an image or a PDF file.

    Raises:
        InvalidInput: the path is no good.
        Unavailable: try again.
    """
    names = workspace.names_of(arguments.path)
    try:
        with Marks(workspace).reading(names) as marked:
            bytes_max = min(call.tool.output_bytes_max, excerpt.SHOWN_LENGTH_MAX) - FRAME_BYTES
            found = workspace.read(names, arguments.offset, bytes_max)
            if _is_file(found, arguments):
                found = workspace.read(names, 0, file_bytes_max + 1)
    except NotFound as error:
        return ToolOutput(content=str(error), is_error=True)
    is_tainted = marked.has(names)
    if isinstance(found, list):
        return ToolOutput(content=_folder(found), is_tainted=is_tainted)
    if _is_file(found, arguments):
        return _shown(names[-1], found.data, file_bytes_max, is_tainted=is_tainted)
    if b"\0" in found.data:
        return ToolOutput(
            content=f"is no text; {found.size} bytes", is_error=True, is_tainted=is_tainted
        )
    return ToolOutput(content=_text(found, arguments.offset), is_tainted=is_tainted)


def _is_file(found: Piece | list[FolderEntry], arguments: ReadFile) -> bool:
    """Whether it's an image or a PDF file from its beginning."""
    return isinstance(found, Piece) and not arguments.offset and looks_like_one(found.data)


def _shown(name: str, data: bytes, bytes_max: int, *, is_tainted: bool) -> ToolOutput:
    try:
        file = output_file(name, data, bytes_max)
    except InvalidInput as error:
        return ToolOutput(content=str(error), is_error=True, is_tainted=is_tainted)
    return ToolOutput(content=f"[{file.about.in_words}]", is_tainted=is_tainted, files=(file,))


def attach(workspace: Workspace, arguments: AttachFile, file_bytes_max: int) -> ToolOutput:
    """Read a file that is to go with a message. Blocks. Raises: as `read`."""
    names = workspace.names_of(arguments.path)
    try:
        with Marks(workspace).reading(names) as marked:
            piece = workspace.read(names, 0, file_bytes_max + 1)
    except NotFound as error:
        return ToolOutput(content=str(error), is_error=True)
    if isinstance(piece, list):
        return ToolOutput(content="not attached: it's a folder", is_error=True)
    found = _shown(names[-1], piece.data, file_bytes_max, is_tainted=marked.has(names))
    if found.is_error:
        return found
    text = f"{found.content} goes with what you say next, unless the person writes before that."
    return ToolOutput(content=text, is_tainted=found.is_tainted, files=found.files)


def _folder(entries: list[FolderEntry]) -> str:
    if not entries:
        return "(an empty folder)"
    lines = [_line(entry) for entry in entries[:NAMES_MAX]]
    if len(entries) > NAMES_MAX:
        lines.append(f"... and more; these are {NAMES_MAX} of them")
    return "\n".join(lines)


def _line(entry: FolderEntry) -> str:
    match entry.kind:
        case "folder":
            return f"{entry.name}/"
        case "file":
            return f"{entry.name}  {entry.size} bytes"
        case kind:
            return f"{entry.name}  ({kind})"


def _text(piece: Piece, offset: int) -> str:
    """Return a piece as text, cut where a character ends, and how to go on."""
    is_last = offset + len(piece.data) >= piece.size
    data = piece.data if is_last else _whole_characters(piece.data)
    text = text_of(data)
    if is_last:
        return text if piece.size else "(an empty file)"
    end = offset + len(data)
    return f"{text}\n[{piece.size} bytes in all; go on with offset={end}]"


def _whole_characters(data: bytes) -> bytes:
    """Leave off the beginning of a character that is not whole.

    >>> _whole_characters("aß".encode()[:2])
    b'a'
    """
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 != 0x80:  # not inside of a character
            length = 1 if byte < 0x80 else 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return data[:-back] if length > back and back < len(data) else data
    return data


def write(workspace: Workspace, arguments: WriteFile, call: Call, disk: Disk) -> ToolOutput:
    """Write a file, if there is room for it. Blocks.

    Raises:
        InvalidInput: the path is no good.
        Unavailable: nothing was written; try again.
    """
    names = workspace.names_of(arguments.path)
    data = arguments.content.encode("utf-8", "replace")
    allowance = disk.allowance(workspace.folder)
    if allowance.why_not or len(data) > allowance.bytes_left:
        return ToolOutput(content=f"not written: {allowance.limit}", is_error=True)
    marks = Marks(workspace)
    if not call.may_replace and _is_clean(workspace, marks, names):
        return ToolOutput(content=NOT_REPLACED, is_error=True)
    with marks.writing(names, is_tainted=call.is_tainted):
        workspace.write(names, data, part=call.id)
    return ToolOutput(content=f"Wrote {count_of(len(data), 'byte')} to {os.fspath(Path(*names))}.")


def _is_clean(workspace: Workspace, marks: Marks, names: Names) -> bool:
    """Whether there is something that content from outside had no part in."""
    with marks.reading(names) as marked:
        if marked.has(names):
            return False
        try:
            workspace.read(names, 0, 0)
        except (NotFound, InvalidInput):
            return False
        return True


@tool(
    risk="read",
    timeout_s=TIMEOUT_S,
    profiles=("channel", "branch", "worker", "cron", "autonomy", "planner"),
    is_idempotent=True,
)
async def read_file(given: ReadFile, call: Call, context: ToolContext) -> ToolOutput:
    """Read a file or list a folder. Raises: InvalidInput, Unavailable; see `read`."""
    bytes_max = context.config.gateway.attachment_bytes_max
    return await asyncio.to_thread(read, await context.open_workspace(call), given, call, bytes_max)


@tool(risk="read", timeout_s=TIMEOUT_S, profiles=("channel",), is_idempotent=True)
async def attach_file(given: AttachFile, call: Call, context: ToolContext) -> ToolOutput:
    """Attach a file. Raises: InvalidInput, Unavailable; see `attach`."""
    bytes_max = context.config.gateway.attachment_bytes_max
    workspace = await context.open_workspace(call)
    return await asyncio.to_thread(attach, workspace, given, bytes_max)


@tool(
    risk="write",
    timeout_s=TIMEOUT_S,
    profiles=("channel", "worker", "cron", "planner"),
    is_idempotent=True,
    aims={"path": "which", "content": "content"},
)
async def write_file(given: WriteFile, call: Call, context: ToolContext) -> ToolOutput:
    """Write a file. Raises: InvalidInput, Unavailable; see `write`."""
    return await asyncio.to_thread(
        write, await context.open_workspace(call), given, call, context.disk
    )
