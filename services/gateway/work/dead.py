"""/api/dead: what no try could use, seen by a person, tried again or laid aside (SPEC S-10, X-4).

The order of writes makes a requeue safe to repeat. First the work: the service that gave up is
asked and answers once it is done, or a copy of the event is stored under an id that derives from
the letter's. Then the end of the letter, which expects to be the next one of its session. A crash
in between leaves the letter open, and whoever asks again finds the work done.
"""

from __future__ import annotations

import contextlib
from typing import Annotated, Final

import msgspec
import structlog
from fastapi import Path, Query, Request, Response

from vigil import crash
from vigil.contracts import DeadLetterEnd, decode_said, encode
from vigil.errors import InvalidInput, Unavailable, WrongLastSequence
from vigil.observe import trace
from vigil.settings.tokens import Principal
from vigil.subjects import ENDED, SessionKey, dead_of
from vigil.worker import requeue
from vigil.worker.requeue import RequeueQuestion

from ..callers import SEQ_MAX, Caller, Shared
from ..http.decide import check_length
from ..http.json import Json
from ..http.problem import Problem, erasing, unavailable
from ..sessions.history import PAGE_BYTES_MAX, json_of
from ..sessions.messages import parent_of
from ..state.edge import Edge
from .letters import (
    Action,
    Ask,
    Copy,
    DeadLetterDetail,
    DeadLetterPage,
    Letter,
    Letters,
    Never,
    page,
    view,
    way_back,
)

log = structlog.get_logger("vigil.gateway")

STREAM: Final = "DEAD"
ID_LENGTH_MAX: Final = 256
Id = Annotated[
    str,
    Path(
        alias="id", description="Of a dead letter", json_schema_extra={"maxLength": ID_LENGTH_MAX}
    ),
]


async def list_dead(
    edge: Shared,
    caller: Caller,
    only_open: Annotated[
        bool, Query(alias="open", description="false: those that were ended, too")
    ] = True,
    service: Annotated[str | None, Query(description="Which service gave up")] = None,
    after: Annotated[int, Query(ge=0, le=SEQ_MAX, description="Continue after this `seq`")] = 0,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> Response:
    """List dead letters, the oldest first: of one's own sessions and one's teams', or for an
    admin everybody's."""
    letters = await _read(edge, caller)
    found, next_after = page(
        letters.all(), only_open=only_open, service=service, after=after, limit=limit
    )
    return Json(DeadLetterPage(letters=tuple(map(view, found)), next_after=next_after))


async def get_dead(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Show one dead letter, and what died."""
    letter, _ = await _find(edge, caller, id_)
    return Json(await _detail(edge, letter))


async def requeue_dead(request: Request, edge: Shared, caller: Caller, id_: Id) -> Response:
    """Try it again; 409 with the reason if that can't be, or was done before."""
    letter, end_seq = await _find_open(edge, caller, id_)
    event_id = await _again(edge, caller, letter, parent_of(request.scope))
    crash.point("gateway.requeue.before_end")
    letter = await _end(edge, caller, letter, end_seq, "requeued")
    detail = await _detail(edge, letter)
    return Json(msgspec.structs.replace(detail, event_id=event_id))


async def discard_dead(edge: Shared, caller: Caller, id_: Id) -> Response:
    """Lay it aside: nothing comes of it, and it isn't listed as open any more."""
    letter, end_seq = await _find_open(edge, caller, id_)
    return Json(await _detail(edge, await _end(edge, caller, letter, end_seq, "discarded")))


# ---------------------------------------------------------------- reading


async def _read(edge: Edge, caller: Principal, with_data: str = "") -> Letters:
    """Fold what the caller may see of DEAD; a few callers at a time."""
    async with edge.stories:
        return await _fold(edge, caller, with_data)


async def _fold(edge: Edge, caller: Principal, with_data: str) -> Letters:
    letters = Letters(with_data)
    subjects, start, has_more = [dead_of(one) for one in caller.reach], 1, True
    while has_more:
        found, has_more = await edge.bus.page(STREAM, subjects, start, bytes_max=PAGE_BYTES_MAX)
        for message in found:
            try:
                letters.take(message.seq, message.subject, message.data)
            except InvalidInput as error:
                log.warning(
                    "unreadable", action="gateway.unreadable", seq=message.seq, error=str(error)
                )
        start = found[-1].seq + 1 if found else start
    return letters


async def _find(edge: Edge, caller: Principal, id_: str) -> tuple[Letter, int]:
    """Return a letter with its bytes, and the sequence of its session's last end.

    Raises:
        Problem: 404, the caller has no such letter.
    """
    check_length("id", id_, ID_LENGTH_MAX)
    letters = await _read(edge, caller, with_data=id_)
    letter = letters.get(id_)
    if letter is None:
        raise Problem(404, "there is no such dead letter")
    return letter, letters.end_seqs.get(letter.key, 0)


async def _find_open(edge: Edge, caller: Principal, id_: str) -> tuple[Letter, int]:
    """Raises, beside what `_find` does: Problem, 409 it was ended, 403 its person is erased."""
    letter, end_seq = await _find(edge, caller, id_)
    if letter.end is not None:
        raise _ended(letter.end)
    _check_may_be_ended(edge, letter)
    return letter, end_seq


def _check_may_be_ended(edge: Edge, letter: Letter) -> None:
    """Refuse to write about a person who is being erased: it would name them behind the sweep."""
    if edge.switches.is_erasing(letter.key.user):
        raise erasing()


def _ended(end: DeadLetterEnd) -> Problem:
    return Problem(409, f"it was {end.action} by {end.by} at {end.at:%Y-%m-%d %H:%M:%S} UTC")


async def _detail(edge: Edge, letter: Letter) -> DeadLetterDetail:
    return DeadLetterDetail(
        letter=view(letter), data=json_of(letter.record.data), text=await _text(edge, letter)
    )


async def _text(edge: Edge, letter: Letter) -> str | None:
    """Return what was to be said, from the transcript."""
    effect = letter.record.effect_id
    if effect is None:
        return None
    said = await edge.bus.get_last(letter.key.stream, letter.key.out_said(effect))
    try:
        return None if said is None else decode_said(said.data).text
    except InvalidInput:
        return None


# ---------------------------------------------------------------- trying again


async def _again(edge: Edge, caller: Principal, letter: Letter, parent: str | None) -> str | None:
    """Have it tried again -> the id of the new event, if that's how.

    Raises:
        Problem: 409, it can't be; 503, not now.
    """
    way = way_back(letter)
    if isinstance(way, Never):
        raise Problem(409, way.reason)
    if isinstance(way, Copy):
        accepted = await edge.intake.accept_again(letter.key, way.event, parent=parent)
        return accepted.event_id
    await _ask(edge, caller, letter, way)
    return None


async def _ask(edge: Edge, caller: Principal, letter: Letter, way: Ask) -> None:
    record = letter.record
    question = RequeueQuestion(
        letter_id=record.id,
        stream=record.stream,
        seq=record.seq,
        subject=record.subject,
        by=caller.user,
        effect_id=record.effect_id,
    )
    answers = await edge.bus.ask_all(
        requeue.subject_of(way.service),
        requeue.encode(question),
        count=1,
        timeout=requeue.ANSWER_TIMEOUT_S,
    )
    if not answers:
        raise unavailable(f"no {way.service} answers; try again")
    reply = requeue.decode_reply(answers[0])
    if reply.outcome == "refused":
        raise Problem(409, reply.reason)
    if reply.outcome == "later":
        raise unavailable(f"{way.service} can't now: {reply.reason}; try again")


async def lay_aside(edge: Edge, key: SessionKey, letter_id: str, by: str) -> None:
    """Have a letter no longer listed as open: what it was about is settled. May be repeated.

    Raises:
        Unavailable: nobody knows if it is stored.
    """
    letters = Letters("")
    for message in await edge.bus.read(STREAM, [key.dead("delivery"), key.dead(ENDED)]):
        with contextlib.suppress(InvalidInput):
            letters.take(message.seq, message.subject, message.data)
    letter = letters.get(letter_id)
    if letter is None or letter.end is not None or edge.switches.is_erasing(key.user):
        return
    end = DeadLetterEnd(letter_id=letter_id, action="discarded", by=by, at=edge.clock.now())
    expect = letters.end_seqs.get(key, 0)
    try:
        await edge.bus.publish(
            key.dead(ENDED), encode(end), {trace.HEADER: trace.new()}, expect=expect
        )
    except WrongLastSequence as error:
        raise Unavailable("another letter of the session was ended just now") from error


async def _end(
    edge: Edge, caller: Principal, letter: Letter, end_seq: int, action: Action
) -> Letter:
    """Write what became of the letter.

    Raises:
        Problem: 409, somebody else ended it meanwhile; 403, its person is being erased.
        Unavailable: nobody knows if it is stored; asking again finds out.
    """
    end = DeadLetterEnd(
        letter_id=letter.record.id, action=action, by=caller.user, at=edge.clock.now()
    )
    headers = {trace.HEADER: trace.new()}
    while True:
        _check_may_be_ended(edge, letter)  # the work before it took a while
        try:
            await edge.bus.publish(letter.key.dead(ENDED), encode(end), headers, expect=end_seq)
        except WrongLastSequence:  # another letter of the session was ended, or this one
            _, end_seq = await _find_open(edge, caller, letter.record.id)
            continue
        log.info(
            "dead letter ended",
            action="gateway.dead",
            letter=letter.record.id,
            session=str(letter.key),
            outcome=action,
            by=caller.user,
        )
        return msgspec.structs.replace(letter, end=end)
