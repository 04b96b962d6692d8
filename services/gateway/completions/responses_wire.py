"""What is understood of OpenAI's Responses, and what is answered. Pure.

By https://platform.openai.com/docs/api-reference/responses (read 2026-11). What isn't named here is
passed over: sampling, limits, reasoning and instructions are the agent's own.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType


class InputPart(msgspec.Struct, frozen=True, kw_only=True):
    """A part of an item."""

    type: str
    """`input_text`, `output_text` or `input_image`."""
    text: str = ""
    image_url: str | None = None
    """``data:image/png;base64,...``; nothing is fetched."""


class InputItem(msgspec.Struct, frozen=True, kw_only=True):
    """What was said, as the caller has it."""

    type: str = "message"
    """`message`, `function_call_output`; `function_call` and `reasoning` are passed over."""
    role: str = ""
    """`user` and `assistant` are the conversation; `system` and `developer` are passed over."""
    content: str | list[InputPart] | None = None
    call_id: str = ""
    """Of a call, or of what came of it: as the answer had it."""
    output: str | list[InputPart] | None = None
    """What came of a call: text."""


class ResponseTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the caller runs."""

    type: str = "function"
    """Only `function`."""
    name: str = ""
    """At most 56 letters, digits, `_` and `-`."""
    description: str | None = None
    parameters: dict[str, Any] | None = None
    """A JSON Schema of an object; absent: it takes nothing."""


class ResponseRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Say something to an agent, and have its answer."""

    model: str
    """The name of an agent, as `GET /v1/models` has them."""
    input: str | list[InputItem]
    """What is said; without `previous_response_id`, behind all that was said before."""
    previous_response_id: str | None = None
    """The answer that this follows."""
    stream: bool = False
    tools: list[ResponseTool] | None = None
    """What the agent may have the caller run for this answer, beside its own tools: at most 64, of
    32 KiB together."""
    tool_choice: Any = None
    """`auto` or `none`."""
    parallel_tool_calls: bool | None = None
    """Whether it may ask for several at once; unless false it may."""
    background: bool | None = None
    """Only false."""
    conversation: Any = None
    """None: `previous_response_id` says which conversation goes on."""
    prompt: Any = None
    """None: an agent has prompts of its own."""
    text: dict[str, Any] | None = None
    """Only of the format `text`."""


class TokensIn(msgspec.Struct, frozen=True, kw_only=True):
    """Details that nobody counts here."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class TokensOut(msgspec.Struct, frozen=True, kw_only=True):
    """Details that nobody counts here."""

    reasoning_tokens: int = 0


class AnswerUsage(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the model calls that the answer took; several, if tools were called."""

    input_tokens: int
    output_tokens: int
    total_tokens: int
    input_tokens_details: TokensIn = TokensIn()
    output_tokens_details: TokensOut = TokensOut()


class OutputText(msgspec.Struct, frozen=True, kw_only=True):
    """The words of an answer."""

    text: str
    type: Literal["output_text"] = "output_text"
    annotations: tuple[()] = ()
    logprobs: tuple[()] = ()


class OutputMessage(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """The one message that an answer has."""

    id: str
    status: Literal["in_progress", "completed"]
    content: tuple[OutputText, ...] = ()
    role: Literal["assistant"] = "assistant"


class OutputCall(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="function_call"):
    """A tool of the caller's that it is to run."""

    id: str
    call_id: str
    """For `function_call_output`."""
    name: str
    arguments: str
    """JSON of an object."""
    status: Literal["completed"] = "completed"


class AgentResponse(msgspec.Struct, frozen=True, kw_only=True):
    """An answer."""

    id: str
    """For `previous_response_id`."""
    created_at: int
    """Seconds since 1970."""
    model: str
    status: Literal["in_progress", "completed"]
    output: tuple[OutputMessage | OutputCall, ...] = ()
    usage: AnswerUsage | None = None
    previous_response_id: str | None = None
    object: Literal["response"] = "response"
    error: None = None
    incomplete_details: None = None
    instructions: None = None
    metadata: dict[str, str] = {}
    parallel_tool_calls: bool = True
    tool_choice: Literal["auto", "none"] = "none"
    tools: tuple[ResponseTool, ...] = ()
    temperature: None = None
    top_p: None = None


class ResponseEvent(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to an answer that is streamed: the `data` of an event of the same name."""

    type: str
    """`response.created`, `response.output_text.delta`, ..., `response.completed`; or `error`."""
    sequence_number: int
    """From 0 on."""
    response: AgentResponse | UnsetType = UNSET
    output_index: int | UnsetType = UNSET
    item: OutputMessage | OutputCall | UnsetType = UNSET
    item_id: str | UnsetType = UNSET
    content_index: int | UnsetType = UNSET
    part: OutputText | UnsetType = UNSET
    delta: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    logprobs: tuple[()] | UnsetType = UNSET
    code: str | UnsetType = UNSET
    """Of an error: which kind."""
    message: str | UnsetType = UNSET
    param: str | UnsetType | None = UNSET
    """Of an error: the field at fault."""


class GivenText(msgspec.Struct, frozen=True, kw_only=True):
    """What was said."""

    text: str
    type: Literal["input_text"] = "input_text"


class GivenItem(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A message of a request."""

    id: str
    content: tuple[GivenText, ...]
    role: Literal["user"] = "user"
    status: Literal["completed"] = "completed"


class GivenOutput(
    msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="function_call_output"
):
    """What came of a call."""

    id: str
    call_id: str
    output: str
    status: Literal["completed"] = "completed"


class GivenItems(msgspec.Struct, frozen=True, kw_only=True):
    """What was new in a request."""

    data: tuple[GivenItem | GivenOutput, ...]
    first_id: str | None
    last_id: str | None
    has_more: Literal[False] = False
    object: Literal["list"] = "list"
