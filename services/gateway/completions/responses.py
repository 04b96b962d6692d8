"""/v1/responses: an agent for programs that know OpenAI's newer interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from fastapi import Request, Response
from msgspec.structs import replace

from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal

from ..callers import Caller, Shared
from ..endpoint import Endpoint
from ..sessions.messages import parent_of
from ..state.edge import Edge
from .answers import ERRORS, BegunAnswer, answer, event, read, scope
from .exchange import RESPONSE, AnswerSoFar, CompletionRun
from .lent import CALL, AskedCall, GivenTool, caller_tools
from .past import Past
from .request import TOOL, NewMessage, new_message
from .responses_wire import (
    AgentResponse,
    AnswerUsage,
    InputItem,
    InputPart,
    OutputCall,
    OutputMessage,
    OutputText,
    ResponseEvent,
    ResponseRequest,
)
from .wire import ChatTurn, ContentPart, ImageUrl, OpenAIError

_ARGUMENTS: Final = "response.function_call_arguments"
TEXTS: Final = ("input_text", "output_text", "text")
_decoder: Final = msgspec.json.Decoder(ResponseRequest)
_encode: Final = msgspec.json.Encoder().encode


async def respond(request: Request, edge: Shared, caller: Caller) -> Response:
    """Say something to an agent, and have its answer.

    The conversation that it goes on is the one of `previous_response_id`, or is found by what
    stands before. An answer that isn't there within nine minutes comes into that conversation all
    the same.
    """
    return await answer(request, edge, caller, _begun)


async def _begun(request: Request, edge: Edge, caller: Principal) -> BegunAnswer:
    given: ResponseRequest = await read(request, edge, _decoder)
    whose, parent = scope(edge, caller, given.model), parent_of(request.scope)
    past = ""
    if given.previous_response_id:
        known = await Past(edge.bus, caller.user).of_id(whose, given.previous_response_id)
        if known is None:
            raise InvalidInput("previous_response_id", "no answer of this agent has this id")
        past = known
    run = CompletionRun(
        edge, caller, whose, asked(given, past), parent, RESPONSE, given.previous_response_id
    )
    return BegunAnswer(run, ResponseForm(run, given), given.stream)


def asked(request: ResponseRequest, past: str) -> NewMessage:
    """Take a request apart. Pure.

    Args:
        past: digest of what was said up to the answer that it follows; empty: it names none.

    Raises:
        InvalidInput: it asks for what an agent hasn't got, or says nothing.
    """
    given = [
        GivenTool(f"tools[{at}]", one.type, one.name, one.description, one.parameters)
        for at, one in enumerate(request.tools or ())
    ]
    tools = caller_tools(given, request.tool_choice, is_parallel=request.parallel_tool_calls)
    if request.background:
        raise InvalidInput("background", "must be false: an answer is waited for, or streamed")
    if request.conversation is not None:
        raise InvalidInput("conversation", "isn't taken here: name a previous_response_id")
    if request.prompt is not None:
        raise InvalidInput("prompt", "isn't taken here: an agent has its own")
    form = (request.text or {}).get("format") or {}
    if not isinstance(form, dict) or form.get("type", "text") != "text":
        raise InvalidInput("text.format", "must be of type text")
    said = request.input
    turns = [ChatTurn(role="user", content=said)] if isinstance(said, str) else _turns(said)
    new = new_message(turns, field="input", call_field="call_id", past=past)
    return new._replace(tools=tools)


def _turns(items: Sequence[InputItem]) -> list[ChatTurn]:
    """Return a message for each item: its place is the item's."""
    return [_turn(f"input[{at}]", one) for at, one in enumerate(items)]


def _turn(field: str, item: InputItem) -> ChatTurn:
    if item.type == "reasoning":
        return ChatTurn(role="system")
    if item.type == "function_call":
        return ChatTurn(role="assistant")
    is_result = item.type == "function_call_output"
    if not is_result and item.type != "message":
        raise InvalidInput(f"{field}.type", f"{item.type[:40]!r} isn't taken here")
    said = item.output if is_result else item.content
    content = [_part(part) for part in said] if isinstance(said, list) else said
    if is_result:
        return ChatTurn(role=TOOL, content=content, tool_call_id=item.call_id)
    return ChatTurn(role=item.role, content=content)


def _part(part: InputPart) -> ContentPart:
    if part.type in TEXTS:
        return ContentPart(type="text", text=part.text)
    if part.type == "input_image" and part.image_url:
        return ContentPart(type="image_url", image_url=ImageUrl(url=part.image_url))
    return ContentPart(type=part.type)  # which isn't taken


class ResponseForm:
    """An answer as Responses write it (:class:`~.answers.AnswerForm`): one message of one text,
    and the calls that the caller is to run."""

    def __init__(self, run: AnswerSoFar, given: ResponseRequest) -> None:
        self._run = run
        self._given = given
        self._count = 0
        self._place = 0
        """Of the item that is written."""
        self._has_message = False

    def whole(self) -> AgentResponse:
        return self.response("completed")

    def begun(self) -> bytes:
        empty = self.response("in_progress")
        return self._event("response.created", response=empty) + self._event(
            "response.in_progress", response=empty
        )

    def more(self, piece: str) -> bytes:
        begun = b"" if self._has_message else self._begun_message()
        return begun + self._of_part("response.output_text.delta", delta=piece, logprobs=())

    def ended(self) -> bytes:
        begun = b"" if self._has_message or self._run.calls else self._begun_message()
        text = self._ended_message() if self._has_message else b""
        calls = b"".join(map(self._call, self._run.calls))
        return begun + text + calls + self._event("response.completed", response=self.whole())

    def _begun_message(self) -> bytes:
        self._has_message = True
        begun = self._event("response.output_item.added", item=self._item("in_progress"))
        return begun + self._of_part("response.content_part.added", part=OutputText(text=""))

    def _ended_message(self) -> bytes:
        text = self._run.spoken.text
        ended = b"".join(
            (
                self._of_part("response.output_text.done", text=text, logprobs=()),
                self._of_part("response.content_part.done", part=OutputText(text=text)),
                self._event("response.output_item.done", item=self._item("completed")),
            )
        )
        self._place += 1
        return ended

    def _call(self, asked: AskedCall) -> bytes:
        call = _called(asked)
        named = {"item_id": call.id}
        told = b"".join(
            (
                self._event("response.output_item.added", item=replace(call, arguments="")),
                self._event(f"{_ARGUMENTS}.delta", delta=call.arguments, **named),
                self._event(
                    f"{_ARGUMENTS}.done", arguments=call.arguments, name=call.name, **named
                ),
                self._event("response.output_item.done", item=call),
            )
        )
        self._place += 1
        return told

    def failed(self, error: OpenAIError) -> bytes:
        told = error.error
        return self._written("error", code=told.type, message=told.message, param=told.param)

    # ------------------------------------------------------------ events

    def _of_part(self, kind: str, **fields: Any) -> bytes:
        return self._event(kind, item_id=self._item_id, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> bytes:
        has_index = "response" not in fields
        return self._written(kind, **({"output_index": self._place} if has_index else {}), **fields)

    def _written(self, kind: str, **fields: Any) -> bytes:
        told = ResponseEvent(type=kind, sequence_number=self._count, **fields)
        self._count += 1
        return event(_encode(told), kind)

    @property
    def _item_id(self) -> str:
        return f"msg_{self._run.id.removeprefix(RESPONSE)}"

    def _item(self, status: Literal["in_progress", "completed"]) -> OutputMessage:
        content = (OutputText(text=self._run.spoken.text),) if status == "completed" else ()
        return OutputMessage(id=self._item_id, status=status, content=content)

    def response(self, status: Literal["in_progress", "completed"]) -> AgentResponse:
        is_over, usage, given = status == "completed", self._run.usage, self._given
        calls = tuple(map(_called, self._run.calls))
        is_told = bool(self._run.spoken.text) or not calls
        return AgentResponse(
            id=self._run.id,
            created_at=self._run.created,
            model=given.model,
            status=status,
            output=(*((self._item(status),) if is_told else ()), *calls) if is_over else (),
            tools=tuple(given.tools or ()),
            tool_choice="none" if given.tool_choice == "none" or not given.tools else "auto",
            parallel_tool_calls=given.parallel_tool_calls is not False,
            usage=AnswerUsage(
                input_tokens=usage.prompt_tokens,
                output_tokens=usage.completion_tokens,
                total_tokens=usage.total_tokens,
            )
            if is_over
            else None,
            previous_response_id=given.previous_response_id,
        )


def _called(call: AskedCall) -> OutputCall:
    return OutputCall(
        id=f"fc_{call.call_id.removeprefix(CALL)}",
        call_id=call.call_id,
        name=call.name,
        arguments=_encode(call.arguments).decode(),
    )


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/v1/responses",
        respond,
        {200: AgentResponse, **ERRORS},
        (413, 503),
        ResponseRequest,
        events=ResponseEvent,
    ),
)
