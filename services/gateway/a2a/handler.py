"""Answers what the A2A SDK was asked, from the log. Imports the SDK: only `endpoint` imports this,
with the first request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple, NoReturn

import msgspec
from a2a.server.context import ServerCallContext
from a2a.server.request_handlers.request_handler import RequestHandler
from a2a.server.routes.common import ServerCallContextBuilder
from a2a.server.routes.jsonrpc_dispatcher import JsonRpcDispatcher
from a2a.types.a2a_pb2 import (
    AgentCard,
    Artifact,
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageRequest,
    SubscribeToTaskRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskPushNotificationConfig,
    TaskState,
    TaskStatus,
    TaskStatusUpdateEvent,
)
from a2a.utils.errors import (
    A2AError,
    ContentTypeNotSupportedError,
    InternalError,
    InvalidParamsError,
    InvalidRequestError,
    PushNotificationNotSupportedError,
    TaskNotCancelableError,
    TaskNotFoundError,
    UnsupportedOperationError,
)
from google.protobuf.json_format import MessageToDict
from starlette.requests import Request

from vigil.contracts import ControlPayload, State, UserMessage, decode_event
from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey
from vigil.texts.streamed import StreamedAnswer

from ..access import PRINCIPAL
from ..callers import check_let_in
from ..gone import check_not_deleted, shown
from ..http.decide import Exchange
from ..http.errors import EXPECTED
from ..http.problem import of_error
from ..http.wire import Accepted, TokenFrame
from ..insight.shown import read_turn
from ..sessions.chat import listening, records_of, take
from ..sessions.messages import parent_of
from ..state.edge import Edge
from .story import TaskName, TaskStory, thread_of

WAITS: Final = 9
"""How many times `gateway.chat_wait_s` an answer is waited for that isn't streamed."""
ANSWER: Final = "answer"
_CALLER: Final = "vigil.acting"
_STATES: Final = {
    "working": TaskState.TASK_STATE_WORKING,
    "completed": TaskState.TASK_STATE_COMPLETED,
    "failed": TaskState.TASK_STATE_FAILED,
    "canceled": TaskState.TASK_STATE_CANCELED,
}
_frame: Final = msgspec.json.Decoder(TokenFrame).decode
Update = Task | Message | TaskStatusUpdateEvent | TaskArtifactUpdateEvent


class A2aCaller(NamedTuple):
    """Who asks, and which agent."""

    caller: Principal
    owner: str
    agent: str
    parent: str | None


class FoundTask(NamedTuple):
    """A task, by the message that it is."""

    name: TaskName
    session: SessionKey
    event: UserMessage

    @property
    def accepted(self) -> Accepted:
        return Accepted(event_id=self.event.id, seq=self.name.seq)


class _Callers(ServerCallContextBuilder):
    """Tells the handler for whom it acts: the door let them in."""

    def build(self, request: Request) -> ServerCallContext:
        caller: Principal = request.scope[PRINCIPAL]
        agent = request.path_params["agentId"]
        acting = A2aCaller(caller, caller.owner_of(agent), agent, parent_of(request.scope))
        return ServerCallContext(state={_CALLER: acting, "headers": dict(request.headers)})


def dispatcher_of(edge: Edge) -> JsonRpcDispatcher:
    """Return what answers requests of A2A 1.0."""
    return JsonRpcDispatcher(AgentHandler(edge), _Callers())


class AgentHandler(RequestHandler):
    """An agent, as A2A has it."""

    def __init__(self, edge: Edge) -> None:
        self._edge = edge

    # ------------------------------------------------------------ saying

    async def on_message_send(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> Task | Message:
        with _explained():
            acting = _caller_of(context)
            found = await self._said(acting, params)
            if not params.configuration.return_immediately:
                with self._edge.places.hold(acting.caller.user):
                    await self._ended(found, WAITS * self._edge.config.chat_wait_s)
                    check_let_in(self._edge, acting.caller)
            return await self._task(found)

    async def on_message_send_stream(
        self, params: SendMessageRequest, context: ServerCallContext
    ) -> AsyncGenerator[Update]:
        with _explained():
            acting = _caller_of(context)
            found = await self._said(acting, params)
            async for update in self._updates(acting, found):
                yield update

    async def on_subscribe_to_task(
        self, params: SubscribeToTaskRequest, context: ServerCallContext
    ) -> AsyncGenerator[Update]:
        with _explained():
            acting = _caller_of(context)
            found = await self._found(acting, params.id)
            if (await self._task(found)).status.state != TaskState.TASK_STATE_WORKING:
                raise UnsupportedOperationError("the task is over: get it instead")
            async for update in self._updates(acting, found):
                yield update

    async def _said(self, acting: A2aCaller, params: SendMessageRequest) -> FoundTask:
        """Store a message, once for its id."""
        if params.configuration.HasField("task_push_notification_config"):
            raise PushNotificationNotSupportedError
        message = params.message
        if not message.message_id:  # by which a repeat is known, and no other message is one
            raise InvalidInput("message.messageId", "must not be empty")
        if message.task_id:
            await self._found(acting, message.task_id)
            raise UnsupportedOperationError(
                "a task here is one message: send the next without taskId, with its contextId"
            )
        thread = thread_of(acting.caller.user, acting.agent, message.context_id, message.message_id)
        session = shown(self._edge, SessionKey(acting.owner, acting.agent, thread))
        accepted = await self._edge.intake.accept(
            acting.caller.user,
            session,
            _text_of(message),
            field="message.parts",
            key=f"a2a {message.message_id}",
            key_field="message.messageId",
            parent=acting.parent,
        )
        return await self._found(acting, str(TaskName(thread, accepted.seq)))

    # ------------------------------------------------------------ telling

    async def on_get_task(self, params: GetTaskRequest, context: ServerCallContext) -> Task | None:
        with _explained():
            return await self._task(await self._found(_caller_of(context), params.id))

    async def on_cancel_task(
        self, params: CancelTaskRequest, context: ServerCallContext
    ) -> Task | None:
        """Stop the turn, if it is the one that answers this message."""
        with _explained():
            acting = _caller_of(context)
            found = await self._found(acting, params.id)
            state = (await self._task(found)).status.state
            if state != TaskState.TASK_STATE_WORKING or not await self._is_next(found):
                raise TaskNotCancelableError("it is over, or waits behind another one")
            order = ControlPayload(op="stop", reason="its program cancelled it")
            await self._edge.intake.control(found.session, order, parent=acting.parent)
            await self._ended(found, self._edge.config.chat_wait_s)
            return await self._task(found)

    async def _is_next(self, found: FoundTask) -> bool:
        """Whether a message is being answered, or is the next that is: a loop is on the log once
        its model has answered."""
        session, bus = found.session, self._edge.bus
        newest = await bus.get_last(session.stream, session.turns)
        turn = None if newest is None else read_turn(newest)
        state = State() if turn is None else turn.state
        if state.loop is not None:
            return state.loop.cause.id == found.event.id
        queued = [one.seq for one in state.queue if one.type == "user_message"]
        if not queued:
            page, _ = await bus.page(session.stream, [session.in_user], state.position + 1, limit=1)
            queued = [one.seq for one in page]
        return queued[:1] == [found.name.seq]

    async def _found(self, acting: A2aCaller, id_: str) -> FoundTask:
        """Return a task of the caller's with that agent. Raises: TaskNotFoundError."""
        name = TaskName.parse(id_)
        if name is None:
            raise TaskNotFoundError
        session = shown(self._edge, SessionKey(acting.owner, acting.agent, name.thread))
        stored = await self._edge.bus.get_of(session, name.seq)
        if stored is None or stored.subject != session.in_user:
            await check_not_deleted(self._edge, session)
            raise TaskNotFoundError
        event = decode_event(stored.data)
        if not isinstance(event, UserMessage):
            raise TaskNotFoundError
        return FoundTask(name, session, event)

    async def _task(self, found: FoundTask) -> Task:
        """Return a task as far as it is."""
        exchange = Exchange(found.event.id, found.name.seq)
        story, at = TaskStory(found.event.id, exchange), found.event.created_at
        async for message in records_of(self._edge.bus, found.session, found.accepted):
            record = take(exchange, found.session, message)
            story.take(record)
            at = getattr(record, "at", at)
            if story.state != "working":
                break
        task = _task(found, _status(story, at))
        if story.text:
            task.artifacts.append(Artifact(artifact_id=ANSWER, parts=[Part(text=story.text)]))
        return task

    async def _ended(self, found: FoundTask, timeout_s: float) -> None:
        """Return when a task is over, or after so long."""
        try:
            async with asyncio.timeout(timeout_s):
                async for _ in self._pieces(found):
                    pass
        except TimeoutError:
            return

    async def _pieces(self, found: FoundTask) -> AsyncIterator[str | TaskStory]:
        """Yield the answer piece by piece, and last how it ended."""
        spoken = StreamedAnswer()
        async with listening(self._edge, found.session, found.accepted) as (exchange, following):
            story = TaskStory(found.event.id, exchange)
            while not exchange.is_over:
                event = await following()
                if isinstance(event, str):
                    frame = _frame(event)
                    yield spoken.token(frame.turn, frame.attempt, frame.text)
                    continue
                before = len(exchange.said)
                story.take(take(exchange, found.session, event))
                for one in exchange.said[before:]:
                    yield spoken.said(one.text)
        yield story

    async def _updates(self, acting: A2aCaller, found: FoundTask) -> AsyncGenerator[Update]:
        working = TaskStatus(state=TaskState.TASK_STATE_WORKING)
        working.timestamp.FromDatetime(found.event.created_at)
        with self._edge.places.hold(acting.caller.user):
            yield _task(found, working)
            is_more = False
            async for piece in self._pieces(found):
                check_let_in(self._edge, acting.caller)
                if isinstance(piece, TaskStory):
                    yield TaskStatusUpdateEvent(
                        task_id=str(found.name),
                        context_id=found.name.thread,
                        status=_status(piece, self._edge.clock.now()),
                    )
                elif piece:
                    yield TaskArtifactUpdateEvent(
                        task_id=str(found.name),
                        context_id=found.name.thread,
                        artifact=Artifact(artifact_id=ANSWER, parts=[Part(text=piece)]),
                        append=is_more,
                    )
                    is_more = True

    # ------------------------------------------------------------ what there isn't

    async def on_list_tasks(self, params: Any, context: ServerCallContext) -> ListTasksResponse:
        raise UnsupportedOperationError("conversations are listed at /api/sessions")

    async def on_get_extended_agent_card(
        self, params: Any, context: ServerCallContext
    ) -> AgentCard:
        raise UnsupportedOperationError("there is one card")

    async def on_create_task_push_notification_config(
        self, params: Any, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        _no_push()

    async def on_get_task_push_notification_config(
        self, params: Any, context: ServerCallContext
    ) -> TaskPushNotificationConfig:
        _no_push()

    async def on_list_task_push_notification_configs(
        self, params: Any, context: ServerCallContext
    ) -> Any:
        _no_push()

    async def on_delete_task_push_notification_config(
        self, params: Any, context: ServerCallContext
    ) -> None:
        _no_push()


def _no_push() -> NoReturn:
    raise PushNotificationNotSupportedError


def _caller_of(context: ServerCallContext) -> A2aCaller:
    acting: A2aCaller = context.state[_CALLER]
    return acting


def _text_of(message: Message) -> str:
    """Return the words of a message. Raises: ContentTypeNotSupportedError."""
    texts = []
    for part in message.parts:
        kind = part.WhichOneof("content")
        if kind == "text":
            texts.append(part.text)
        elif kind == "data":
            texts.append(msgspec.json.encode(MessageToDict(part.data)).decode())
        else:
            raise ContentTypeNotSupportedError(f"parts of {kind or 'nothing'} aren't taken here")
    return "\n\n".join(texts)


def _task(found: FoundTask, status: TaskStatus) -> Task:
    said = Message(
        message_id=found.event.id,
        role=Role.ROLE_USER,
        parts=[Part(text=found.event.payload.text)],
        context_id=found.name.thread,
        task_id=str(found.name),
    )
    return Task(id=str(found.name), context_id=found.name.thread, status=status, history=[said])


def _status(story: TaskStory, at: datetime) -> TaskStatus:
    status = TaskStatus(state=_STATES[story.state])
    status.timestamp.FromDatetime(at)
    return status


@contextmanager
def _explained() -> Any:
    """Put what our code refuses into errors of A2A."""
    try:
        yield
    except A2AError:
        raise
    except EXPECTED as error:
        problem = of_error(error) if isinstance(error, Exception) else None
        if isinstance(error, InvalidInput):
            raise InvalidParamsError(str(error)) from error
        if problem is None or problem.status >= 500:
            raise InternalError("it can't be done now; try again") from error
        raise InvalidRequestError(problem.detail) from error


__all__ = ["dispatcher_of"]
