"""/v1/models and /v1/chat/completions: an agent for programs that know OpenAI's interface."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from fastapi import Request, Response

from vigil.settings.tokens import Principal

from ..callers import Caller, Shared
from ..clients import answered, serve_until_gone
from ..endpoint import Endpoint
from ..http import body
from ..http.body import ClientGone
from ..http.errors import EXPECTED
from ..http.json import Json
from ..http.problem import Problem, of_error, unauthorized
from ..insight.agent_files import agents_there
from ..sessions.messages import parent_of
from ..signals.streams import (
    HEAD,
    MEDIA_TYPE,
    SILENCE_S,
    send_end,
    send_more,
)
from ..state.edge import Edge
from ..state.feed import HEARTBEAT
from .exchange import CompletionRun, scope_of
from .request import asked
from .wire import (
    AgentAsModel,
    AgentsAsModels,
    AnswerTurn,
    ChunkChoice,
    Completion,
    CompletionChoice,
    CompletionChunk,
    CompletionRequest,
    Delta,
    ErrorDetail,
    OpenAIError,
)

WAITS: Final = 9
"""How many times `gateway.chat_wait_s` (a minute) an answer is waited for that isn't streamed: the
clients of OpenAI give up after ten minutes."""
DONE: Final = b"data: [DONE]\n\n"
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
    try:
        given = await _read(request, edge)
        answering = await _begun(request, edge, caller, given)
        if given.stream:
            has_usage = given.stream_options is not None and given.stream_options.include_usage
            return _Stream(edge, caller, answering, given.model, has_usage=has_usage)
        return await _whole(request, edge, caller, answering, given.model)
    except ClientGone:
        raise
    except EXPECTED as error:
        return _refused(error)


async def _read(request: Request, edge: Edge) -> CompletionRequest:
    # Programs send all that was said each time, with its images.
    bytes_max = max(edge.config.body_bytes_max, 2 * edge.config.attachment_bytes_max)
    data = await body.read(request.scope, request.receive, bytes_max)
    return body.decode(data, _decoder, edge.config.json_depth_max)


async def _begun(
    request: Request, edge: Edge, caller: Principal, given: CompletionRequest
) -> CompletionRun:
    known = agents_there(edge.context.settings)
    if given.model not in known:
        there = ", ".join(known)
        reason = f"there is no agent {given.model[:60]!r}; there is: {there}"
        raise Problem(404, reason, field="model")
    whose = scope_of(caller, given.model)
    return CompletionRun(edge, caller, whose, given, asked(given), parent_of(request.scope))


async def _whole(
    request: Request, edge: Edge, caller: Principal, answering: CompletionRun, model: str
) -> Response:
    async def said() -> str:
        async for _ in answering.pieces():
            pass
        return answering.spoken.text

    with edge.places.hold(caller.user):
        text = await answered(
            said(),
            request.receive,
            edge.stopping,
            timeout_s=WAITS * edge.config.chat_wait_s,
            name="gateway-completion",
        )
    if text is None:
        raise Problem(504, "the agent is at it yet; its answer comes into the conversation")
    _check_let_in(edge, caller)
    return Json(
        Completion(
            id=answering.id,
            created=answering.created,
            model=model,
            choices=(CompletionChoice(message=AnswerTurn(content=text)),),
            usage=answering.usage,
        )
    )


class _Stream(Response):
    """An answer as Server-Sent Events."""

    def __init__(
        self,
        edge: Edge,
        caller: Principal,
        answering: CompletionRun,
        model: str,
        *,
        has_usage: bool,
    ) -> None:
        super().__init__(media_type=MEDIA_TYPE)
        self._edge = edge
        self._caller = caller
        self._answering = answering
        self._model = model
        self._has_usage = has_usage

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        with self._edge.places.hold(self._caller.user):
            serving = self._serve(scope, receive, send)
            await serve_until_gone(serving, receive, self._edge.stopping, "gateway-completion")

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        pieces = self._answering.pieces()
        waiting = asyncio.ensure_future(anext(pieces, None))
        is_begun = False
        try:
            while True:
                done, _ = await asyncio.wait((waiting,), timeout=SILENCE_S)
                if not is_begun and done and isinstance(waiting.exception(), EXPECTED):
                    await _refused(waiting.exception())(scope, receive, send)
                    return
                if not is_begun:
                    await send(HEAD)
                    await self._more(send, Delta(role="assistant"))
                    is_begun = True
                _check_let_in(self._edge, self._caller)
                if not done:
                    await send_more(send, HEARTBEAT)
                    continue
                piece = waiting.result()
                if piece is None:
                    break
                await self._more(send, Delta(content=piece))
                waiting = asyncio.ensure_future(anext(pieces, None))
            await self._end(send)
        except ClientGone:
            raise
        except EXPECTED as error:
            # The answer's head is gone: such programs take this for what it is, and no end for one.
            told = b"data: " + bytes(_refused(error).body) + b"\n\n"
            await send_more(send, told)
            await send_end(send)
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await pieces.aclose()

    async def _more(self, send: Any, delta: Delta) -> None:
        await self._chunk(send, (ChunkChoice(delta=delta),))

    async def _end(self, send: Any) -> None:
        await self._chunk(send, (ChunkChoice(delta=Delta(), finish_reason="stop"),))
        if self._has_usage:
            await self._chunk(send, (), is_last=True)
        await send_more(send, DONE)
        await send_end(send)

    async def _chunk(
        self, send: Any, choices: tuple[ChunkChoice, ...], *, is_last: bool = False
    ) -> None:
        chunk = CompletionChunk(
            id=self._answering.id,
            created=self._answering.created,
            model=self._model,
            choices=choices,
            usage=self._answering.usage if is_last else None,
        )
        await send_more(send, b"data: " + _encode(chunk) + b"\n\n")


def _check_let_in(edge: Edge, caller: Principal) -> None:
    """Check that a caller's token counts yet, as they waited. Raises: Problem, it doesn't."""
    if edge.tokens.find_id(caller.token_id, edge.clock.now()) is None:
        raise unauthorized("the token has ended")


def _refused(error: BaseException | None) -> Response:
    """Return a failure as such programs understand it."""
    problem = of_error(error) if isinstance(error, Exception) else None
    if problem is None:
        raise AssertionError("it isn't one of those that are expected") from error
    status = 400 if problem.status == 422 else problem.status
    kind = "invalid_request_error" if status < 500 else "api_error"
    kind = "rate_limit_error" if status == 429 else kind
    detail = ErrorDetail(message=problem.detail, type=kind, param=problem.field)
    answer = Json(OpenAIError(error=detail), status)
    answer.headers.update(problem.headers)
    return answer


_ERRORS: Final = {400: OpenAIError, 404: OpenAIError, 504: OpenAIError}
ENDPOINTS: Final = (
    Endpoint("GET", "/v1/models", list_models, {200: AgentsAsModels}),
    Endpoint(
        "POST",
        "/v1/chat/completions",
        complete,
        {200: Completion, **_ERRORS},
        (413, 503),
        CompletionRequest,
        events=CompletionChunk,
    ),
)
