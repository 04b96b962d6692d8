"""report_facts: a run of the timetable tells what it found in a closed form (FLOW F-9).

Only what its row names, and of that only what fits: so no loop that is shown it is swayed, whatever
the run had read.
"""

from __future__ import annotations

from typing import Any

from vigil.contracts import State
from vigil.contracts.arguments import Arguments
from vigil.facts.taken import read
from vigil.facts.value import schema_of

from ..core.cycles.run_facts import note, shapes_of
from ..core.draft import Draft
from ..core.tools.declaration import OwnCall, Result, tool

NOT_YOURS = "This job tells no facts."
NAMED_BY_NONE = "{count} more that this job doesn't name"


class ReportFacts(Arguments, frozen=True, kw_only=True):
    """Tell the facts that this job names, as you found them. They are shown to the person and to
    later conversations as they are; leave out what you don't know. Of several calls the last counts
    for each fact."""

    facts: dict[str, Any]


def _obstacle(given: ReportFacts, call: OwnCall, draft: Draft) -> str | None:
    return None if shapes_of(draft.state) else NOT_YOURS


def offered(state: State) -> dict[str, Any]:
    """Return the schema of this tool as a session is shown it: with its own facts.

    >>> offered(State())["required"]
    ['facts']
    """
    properties = {name: schema_of(shape) for name, shape in shapes_of(state).items()}
    facts = {"type": "object", "properties": properties, "additionalProperties": False}
    return {
        "type": "object",
        "properties": {"facts": facts},
        "required": ["facts"],
        "additionalProperties": False,
    }


@tool(risk="read", profiles=(), obstacle=_obstacle)
def report_facts(given: ReportFacts, call: OwnCall, draft: Draft) -> Result:
    """Note what fits; the run's end takes it to where facts are kept."""
    shapes = shapes_of(draft.state)
    named = {name: shape for name, shape in shapes.items() if name in given.facts}
    fitted = read(named, given.facts, draft.moment.now)
    note(draft, fitted)
    left = [f"{name} {reason}" for name, reason in fitted.left_out.items()]
    unknown = len(given.facts.keys() - shapes.keys())
    left += [NAMED_BY_NONE.format(count=unknown)] if unknown else []
    noted = ", ".join(f"{name} = {value}" for name, value in fitted.values.items()) or "nothing"
    return f"Noted: {noted}." + (
        f" Left out: {'; '.join(left)}." if left else ""
    ), not fitted.values
