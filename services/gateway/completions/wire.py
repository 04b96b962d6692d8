"""What is understood of OpenAI's Chat Completions, and what is answered. Pure.

By https://platform.openai.com/docs/api-reference/chat (read 2026-11). What isn't named here is
passed over: sampling, limits and system prompts are the agent's own.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class ImageUrl(msgspec.Struct, frozen=True, kw_only=True):
    """An image of a message."""

    url: str
    """``data:image/png;base64,...``; nothing is fetched."""


class ContentPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a message."""

    type: str
    """`text` or `image_url`."""
    text: str = ""
    image_url: ImageUrl | None = None


class ChatTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A message of the conversation, as the caller has it."""

    role: str
    """`user` and `assistant` are the conversation; `system` and `developer` are passed over."""
    content: str | list[ContentPart] | None = None


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a stream is to be."""

    include_usage: bool = False


class CompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Say the newest message of a conversation to an agent, and have its answer."""

    model: str
    """The name of an agent, as `GET /v1/models` has them."""
    messages: list[ChatTurn]
    stream: bool = False
    stream_options: StreamOptions | None = None
    n: int | None = None
    """Only 1."""
    tools: list[dict[str, Any]] | None = None
    """None: an agent has tools of its own, and can't call the caller's."""
    functions: list[dict[str, Any]] | None = None
    response_format: dict[str, Any] | None = None
    """Only of type `text`."""


class CompletionUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the model calls that the answer took; several, if tools were called."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class AnswerTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    content: str
    role: Literal["assistant"] = "assistant"
    refusal: None = None


class CompletionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The one choice that there is."""

    message: AnswerTurn
    index: int = 0
    finish_reason: Literal["stop"] = "stop"
    logprobs: None = None


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """An answer, whole."""

    id: str
    created: int
    """Seconds since 1970."""
    model: str
    choices: tuple[CompletionChoice, ...]
    usage: CompletionUsage
    object: Literal["chat.completion"] = "chat.completion"


class Delta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What more there is of an answer."""

    role: str = ""
    content: str = ""


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Of the one choice that there is, a piece."""

    delta: Delta
    index: int = 0
    finish_reason: Literal["stop"] | None = None


class CompletionChunk(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=False):
    """A piece of an answer: the `data` of an event; behind the last one comes `[DONE]`."""

    id: str
    created: int
    model: str
    choices: tuple[ChunkChoice, ...]
    usage: CompletionUsage | None = None
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"


class AgentAsModel(msgspec.Struct, frozen=True, kw_only=True):
    """An agent, where that interface has models."""

    id: str
    created: int = 0
    """Nobody knows."""
    object: Literal["model"] = "model"
    owned_by: Literal["vigil"] = "vigil"


class AgentsAsModels(msgspec.Struct, frozen=True, kw_only=True):
    """The agents whom the caller may talk to."""

    data: tuple[AgentAsModel, ...]
    object: Literal["list"] = "list"


class ErrorDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Why nothing was answered."""

    message: str
    type: str
    param: str | None = None
    """The field at fault."""
    code: str | None = None


class OpenAIError(msgspec.Struct, frozen=True, kw_only=True):
    """A failure, in the form that such programs understand."""

    error: ErrorDetail
