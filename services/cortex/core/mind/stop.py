"""A goal ended in words: a message of the person's that names one and says nothing else. Pure.

As with a verdict (`work.spoken`), whatever is beside it makes it a message like any other.
"""

from __future__ import annotations

import re
from typing import Final

from vigil.contracts import BoardChangePayload
from vigil.contracts.board.approval import SHORT_NAME, short_name
from vigil.goals import lifecycle

from .. import speech
from .. import sway as sways
from ..draft import Draft
from ..pending.tasks import shortened
from ..sway import Sway

_STOP: Final = re.compile(f"stop (g{SHORT_NAME[1:]})[.!]?", re.ASCII | re.IGNORECASE)
WHY: Final = "the person said stop"
SHOWN_LENGTH_MAX: Final = 200


def read(text: str) -> str | None:
    """Return the name of the goal that a message ends; None: it's a message like any other.

    >>> read("Stop G7TR."), read("please stop g7tr"), read("stop it")
    ('g7tr', None, None)
    """
    found = _STOP.fullmatch(text.strip(" "))
    return None if found is None else found[1].lower()


def decide(draft: Draft, called: str) -> bool:
    """Put the goal away that is called so; return whether there is one."""
    found = [
        one
        for one in draft.moment.goals
        if one.goal.status in lifecycle.HELD and short_name(one.goal.id, "g") == called
    ]
    if not found:
        return False
    if len(found) > 1:
        ids = " ".join(one.goal.id[:8] for one in found)
        text = f"Several goals have that name: `vigil goals archive ID` of one: {ids}"
        speech.say(draft, text, Sway.NONE, is_autonomous=False)
        return True
    goal = lifecycle.moved(found[0].goal, "archived", draft.moment.now)
    draft.ask_board(
        BoardChangePayload(entity=goal, expect=found[0].revision, why=WHY, is_silent=True)
    )
    text = f"Stopped: {shortened(' '.join(goal.description.split()), SHOWN_LENGTH_MAX)}"
    speech.say(draft, text, sways.of(goal), is_autonomous=False)
    return True
