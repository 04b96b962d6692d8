"""What is understood of OpenAI's Chat Completions, and what is answered. Pure.

By https://platform.openai.com/docs/api-reference/chat (read 2026-11). What isn't named here is
passed over: sampling, limits and system prompts are the agent's own.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, UnsetType


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
    """`user` and `assistant` are the conversation; `tool` tells what came of a call; `system` and
    `developer` are passed over."""
    content: str | list[ContentPart] | None = None
    tool_calls: list[Any] | None = None
    """Of an answer: the calls that it asked for. They are known by their ids in what follows."""
    tool_call_id: str | None = None
    """Of a result: the call."""


class ChatFunction(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the caller runs."""

    name: str
    """At most 56 letters, digits, `_` and `-`."""
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """A JSON Schema of an object; absent: it takes nothing."""


class ChatTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the caller runs."""

    type: str = "function"
    """Only `function`."""
    function: ChatFunction | None = None


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
    tools: list[ChatTool] | None = None
    """What the agent may have the caller run for this answer, beside its own tools: at most 64, of
    32 KiB together."""
    tool_choice: Any = None
    """`auto` or `none`."""
    parallel_tool_calls: bool | None = None
    """Whether it may ask for several at once; unless false it may."""
    functions: list[dict[str, Any]] | None = None
    """None: they are `tools` by now."""
    response_format: dict[str, Any] | None = None
    """Only of type `text`."""


class CompletionUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the model calls that the answer took; several, if tools were called."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


class CalledFunction(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the caller is to run."""

    arguments: str
    """JSON of an object; of a stream a piece of it."""
    name: str = ""


class AnswerCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool of the caller's that it is to run."""

    id: str
    """For `tool_call_id`."""
    function: CalledFunction
    type: Literal["function"] = "function"


class AnswerTurn(msgspec.Struct, frozen=True, kw_only=True):
    """The answer."""

    content: str | None
    role: Literal["assistant"] = "assistant"
    refusal: None = None
    tool_calls: tuple[AnswerCall, ...] | UnsetType = UNSET


class CompletionChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The one choice that there is."""

    message: AnswerTurn
    index: int = 0
    finish_reason: Literal["stop", "tool_calls"] = "stop"
    """`tool_calls`: the answer goes on with what the caller says that came of them."""
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


class DeltaCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A piece of a call: the first has its id and name, the others more of its arguments."""

    index: Annotated[int, msgspec.Meta(ge=0)]
    function: CalledFunction
    id: str = ""
    type: str = ""


class Delta(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What more there is of an answer."""

    role: str = ""
    content: str = ""
    tool_calls: tuple[DeltaCall, ...] = ()


class ChunkChoice(msgspec.Struct, frozen=True, kw_only=True):
    """Of the one choice that there is, a piece."""

    delta: Delta
    index: int = 0
    finish_reason: Literal["stop", "tool_calls"] | None = None


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
