"""/v1/responses: an agent for programs that know OpenAI's newer interface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

import msgspec
from fastapi import Request, Response

from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal

from ..callers import Caller, Shared
from ..endpoint import Endpoint
from ..sessions.messages import parent_of
from ..state.edge import Edge
from .answers import ERRORS, BegunAnswer, answer, event, read, scope
from .exchange import RESPONSE, CompletionRun
from .past import Past
from .request import NO_TOOLS, NewMessage, new_message
from .responses_wire import (
    AgentResponse,
    AnswerUsage,
    InputItem,
    InputPart,
    OutputMessage,
    OutputText,
    ResponseEvent,
    ResponseRequest,
)
from .wire import ChatTurn, ContentPart, ImageUrl, OpenAIError

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
    run = CompletionRun(edge, caller, whose, asked(given, past), parent, RESPONSE)
    return BegunAnswer(run, ResponseForm(run, given), given.stream)


def asked(request: ResponseRequest, past: str) -> NewMessage:
    """Take a request apart. Pure.

    Args:
        past: digest of what was said up to the answer that it follows; empty: it names none.

    Raises:
        InvalidInput: it asks for what an agent hasn't got, or says nothing.
    """
    if request.tools:
        raise InvalidInput("tools", NO_TOOLS)
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
    return new_message(turns, field="input", past=past)


def _turns(items: Sequence[InputItem]) -> list[ChatTurn]:
    turns = []
    for at, one in enumerate(items):
        if one.type == "reasoning":
            continue
        if one.type != "message":
            raise InvalidInput(f"input[{at}].type", f"{one.type[:40]!r} isn't taken here")
        said = one.content
        content = [_part(part) for part in said] if isinstance(said, list) else said
        turns.append(ChatTurn(role=one.role, content=content))
    return turns


def _part(part: InputPart) -> ContentPart:
    if part.type in TEXTS:
        return ContentPart(type="text", text=part.text)
    if part.type == "input_image" and part.image_url:
        return ContentPart(type="image_url", image_url=ImageUrl(url=part.image_url))
    return ContentPart(type=part.type)  # which isn't taken


class ResponseForm:
    """An answer as Responses write it (:class:`~.answers.AnswerForm`): one message of one text."""

    def __init__(self, run: CompletionRun, given: ResponseRequest) -> None:
        self._run = run
        self._given = given
        self._count = 0

    def whole(self) -> AgentResponse:
        return self._response("completed")

    def begun(self) -> bytes:
        empty = self._response("in_progress")
        return b"".join(
            (
                self._event("response.created", response=empty),
                self._event("response.in_progress", response=empty),
                self._event("response.output_item.added", item=self._item("in_progress")),
                self._of_part("response.content_part.added", part=OutputText(text="")),
            )
        )

    def more(self, piece: str) -> bytes:
        return self._of_part("response.output_text.delta", delta=piece, logprobs=())

    def ended(self) -> bytes:
        text = self._run.spoken.text
        return b"".join(
            (
                self._of_part("response.output_text.done", text=text, logprobs=()),
                self._of_part("response.content_part.done", part=OutputText(text=text)),
                self._event("response.output_item.done", item=self._item("completed")),
                self._event("response.completed", response=self.whole()),
            )
        )

    def failed(self, error: OpenAIError) -> bytes:
        told = error.error
        return self._written("error", code=told.type, message=told.message, param=told.param)

    # ------------------------------------------------------------ events

    def _of_part(self, kind: str, **fields: Any) -> bytes:
        return self._event(kind, item_id=self._item_id, content_index=0, **fields)

    def _event(self, kind: str, **fields: Any) -> bytes:
        has_index = "response" not in fields
        return self._written(kind, **({"output_index": 0} if has_index else {}), **fields)

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

    def _response(self, status: Literal["in_progress", "completed"]) -> AgentResponse:
        is_over, usage = status == "completed", self._run.usage
        return AgentResponse(
            id=self._run.id,
            created_at=self._run.created,
            model=self._given.model,
            status=status,
            output=(self._item(status),) if is_over else (),
            usage=AnswerUsage(
                input_tokens=usage.prompt_tokens,
                output_tokens=usage.completion_tokens,
                total_tokens=usage.total_tokens,
            )
            if is_over
            else None,
            previous_response_id=self._given.previous_response_id,
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
