"""next_look: a run of the timetable says when the next one is worth it (LOOPS L-1).

Only where its row lets it, and within the row's limits. Content from outside may hasten the next
run, but not put it off: what is watched could have itself watched the less.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from vigil.contracts.arguments import Arguments
from vigil.contracts.board import ChosenSchedule
from vigil.words.amounts import span_of

from ..core.draft import Draft
from ..core.tools.declaration import OwnCall, Result, tool

NOT_YOURS = "This job runs at fixed times; nothing is to be chosen."


class NextRun(Arguments, frozen=True, kw_only=True):
    """Say when this job is run next, if another time than the usual one is better: sooner, if
    something is about to happen; later, if nothing will. Counted from the end of this run; of
    several calls the last counts."""

    in_seconds: Annotated[int, msgspec.Meta(ge=1)]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


def _obstacle(given: NextRun, call: OwnCall, draft: Draft) -> str | None:
    choice = choice_of(draft)
    if choice is None:
        return NOT_YOURS
    if not choice.soonest_s <= given.in_seconds <= choice.latest_s:
        return f"in_seconds must be from {choice.soonest_s} to {choice.latest_s}."
    if call.sway.is_outside and given.in_seconds > choice.interval_s:
        usual = span_of(choice.interval_s)
        return (
            "This run took in content from outside, which may not put the next one off: "
            f"at most {choice.interval_s} seconds, the usual {usual}."
        )
    return None


def choice_of(draft: Draft) -> ChosenSchedule | None:
    """Return within which limits the session may choose; None: it may not."""
    start = draft.state.start
    return None if start is None or start.slot is None else start.slot.choice


@tool(risk="read", profiles=(), obstacle=_obstacle)
def next_look(given: NextRun, call: OwnCall, draft: Draft) -> Result:
    """Note it; the ledger has it once the run has ended."""
    draft.update_loop(next_s=given.in_seconds)
    draft.note("next_look", f"in {span_of(given.in_seconds)}: {given.reason}")
    return f"It runs again {span_of(given.in_seconds)} after this run ends.", False
