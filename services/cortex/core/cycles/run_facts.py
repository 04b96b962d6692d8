"""A run of the timetable that told no facts is asked for them, once it is over (FLOW F-9). Pure.

Small models forget a tool that they are to call at the end, and fill in a form that is held before
them. So where a run would end without having told any, its loop goes on for one more question: the
facts, as JSON. What comes of it is fitted as what the tool takes; without an answer none is told,
and the run ends as it would have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vigil.contracts import State
from vigil.contracts.board import FactShape
from vigil.facts.taken import FittedFacts, read
from vigil.facts.value import schema_of
from vigil.timetable.cycles import KIND as CYCLE

from ...model import ModelAnswer, ModelError
from .. import conclusion
from ..draft import Draft
from ..tools import formed_answer, json_answer
from ..tools.formed_answer import Unusable
from . import cycle, extraction

PURPOSE: Final = "facts"
"""What the loop of a run is marked with once only its facts are asked for."""


def shapes_of(state: State) -> Mapping[str, FactShape]:
    """Return the facts that a session is to tell, by name."""
    start = state.start
    return {} if start is None or start.slot is None else start.slot.facts


def note(draft: Draft, fitted: FittedFacts) -> None:
    """Take note of facts, for when the run has ended: of each the last one counts."""
    draft.update_loop(facts={**draft.loop.facts, **fitted.values})
    said = ", ".join(f"{name} = {value}" for name, value in fitted.values.items())
    draft.note("facts_told", said or "nothing")


def wrap_up(draft: Draft, text: str) -> None:
    """End a run, or have it asked first for what it didn't tell.

    Args:
        text: its last words.
    """
    is_given_up = any(one.code == "calls_max" for one in draft.notes)
    if is_given_up or draft.loop.facts or not shapes_of(draft.state):
        _end(draft, text)
        return
    if _is_cycle(draft):
        cycle.note_work(draft)
    draft.update_loop(purpose=PURPOSE, calls=0, retries=0, unsaid=text)
    draft.outcome = "continued"


def conclude(draft: Draft, answer: ModelAnswer) -> None:
    """Take the answer as the facts and end the run, or ask once more."""
    found = formed_answer.take(
        draft, answer, PURPOSE, lambda text: json_answer.object_in(text, PURPOSE)
    )
    if isinstance(found, Unusable):
        if found.is_last:
            _end(draft, draft.loop.unsaid)
        return
    note(draft, read(shapes_of(draft.state), found, draft.moment.now))
    _end(draft, draft.loop.unsaid)


def fail(draft: Draft, error: ModelError) -> None:
    """Have it tried again, as any step; at last the run ends without facts: what it did is done."""
    if not conclusion.tries_again(draft, error):
        _end(draft, draft.loop.unsaid)


def _end(draft: Draft, text: str) -> None:
    """Go on to what ends such a run: of a cycle its report, else what else it keeps."""
    if _is_cycle(draft):
        cycle.wrap_up(draft, text)
    else:
        extraction.end(draft, text)


def _is_cycle(draft: Draft) -> bool:
    return draft.policy.profile.name == CYCLE


def schema(shapes: Mapping[str, FactShape]) -> dict[str, Any]:
    """Return the JSON Schema of the answer: null is what isn't known.

    >>> from vigil.contracts.board import YesNo
    >>> schema({"up": YesNo()})["properties"]["up"]["anyOf"][1]
    {'type': 'null'}
    """
    properties = {
        name: {"anyOf": [schema_of(shape), {"type": "null"}]} for name, shape in shapes.items()
    }
    return {
        "type": "object",
        "properties": properties,
        "required": [*properties],
        "additionalProperties": False,
    }
