"""A server's tools as ours, and its answers as text and files. Pure.

A name of ours is made of the server's and the tool's alone, so that no other tool can change it.
Risk, timeout and whether a tool may run twice come from the configuration. What a server says of
its own tools (annotations, titles, icons) is not looked at.
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from collections.abc import Sequence
from typing import Final

import mcp_types as types
import msgspec

from vigil.contracts import Tool
from vigil.errors import InvalidInput
from vigil.settings.sections import McpServer
from vigil.words.aims import opens_address

from ..tools.source import OutputFile, output_file
from .schemas import Unfit, fit, visible

TOOLS_MAX: Final = 128
"""Of one server."""
SHELF_BYTES_MAX: Final = 512 * 1024
"""Of all tools of one server: what it offers is one record."""
LOOKED_BYTES_MAX: Final = 2 * SHELF_BYTES_MAX
"""Of schemas that are looked at, also of tools that are left out: checking one takes its time."""
DESCRIPTION_LENGTH_MAX: Final = 4096
NAME_LENGTH_MAX: Final = 64
"""Of a tool, as the model's API takes it."""
PROBLEMS_MAX: Final = 5
FILES_MAX: Final = 4
"""Of one result, that may be shown."""

_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool, and what its server calls it."""

    tool: Tool
    wire: str


# ---------------------------------------------------------------- tools


def offers(
    server: str, config: McpServer, listed: Sequence[types.Tool], *, output_bytes_max: int
) -> tuple[tuple[OfferedTool, ...], tuple[str, ...]]:
    """Return what of the tools that a server lists can be offered, and why the rest can't."""
    found: dict[str, OfferedTool] = {}
    problems: list[str] = []
    disk, patience = SHELF_BYTES_MAX, LOOKED_BYTES_MAX
    for tool in listed:
        patience -= len(msgspec.json.encode(tool.input_schema))
        if patience < 0:
            problems.insert(0, f"it lists {len(listed)} tools with schemas that are too large")
            break
        try:
            offer = offer_of(server, config, tool, output_bytes_max=output_bytes_max)
            if offer.tool.name in found:
                raise Unfit("there is another one of that name")
            disk -= len(msgspec.json.encode(offer.tool))
        except Unfit as error:
            problems.append(f"the tool {visible(tool.name)[:64]!r} is left out: {error}")
            continue
        if disk < 0 or len(found) == TOOLS_MAX:
            problems.insert(0, f"it lists {len(listed)} tools; the first {len(found)} are taken")
            break
        found[offer.tool.name] = offer
    return tuple(found.values()), _few(problems)


def _few(problems: list[str]) -> tuple[str, ...]:
    more = len(problems) - PROBLEMS_MAX
    return tuple(problems[:PROBLEMS_MAX]) + ((f"and {more} more",) if more > 0 else ())


def offer_of(
    server: str, config: McpServer, tool: types.Tool, *, output_bytes_max: int
) -> OfferedTool:
    """Return one tool as it is offered. Raises: Unfit."""
    schema = fit(tool.input_schema)
    return OfferedTool(
        wire=tool.name,
        tool=Tool(
            name=name_of(server, tool.name),
            description=shortened(visible(tool.description or ""), DESCRIPTION_LENGTH_MAX),
            input_schema=schema,
            risk=config.risks.get(tool.name, config.risk),
            timeout_s=config.timeout_s,
            output_bytes_max=output_bytes_max,
            is_idempotent=tool.name in config.idempotent,
            aims=config.aims.get(tool.name, {}),
            is_open=tool.name in config.open or opens_address(schema),
            digest=digest_of(tool),
        ),
    )


def name_of(server: str, tool: str) -> str:
    """Return the name under which a tool is offered.

    One that had to be changed ends with a hash of what it was, so that two never become one.

    >>> name_of("files", "read_file")
    'files__read_file'
    >>> name_of("files", "read file") == name_of("files", "read_file")
    False
    """
    plain = f"{server}__{tool}"
    if tool and len(plain) <= NAME_LENGTH_MAX and not _FORBIDDEN.search(plain):
        return plain
    ending = "_" + hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return _FORBIDDEN.sub("_", plain)[: NAME_LENGTH_MAX - len(ending)] + ending


def digest_of(tool: types.Tool) -> str:
    """Return SHA-256 of what a model is told of a tool: name, description and schema, whole."""
    told = [tool.name, tool.description or "", tool.input_schema]
    return hashlib.sha256(msgspec.json.encode(told, order="deterministic")).hexdigest()


def shortened(text: str, length_max: int) -> str:
    """Return at most `length_max` characters; a cut is seen.

    >>> shortened("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= length_max else text[: length_max - 1] + "…"


# ---------------------------------------------------------------- results


def told_of(result: types.CallToolResult, bytes_max: int) -> tuple[str, tuple[OutputFile, ...]]:
    """Return what a tool answered: as text, which whoever runs the call cuts to size, and files.

    Texts are told as they are; images, sounds and resources are named. What is structured is told
    if there is no text, which by the specification says the same.

    Args:
        bytes_max: of a file; larger ones, and those beyond `FILES_MAX`, are only named.
    """
    files: list[OutputFile] = []
    parts = [_block(block, files, bytes_max) for block in result.content]
    has_text = any(isinstance(block, types.TextContent) for block in result.content)
    if result.structured_content is not None and not has_text:
        parts.append(msgspec.json.encode(result.structured_content).decode())
    return "\n".join(parts) or "(nothing)", tuple(files)


def _block(block: types.ContentBlock, files: list[OutputFile], bytes_max: int) -> str:
    match block:
        case types.TextContent(text=text):
            return text
        case types.ImageContent(data=data, mime_type=kind):
            why = _taken(files, data, bytes_max)
            return f"[an image, {visible(kind)}, {_decoded(data)} bytes{why}]"
        case types.AudioContent(data=data, mime_type=kind):
            return f"[a sound, {kind}, {_decoded(data)} bytes, not shown]"
        case types.ResourceLink():
            return f"[a resource: {block.name}, {block.uri}, {block.mime_type or 'of no type'}]"
        case types.EmbeddedResource(resource=types.BlobResourceContents(blob=data) as resource):
            why = _taken(files, data, bytes_max)
            return f"[a resource{why}: {_resource(resource)}]"
        case types.EmbeddedResource(resource=resource):
            return f"[a resource, not shown: {_resource(resource)}]"


def _taken(files: list[OutputFile], data: str, bytes_max: int) -> str:
    """Take a file, if it's one that models are shown; else return why not."""
    if len(files) >= FILES_MAX:
        return f", not shown: there are more than {FILES_MAX}"
    if _decoded(data) > bytes_max:
        return f", not shown: at most {bytes_max} bytes are"
    try:
        found = output_file(f"file {len(files) + 1}", b64decode(data, validate=True), bytes_max)
    except InvalidInput as error:
        return f", not shown: it {error.reason}"
    except ValueError:
        return ", not shown: it's no Base64"
    files.append(found)
    return ""


def _resource(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    if isinstance(resource, types.TextResourceContents):
        size = f"{len(resource.text)} characters"
    else:
        size = f"{_decoded(resource.blob)} bytes"
    return f"{resource.uri}, {resource.mime_type or 'of no type'}, {size}"


def _decoded(base64: str) -> int:
    """Return how many bytes are encoded."""
    return len(base64.rstrip("=")) * 3 // 4
