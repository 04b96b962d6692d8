"""The requests of a conversation as they would be if what changes with every call stayed in them.

Vigil shows a model the situation (time, follow-ups, memories) last, and drops it before the next
call (ADR 27). A history that only grows would keep each where it was shown. Here that is done to
requests that were really made, so that its price can be told without building it. Pure.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from services.cortex.models.breakpoints import marked_messages, marked_system
from tests.support.messages_replies import SITUATION
from tests.support.prompt_cache import PromptCache

READ: Final = 0.1
WRITTEN: Final = 1.25
"""What a token costs that is read from a provider's cache, or written into it, over one of input.
Source: the prompt caching page of the Messages API's documentation, 2026-11."""
CALL_S: Final = 2.0
"""Between two calls of a turn."""

Body = dict[str, Any]
Said = Callable[[str, set[str]], str]
"""What is kept of a situation, by the lines that stand in the history already."""


def whole(situation: str, _: set[str]) -> str:
    """Keep all of it, as if the history only grew."""
    return situation


def new_lines(situation: str, known: set[str]) -> str:
    """Keep the lines that no situation before it had. That is less than a model would need: it
    isn't told which of the earlier lines don't hold any more.

    >>> new_lines("[Situation]\\nnow: 2\\n- sea", {"now: 1", "- sea"})
    '[Situation]\\nnow: 2'
    """
    head, *lines = situation.split("\n")
    return "\n".join([head, *(one for one in lines if one not in known)])


def kept(bodies: Sequence[Body], said: Said) -> list[Body]:
    """Return the requests with each situation where it was shown, and the breakpoints moved.

    Args:
        bodies: in their order; none of them compacted or cut.
    """
    known: set[str] = set()
    shown: list[tuple[int, int, str]] = []
    """Of each situation so far: its message, its place among the blocks, its text."""
    found = []
    for body in bodies:
        messages = [
            {"role": one["role"], "content": list(_unmarked(one["content"]))}
            for one in body["messages"]
        ]
        at = len(messages) - 1
        situation = messages[at]["content"].pop()
        assert situation["text"].startswith(SITUATION)
        text = said(situation["text"], known)
        known.update(situation["text"].split("\n"))
        shown.append((at, len(messages[at]["content"]), text))
        for message, place, one in reversed(shown):
            block = {"type": "text", "text": one}
            messages[message]["content"].insert(place, block)
        found.append(
            body
            | {
                "system": marked_system(list(_unmarked(body["system"]))),
                "messages": marked_messages(messages),
            }
        )
    return found


def without(bodies: Sequence[Body]) -> list[Body]:
    """Return the requests with no situation at all: the least that anything could cost."""
    found = copy.deepcopy(list(bodies))
    for body in found:
        body["messages"][-1]["content"].pop()
    return found


def same(before: Body, after: Body) -> float:
    """Return which part of a request's bytes begins the one before, by whole blocks."""
    first, second = [*_sizes(before)], [*_sizes(after)]
    shared = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False))
    return sum(size for _, (_, size) in shared) / sum(size for _, size in second)


def _sizes(body: Body) -> Iterator[tuple[str, int]]:
    parts = [body.get("tools", []), body["system"], *(one["content"] for one in body["messages"])]
    for block in itertools.chain.from_iterable(_unmarked(part) for part in parts):
        text = json.dumps(block, ensure_ascii=False)
        yield text, len(text.encode())


def _unmarked(blocks: Sequence[Body]) -> Iterator[Body]:
    for block in blocks:
        yield {name: value for name, value in block.items() if name != "cache_control"}


def price(bodies: Sequence[Body], begins: Sequence[int], turn_s: float) -> tuple[float, float]:
    """Return what the requests cost, in tokens of input, and the share that the last one reads.

    Args:
        begins: the requests that begin a turn.
        turn_s: from one turn to the next; a provider forgets after five minutes.
    """
    now_s = cost = share = 0.0
    cache = PromptCache(lambda: now_s)
    for number, body in enumerate(bodies):
        now_s += turn_s if number in begins else CALL_S
        used = cache.usage_of(body)
        plain, read = used["input_tokens"], used["cache_read_input_tokens"]
        written = used["cache_creation_input_tokens"]
        cost += plain + READ * read + WRITTEN * written
        share = read / (plain + read + written)
    return cost, share
