"""A server's prompts as tools that return instructions, as skills do. Pure.

So all that holds of a server's tools holds of them: what they say of themselves is approved by a
person, what they return is from outside unless the server is trusted, and what a model gives to one
is sent to the server by a call of the class that is configured.
"""

from __future__ import annotations

from typing import Any, Final

import mcp_types as types
import msgspec

from ..tools import PromptTool

PREFIX: Final = "skill_"
"""Before the name of a prompt, among the names of its server's tools."""
SAID: Final = "A skill of its server: returns instructions. {description}"
BY: Final = {"user": "[the person might say]", "assistant": "[you might answer]"}
"""Before a message, if a prompt is a conversation."""


def tool_of(prompt: types.Prompt) -> PromptTool:
    """Return a prompt as a tool; its arguments are texts, by the protocol."""
    properties: dict[str, Any] = {}
    for one in prompt.arguments or ():
        said = {"description": one.description} if one.description else {}
        properties[one.name] = {"type": "string", **said}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [one.name for one in prompt.arguments or () if one.required]
    if required:
        schema["required"] = list(dict.fromkeys(required))
    description = SAID.format(description=prompt.description or "").rstrip()
    return PromptTool(
        name=f"{PREFIX}{prompt.name}",
        description=description,
        input_schema=schema,
        prompt=prompt.name,
    )


def texts_of(arguments: dict[str, Any]) -> dict[str, str]:
    """Return the arguments of a call as a prompt takes them.

    >>> texts_of({"code": "x", "lines": 3, "more": None})
    {'code': 'x', 'lines': '3'}
    """
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in arguments.items()
        if value is not None
    }


def result_of(found: types.GetPromptResult) -> types.CallToolResult:
    """Return what a server gave as what a tool returns."""
    content: list[types.ContentBlock] = []
    is_talk = any(one.role != "user" for one in found.messages)
    for one in found.messages:
        if is_talk:
            content.append(types.TextContent(type="text", text=BY[one.role]))
        content.append(one.content)
    return types.CallToolResult(content=content)
