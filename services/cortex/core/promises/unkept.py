"""An answer that promises, or tells as done, what nothing did: its model is asked once. Pure.

Models say that they will check, remind or come back, or that a reminder is set, and end their turn;
nobody wakes them then. Such a word may be kept by a call of the exchange that did more than look
something up, by work that is under way, or by a follow-up that is open and has a word in common
with it. Without any of those the answer isn't said yet: the model reads that nothing did it, and
answers again. What it says then is said; if it is still such a word, a note tells.
"""

from __future__ import annotations

import re
from typing import Final

from vigil.contracts import ToolUseBlock
from vigil.memory.operation import tools as memory_tools
from vigil.words.denial import bare_of
from vigil.words.function_words import FUNCTION_WORDS

from .. import loops
from ..draft import Draft
from ..draft.job_record import is_running
from ..pending.tasks import shortened
from ..tools.declaration import declared
from .words import undertaken

NAMED_MAX: Final = 200
"""Characters of a promise that is quoted."""
NOTHING_PLANNED: Final = (
    "[Nobody has heard this answer yet. It says: “{promise}” Nothing that you called in this "
    "exchange did or planned that, and you don't wake up by yourself. Do it now, or plan it with a "
    "tool, and answer then. If you can't, say so instead. If it was done or planned before, or is "
    "no word of yours, answer the same again.]"
)
RECENT_TURNS: Final = 4
"""So many turns ago a reminder was ordered just before; an exchange without calls is one."""
_REMINDS: Final = re.compile(
    r"remind|alarm|timer|erinner|rappel|recordar|recordatorio|ricord|promemoria|herinner|lembr",
    re.IGNORECASE,
)
_WORD: Final = re.compile(r"[^\W_]{3,}")


def may_keep(draft: Draft, use: ToolUseBlock) -> bool:
    """Whether a call does more than look something up or note it: what follows may be its work."""
    if use.name in memory_tools():
        return False
    tool = draft.moment.tools.get(use.name) or declared().get(use.name)
    return tool is None or tool.risk != "read"


def asks(draft: Draft, text: str) -> bool:
    """Ask the model about a promise in its last words that nothing keeps; whether it did."""
    promise = _unkept(draft, text)
    if not promise:
        return False
    loop = draft.loop
    quoted = f"“{promise.rstrip('.!…')}”"
    if loop.promise or loops.steps_left(draft) < 1:
        draft.note("promise_unkept", quoted, loop.cause.id)
        return False
    draft.note("promise_asked", quoted, loop.cause.id)
    draft.row_text("user", "tool", NOTHING_PLANNED.format(promise=promise))
    draft.update_loop(promise=promise, unsaid=text)
    draft.outcome = "continued"
    return True


def _unkept(draft: Draft, text: str) -> str:
    """Return what the open loop promises and nothing keeps, shortened; empty: nothing."""
    loop, profile = draft.loop, draft.profile
    is_talk = profile.is_conversation and profile.wrap_up is None and loop.caller is None
    is_at_it = bool(draft.state.tasks or draft.state.approvals) or is_running(draft.state.job)
    if not is_talk or is_at_it or loop.has_acted or draft.is_overtaken:
        return ""
    promise = undertaken(text)
    return shortened(promise, NAMED_MAX) if promise and not _is_planned(draft, promise) else ""


def _is_planned(draft: Draft, promise: str) -> bool:
    """Whether an open follow-up is about the same, by a word that says anything; a reminder that
    was ordered just before may be told again without one ("You're welcome, I'll remind you")."""
    about, reminds = _words(promise), _REMINDS.search(promise) is not None
    oldest = draft.ordinal - RECENT_TURNS
    return any(
        about & _words(f"{one.reason} {one.message or ''}")
        or (reminds and one.keep and one.generation >= oldest)
        for one in draft.state.follow_ups.values()
    )


def _words(text: str) -> set[str]:
    return {bare_of(word) for word in _WORD.findall(text)} - FUNCTION_WORDS
