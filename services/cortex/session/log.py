"""The session's own log: load its state, commit a turn, dead-letter what can't be used."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import structlog

from vigil import crash
from vigil.backoff import Backoff
from vigil.bus.bus import Bus, Message
from vigil.clock import Clock
from vigil.contracts import (
    ORDINAL_HEADER,
    OWES_HEADER,
    POSITION_HEADER,
    TURN_BYTES_MAX,
    Control,
    Event,
    Job,
    Start,
    State,
    Turn,
    UserMessage,
    decode_board,
    decode_event,
    decode_turn,
    encode,
)
from vigil.contracts.history import TakenBack
from vigil.contracts.session_kinds import started_kinds
from vigil.errors import InvalidInput, Unavailable, VigilError, WrongLastSequence
from vigil.observe import trace
from vigil.observe.metrics import Metrics
from vigil.subjects import SessionKey
from vigil.worker import dead_letters
from vigil.worker.patience import Patience, after_s

from ..core import Draft
from ..core.context.history import chunk_of, without
from ..core.context.versions import is_rewinding, without_taken_back
from ..core.draft import job_record
from ..core.draft.chunk import Chunk, Offer
from ..core.draft.kinds import has_purpose
from ..history import History
from .headers import headers_of, letters_of
from .past.inheritance import began_with, inherited

log = structlog.get_logger("vigil.cortex")

COMMIT_TIMEOUT_S: Final = 5.0
COMMIT_PAUSES: Final = Backoff(0.1, 0.1)
UNSAVED_PAGE: Final = 200
UNSAVED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of the turns that are held in memory at once while it is read what to remember."""
ELECTION_TIMEOUT_S: Final = 12.0
"""How long a cluster may be without a leader: Raft takes 4 to 9 s to elect one."""


class TurnTooLarge(VigilError):
    """The turn doesn't fit into one message; its draft must be given up."""


class CommitConflict(VigilError):
    """Another replica committed first: what was decided here is thrown away."""


class Loaded(msgspec.Struct):
    """What the log says of a session."""

    state: State
    turn_seq: int
    """Stream sequence of the last turn; 0 if there is none: the next commit expects it."""
    history: History
    traceparent: str | None = None

    def first_turn(self, draft: Draft) -> int:
        """Return from which turn on the history is read back after the one that `draft` makes."""
        own = self.turn_seq + 1
        return own if is_rewinding(draft.state, draft.ordinal) else self.history.first_turn(own)


async def voided(bus: Bus, key: SessionKey, state: State, event: Event | None) -> frozenset[str]:
    """Return which of the session's voidable sends are not said, and never will be.

    That can be told when a newer user message is stored: no claim of theirs is accepted after it,
    so what isn't in the transcript by then never comes into it.

    Args:
        event: what is folded next; None: what can't be read may be such a message.
    """
    sends = state.unheard if event is None or isinstance(event, UserMessage) else ()
    found = {effect: await bus.get_last(key.stream, key.out_said(effect)) for effect in sends}
    return frozenset(effect for effect, said in found.items() if said is None)


async def has_more_events(bus: Bus, key: SessionKey, state: State) -> bool:
    """Whether a run of the timetable that has asked no model yet was told more than that it begins:
    of what came while no cortex was there, its end counts first. Raises: Unavailable."""
    start, loop = state.start, state.loop
    if start is None or start.slot is None or loop is None or loop.calls or loop.retries:
        return False
    last = await bus.get_last(key.stream, key.in_all)
    return last is not None and last.seq > state.position


async def is_settled(bus: Bus, key: SessionKey, seq: int) -> bool:
    """Return whether the event `seq` needs no wake any more (ARCHITECTURE 3, wake)."""
    turn = await bus.get_last(key.stream, key.turns)
    if turn is not None:
        position = int(turn.header(POSITION_HEADER) or "0")
        if position >= seq and OWES_HEADER not in turn.headers:
            return True
    newest = await bus.get_last(key.stream, key.in_all)
    return newest is not None and newest.seq > seq


def state_after(turn: Turn, seq: int) -> State:
    """Return the state after the turn with stream sequence `seq`.

    A turn can't know its own sequence, so that of a summary is filled in here.
    """
    return msgspec.structs.replace(turn.state, summary_seq=seq) if turn.summary else turn.state


async def load(
    bus: Bus, key: SessionKey, clock: Clock, counts: Metrics, history: History
) -> Loaded:
    """Read the state of a session from its turns, and its history into `history`."""
    last = await bus.get_last(key.stream, key.turns)
    if last is None:
        return Loaded(state=State(), turn_seq=0, history=history)
    try:
        turn = decode_turn(last.data)
        _check_purpose(turn.state)
    except InvalidInput as error:
        return await _unreadable(bus, key, clock, counts, last, history, str(error))
    state = state_after(turn, last.seq)
    if state.start is not None:
        history.inherited = await inherited(bus, key, state.start)
    await _read_back(bus, key, state, history, last.seq, turn)
    return Loaded(
        state=state, turn_seq=last.seq, history=history, traceparent=last.header(trace.HEADER)
    )


async def grow(bus: Bus, key: SessionKey, history: History, seq: int, turn: Turn) -> None:
    """Add the turn with that sequence to the history; one that begins a fork brings what that goes
    on from, and after one that takes others back it is read anew."""
    if is_rewinding(turn.state, turn.ordinal):
        history.forget()
        await _read_back(bus, key, state_after(turn, seq), history, seq, turn)
    else:
        await _add(bus, key, history, seq, turn)


async def _read_back(
    bus: Bus, key: SessionKey, state: State, history: History, last_seq: int, last: Turn
) -> None:
    """Add the turns up to the last one, whose state that is, but what was taken back."""
    turns = [*await _earlier(bus, key, state, last_seq), (last_seq, last)]
    if state.fork is not None and turns[0][1].ordinal != 1:
        history.go_on_from(await began_with(bus, key, state), None)
    for seq, turn in turns:
        await _add(bus, key, history, seq, without_taken_back(turn, state.taken_back))


async def _add(bus: Bus, key: SessionKey, history: History, seq: int, turn: Turn) -> None:
    history.add(seq, turn)
    if turn.ordinal == 1:
        history.go_on_from(await began_with(bus, key, turn.state), seq)


def _check_purpose(state: State) -> None:
    """Raises: InvalidInput: no profile knows the open loop."""
    if state.loop is not None and not has_purpose(state.loop.purpose):
        raise InvalidInput("purpose", f"no profile opens loops for {state.loop.purpose!r}")


async def _earlier(bus: Bus, key: SessionKey, state: State, before: int) -> list[tuple[int, Turn]]:
    """Return the turns that make the history, with their sequences: those before the last one."""
    start, messages = state.history_from, []
    if state.summary_seq and state.summary_seq < start:
        message = await bus.get_of(key, state.summary_seq)
        messages += [] if message is None else [message]
    if start and start < before:
        messages += await bus.read(key.stream, [key.turns], start)
    return [(m.seq, turn) for m in messages if m.seq < before if (turn := _readable(m)) is not None]


def _readable(message: Message) -> Turn | None:
    try:
        return decode_turn(message.data)
    except InvalidInput as error:
        log.error("turn unreadable", action="cortex.history", seq=message.seq, error=str(error))
        return None


async def unsaved(
    bus: Bus,
    key: SessionKey,
    start: int,
    tokens_max: int,
    taken_back: Sequence[TakenBack],
    before: int = 0,
) -> Offer:
    """Read back the rows from sequence `start` on, the oldest first, as much as `tokens_max` holds,
    but what was taken back.

    Only whole turns are taken, and one at least.

    Args:
        before: the first turn that is not looked at; 0: all are.
    """
    chunks: list[Chunk] = []
    unsaid: set[str] = set()
    while True:
        page, has_more = await bus.page(
            key.stream, [key.turns], start, limit=UNSAVED_PAGE, bytes_max=UNSAVED_BYTES_MAX
        )
        for message in page:
            if before and message.seq >= before:
                return Offer(chunks=tuple(without(chunks, unsaid)))
            turn = _readable(message)
            if turn is not None:
                unsaid.update(turn.unsaid)
            kept = None if turn is None else without_taken_back(turn, taken_back)
            if kept is None or not kept.rows:
                continue
            chunk = chunk_of(message.seq, kept)
            tokens_max -= chunk.tokens
            if tokens_max < 0 and chunks:
                return Offer(chunks=tuple(without(chunks, unsaid)), next_from=message.seq)
            chunks.append(chunk)
        if not has_more or not page:
            return Offer(chunks=tuple(without(chunks, unsaid)))
        start = page[-1].seq + 1


async def _unreadable(
    bus: Bus,
    key: SessionKey,
    clock: Clock,
    counts: Metrics,
    last: Message,
    history: History,
    error: str,
) -> Loaded:
    """Go on from the position in the headers, with autonomy locked (SPEC S-7: fail closed)."""
    log.error("state unreadable", action="cortex.state", session=str(key), error=error)
    await bury(bus, key, last, f"the state can't be read: {error}", clock, counts)
    # Without the header nothing tells what was folded; what is older than the turn counts as
    # folded, because saying things twice is worse than leaving one unanswered.
    position = int(last.header(POSITION_HEADER) or str(last.seq))
    turns = int(last.header(ORDINAL_HEADER) or "0")
    state = State(
        position=position,
        turns=turns,
        effects=last.seq * 1000,
        is_locked=True,
        start=await _start_of(bus, key),
        job=await _job_of(bus, key),
    )
    return Loaded(state=state, turn_seq=last.seq, history=history)


async def _start_of(bus: Bus, key: SessionKey) -> Start | None:
    """Return what a session that can't read its own state was started with, if its log still has
    it: who waits for it is told that it ended (`owes`)."""
    first = await bus.get_next(key.stream, key.in_all, 1) if key.kind in started_kinds() else None
    if first is None:
        return None
    try:
        event = decode_event(first.data)
    except InvalidInput:
        return None
    return event.payload.start if isinstance(event, Control) else None


async def _job_of(bus: Bus, key: SessionKey) -> Job | None:
    """Return the job of a session that can't read its own, as the board has it, while it runs.

    Its plan's place is lost with the state, so it is ended (`owes`); nobody else would.
    """
    if key.kind != "planner":
        return None
    found = await bus.get_last("BOARD", key.board("job", key.thread.partition("-")[2]))
    if found is None:
        return None
    try:
        job = decode_board(found.data).entity
    except InvalidInput:
        return None
    return job if isinstance(job, Job) and job_record.is_running(job) else None


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
        seq = await _store(bus, key, turn, data, headers, expect)
    except (WrongLastSequence, Unavailable) as error:
        seq = await _settle_commit(bus, key, turn, expect, data, headers, error)
    crash.point("cortex.commit.after")
    return seq


async def _store(
    bus: Bus, key: SessionKey, turn: Turn, data: bytes, headers: dict[str, str], expect: int
) -> int:
    subject = key.turn_for(letters_of(turn))
    return (await bus.publish(subject, data, headers, expect=expect, expect_subject=key.turns)).seq


async def _settle_commit(
    bus: Bus,
    key: SessionKey,
    turn: Turn,
    expect: int,
    data: bytes,
    headers: dict[str, str],
    error: VigilError,
) -> int:
    async def settle() -> int:
        last = await bus.get_last(key.stream, key.turns)
        if last is not None and last.seq != expect:
            if _is_ours(last, turn):
                return last.seq
            raise CommitConflict(str(key)) from error
        return await _store(bus, key, turn, data, headers, expect)

    again = (WrongLastSequence, Unavailable)
    is_over = after_s(ELECTION_TIMEOUT_S if bus.is_cluster else COMMIT_TIMEOUT_S)
    try:
        return await Patience(None, COMMIT_PAUSES, errors=again, is_over=is_over).run(settle)
    except again as still:
        raise Unavailable(f"{key}: the outcome of a commit can't be found out") from still


def _is_ours(last: Message, turn: Turn) -> bool:
    try:
        return decode_turn(last.data).id == turn.id
    except InvalidInput:
        return False


async def bury(
    bus: Bus, key: SessionKey, message: Message, cause: str, clock: Clock, counts: Metrics
) -> None:
    """Keep what can't be used, with the cause; at least once, under one id."""
    letter = dead_letters.build("cortex", message, cause, key, now=clock.now())
    await dead_letters.bury(bus, counts, letter, message, key)
    crash.point("cortex.dead.after_publish")
