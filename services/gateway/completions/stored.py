"""/v1/responses/{id}: an answer once more, read off the log, as far as it is there."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, Final

from fastapi import Path, Query, Response

from vigil.contracts import Control, Turn, UserMessage, decode_event
from vigil.errors import InvalidInput
from vigil.settings.tokens import Principal
from vigil.subjects import SessionKey

from ..callers import Caller, Shared
from ..endpoint import Endpoint
from ..gone import check_not_deleted, shown
from ..http.decide import Exchange
from ..http.errors import EXPECTED
from ..http.json import Json
from ..http.problem import Problem
from ..http.wire import Accepted
from ..sessions.chat import records_of, take
from ..state.edge import Edge
from .answers import refused
from .called import asked_by, counted, words_of
from .exchange import AnswerSoFar
from .lent import CALL
from .past import Past, ResponsePlace
from .responses import ResponseForm
from .responses_wire import (
    AgentResponse,
    GivenItem,
    GivenItems,
    GivenOutput,
    GivenText,
    ResponseRequest,
)
from .wire import OpenAIError

FIELD: Final = "response_id"
Named = Annotated[str, Path(description="Of an answer: `resp_…`, as it was told")]
STAYS: Final = (
    "an answer stays for as long as its conversation: `DELETE /api/sessions/{session}` deletes that"
)
ERRORS: Final = {400: OpenAIError, 404: OpenAIError}


async def get_response(
    edge: Shared,
    caller: Caller,
    response_id: Named,
    stream: Annotated[bool, Query(description="Only false: it isn't told anew")] = False,
) -> Response:
    """Show an answer once more, of one's own; it may be in progress yet."""
    if stream:
        return refused(InvalidInput("stream", "must be false: it isn't told anew"))
    return await _answer(_response(edge, caller, response_id))


async def delete_response(edge: Shared, caller: Caller, response_id: Named) -> Response:
    """Refuse to delete an answer: it is a part of its conversation."""
    try:
        _, session = await _found(edge, caller, response_id)
    except EXPECTED as error:
        return refused(error)
    return refused(InvalidInput(FIELD, STAYS.format(session=session)))


async def list_input_items(edge: Shared, caller: Caller, response_id: Named) -> Response:
    """List what was new in the request of an answer."""
    return await _answer(_items(edge, caller, response_id))


async def _answer(asked: Awaitable[AgentResponse | GivenItems]) -> Response:
    try:
        return Json(await asked)
    except EXPECTED as error:
        return refused(error)


async def _found(
    edge: Edge, caller: Principal, response_id: str
) -> tuple[ResponsePlace, SessionKey]:
    """Return where an answer stands. Raises: Problem, the caller has no such answer."""
    place = await Past(edge.bus, caller.user).response(response_id)
    if place is None or not caller.may_reach(place.owner, place.agent):
        raise Problem(404, "you have no answer of this id", field=FIELD)
    session = shown(edge, SessionKey(place.owner, place.agent, place.thread))
    await check_not_deleted(edge, session)
    return place, session


async def _response(edge: Edge, caller: Principal, response_id: str) -> AgentResponse:
    place, session = await _found(edge, caller, response_id)
    so_far = AnswerSoFar(response_id, place.created)
    exchange = Exchange(place.event_id, place.seq)
    accepted = Accepted(event_id=place.event_id, seq=place.seq)
    is_over = False
    async for message in records_of(edge.bus, session, accepted):
        before = len(exchange.said)
        record = take(exchange, session, message)
        if isinstance(record, Turn):
            so_far.usage = counted(so_far.usage, record.usage)
            so_far.calls = tuple(asked_by(record, exchange))
            if so_far.calls:
                so_far.spoken.said(words_of(record))
        for one in exchange.said[before:]:
            so_far.spoken.said(one.text)
        is_over = exchange.is_over or bool(so_far.calls)
        if is_over:
            break
    given = ResponseRequest(model=place.agent, input="", previous_response_id=place.previous)
    form = ResponseForm(so_far, given)
    return form.whole() if is_over else form.response("in_progress")


async def _items(edge: Edge, caller: Principal, response_id: str) -> GivenItems:
    place, session = await _found(edge, caller, response_id)
    stored = await edge.bus.get_of(session, place.seq)
    event = None if stored is None else decode_event(stored.data)
    items: tuple[GivenItem | GivenOutput, ...] = ()
    if isinstance(event, UserMessage):
        text = GivenText(text=event.payload.text)
        items = (GivenItem(id=f"msg_{event.id}", content=(text,)),)
    elif isinstance(event, Control):
        items = tuple(
            GivenOutput(id=f"fco_{one.call_id}", call_id=f"{CALL}{one.call_id}", output=one.content)
            for one in event.payload.results
        )
    ids = [one.id for one in items]
    return GivenItems(
        data=items,
        first_id=ids[0] if ids else None,
        last_id=ids[-1] if ids else None,
    )


_ONE: Final = "/v1/responses/{response_id}"
ENDPOINTS: Final = (
    Endpoint("GET", _ONE, get_response, {200: AgentResponse, **ERRORS}, (422, 503)),
    Endpoint("DELETE", _ONE, delete_response, {**ERRORS}, (422, 503)),
    Endpoint(
        "GET", f"{_ONE}/input_items", list_input_items, {200: GivenItems, **ERRORS}, (422, 503)
    ),
)
