"""What a loop may do with the executor's tools without asking a person (SPEC X-2, X-3). Pure.

Two things decide: who is behind the loop, and whether content from outside had a part in it. Such
content may say anything, and a model may obey what it reads. So whatever descends from it may look,
and no more: neither the person's order nor the agent's authority is lent to a stranger.

    behind the loop                                read   write   external   destructive
    ---------------------------------------------------------------------------------------
    a person, who began or ordered it              runs   runs    runs       asks
    nobody, authority "act"                        runs   runs    runs       asks
    nobody, authority "suggest"                    runs   runs    asks       asks
    nobody, authority "observe"                    runs   asks    asks       asks
    nobody, authority "off"                        asks   asks    asks       asks
    nobody, and outside content, at most           runs   asks    asks       asks
    a person, and outside content                  runs   runs    theirs     asks

*Theirs*: it runs if its values are the person's own, or of whom they know (`own_words`, FLOW F-6);
else it asks, and says which aren't. What only looks at an address of the model's choice (`is_open`)
counts as external then.

An address that the configuration names is `read` to fetch, unless outside content had a part. What
it has a cycle keep up with is `read` to look at in any case, to the letter (`looks`).
Where it asks, a standing grant of the person's may let the call run (`routing`, `vigil.grants`).
The tools of the core and of memory have rules of their own (`own_tools`, `calls`).
"""

from __future__ import annotations

from typing import Final

from vigil.contracts import Risk

from ..draft.policy import Authority
from ..sway import Sway

ORDERED: Final[tuple[Risk, ...]] = ("read", "write", "external")
"""What runs in a loop that a person began or ordered."""
ALONE: Final[dict[Authority, tuple[Risk, ...]]] = {
    "off": (),
    "observe": ("read",),
    "suggest": ("read", "write"),
    "act": ("read", "write", "external"),
}
"""What runs in any other."""
BY_ITSELF: Final[dict[Authority, str]] = {
    "off": "do nothing",
    "observe": "only look",
    "suggest": "only look, and change what is its own",
    "act": "do all but what can't be undone",
}
"""What that comes to, for a person who is asked."""
SWAYED: Final[tuple[Risk, ...]] = ("read",)
"""What runs at most, once outside content had a part in it."""
SWAYED_BY: Final = "content from outside had a part in the decision"


def reason_to_ask(
    risk: Risk,
    sway: Sway,
    *,
    is_ordered: bool,
    authority: Authority,
    is_theirs: bool = False,
) -> str | None:
    """Return why a person has to be asked before such a call is run, or None if it may run.

    Args:
        sway: whether content from outside has a part in the decision.
        is_ordered: a person began the loop, or ordered it (a reminder that is kept, a job).
        is_theirs: the values of the call are the person's own, or of whom they know.

    >>> reason_to_ask("external", Sway.NONE, is_ordered=True, authority="off")
    >>> reason_to_ask("external", Sway.OUTSIDE, is_ordered=True, authority="act")
    'content from outside had a part in the decision'
    >>> reason_to_ask("external", Sway.OUTSIDE, is_ordered=True, authority="act", is_theirs=True)
    >>> reason_to_ask("external", Sway.NONE, is_ordered=False, authority="suggest")
    'nobody ordered it, and by itself the agent may only look, and change what is its own'
    >>> reason_to_ask("destructive", Sway.NONE, is_ordered=True, authority="act")
    "it can't be undone"
    """
    if risk == "destructive":
        return "it can't be undone"
    if not is_ordered and risk not in ALONE[authority]:
        return f"nobody ordered it, and by itself the agent may {BY_ITSELF[authority]}"
    if sway.is_outside and risk not in SWAYED:
        is_covered = is_ordered and (risk == "write" or is_theirs)
        return None if is_covered else SWAYED_BY
    return None if not is_ordered or risk in ORDERED else "it is beyond what an order covers"
