"""/api/agents/{agentId}/files: who an agent is (SPEC P-4), read and written by admins. What is
written is in the agent's next prompt, two seconds later at most.

They are the files of this gateway's home: where the services run on machines of their own, with
homes of their own, this shows and changes what the cortex doesn't read.
"""

from __future__ import annotations

import asyncio
from pathlib import Path as File
from typing import Annotated, Final

import msgspec
import structlog
from fastapi import Depends, Path, Response

from vigil.files import alone
from vigil.local.identity_files import (
    FILE_BYTES_MAX,
    FILES,
    MEANINGS,
    agents_there,
    digest_of,
    is_whole,
    read_text,
    write_text,
)
from vigil.subjects import check_part
from vigil.words.nearest import meant

from ..callers import Admin, Shared, body_of
from ..endpoint import Endpoint
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import PART_SCHEMA, Answer, RequestBody
from ..state.edge import Edge

log = structlog.get_logger("vigil.gateway")

AgentName = Annotated[str, Path(alias="agentId", json_schema_extra=PART_SCHEMA)]
FileName = Annotated[str, Path(alias="name", description=", ".join(FILES))]


class AgentFile(Answer, frozen=True, kw_only=True):
    """One of the files that say who an agent is."""

    name: str
    meaning: str
    text: str
    """At most 32 kB of it; empty: it says nothing, or isn't there."""
    digest: str
    """What a change of it has to name."""
    is_there: bool


class AgentFiles(Answer, frozen=True, kw_only=True):
    """The files that say who an agent is."""

    agent_id: str = msgspec.field(name="agentId")
    files: tuple[AgentFile, ...]


class AgentFileChange(RequestBody, frozen=True, kw_only=True):
    """What a file is to say."""

    text: str
    digest: str
    """Of the text as it was read: a change of somebody else's isn't written over."""


async def list_agent_files(edge: Shared, _: Admin, agent: AgentName) -> Response:
    """Read the files that say who an agent is. Needs an admin token."""
    folder = _folder(edge, agent)
    return Json(AgentFiles(agent_id=agent, files=await asyncio.to_thread(_all, folder)))


async def write_agent_file(
    edge: Shared,
    caller: Admin,
    agent: AgentName,
    name: FileName,
    wanted: Annotated[AgentFileChange, Depends(body_of(AgentFileChange))],
) -> Response:
    """Write a file that says who an agent is; 409 if it was changed since it was read, or holds
    more than was read. Needs an admin token."""
    folder = _folder(edge, agent)
    if name not in FILES:
        raise Problem(404, f"an agent has no such file; it has {', '.join(FILES)}", field="name")
    if len(wanted.text.encode("utf-8", "replace")) > FILE_BYTES_MAX:
        raise Problem(422, "text: an agent is shown 32 kB of a file at most", field="text")
    try:
        written = await asyncio.to_thread(_write, folder / name, wanted)
    except OSError as error:
        raise Problem(503, f"{name} can't be written: {error.strerror or error}") from error
    log.info("agent file written", action="gateway.agents", by=caller.user, agent=agent, file=name)
    return Json(written)


def _folder(edge: Edge, agent: str) -> File:
    """Return where the files of an agent are that there is. Raises: Problem, 404."""
    settings = edge.context.settings
    if check_part("agentId", agent) not in (there := agents_there(settings)):
        reason = f"there is no agent called {agent}{meant(agent, there)}"
        raise Problem(404, reason, field="agentId")
    return settings.agents / agent


def _all(folder: File) -> tuple[AgentFile, ...]:
    return tuple(_shown(folder / name) for name in FILES)


def _shown(path: File) -> AgentFile:
    try:
        text = read_text(path)
    except OSError:
        text = ""
    return AgentFile(
        name=path.name,
        meaning=MEANINGS[path.name],
        text=text,
        digest=digest_of(text),
        is_there=path.exists(),
    )


def _write(path: File, wanted: AgentFileChange) -> AgentFile:
    with alone(path.parent):  # two who read the same: one of them is told
        if _shown(path).digest != wanted.digest:
            raise Problem(409, f"{path.name} was changed since it was read; read it again")
        if not is_whole(path):
            reason = (
                "is shown in part, being larger than 32 kB or not UTF-8: its rest would be lost"
            )
            raise Problem(409, f"{path.name} {reason}. Change it where it is: {path}")
        write_text(path, wanted.text)
        return _shown(path)


_PATH: Final = "/api/agents/{agentId}/files"
_REFUSED: Final = (403, 404, 409, 413, 422, 503)
ENDPOINTS: Final = (
    Endpoint("GET", _PATH, list_agent_files, {200: AgentFiles}, (403, 404, 422)),
    Endpoint(
        "PUT", f"{_PATH}/{{name}}", write_agent_file, {200: AgentFile}, _REFUSED, AgentFileChange
    ),
)
