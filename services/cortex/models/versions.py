"""What depends on the version of the provider's model, read from its id. Pure.

A model of another name, on a server of one's own, has none of it.

Source: the pages "Effort" and "Preserved thinking" of the Messages API's documentation, 2026-11,
where no other is named.
"""

from __future__ import annotations

import re
from typing import Final

_VERSION: Final = re.compile(r"claude-([a-z]+)-(\d+)(?:-(\d{1,2}))?(?!\d)")
_Since = dict[str, tuple[int, int]]
_EFFORT: Final[_Since] = {
    "fable": (5, 0),
    "mythos": (5, 0),
    "opus": (4, 5),
    "sonnet": (4, 6),
    "haiku": (5, 5),
}
_REASONING: Final = re.compile(r"(openai/)?(o[1-9]|gpt-([5-9]|\d\d|oss))(?![a-z])")
_GPT: Final = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?=-|$)")
_GPT_MARKED: Final = (5, 6)
_BOUND: Final[_Since] = {
    "fable": (5, 1),
    "mythos": (5, 1),
    "opus": (5, 5),
    "sonnet": (5, 5),
    "haiku": (5, 5),
}


def takes_effort(model: str) -> bool:
    """Whether a model takes `output_config.effort`; the others refuse a request that has one.

    >>> [takes_effort(f"claude-{name}") for name in ("sonnet-5-5", "opus-4-5-20251101", "sonnet-5")]
    [True, True, True]
    >>> [takes_effort(name) for name in ("claude-haiku-4-5", "claude-opus-4-20250514", "qwen3")]
    [False, False, False]
    """
    return _is_since(model, _EFFORT)


def binds_thinking(model: str) -> bool:
    """Whether a model's thinking is bound to all that stood before it: sent back after something
    else, the request is refused (by default for accounts made since 2026-08-31).

    >>> [binds_thinking(f"claude-{name}") for name in ("sonnet-5-5", "fable-5-1", "opus-5", "test")]
    [True, True, False, False]
    """
    return _is_since(model, _BOUND)


def takes_reasoning_effort(model: str) -> bool:
    """Whether a model takes `reasoning_effort` of Chat Completions.

    >>> [takes_reasoning_effort(name) for name in ("gpt-5.5", "o4-mini", "openai/gpt-oss-20b")]
    [True, True, True]
    >>> [takes_reasoning_effort(name) for name in ("gpt-4o", "gpt-5-chat-latest", "qwen3")]
    [False, False, False]
    """
    return _REASONING.match(model) is not None and "-chat" not in model


def takes_cache_breakpoints(model: str) -> bool:
    """Whether OpenAI's own server caches of a request only what ends at a breakpoint, which it
    otherwise places by itself, near the end: there, what changes with every call stands before it.

    Source: the page "Prompt caching" of OpenAI's documentation, 2026-11.

    >>> [takes_cache_breakpoints(name) for name in ("gpt-5.6-sol", "gpt-6-luna", "gpt-6.2-sol")]
    [True, True, True]
    >>> [takes_cache_breakpoints(name) for name in ("gpt-5.5", "gpt-5", "gpt-oss-20b", "qwen3")]
    [False, False, False, False]
    """
    found = _GPT.match(model)
    return found is not None and (int(found[1]), int(found[2] or 0)) >= _GPT_MARKED


def _is_since(model: str, since: _Since) -> bool:
    found = _VERSION.match(model)
    if found is None or found[1] not in since:
        return False
    return (int(found[2]), int(found[3] or 0)) >= since[found[1]]
