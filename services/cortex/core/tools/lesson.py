"""What is handed in of a preference: one lesson; what that adds is found where it is kept. Pure."""

from __future__ import annotations

from typing import Literal

from vigil.contracts.board import BoardPreference
from vigil.contracts.board.preference import Lesson, PreferenceCategory
from vigil.preferences.check import id_of
from vigil.subjects import SessionKey

from ..draft import Draft


def taught_by(
    draft: Draft,
    category: PreferenceCategory,
    key: str,
    value: str | bool | float,
    *,
    because: str,
    how: Literal["observed", "said", "corrected"] = "observed",
) -> BoardPreference:
    """Return what the open loop teaches of its owner.

    Args:
        because: what it was learned from, in a line.
        how: as of the lesson.
    """
    whose, now = SessionKey.parse(draft.key), draft.moment.now
    lesson = Lesson(how=how, at=now, text=because, cause=draft.loop.cause.id, session_key=draft.key)
    return BoardPreference(
        id=id_of(whose.scope, key),
        owner=whose.user,
        agent=whose.agent,
        category=category,
        key=key,
        value=value,
        confidence=0.0,
        learned_from=(lesson,),
        last_confirmed_at=now,
        created_at=now,
    )
