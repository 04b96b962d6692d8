"""A model that calls the one tool that it's told to, and says what came: over the Messages API.

    call time__convert_time {"time": "16:00"}

A tool that it isn't shown it looks for first (`find_tools`), as a model has to.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from tests.support.messages_replies import Reply, calls, said, says
from tests.support.obedient import has_words, texts_of

ORDER: Final = re.compile(r"^call (\S+) (\{.*\})$", re.MULTILINE | re.DOTALL)
SAID_MAX: Final = 6000
CHUNK: Final = 500


def behave(body: dict[str, Any]) -> Reply:
    """Answer a request."""
    messages = said(body)
    orders = [(i, ORDER.search(_words(one))) for i, one in enumerate(messages) if has_words(one)]
    begin, order = next(((i, one) for i, one in reversed(orders) if one is not None), (0, None))
    shown = {tool["name"] for tool in body.get("tools", ())}
    if order is None or shown == {"memory_save"}:
        return says("Nothing.")
    since = messages[begin + 1 :]
    called = [one["name"] for m in since for one in m["content"] if one["type"] == "tool_use"]
    name = order[1]
    if name in called:
        results = [
            text
            for message in since
            for one in message["content"]
            if one["type"] == "tool_result"
            for text in texts_of({"content": [one]})
        ]
        return says(results[-1][:SAID_MAX], chunk=CHUNK)
    if name in shown:
        return calls(name, json.loads(order[2]))
    if "find_tools" in called:
        return says(f"I don't find {name}.")
    return calls("find_tools", {"query": name})


def _words(message: dict[str, Any]) -> str:
    """Return what somebody says in a message, without what tools do."""
    blocks = [block for block in message["content"] if block["type"] == "text"]
    return "\n".join(block["text"] for block in blocks)
