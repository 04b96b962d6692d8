"""What comes of a request, whole or as a stream, in the form of one of OpenAI's interfaces."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, Protocol

import msgspec
from fastapi import Request, Response

from vigil.background.end import end_tasks
from vigil.local.identity_files import agents_there
from vigil.settings.tokens import Principal
from vigil.subjects import Scope
from vigil.words.nearest import meant

from ..callers import check_let_in
from ..clients import answered, serve_until_gone
from ..http import body
from ..http.body import ClientGone
from ..http.errors import EXPECTED
from ..http.json import Json
from ..http.problem import Problem, of_error
from ..signals.streams import HEAD, MEDIA_TYPE, SILENCE_S, send_end, send_more
from ..state.edge import Edge
from ..state.feed import HEARTBEAT
from .exchange import CompletionRun, scope_of
from .wire import ErrorDetail, OpenAIError

WAITS: Final = 9
"""How many times `gateway.chat_wait_s` (a minute) an answer is waited for that isn't streamed: the
clients of OpenAI give up after ten minutes."""
ERRORS: Final = {400: OpenAIError, 404: OpenAIError, 504: OpenAIError}


class AnswerForm(Protocol):
    """How an answer is written. Each text of a stream is one or more events, as bytes."""

    def whole(self) -> msgspec.Struct:
        """Return the answer, when it is over."""

    def begun(self) -> bytes:
        """Return how a stream begins."""

    def more(self, piece: str) -> bytes:
        """Return a piece of the answer."""

    def ended(self) -> bytes:
        """Return how a stream ends."""

    def failed(self, error: OpenAIError) -> bytes:
        """Return how a stream that began says that there is no answer."""


class BegunAnswer(NamedTuple):
    """What is to be said to an agent, and how its answer is to be written."""

    run: CompletionRun
    form: AnswerForm
    is_streamed: bool


Begin = Callable[[Request, Edge, Principal], Awaitable[BegunAnswer]]
"""Takes a request apart. Raises: Problem, InvalidInput, ClientGone."""


async def answer(request: Request, edge: Edge, caller: Principal, begin: Begin) -> Response:
    """Answer a request, or refuse it as such programs understand it. Raises: ClientGone."""
    try:
        run, form, is_streamed = await begin(request, edge, caller)
        if is_streamed:
            return AnswerStream(edge, caller, run, form)
        return await _whole(request, edge, caller, run, form)
    except ClientGone:
        raise
    except EXPECTED as error:
        return refused(error)


async def read(request: Request, edge: Edge, decoder: msgspec.json.Decoder[Any]) -> Any:
    """Return what is asked. Raises: Problem, InvalidInput."""
    # Programs send all that was said each time, with its images.
    bytes_max = max(edge.config.body_bytes_max, 2 * edge.config.attachment_bytes_max)
    data = await body.read(request.scope, request.receive, bytes_max)
    return body.decode(data, decoder, edge.config.json_depth_max, may_have_nul=True)


def scope(edge: Edge, caller: Principal, agent: str) -> Scope:
    """Return whose conversations with an agent are meant. Raises: Problem, there is no such."""
    known = agents_there(edge.context.settings)
    if agent not in known:
        reason = f"there is no agent {agent[:60]!r}{meant(agent[:60], known)}"
        raise Problem(404, reason, field="model")
    return scope_of(caller, agent)


async def _whole(
    request: Request, edge: Edge, caller: Principal, run: CompletionRun, form: AnswerForm
) -> Response:
    """Wait for an answer. Raises: Problem, ClientGone."""

    async def said() -> bool:
        async for _ in run.pieces():
            pass
        return True

    with edge.places.hold(caller.user):
        is_said = await answered(
            said(),
            request.receive,
            edge.stopping,
            timeout_s=WAITS * edge.config.chat_wait_s,
            name="gateway-completion",
        )
    if is_said is None:
        raise Problem(504, "the agent is at it yet; its answer comes into the conversation")
    check_let_in(edge, caller)
    return Json(form.whole())


class AnswerStream(Response):
    """An answer as Server-Sent Events."""

    def __init__(self, edge: Edge, caller: Principal, run: CompletionRun, form: AnswerForm) -> None:
        super().__init__(media_type=MEDIA_TYPE)
        self._edge = edge
        self._caller = caller
        self._run = run
        self._form = form

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        with self._edge.places.hold(self._caller.user):
            serving = self._serve(scope, receive, send)
            await serve_until_gone(serving, receive, self._edge.stopping, "gateway-completion")

    async def _serve(self, scope: Any, receive: Any, send: Any) -> None:
        pieces = self._run.pieces()
        waiting = asyncio.ensure_future(anext(pieces, None))
        is_begun = False
        try:
            while True:
                done, _ = await asyncio.wait((waiting,), timeout=SILENCE_S)
                if not is_begun:
                    error = waiting.exception() if done else None
                    if isinstance(error, EXPECTED):
                        await refused(error)(scope, receive, send)
                        return
                    if error is not None:
                        raise error
                    if not self._run.id:
                        continue  # it isn't said yet, and may be refused
                    await send(HEAD)
                    await send_more(send, self._form.begun())
                    is_begun = True
                check_let_in(self._edge, self._caller)
                if not done:
                    await send_more(send, HEARTBEAT)
                    continue
                piece = waiting.result()
                if piece is None:
                    break
                await send_more(send, self._form.more(piece))
                waiting = asyncio.ensure_future(anext(pieces, None))
            await send_more(send, self._form.ended())
            await send_end(send)
        except ClientGone:
            raise
        except EXPECTED as error:
            # The answer's head is gone: such programs take this for what it is, and no end for one.
            await send_more(send, self._form.failed(failure_of(error)))
            await send_end(send)
        finally:
            await end_tasks(waiting)
            await pieces.aclose()


def event(data: bytes, name: str = "") -> bytes:
    """Return one Server-Sent Event.

    >>> event(b"{}", "error")
    b'event: error\\ndata: {}\\n\\n'
    """
    return (b"event: %s\n" % name.encode() if name else b"") + b"data: " + data + b"\n\n"


def refused(error: BaseException | None) -> Response:
    """Return a failure as such programs understand it."""
    problem = _problem(error)
    answer = Json(_failure(problem), 400 if problem.status == 422 else problem.status)
    answer.headers.update(problem.headers)
    return answer


def failure_of(error: BaseException | None) -> OpenAIError:
    """Return a failure in the words of such programs."""
    return _failure(_problem(error))


def _failure(problem: Problem) -> OpenAIError:
    kind = "invalid_request_error" if problem.status < 500 else "api_error"
    kind = "rate_limit_error" if problem.status == 429 else kind
    return OpenAIError(error=ErrorDetail(message=problem.detail, type=kind, param=problem.field))


def _problem(error: BaseException | None) -> Problem:
    problem = of_error(error) if isinstance(error, Exception) else None
    if problem is None:
        raise AssertionError("it isn't one of those that are expected") from error
    return problem
