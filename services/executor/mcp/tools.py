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
from vigil.settings.servers import ToolServer
from vigil.words.aims import opens_address

from ..tools.source import OutputFile, output_file
from .schemas import Unfit, fit, visible

TOOLS_MAX: Final = 128
"""Of one server."""
SHELF_BYTES_MAX: Final = 512 * 1024
"""Of all tools of one server: what it offers is one record."""
CHECKED_BYTES_MAX: Final = 2 * SHELF_BYTES_MAX
"""Of schemas that are looked at, also of tools that are left out: checking one takes its time."""
DESCRIPTION_LENGTH_MAX: Final = 4096
NAME_LENGTH_MAX: Final = 64
"""Of a tool, as the model's API takes it."""
PROBLEMS_MAX: Final = 5
FILES_MAX: Final = 4
"""Of one result, that may be shown."""

_TEXTUAL: Final = re.compile(r"text/|application/(.+\+)?(json|xml|yaml|toml)\b", re.IGNORECASE)
_FORBIDDEN: Final = re.compile(r"[^A-Za-z0-9_-]", re.ASCII)


class PromptTool(types.Tool):
    """A server's prompt, as a tool."""

    prompt: str
    """What its server calls it."""


class OfferedTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool, and what its server calls it."""

    tool: Tool
    wire: str


# ---------------------------------------------------------------- tools


def offers(
    server: str, config: ToolServer, listed: Sequence[types.Tool], *, output_bytes_max: int
) -> tuple[tuple[OfferedTool, ...], tuple[str, ...]]:
    """Return what of the tools that a server lists can be offered, and why the rest can't."""
    found: dict[str, OfferedTool] = {}
    problems: list[str] = []
    disk, patience = SHELF_BYTES_MAX, CHECKED_BYTES_MAX
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
    server: str, config: ToolServer, tool: types.Tool, *, output_bytes_max: int
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
            is_skill=isinstance(tool, PromptTool),
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


def described(result: types.CallToolResult, bytes_max: int) -> tuple[str, tuple[OutputFile, ...]]:
    """Return what a tool answered: as text, which whoever runs the call cuts to size, and files.

    Texts are told as they are, those of resources with their name; images, sounds and other
    resources are named. What is structured is told unless a text says the same, as it should by the
    specification.

    Args:
        bytes_max: of a file; larger ones, and those beyond `FILES_MAX`, are only named.
    """
    files: list[OutputFile] = []
    parts = [_block(block, files, bytes_max) for block in result.content]
    if result.structured_content is not None and not _is_said(result):
        data = msgspec.json.encode(result.structured_content).decode()
        parts.append(f"[as data]\n{data}" if parts else data)
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
            return _link(block)
        case types.EmbeddedResource(resource=resource):
            return _embedded(resource, files, bytes_max)


def _embedded(
    resource: types.TextResourceContents | types.BlobResourceContents,
    files: list[OutputFile],
    bytes_max: int,
) -> str:
    text = _text_of(resource)
    if text is not None or isinstance(resource, types.TextResourceContents):
        return f"[the resource {_resource(resource)}]\n{text}\n[end of the resource]"
    why = _taken(files, resource.blob, bytes_max)
    return f"[a resource{why}: {_resource(resource)}, {_decoded(resource.blob)} bytes]"


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


def _is_said(result: types.CallToolResult) -> bool:
    """Return whether the blocks say what is structured. Servers put what is no object under a key
    of its own, and each element of a list into a block."""
    texts = [block.text for block in result.content if isinstance(block, types.TextContent)]
    blocks = [block.model_dump(by_alias=True, exclude_none=True) for block in result.content]
    said: list[object] = [*texts, *(_read(text) for text in texts), *blocks]
    data = result.structured_content
    inner = next(iter(data.values())) if isinstance(data, dict) and len(data) == 1 else data
    if data in said or inner in said:
        return True
    return isinstance(inner, list) and bool(inner) and all(one in said for one in inner)


def _read(text: str) -> object:
    """Return a text as JSON; as it is, if it is none."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text


def _link(link: types.ResourceLink) -> str:
    """Name a resource that can be had elsewhere, with what is said of it."""
    title = f"{link.title} ({link.name})" if link.title and link.title != link.name else link.name
    size = "" if link.size is None else f", {link.size} bytes"
    about = f": {link.description}" if link.description else ""
    told = f"a resource: {title}, {link.uri}, {link.mime_type or 'of no type'}{size}{about}"
    return f"[{shortened(visible(told), DESCRIPTION_LENGTH_MAX)}]"


def _text_of(resource: types.TextResourceContents | types.BlobResourceContents) -> str | None:
    """Return its text, also of one that is encoded although it is one by its type; None: it is
    none."""
    if isinstance(resource, types.TextResourceContents):
        return resource.text
    if not _TEXTUAL.match(resource.mime_type or ""):
        return None
    try:
        return b64decode(resource.blob, validate=True).decode()
    except ValueError:
        return None


def _resource(resource: types.TextResourceContents | types.BlobResourceContents) -> str:
    return shortened(visible(f"{resource.uri}, {resource.mime_type or 'of no type'}"), 1000)


def _decoded(base64: str) -> int:
    """Return how many bytes are encoded."""
    return len(base64.rstrip("=")) * 3 // 4
