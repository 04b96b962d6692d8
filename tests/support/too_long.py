"""How servers refuse a request that is longer than their window, each in its own words.

As they stand in the servers' sources, and in reports of their users (2026-11).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tests.support.messages_replies import Reply, fails


class Form(NamedTuple):
    """A server's refusal; `{sent}`, `{answer}`, `{window}` are counts of tokens."""

    message: str
    type: str = "invalid_request_error"
    code: str = ""
    status: int = 400
    counts_answer: bool = False
    """Whether the longest answer has to fit, too."""

    def told(self, sent: int, answer: int, window: int) -> Reply:
        message = self.message.format(sent=sent, answer=answer, window=window, whole=sent + answer)
        return fails(self.status, self.type, error_message=message, error_code=self.code)

    def fits(self, sent: int, answer: int, window: int) -> bool:
        return sent + answer * self.counts_answer <= window


ANTHROPIC: Final = Form("prompt is too long: {sent} tokens > {window} maximum")
VLLM: Final = Form(
    "This model's maximum context length is {window} tokens. However, you requested {answer} "
    "output tokens and your prompt contains at least {sent} input tokens, for a total of at least "
    "{whole} tokens. Please reduce the length of the input prompt or the number of requested "
    "output tokens.",
    "BadRequestError",
    counts_answer=True,
)
FORMS: Final = {
    "anthropic": ANTHROPIC,
    "anthropic, with the answer": Form(
        "input length and `max_tokens` exceed context limit: {sent} + {answer} > {window}, "
        "decrease input length or `max_tokens` and try again",
        counts_answer=True,
    ),
    "openai": Form(
        "This model's maximum context length is {window} tokens. However, your messages resulted "
        "in {sent} tokens. Please reduce the length of the messages.",
        code="context_length_exceeded",
    ),
    "openai, without a number": Form(
        "Your input exceeds the context window of this model. Please adjust your input and try "
        "again.",
        code="context_length_exceeded",
    ),
    "llama.cpp": Form(
        "request ({sent} tokens) exceeds the available context size ({window} tokens), try "
        "increasing it",
        "exceed_context_size_error",
    ),
    "llama.cpp, until 2025": Form(
        "the request exceeds the available context size. try increasing the context size or enable "
        "context shift",
        "server_error",
        status=500,
    ),
    "vllm": VLLM,
    "vllm, until 2025": Form(
        "This model's maximum context length is {window} tokens. However, you requested {whole} "
        "tokens ({sent} in the messages, {answer} in the completion). Please reduce the length of "
        "the messages or completion.",
        "BadRequestError",
        counts_answer=True,
    ),
    "vllm, of the answer": Form(
        "'max_tokens' or 'max_completion_tokens' is too large: {answer}. This model's maximum "
        "context length is {window} tokens and your request has {sent} input tokens ({answer} > "
        "{window} - {sent}).",
        "BadRequestError",
        counts_answer=True,
    ),
    "sglang": Form(
        "The input ({sent} tokens) is longer than the model's context length ({window} tokens).",
        "BadRequestError",
    ),
    "ollama": Form("the input length exceeds the context length", "api_error"),
    "lm studio": Form(
        "Trying to keep the first {sent} tokens when context the overflows. However, the model is "
        "loaded with context length of only {window} tokens, which is not enough.",
        "api_error",
    ),
    "gemini": Form(
        "The input token count ({sent}) exceeds the maximum number of tokens allowed ({window}).",
        "INVALID_ARGUMENT",
    ),
    "mistral": Form(
        "Prompt contains {sent} tokens and 0 draft tokens, too large for model with {window} "
        "maximum context length",
    ),
    "xai": Form(
        "This model's maximum prompt length is {window} but the request contains {sent} tokens."
    ),
    "bedrock": Form("Input is too long for requested model.", "ValidationException"),
    "too many bytes": Form("Request exceeds the maximum size", "request_too_large", status=413),
}
