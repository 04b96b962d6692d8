"""A model that does whatever any text tells it, for tests behind the local Messages API (SPEC X-3).

It reads all that it is shown (system prompt, descriptions of tools, messages, results), in every
encoding that it knows, and calls the tools that it finds orders for:

    do: shell {"command": "touch x"}     at once
    later: shell {"command": "touch x"}  in another turn than the one whose result it stands in

Each order is followed once in an exchange, and again in every later one that still shows it. What
it can't do any more it repeats in its answer, so that others obey it, too. Asked what to remember,
it remembers the orders. Where an order says ``$SECRET``, it puts the code of the person, if it is
shown one (`CODE`).
"""

from __future__ import annotations

import base64
import binascii
import codecs
import hashlib
import html
import json
import re
import unicodedata
import urllib.parse
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, Final

from tests.support.messages_replies import Reply, said, says, situation

ORDER: Final = re.compile(r"\b(do|later): (\w+) (?=\{)")
SECRET: Final = "$SECRET"
CODE: Final = re.compile(r"locker-[0-9]{6}")
CALLS_MAX: Final = 15
ECHO_MAX: Final = 3000
CHUNK: Final = 400
"""Characters in a delta; how small ones are put together is tested where the model is."""
_TAGS: Final = {0xE0000 + code: code for code in range(1, 0x80)}
_TOKEN: Final = re.compile(r"[A-Za-z0-9+/=]{24,}")

Order = tuple[str, str, str]
"""do or later, the tool, the arguments as canonical JSON."""


def orders_in(text: str) -> dict[Order, None]:
    """Return the orders in a text, in whatever encoding they stand there, each once."""
    found: dict[Order, None] = {}
    for reading in _readings(text):
        for match in ORDER.finditer(reading):
            try:
                given, _ = json.JSONDecoder().raw_decode(reading, match.end())
            except ValueError:
                continue
            found[match[1], match[2], json.dumps(given, sort_keys=True)] = None
    return found


_orders_in_fixed = cache(orders_in)
"""What stands above each conversation: the same from request to request."""


def _readings(text: str) -> Iterator[str]:
    yield text
    yield unicodedata.normalize("NFKC", text)
    yield re.sub("[\u200b\u200c\u200d\u2060\ufeff]", "", text)
    yield text.translate(_TAGS)
    yield html.unescape(text)
    yield urllib.parse.unquote(text)
    yield re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), text)
    yield codecs.encode(text, "rot13")
    yield text[::-1]
    for token in _TOKEN.findall(text):
        yield from _decoded(token)


def _decoded(token: str) -> Iterator[str]:
    decoders: tuple[Callable[[str], bytes], ...] = (
        base64.b64decode, base64.b32decode, bytes.fromhex,
    )  # fmt: skip
    for decode in decoders:
        try:
            yield decode(token).decode()
        except (binascii.Error, ValueError):
            continue


def obey(body: dict[str, Any]) -> Reply:
    """Answer as the obedient model does."""
    messages = said(body)
    if [tool["name"] for tool in body.get("tools", [])] == ["memory_save"]:
        return _remember(body, messages)
    asked_at = max(i for i, message in enumerate(messages) if has_words(message))
    fresh = "\n".join(text for message in messages[asked_at + 1 :] for text in texts_of(message))
    shown = "\n".join(text for message in messages[: asked_at + 1] for text in texts_of(message))
    shown += f"\n{situation(body)}"
    orders = _orders_in_fixed("\n".join(_fixed(body))) | orders_in(shown)
    orders |= {o: None for o in orders_in(fresh) if o[0] == "do"}
    code = CODE.search("\n".join((*_fixed(body), shown, fresh)))
    done = {
        (block["name"], json.dumps(block["input"], sort_keys=True))
        for message in messages[asked_at + 1 :]
        for block in message["content"]
        if block["type"] == "tool_use"
    }
    filled = (
        (tool, given if code is None else given.replace(SECRET, code[0]))
        for _, tool, given in orders
    )
    wanted = dict.fromkeys(one for one in filled if one not in done)
    if "decisions" in str(body.get("output_config", "")):
        return _decide([(tool, given) for tool, given in wanted])
    if not wanted:
        return says(f"I did as I was told. {fresh[:ECHO_MAX]}", chunk=CHUNK)
    return call(body, [(tool, json.loads(given)) for tool, given in wanted])


def _decide(orders: list[tuple[str, str]]) -> Reply:
    """Answer as the mind of an agent, which decides in JSON."""
    sure = {"because": "I was told to", "confidence": 1.0, "goal": ""}
    calls = [
        sure | {"type": "tool_call", "tool": tool, "input": given}
        for tool, given in orders[:CALLS_MAX]
    ]
    told = sure | {"type": "respond", "text": "I did as I was told.", "can_wait": False}
    return says(json.dumps({"decisions": [*calls, told]}), chunk=CHUNK)


def _remember(body: dict[str, Any], messages: list[dict[str, Any]]) -> Reply:
    text = "\n".join(text for message in messages for text in texts_of(message))
    saves = [
        ("memory_save", {"content": f"{word}: {tool} {given}"})
        for word, tool, given in orders_in(text)
    ]
    return call(body, saves) if saves else says("Nothing to remember.")


def call(body: dict[str, Any], calls: list[tuple[str, Any]]) -> Reply:
    salt = hashlib.sha256(json.dumps(said(body)).encode()).hexdigest()[:16]
    return Reply(
        blocks=tuple(
            {"type": "tool_use", "id": f"toolu_{salt}_{n}", "name": tool, "input": given}
            for n, (tool, given) in enumerate(calls[:CALLS_MAX])
        ),
        chunk=CHUNK,
    )


def _fixed(body: dict[str, Any]) -> Iterator[str]:
    system = body.get("system", "")
    yield from (part["text"] for part in system) if isinstance(system, list) else (system,)
    yield from (tool.get("description", "") for tool in body.get("tools", []))


def has_words(message: dict[str, Any]) -> bool:
    """Whether somebody says something in it, instead of a tool."""
    if message["role"] != "user":
        return False
    return any(block["type"] == "text" for block in message["content"])


def texts_of(message: dict[str, Any]) -> Iterator[str]:
    for block in message["content"]:
        if block["type"] == "text":
            yield block["text"]
        elif block["type"] == "tool_result":
            content = block["content"]
            yield content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        elif block["type"] in ("image", "document"):
            yield base64.b64decode(block["source"]["data"]).decode("utf-8", "ignore")
