"""On to what others did about it: tool calls, sessions that were started, requests. Pure.

A turn asks, and what comes of it is in other places: claims and results of the session, verdicts of
the person, turns of another session. Each is found by the id that the turn gave it. A session that
was started is told in outline, by the turns that somebody else learns of; asked about by itself, it
is told whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from vigil.contracts import BoardChange, Cause, SpawnSession, TellParent, ToolResultEvent, Turn
from vigil.subjects import SessionKey

from .asks import All, Asking, At, Found, Next, ResultOf, Turns, within
from .deeds import Requested, Started, is_about
from .facts import Fact, TurnFact
from .telling import Telling, turns_about

ROUNDS_MAX: Final = 3
"""How often what came of something is looked at for what came of that."""
DEPTH_MAX: Final = 4
"""Generations of sessions that are told below the one that is asked about."""
SESSIONS_MAX: Final = 12
REQUESTS_MAX: Final = 8
_ENDS: Final = ("failed", "cancelled", "stopped")


def followed(telling: Telling, key: SessionKey, depth: int = 0) -> Asking[None]:
    """Tell what came of what the turns so far set in motion."""
    done: set[str] = set()
    for _ in range(ROUNDS_MAX):
        new = [one for one in _turns(telling, key) if one[1].id not in done]
        if not new:
            return
        done |= {turn.id for _, turn in new}
        for fact, turn in new:
            if depth == 0:
                yield from _called(telling, key, turn)
            yield from _requested(telling, fact, turn)
            yield from _started(telling, key, fact, turn, depth)


def _turns(telling: Telling, key: SessionKey) -> Iterator[tuple[Fact, TurnFact]]:
    for fact in telling.of(key):
        if isinstance(fact.body, TurnFact):
            yield fact, fact.body


# ---------------------------------------------------------------- calls


def _called(telling: Telling, key: SessionKey, turn: TurnFact) -> Asking[None]:
    """Tell who took up the tool calls of a turn, and the result that it has."""
    if turn.asked:
        claims: Found = yield All(tuple(key.call(asked.id) for asked in turn.asked))
        telling.take(claims)
    if turn.folded:
        result: Fact | None = yield At(turn.folded)
        telling.add(result)


def _result(telling: Telling, call_id: str, after: int) -> Asking[None]:
    """Tell what came back by itself, and what was done about that."""
    if any(_answers(fact, call_id) for fact in telling.facts()):
        return
    result: Fact | None = yield ResultOf(call_id, after)
    telling.add(result)
    if result is not None and isinstance(result.body, ToolResultEvent):
        turns: Found = yield turns_about(result.seq, result.body.id)
        telling.take(turns)


def _answers(fact: Fact, call_id: str) -> bool:
    return isinstance(fact.body, ToolResultEvent) and fact.body.payload.call_id == call_id


# ---------------------------------------------------------------- requests to a person


def _requested(telling: Telling, fact: Fact, turn: TurnFact) -> Asking[None]:
    """Tell what became of the requests of a turn: by whom, or by what."""
    asked = [d for d in turn.deeds if isinstance(d, Requested) and d.state == "open"]
    for request in asked[:REQUESTS_MAX]:
        id_ = request.id
        found: Found = yield Turns(
            fact.seq,
            None,
            lambda one, id_=id_: is_about(one, id_),  # type: ignore[misc]
            lambda one, id_=id_: is_about(one, id_),  # type: ignore[misc]
        )
        for ended in telling.take(found):
            yield from _decided(telling, ended)
    telling.is_cut = telling.is_cut or len(asked) > REQUESTS_MAX


def _decided(telling: Telling, ended: Fact) -> Asking[None]:
    """Tell the event that ended a request, and what came of a call that was accepted."""
    if not isinstance(ended.body, TurnFact):
        return
    event: Cause | None = ended.body.event
    if event is not None:
        decided: Fact | None = yield At(event.seq)
        telling.add(decided)
    for asked in ended.body.asked:
        if asked.is_accepted:
            yield from _result(telling, asked.id, ended.seq)


# ---------------------------------------------------------------- sessions that were started


def _started(
    telling: Telling, key: SessionKey, fact: Fact, turn: TurnFact, depth: int
) -> Asking[None]:
    """Tell in outline what the sessions did that a turn started."""
    for deed in turn.deeds:
        if not isinstance(deed, Started):
            continue
        if telling.place(deed.child, key, fact.seq):
            if depth >= DEPTH_MAX or telling.sessions > SESSIONS_MAX:
                telling.is_cut = True
                return
            yield from within(deed.child, _outline(telling, deed.child, depth + 1))
        yield from _result(telling, deed.id, fact.seq)


def _outline(telling: Telling, key: SessionKey, depth: int) -> Asking[None]:
    begun: Fact | None = yield Next(key.in_event("control"), 0)
    telling.add(begun)
    turns: Found = yield Turns(0, None, _tells, _is_over)
    telling.take(turns)
    yield from followed(telling, key, depth)


def _tells(turn: Turn) -> bool:
    """Tell whether somebody else learns of a turn."""
    telling = (TellParent, BoardChange, SpawnSession)
    return turn.outcome in _ENDS or any(isinstance(effect, telling) for effect in turn.effects)


def _is_over(turn: Turn) -> bool:
    ends = [e.payload.state for e in turn.effects if isinstance(e, TellParent)]
    return "done" in ends or "failed" in ends
