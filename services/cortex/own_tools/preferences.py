"""learn_preference: how the person likes things (SPEC G-3, P-6).

A preference is never learned from outside content: a loop that such content has a part in teaches
nothing, whoever ordered it. What the person said is theirs only in an exchange that they began; any
other may only have observed it.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec

from vigil.contracts import BoardChangePayload
from vigil.contracts.arguments import Arguments
from vigil.contracts.board.preference import PreferenceCategory
from vigil.errors import InvalidInput
from vigil.preferences.check import (
    KEY_LENGTH_MAX,
    KEY_PATTERN,
    LEARNED_FROM_LENGTH_MAX,
    VALUE_BYTES_MAX,
    check,
)

from ..core.draft import Draft
from ..core.tools import calls, lesson
from ..core.tools.declaration import Answer, OwnCall, tool

NEVER_FROM_OUTSIDE: Final = (
    "Not learned: this exchange took in content from outside, and that teaches nothing about the "
    "person. They can say it themselves: `vigil preferences set`."
)
ONLY_IN_PERSON: Final = (
    "Not learned: only an exchange that the person began tells what they said. Give how as "
    "'observed', if you saw it."
)


class LearnPreference(Arguments, frozen=True, kw_only=True):
    """Learn how the person likes things, for all conversations to come.

    One key for one thing, in few words, the same key each time (answers.length). how: `observed`,
    you saw it; `said`, they told you; `corrected`, they told you that it's not to be so, and value
    is what they don't want. because: what you learned it from, in a line. A "no" to one thing, or a
    "not now", is none: that they never want it teaches, or the third "no" alike.
    """

    category: PreferenceCategory
    key: Annotated[str, msgspec.Meta(pattern=KEY_PATTERN, max_length=KEY_LENGTH_MAX)]
    value: Annotated[str, msgspec.Meta(min_length=1, max_length=VALUE_BYTES_MAX)] | bool | float
    because: Annotated[str, msgspec.Meta(min_length=1, max_length=LEARNED_FROM_LENGTH_MAX)]
    how: Literal["observed", "said", "corrected"] = "observed"


def _obstacle(given: LearnPreference, call: OwnCall, draft: Draft) -> str | None:
    if call.sway.is_outside:
        return NEVER_FROM_OUTSIDE
    if given.how != "observed" and not draft.loop.is_direct:
        return ONLY_IN_PERSON
    if (reason := calls.may_not_change(draft)) is not None:
        return f"Not learned: {reason}."
    return calls.refusal(draft, call.use.input)


@tool(
    risk="write",
    profiles=("channel", "autonomy", "mind"),
    obstacle=_obstacle,
    aims={"category": "detail", "how": "detail"},
)
def learn_preference(given: LearnPreference, call: OwnCall, draft: Draft) -> Answer:
    """Hand in a lesson; what it adds to what is known is found when it's stored."""
    preference = lesson.taught_by(
        draft, given.category, given.key, given.value, because=given.because, how=given.how
    )
    try:
        check(preference)
    except InvalidInput as error:
        return str(error), True
    payload = BoardChangePayload(entity=preference, why=given.because)
    return calls.ask_board(draft, call.use, payload)
