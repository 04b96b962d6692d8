"""Whether a server refused a request since it is too long, and how long one may be. Pure.

None has a status of its own for that, and each says it in words of its own. The forms are those of
Anthropic, OpenAI, llama.cpp, vLLM, SGLang, Ollama, LM Studio, Gemini, Mistral, Groq, xAI, Bedrock
and Text Generation Inference, as they stand in sources and in reports of users (2026-11).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

STATUSES: Final = (400, 413, 422, 500)
CODES: Final = ("context_length_exceeded", "exceed_context_size_error", "request_too_large")
"""Of OpenAI and whoever follows it, of llama.cpp, and of Anthropic for its bytes."""
LIMIT_FIELD: Final = "n_ctx"
"""Where llama.cpp says it as a number."""
LIMIT_MIN: Final = 256
_N: Final = r"(?P<limit>\d[\d,]*)"
_WITH_LIMIT: Final = tuple(
    re.compile(form, re.IGNORECASE)
    for form in (
        # Anthropic: "prompt is too long: 210000 tokens > 200000 maximum", and of both together
        rf"prompt is too long: [\d,]+ (?:tokens )?> {_N}",
        rf"exceed context limit: [\d,]+ \+ [\d,]+ > {_N}",
        # llama.cpp
        rf"exceeds the available context size \({_N} tokens\)",
        # OpenAI, vLLM, SGLang, OpenRouter: "maximum context length is 8192 tokens. However, …"
        rf"maximum (?:context|model|prompt) length (?:is|of) {_N}",
        # vLLM, SGLang, Ollama: "is longer than the model's context length (4096 tokens)"
        rf"(?:context|model) length \({_N}(?: tokens)?\)",
        # LM Studio, Ollama
        rf"context length of (?:only )?{_N} tokens",
        # Gemini
        rf"exceeds the maximum number of tokens allowed \({_N}\)",
        # Mistral: "Prompt contains 40000 tokens … too large for model with 32768 maximum …"
        rf"too large for model with {_N} maximum context",
        # Text Generation Inference: "`inputs` tokens + `max_new_tokens` must be <= 4096."
        rf"`max_new_tokens` must be <= {_N}",
        # llama-cpp-python
        rf"exceed context window of {_N}",
    )
)
_WITHOUT: Final = re.compile(
    r"prompt (?:is )?too long|input is too long|exceeds? the (?:available )?context"
    r"|context (?:length|size|window) (?:has been )?exceeded|exceeds? (?:the )?(?:model's )?"
    r"(?:maximum )?(?:context|input|prompt) (?:length|window)|context length of the model"
    r"|maximum context length|reduce the length of the (?:messages|prompt)"
    r"|exceeds the maximum number of tokens",
    re.IGNORECASE,
)


def limit_of(
    message: str, codes: tuple[str, ...] = (), more: Mapping[str, Any] | None = None
) -> int:
    """Return how many tokens a request may have that was refused for its length; 0: it isn't said,
    -1: that isn't why it was refused.

    Args:
        codes: what the error is called beside its words.
        more: the error as data.

    >>> limit_of("prompt is too long: 16556 tokens > 16000 maximum")
    16000
    >>> limit_of("Your input exceeds the context window of this model.")
    0
    >>> limit_of("max_tokens: too many")
    -1
    """
    found = next((hit for form in _WITH_LIMIT if (hit := form.search(message))), None)
    named = (more or {}).get(LIMIT_FIELD)
    is_known = not set(CODES).isdisjoint(codes) or _WITHOUT.search(message) is not None
    if found is None and not (is_known or isinstance(named, int)):
        return -1
    limit = (
        named if isinstance(named, int) else int(found["limit"].replace(",", "")) if found else 0
    )
    return limit if limit >= LIMIT_MIN else 0
