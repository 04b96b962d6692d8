"""A limit of the day raised by a message of the person's: "more", and nothing else. Pure.

As with a verdict (`work.spoken`), whatever is beside it makes it a message like any other. So does
everything that was said since the notice, and a notice of another day: "more" is what people say.
"more budget" stands for the notice of today, whatever was said since.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from vigil.contracts import SendMessage
from vigil.contracts.costs import RaiseOffer
from vigil.contracts.effects import RaiseBudget, RaiseBudgetPayload

from ...notice import Notice
from .. import speech
from ..draft import Draft
from ..sway import Sway

_MORE: Final = re.compile(r"(?:more|mehr)( budget)?[.!]?", re.ASCII | re.IGNORECASE)


def read(text: str) -> bool | None:
    """Return whether a message names the budget, too; None: it's a message like any other.

    >>> read("More!"), read("more budget"), read("more, please"), read("> more")
    (False, True, None, None)
    """
    found = _MORE.fullmatch(text.strip(" "))
    return None if found is None else found[1] is not None


def decide(draft: Draft, *, is_named: bool, by: str) -> bool:
    """Raise the person's own limit as they were offered; return whether they were.

    Args:
        by: who wrote it.
    """
    offer = draft.state.offer
    if offer is None or not draft.is_for_one or offer.is_over(draft.moment.now):
        return False
    if offer.is_taken or not (is_named or offer.is_newest):
        return False
    payload = RaiseBudgetPayload(day=offer.day, times=offer.times, by=by)
    effect, ordinal = draft.next_id("raise_budget", payload, by)
    draft.effects.append(RaiseBudget(id=effect, ordinal=ordinal, payload=payload))
    draft.update(offer=replace(offer, is_taken=True))
    draft.note("budget_raised", f"{by} may use {offer.most} today")
    speech.say(
        draft, f"Raised for today: you may use {offer.most}.", Sway.NONE, is_autonomous=False
    )
    return True


def offer(draft: Draft, made: RaiseOffer | None) -> None:
    """Know what the person was just told that their word does."""
    if made is not None and draft.is_for_one:
        draft.update(offer=made)


def keep(draft: Draft, made: RaiseOffer | None) -> None:
    """Know what the person will be told later, with what else is kept for them."""
    offer(draft, None if made is None else replace(made, is_newest=False))


def offer_again(draft: Draft, text: str) -> None:
    """Know that what was kept is told now, if it is in this text."""
    made = draft.state.offer
    if made is not None and made.words in text:
        draft.update(offer=replace(made, is_newest=True))


def is_past(draft: Draft, made: RaiseOffer | None) -> bool:
    """Whether the limit that a notice is of was raised before it could be told, or its day is
    over that they raised one on since."""
    known = draft.state.offer
    if known is None or made is None or not known.is_taken:
        return False
    if made.day == known.day:
        return made.times <= known.times
    return made.is_over(draft.moment.now)


def offer_said(draft: Draft, notices: Iterable[Notice]) -> None:
    """Know of the notices those that this conversation was told, as why it isn't answered."""
    said = [one.payload.text for one in draft.effects if isinstance(one, SendMessage)]
    for notice in notices:
        if any(notice.text in text for text in said):
            offer(draft, notice.offer)


def pass_by(draft: Draft) -> None:
    """Know that something else was said since."""
    made = draft.state.offer
    if made is not None and made.is_newest:
        draft.update(offer=replace(made, is_newest=False))
