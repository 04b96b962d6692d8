"""The session's own log: load its state, commit a turn, dead-letter what can't be used."""

from __future__ import annotations

import asyncio
from typing import Final

import msgspec
import structlog

from vigil import crash, trace
from vigil.bus import Bus, Message
from vigil.clock import Clock
from vigil.contracts import (
    DEAD_LETTER_BYTES_MAX,
    EFFECTS_HEADER,
    ORDINAL_HEADER,
    OWES_HEADER,
    POSITION_HEADER,
    TURN_BYTES_MAX,
    DeadLetter,
    State,
    Turn,
    decode_turn,
    encode,
)
from vigil.errors import InvalidInput, Unavailable, VigilError, WrongLastSequence
from vigil.subjects import SessionKey

from .core import owes
from .history import History

log = structlog.get_logger("vigil.cortex")

COMMIT_TIMEOUT_S: Final = 5.0
ELECTION_TIMEOUT_S: Final = 12.0
"""How long a cluster may be without a leader: Raft takes 4 to 9 s to elect one."""


class TurnTooLarge(VigilError):
    """The turn doesn't fit into one message; its draft must be given up."""


class Conflict(VigilError):
    """Another replica committed first: what was decided here is thrown away."""


class Loaded(msgspec.Struct):
    """What the log says of a session."""

    state: State
    turn_seq: int
    """Stream sequence of the last turn; 0 if there is none: the next commit expects it."""
    history: History
    traceparent: str | None = None
    dead_letters: int = 0
    """How many were written on the way."""


def headers_of(turn: Turn, traceparent: str) -> dict[str, str]:
    """Headers that let others skip a turn, or find its position, without reading it."""
    kinds = {effect.__struct_config__.tag for effect in turn.effects}
    effects = ("s" if "send_message" in kinds else "") + (
        "t" if kinds & {"schedule_timer", "cancel_timer"} else ""
    )
    headers = {
        POSITION_HEADER: str(turn.state.position),
        ORDINAL_HEADER: str(turn.ordinal),
        trace.HEADER: traceparent,
    }
    if effects:
        headers[EFFECTS_HEADER] = effects
    if owes(turn.state):
        headers[OWES_HEADER] = "1"
    return headers


async def is_settled(bus: Bus, key: SessionKey, seq: int) -> bool:
    """Return whether the event `seq` needs no wake any more (ARCHITECTURE 3, wake)."""
    turn = await bus.get_last(key.stream, key.turn)
    if turn is not None:
        position = int(turn.headers.get(POSITION_HEADER, "0"))
        if position >= seq and OWES_HEADER not in turn.headers:
            return True
    newest = await bus.get_last(key.stream, key.in_all)
    return newest is not None and newest.seq > seq


async def load(bus: Bus, key: SessionKey, clock: Clock, history_rows: int) -> Loaded:
    """Read the state and the history of a session from its turns."""
    last = await bus.get_last(key.stream, key.turn)
    history = History(history_rows)
    if last is None:
        return Loaded(state=State(), turn_seq=0, history=history)
    try:
        turn = decode_turn(last.data)
    except InvalidInput as error:
        return await _unreadable(bus, key, clock, last, history, str(error))
    state = turn.state
    if state.history_from and state.history_from < last.seq:
        for message in await bus.read(key.stream, [key.turn], state.history_from):
            if message.seq >= last.seq:
                break
            try:
                history.add(message.seq, decode_turn(message.data).rows)
            except InvalidInput as error:
                log.error(
                    "turn unreadable", action="cortex.history", seq=message.seq, error=str(error)
                )
    history.add(last.seq, turn.rows)
    return Loaded(
        state=state, turn_seq=last.seq, history=history, traceparent=last.headers.get(trace.HEADER)
    )


async def _unreadable(
    bus: Bus, key: SessionKey, clock: Clock, last: Message, history: History, error: str
) -> Loaded:
    """Go on from the position in the headers, with autonomy locked (SPEC S-7: fail closed)."""
    log.error("state unreadable", action="cortex.state", session=str(key), error=error)
    await dead_letter(bus, key, last, f"the state can't be read: {error}", clock)
    # Without the header nothing tells what was folded; what is older than the turn counts as
    # folded, because saying things twice is worse than leaving one unanswered.
    position = int(last.headers.get(POSITION_HEADER, str(last.seq)))
    turns = int(last.headers.get(ORDINAL_HEADER, "0"))
    state = State(position=position, turns=turns, effects=last.seq * 1000, is_locked=True)
    return Loaded(state=state, turn_seq=last.seq, history=history, dead_letters=1)


async def commit(bus: Bus, key: SessionKey, turn: Turn, expect: int, traceparent: str) -> int:
    """Store the turn if `expect` is still the last one; returns its stream sequence.

    Repeats a publish with an unknown outcome until it is known: the expectation makes that
    safe, and the turn's random id tells ours from another's.

    Raises:
        Conflict: another turn came first.
        TurnTooLarge: it doesn't fit.
        Unavailable: the broker is away for longer than a lease lives, or a cluster takes to elect.
    """
    data = encode(turn)
    if len(data) > TURN_BYTES_MAX:
        raise TurnTooLarge(f"{len(data)} bytes, {TURN_BYTES_MAX} are allowed")
    headers = headers_of(turn, traceparent)
    crash.point("cortex.commit.before")
    try:
        seq = (await bus.publish(key.turn, data, headers, expect=expect)).seq
    except (WrongLastSequence, Unavailable) as error:
        seq = await _settle_commit(bus, key, turn, expect, data, headers, error)
    crash.point("cortex.commit.after")
    return seq


async def _settle_commit(
    bus: Bus,
    key: SessionKey,
    turn: Turn,
    expect: int,
    data: bytes,
    headers: dict[str, str],
    error: VigilError,
) -> int:
    clock = asyncio.get_running_loop()
    deadline = clock.time() + (ELECTION_TIMEOUT_S if bus.is_cluster else COMMIT_TIMEOUT_S)
    while clock.time() < deadline:
        try:
            last = await bus.get_last(key.stream, key.turn)
            if last is not None and last.seq != expect:
                if decode_turn(last.data).id == turn.id:
                    return last.seq
                raise Conflict(str(key)) from error
            return (await bus.publish(key.turn, data, headers, expect=expect)).seq
        except InvalidInput:
            raise Conflict(str(key)) from error
        except (WrongLastSequence, Unavailable):
            await asyncio.sleep(0.1)
    raise Unavailable(f"{key}: the outcome of a commit can't be found out") from error


async def dead_letter(
    bus: Bus, key: SessionKey, message: Message, cause: str, clock: Clock
) -> None:
    """Keep what can't be used, with the cause; at least once, under one id."""
    name = f"{key.stream}-{message.seq}"
    letter = DeadLetter(
        id=name,
        service="cortex",
        stream=key.stream,
        subject=message.subject,
        seq=message.seq,
        cause=cause,
        data=message.data[:DEAD_LETTER_BYTES_MAX],
        at=clock.now(),
    )
    headers = {trace.HEADER: trace.passed_on(message.headers.get(trace.HEADER))}
    await bus.publish(key.dead("cortex"), encode(letter), headers, msg_id=f"cortex-{name}")
    crash.point("cortex.dead.after_publish")
    log.error("dead letter", action="cortex.dead_letter", session=str(key), cause=cause)
