"""Parts of a request that some servers don't take, and how it's asked without them. Pure.

A server that refuses one by its name answers before anything is spent: the request is made again at
once, and from then on without it. One that takes a schema and ignores it is noticed by an answer
that is no JSON; from then on the schema is given in words, too.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ..model import ModelAnswer, ModelRequest

READ_STATUSES: Final = (400, 422, 500)
"""What is said with them may be of a parameter; llama-cpp-python 0.3.36 says 500 of one."""
IN_WORDS: Final = (
    "Answer with JSON alone, without any other text, that is valid for this JSON Schema:\n"
)
TOOLS: Final = "tools"
_NO_TOOLS: Final = re.compile(
    r"does(?: not|n't) support (?:tools|tool use|function calling)|tools param requires"
    r"|tool choice requires|tools (?:are|is) not supported|function calling is not supported",
    re.IGNORECASE,
)
"""What servers say whose model, or whose configuration, has no tools: Ollama, llama.cpp without
--jinja, vLLM without --enable-auto-tool-choice."""
WITHOUT_TOOLS: Final = (
    "You have no tools: the server that runs you takes none. So you can't set reminders or follow "
    "up, remember, look anything up or do anything but answer. If you are asked for such a thing, "
    "say that you can't do it here; never claim that you did it or will."
)
_FENCED: Final = re.compile(r"\s*```(?:json)?\s*\n(.*)\n\s*```\s*", re.DOTALL)


def in_words(schema: dict[str, Any]) -> str:
    """Return what asks for an answer by a schema where no parameter does."""
    return IN_WORDS + json.dumps(schema, ensure_ascii=False)


def has_no_tools(said: str) -> bool:
    """Whether a server refused a request since it takes no tools.

    >>> has_no_tools("registry.ollama.ai/library/gemma:2b does not support tools")
    True
    >>> has_no_tools("tools.0.name: too long")
    False
    """
    return _NO_TOOLS.search(said) is not None


def unfenced(text: str) -> str:
    """Return the JSON of an answer without the fence that many models put around it.

    >>> unfenced('```json\\n{"word": "ok"}\\n```'), unfenced("ok")
    ('{"word": "ok"}', 'ok')
    """
    found = _FENCED.fullmatch(text)
    return found[1] if found else text


def learned(answer: ModelAnswer, request: ModelRequest, parameter: str) -> frozenset[str]:
    """Return what an answer shows of its server: `parameter`, if a schema went out in it and what
    came to its end is no JSON."""
    if request.schema is None or answer.stop_reason != "end_turn":
        return frozenset()
    try:
        json.loads(answer.text or "{}")
    except (ValueError, RecursionError):
        return frozenset([parameter])
    return frozenset()
