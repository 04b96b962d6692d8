"""One turn decided again, from what it was decided from.

The functions of the core are the ones that sessions call. No clock is read and nobody is asked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from vigil.contracts import Event, State, Turn, Usage
from vigil.contracts.made import Made, SeenNotice
from vigil.errors import VigilError

from .. import core
from ..core import Draft, Moment, Policy
from ..core.context.versions import is_rewinding
from ..core.draft.inputs import answer_of, error_of, moment_of
from ..core.draft.profile import OpenSession
from ..notice import Notice
from . import recorded_session

DEAD: Final = "dead_letter"
_ASKING: Final = ("fold", "take", "call")
"""Steps that a model may be asked in; the others are committed as they are."""

Read = Callable[[int], Awaitable[Event | None]]


class CannotReplay(VigilError):
    """A turn that can't be decided again: something of what it was decided from is missing."""


async def decide(
    turn: Turn, before: State, *, policy: Policy, read: Read, session: OpenSession
) -> Turn:
    """Return the turn that the core decides on now.

    Args:
        before: the state that the turn before it left.
        policy: of the session, as it is configured now.
        read: gives an event of the log by its sequence; None: it is gone, or can't be read.

    Raises:
        CannotReplay: something is missing.
    """
    made = turn.made
    if made is None:
        raise CannotReplay("an older version made it, which did not record what from")
    if made.is_cut or made.after is None:
        raise CannotReplay("what it was decided from was too much to be recorded")
    tools = {tool.name: tool for tool in made.tools}
    ended = moment_of(made.after, tools)
    began = ended if made.moment is None else moment_of(made.moment, tools)
    policy = msgspec.structs.replace(policy, route=made.route)
    draft = await _begun(turn, made, before, began, policy, read)
    is_asking = made.step in _ASKING and not is_rewinding(draft.state, draft.ordinal)
    if is_asking and draft.wants_call:
        await _answered(draft, turn, made, ended, session)
    core.announce(draft, map(_notice, made.notices))
    return draft.finish(turn.id, history_from=draft.history_from or turn.state.history_from)


def _notice(seen: SeenNotice) -> Notice:
    return Notice(id=seen.id, text=seen.text, what=seen.what, offer=seen.offer)


async def _begun(
    turn: Turn, made: Made, before: State, moment: Moment, policy: Policy, read: Read
) -> Draft:
    key = turn.session_key
    match made.step:
        case "fold":
            seq = turn.state.position
            return core.fold(key, before, seq, await _there(read, seq), moment, policy)
        case "take":
            events = await _queued(before, policy, read)
            return core.take(key, before, events, moment, policy)
        case "call":
            return Draft(key, before, moment, policy)
        case "poison":
            return await _poisoned(turn, before, moment, policy, read)
        case "give_up":
            is_queued = core.owes(before) == "take"
            event = await read(before.queue[0].seq) if is_queued else None
            return core.give_up(key, before, moment, policy, event)
        case "takeover" | "end":
            end = core.begin_takeover if made.step == "takeover" else core.end_lost
            return end(key, before, moment, policy)


async def _queued(before: State, policy: Policy, read: Read) -> list[Event]:
    """Return the events that are first in the queue, up to one that is gone."""
    events: list[Event] = []
    for queued in core.head(before, policy):
        event = await read(queued.seq)
        if event is None:
            break
        events.append(event)
    if not events:
        raise CannotReplay("the event that it took is gone from the log, or can't be read")
    return events


async def _poisoned(turn: Turn, before: State, moment: Moment, policy: Policy, read: Read) -> Draft:
    note = next((note for note in turn.notes if note.code == DEAD), None)
    if turn.event is None or note is None:
        raise CannotReplay("it does not tell which event was given up")
    # The turn may be about the loop that the event ended.
    seq = turn.state.position
    event = await read(seq)
    cause = turn.event if event is None else core.cause_of(seq, event)
    return core.poison(turn.session_key, before, cause, note.text, moment, policy, event)


async def _there(read: Read, seq: int) -> Event:
    event = await read(seq)
    if event is None:
        raise CannotReplay(f"its event {seq} is gone from the log, or can't be read")
    return event


async def _answered(
    draft: Draft, turn: Turn, made: Made, ended: Moment, session: OpenSession
) -> None:
    """Do with the recorded answer what the profile of the open loop does with one."""
    has_more = made.answer is not None or made.failure is not None or made.cut is not None
    if not has_more and draft.is_dirty:
        return  # it was committed before the model was asked
    question = await draft.profile.question(session, draft)
    if question is None:
        return
    draft.moment = ended
    if made.answer is not None:
        usage = turn.usage[-1] if turn.usage else Usage(model="")
        question.apply(draft, answer_of(made.answer, turn.rows, usage))
    elif made.failure is not None:
        (question.fail or recorded_session.fail)(draft, error_of(made.failure))
