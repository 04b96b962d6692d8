"""Facts that an event of a hook tells, without a model (FLOW F-9).

The event is stored first, and an event is the same however often it's sent: its place in the log
says whether a newer one was taken, and the history whether itself was, so a repeat after a crash
changes nothing twice. One that comes behind a newer one tells what that didn't tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec.structs import replace

from vigil import crash
from vigil.board.kept import FACTS, KeptBoard, Revision
from vigil.contracts import Change
from vigil.contracts.board import SourceFacts
from vigil.errors import Unavailable, WrongLastSequence
from vigil.facts.hooked import source_id, values_in
from vigil.facts.taken import taken
from vigil.facts.wanted import rules_of_wanted, shapes_of_wanted

from ..http.wire import Accepted
from ..state.edge import Edge
from ..state.hook_sources import HookSource

TRIES_MAX: Final = 20
WHY: Final = "an event of its hook came in"


async def take_facts(edge: Edge, hook: HookSource, accepted: Accepted, data: bytes) -> None:
    """Take what an event tells of its hook's facts, if it has any; may be repeated.

    Raises:
        Unavailable: try again later.
    """
    given = values_in(hook.facts, data.decode("utf-8", "replace")) if hook.facts else {}
    if not given:
        return
    crash.point("gateway.hook.stored")
    board, whose = KeptBoard(edge.bus, FACTS), hook.session.scope
    id_, now = source_id(hook.name, hook.session), edge.clock.now()
    for _ in range(TRIES_MAX):
        found = await board.find([whose], id_)
        source = SourceFacts(id=id_, owner=whose.owner, agent=whose.agent)
        before = source if found is None else found.entity
        told = given
        if found is not None and accepted.seq <= before.seq:
            told = _untold(await board.history(found), accepted, given)
            if not told:
                return
        after = taken(
            before,
            shapes_of_wanted(hook.facts),
            told,
            now,
            bits_max=edge.context.settings.config.cortex.fact_bits_per_day,
            cause=accepted.event_id,
            rules=rules_of_wanted(hook.facts),
            is_event=True,
        )
        number = 0 if found is None else found.number
        change = Change(by=f"hook:{hook.name}", why=WHY, cause=accepted.event_id)
        try:
            seq = max(before.seq, accepted.seq)
            await board.replace(number, replace(after, seq=seq), change, now)
        except WrongLastSequence:
            continue
        return
    raise Unavailable(f"{hook.name}: others write its facts all the time")


def _untold(
    history: Sequence[Revision[SourceFacts]], accepted: Accepted, given: Mapping[str, object]
) -> dict[str, object]:
    """Return what an event tells that none tells of those behind it, which were taken before.

    Args:
        history: as far back as it's kept. If that isn't to before the event, nobody knows whether
            it was taken: then it tells nothing.
    """
    is_known = any(one.entity.seq < accepted.seq for one in history)
    if not is_known or any(one.change.cause == accepted.event_id for one in history):
        return {}
    later = [one.entity.newest for one in history if one.entity.seq > accepted.seq]
    names = {name for one in later if one is not None for name in one.values}
    return {name: value for name, value in given.items() if name not in names}
