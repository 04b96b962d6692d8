"""/v1/models and /v1/chat/completions: an agent for programs that know OpenAI's interface."""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from fastapi import Request, Response
from msgspec import UNSET

from vigil.local.identity_files import agents_there
from vigil.settings.tokens import Principal

from ..callers import Caller, Shared
from ..endpoint import Endpoint
from ..http.json import Json
from ..sessions.messages import parent_of
from ..state.edge import Edge
from . import responses, stored
from .answers import ERRORS, BegunAnswer, answer, event, read, scope
from .exchange import CHAT, CompletionRun
from .lent import AskedCall
from .request import asked
from .wire import (
    AgentAsModel,
    AgentsAsModels,
    AnswerCall,
    AnswerTurn,
    CalledFunction,
    ChunkChoice,
    Completion,
    CompletionChoice,
    CompletionChunk,
    CompletionRequest,
    Delta,
    DeltaCall,
    OpenAIError,
)

DONE: Final = event(b"[DONE]")
_decoder: Final = msgspec.json.Decoder(CompletionRequest)
_encode: Final = msgspec.json.Encoder().encode


async def list_models(edge: Shared, caller: Caller) -> Response:
    """List the agents whom one may talk to, as models."""
    names = agents_there(edge.context.settings)
    theirs = [one for one in names if caller.may_reach(caller.owner_of(one), one)]
    return Json(AgentsAsModels(data=tuple(AgentAsModel(id=one) for one in theirs)))


async def complete(request: Request, edge: Shared, caller: Caller) -> Response:
    """Say the newest message of a conversation to an agent, and have its answer.

    The conversation that it goes on is found by what stands before. An answer that isn't there
    within nine minutes comes into that conversation all the same.
    """
    return await answer(request, edge, caller, _begun)


async def _begun(request: Request, edge: Edge, caller: Principal) -> BegunAnswer:
    given: CompletionRequest = await read(request, edge, _decoder)
    whose, parent = scope(edge, caller, given.model), parent_of(request.scope)
    run = CompletionRun(edge, caller, whose, asked(given), parent, CHAT)
    return BegunAnswer(run, ChatForm(run, given), given.stream)


class ChatForm:
    """An answer as Chat Completions write it (:class:`~.answers.AnswerForm`)."""

    def __init__(self, run: CompletionRun, given: CompletionRequest) -> None:
        self._run = run
        self._model = given.model
        options = given.stream_options
        self._has_usage = options is not None and options.include_usage

    def whole(self) -> Completion:
        calls = tuple(
            AnswerCall(id=one.call_id, function=CalledFunction(name=one.name, arguments=_json(one)))
            for one in self._run.calls
        )
        turn = AnswerTurn(
            content=self._run.spoken.text or (None if calls else ""), tool_calls=calls or UNSET
        )
        return Completion(
            id=self._run.id,
            created=self._run.created,
            model=self._model,
            choices=(CompletionChoice(message=turn, finish_reason=self._reason),),
            usage=self._run.usage,
        )

    def begun(self) -> bytes:
        return self._chunk(ChunkChoice(delta=Delta(role="assistant")))

    def more(self, piece: str) -> bytes:
        return self._chunk(ChunkChoice(delta=Delta(content=piece)))

    def ended(self) -> bytes:
        calls = b"".join(self._call(at, one) for at, one in enumerate(self._run.calls))
        last = self._chunk(ChunkChoice(delta=Delta(), finish_reason=self._reason))
        return calls + last + (self._chunk(has_usage=True) if self._has_usage else b"") + DONE

    def failed(self, error: OpenAIError) -> bytes:
        return event(_encode(error))

    @property
    def _reason(self) -> Literal["stop", "tool_calls"]:
        return "tool_calls" if self._run.calls else "stop"

    def _call(self, at: int, call: AskedCall) -> bytes:
        """Return a call as programs expect it of a stream: who it is, then what it is given."""
        begun = DeltaCall(
            index=at,
            id=call.call_id,
            type="function",
            function=CalledFunction(name=call.name, arguments=""),
        )
        given = DeltaCall(index=at, function=CalledFunction(arguments=_json(call)))
        return b"".join(
            self._chunk(ChunkChoice(delta=Delta(tool_calls=(one,)))) for one in (begun, given)
        )

    def _chunk(self, *choices: ChunkChoice, has_usage: bool = False) -> bytes:
        chunk = CompletionChunk(
            id=self._run.id,
            created=self._run.created,
            model=self._model,
            choices=choices,
            usage=self._run.usage if has_usage else None,
        )
        return event(_encode(chunk))


def _json(call: AskedCall) -> str:
    return _encode(call.arguments).decode()


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/models", list_models, {200: AgentsAsModels}),
    Endpoint(
        "POST",
        "/v1/chat/completions",
        complete,
        {200: Completion, **ERRORS},
        (413, 503),
        CompletionRequest,
        events=CompletionChunk,
    ),
    *responses.ENDPOINTS,
    *stored.ENDPOINTS,
)
