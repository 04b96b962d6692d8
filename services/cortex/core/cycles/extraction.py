"""What else a run of the timetable came across, kept after its end was told (SPEC J-3). Pure.

Of a row that remembers, memory is given what a run said (`work.findings`). Where it would end, its
end is told and its result goes its way; then its loop goes on for one more question, if it called
tools: what of all that it was shown is worth keeping, as JSON. Kept is what has a ground
(`grounds`), each by itself and with it, marked as all that the run made. Whatever becomes of the
question, the run is over, and nobody is told anything more.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from vigil.contracts import Outcome
from vigil.errors import InvalidInput

from ...model import ModelAnswer, ModelError
from .. import conclusion
from ..context.offers import things
from ..draft import Draft
from ..pending import tasks
from ..tools import formed_answer, json_answer
from ..tools.formed_answer import Unusable
from ..work import findings
from ..work.loop_end import end_loop, report_end
from . import grounds
from .report import short

PURPOSE: Final = "extraction"
"""What the loop of a run is marked with once its end was told."""
IMPORTANCE: Final = 0.4
"""Less than of what a person told: what a run sees is soon another."""
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"memories": {"type": "array", "items": {"type": "string"}}},
    "required": ["memories"],
    "additionalProperties": False,
}
"""The schema of an answer."""


def end(draft: Draft, text: str) -> None:
    """Tell what came of a run, and have the model asked what else is to be kept; or just end it.

    Args:
        text: its last words.
    """
    outcome = conclusion.said_last(draft, text)
    if not _is_asked(draft, outcome):
        end_loop(draft, outcome)
        return
    report_end(draft, outcome)
    draft.note("extraction_asked", f"at most {draft.policy.extracted_max}")
    draft.update_loop(purpose=PURPOSE, calls=0, retries=0, unsaid=text)
    draft.outcome = "continued"


def _is_asked(draft: Draft, outcome: Outcome) -> bool:
    """Whether the run remembers, ended well, and was asked again with what it had called for; of
    one that was asked for its facts since that isn't known."""
    start = draft.state.start
    is_stateful = start is not None and start.slot is not None and start.slot.is_stateful
    is_young = draft.loop.calls < 2 and draft.loop.purpose == draft.policy.profile.purpose
    if not is_stateful or draft.policy.extracted_max == 0 or is_young:
        return False
    return tasks.ending(outcome, draft.notes, draft.last_words, draft.loop.unsaid)[0] == "done"


def read(text: str, most: int) -> tuple[str, ...]:
    """Read an answer. Raises: InvalidInput: it is none.

    >>> read('{"memories": ["CI of main is red since 01:10.", " "]}', 5)
    ('CI of main is red since 01:10.',)
    """
    found = json_answer.object_in(text, "answer").get("memories", [])
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise InvalidInput("memories", "'memories' must be a list of strings")
    return short(found)[:most]


def conclude(draft: Draft, answer: ModelAnswer, shown: Mapping[str, str]) -> None:
    """Have memory keep what of an answer has a ground, and end.

    Args:
        shown: what the run was shown, as of `grounds.shown`.
    """
    reader = partial(read, most=draft.policy.extracted_max)
    found = formed_answer.take(draft, answer, "memories", reader, asked_max=1)
    if isinstance(found, Unusable):
        _end_without(draft, found.reason)
        return
    kept = grounds.grounded(found, shown)
    if not kept:
        named = "none of them names anything that it was shown" if found else "there was none"
        _end_without(draft, named)
        return
    for one in kept:
        findings.save(draft, one, draft.sway, type_="fact", importance=IMPORTANCE)
    draft.note("extraction_kept", things(len(kept)))
    _end(draft)


def skip(draft: Draft) -> None:
    """End without asking: neither a tool nor anybody whom it started showed it anything."""
    _end_without(draft, "it was shown nothing that could be kept")


def fail(draft: Draft, error: ModelError) -> None:
    """Have it tried again, as any step; at last keep no more than what the run said."""
    if not conclusion.tries_again(draft, error):
        _end_without(draft, error.reason)


def _end_without(draft: Draft, why: str) -> None:
    draft.note("extraction_missing", why)
    _end(draft)


def _end(draft: Draft) -> None:
    """End as the run did."""
    end_loop(draft, "answered" if draft.loop.unsaid else "silent")
