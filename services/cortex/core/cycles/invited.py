"""Invitations among new mail: the person is asked about each, without a model (ADR 51). Pure.

What one asks for is a call that is ready, made where the mail was stored; the person may let
exactly that call run. What they're told is from outside, as the whole mail is: when it is stands in
words of ours, whom it's from and what it's called as the mail has it.
"""

from __future__ import annotations

from typing import Final

from vigil.contracts import Approval, ToolUseBlock
from vigil.contracts.mail import OfferedMail

from ..draft import Draft
from ..draft.notifications import REQUEST
from ..work import approvals
from .mail_words import quoted, written_by

REASON: Final = "a mail asks for it, and nothing proves whose it is"


def ask(draft: Draft) -> None:
    """Ask about each of the invitations with which the session begins."""
    offers = None if draft.state.start is None else draft.state.start.offers
    if offers is None:
        return
    for at, one in enumerate(offers.mails):
        _ask(draft, f"offer_{at}", one)
    if offers.left:
        text = f"{offers.left} more invitations came by mail; they're in your mailbox."
        draft.notify_home(REQUEST, text, is_ordered=False)


def _ask(draft: Draft, id_: str, one: OfferedMail) -> None:
    offer = one.offer
    if not offer.tool:
        draft.notify_home(REQUEST, f"{described(one)}.", is_ordered=False, sway=draft.sway)
        return
    use = ToolUseBlock(id=id_, name=offer.tool, input=offer.input)

    def write(approval: Approval) -> str:
        return f"{described(one)}. {how(approval)}"

    refusal = approvals.propose(draft, use, "external", REASON, write)
    if refusal is not None:
        draft.note("offer_dropped", f"{offer.tool}: {refusal}")


def described(one: OfferedMail) -> str:
    """Return what a person is told of an invitation.

    >>> from vigil.contracts.mail import MailedOffer
    >>> offer = MailedOffer(what="an invitation; 2026-12-01 09:00", title="Review")
    >>> described(OfferedMail(author="bo@b.example", name="Bo", offer=offer))
    'By mail from Bo <bo@b.example>: “Review”, an invitation; 2026-12-01 09:00'
    """
    return f"By mail from {written_by(one)}: {quoted(one.offer.title)}, {one.offer.what}"


def how(approval: Approval) -> str:
    """Return how a person decides."""
    verb = {"calendar_create": "put it into", "calendar_change": "change it in"}
    return (
        f"To {verb.get(approval.tool, 'take it out of')} your calendar, say: accept "
        f"{approval.name}, or: reject {approval.name} (all of it: vigil approvals show "
        f"{approval.id})"
    )
