"""Where a provider is told to cache a request: at most four breakpoints. Pure.

A breakpoint ends a part that the provider keeps for five minutes from its last use. A later request
that begins with the same bytes reads that part for a fraction of its price, if it ends at one of
the 20 blocks up to a breakpoint. So two stand in the system prompt (what all sessions of a kind
share, with the tools before it, and what this one has for itself), and two in the history: where
the last request ended, however many blocks one step of tool calls made since, and where this one
does. Below a model's minimum (512 to 4,096 tokens) nothing is kept, at no cost.

Source: the prompt caching page of the Messages API's documentation, 2026-11.
"""

from __future__ import annotations

from typing import Any, Final

BREAKPOINT: Final = {"type": "ephemeral"}


def marked_system(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark the first and the last block."""
    ends = {0, len(blocks) - 1}
    return [_marked(block) if i in ends else block for i, block in enumerate(blocks)]


def marked_messages(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Mark the end of the last message of the user's, and of the one that was answered before."""
    ends = [i for i, message in enumerate(messages) if message["role"] == "user"][-2:]
    return [_ended(message) if i in ends else message for i, message in enumerate(messages)]


def _ended(message: dict[str, Any]) -> dict[str, Any]:
    *others, last = message["content"]
    return message | {"content": [*others, _marked(last)]}


def _marked(block: dict[str, Any]) -> dict[str, Any]:
    return block | {"cache_control": BREAKPOINT}
