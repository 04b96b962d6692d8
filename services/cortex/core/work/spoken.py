"""A verdict in words: a message of the person's that names a request and says nothing else. Pure.

Whatever is beside it makes it a message like any other: nobody decides by the way, in a quotation,
or by forwarding what somebody else wrote. So it is with a message that calls off what was asked.
"""

from __future__ import annotations

import re
from typing import Final

import msgspec

from vigil.contracts import (
    SHORT_NAME,
    Approval,
    Decision,
    SendVerdict,
    SendVerdictPayload,
    ToldPayload,
    Verdict,
    short_name,
)
from vigil.contracts.board import Settled
from vigil.texts.verdict import became

from .. import gates, speech
from .. import sway as sways
from ..draft import Draft, notifications
from ..pending import request_text, requests
from ..sway import Sway

_WORDS: Final[dict[Verdict, str]] = {
    "accept": "accept approve yes ok ja",
    "reject": "reject deny no nein",
}
VERDICTS: Final = {word: verdict for verdict, words in _WORDS.items() for word in words.split()}
_DONE: Final[dict[Verdict, str]] = {
    "accept": "Accepted",
    "reject": "Rejected",
    "answer": "Answered",
}
UNREAD: Final = (
    "Nothing ran yet: you weren't told here what exactly this is. Read it, and say it once more."
)
TOO_LONG: Final = (
    "Nothing ran: this is too long to be shown here. Read it: `vigil approvals show {id}`. Then "
    "`vigil approvals accept {id}` lets it run."
)
GONE: Final = (
    "Nothing to decide: that request isn't open any more. What became of it: `vigil approvals show "
    "{id}`."
)
TOO_LATE: Final = "Too late: {name} was {became}."
ID_LENGTH: Final = 32
_NAME: Final = f"({SHORT_NAME}|[0-9a-f]{{{ID_LENGTH}}})"
_WORD: Final = f"({'|'.join(VERDICTS)})"
_BETWEEN: Final = "[ ,:]{1,2}"
_FLAGS: Final = re.ASCII | re.IGNORECASE | re.DOTALL
_VERDICT: Final = re.compile(
    f"(?:{_WORD}{_BETWEEN}{_NAME}|{_NAME}{_BETWEEN}{_WORD})[.!]?", flags=_FLAGS
)
_OFF: Final = re.compile(
    "(?:ok(?:ay)?|no|nein|please|bitte|sorry)?[ ,]{0,2}"
    "(?:never ?mind|forget (?:it|that|about it)|(?:cancel|drop|scrap) (?:it|that|this|everything)|"
    "call it off|leave it(?: be)?|don['’]?t (?:do (?:it|that)|bother)|"
    "vergiss (?:es|das)|lass (?:es|das)(?: sein)?|schon gut|doch nicht)"
    "(?:[ ,]{1,2}(?:please|bitte|thanks|thank you|danke))?[.! ]{0,3}",
    flags=_FLAGS,
)
"""What somebody says who doesn't want any more what they were asked about."""
_ANSWER: Final = re.compile(f"answer {_NAME}{_BETWEEN}(.*)", flags=_FLAGS)


class VerdictWords(msgspec.Struct, frozen=True):
    """A verdict as a person says it."""

    verdict: Verdict
    called: str
    """The short name of a request, or its id."""
    text: str = ""


def read(text: str) -> VerdictWords | None:
    """Return the verdict that a message is; None: it's a message like any other.

    >>> read("accept a7tr") == read(" A7TR: Yes!") == VerdictWords("accept", "a7tr")
    True
    >>> read("answer a7tr the blue one").text
    'the blue one'
    >>> read("yes, accept a7tr please"), read("accept a7tr\\nand b"), read("> accept a7tr")
    (None, None, None)
    """
    text = text.strip(" ")
    if found := _ANSWER.fullmatch(text):
        return VerdictWords("answer", found[1].lower(), found[2].strip())
    if found := _VERDICT.fullmatch(text):
        word, called = found[1] or found[4], found[2] or found[3]
        return VerdictWords(VERDICTS[word.lower()], called.lower())
    return None


def calls_off(text: str) -> bool:
    """Return whether a message says that what was asked isn't wanted any more, and nothing else.

    >>> calls_off("Never mind."), calls_off("no, forget it, thanks"), calls_off("Lass es sein!")
    (True, True, True)
    >>> calls_off("never mind the weather"), calls_off("don't forget it"), calls_off("no")
    (False, False, False)
    """
    return _OFF.fullmatch(text.strip()) is not None


def call_off(draft: Draft, text: str) -> None:
    """Withdraw what this conversation asked, if a message calls it off, and say so."""
    if not (draft.state.approvals and calls_off(text)):
        return
    for approval in draft.state.approvals.values():
        requests.withdraw(draft, approval, "the person called it off")
        say_withdrawn(draft, approval, "you called it off")


def say_withdrawn(draft: Draft, approval: Approval, why: str) -> None:
    """Tell the person, where it was asked, that there is nothing to decide any more."""
    title = request_text.title(approval.tool, approval.input)
    text = f"Withdrawn, since {why}: {title}"
    speech.say(draft, text, sways.of(approval), is_autonomous=False)


def decide(draft: Draft, spoken: VerdictWords, *, by: str, channel: str) -> bool:
    """Hand the verdict to the session that asked; return whether there is such a request.

    What comes of it is told as of any verdict: here it's only said that it was understood.

    Args:
        by: the person, or the member of the team, who wrote it.
        channel: over which they wrote it; empty: a client of the API.
    """
    found = _requests(draft, spoken.called)
    if not found:
        return _is_gone(draft, spoken.called)
    draft.update(counters=gates.reset(draft.state.counters))
    if len(found) > 1:
        text = f"Several requests have that name: {' '.join(one.id for one in found)}"
        speech.say(draft, text, Sway.NONE, is_autonomous=False)
        return True
    approval = found[0]
    if requests.settled(draft.state, approval.id) is not None:  # by a verdict that is on its way
        notify_too_late(draft, approval.id)
        return True
    if spoken.verdict == "accept" and not _is_known(draft, approval):
        _show(draft, approval)
        return True
    if _fits(approval, spoken.verdict):
        _send(draft, approval, spoken, by, channel)
        text = f"{_DONE[spoken.verdict]}: {request_text.title(approval.tool, approval.input)}"
    else:
        text = f"{approval.name} is a question: answer {approval.name} TEXT, or reject it."
    draft.note("approval_spoken", f"{spoken.verdict}: {approval.tool}", approval.id)
    speech.say(draft, text, sways.of(approval), is_autonomous=False)
    return True


def _is_gone(draft: Draft, called: str) -> bool:
    """Tell the person that what they named is no open request any more: they may have been a moment
    too late, and a model would answer them. Whether that was said; a short name that nothing had
    lately is a word like any other. Whole ids are what buttons and signs say."""
    ids = [*(one.id for one in draft.state.settled), *(one.id for one in draft.moment.approvals)]
    is_whole = len(called) >= ID_LENGTH
    id_ = called if is_whole else next((one for one in ids if short_name(one) == called), "")
    if id_:
        draft.update(counters=gates.reset(draft.state.counters))
        notify_too_late(draft, id_)
    return bool(id_)


def notify_too_late(draft: Draft, id_: str, said_in: str = "") -> None:
    """Tell who came too late what was decided, and by whom: of two verdicts at once each was taken,
    it seemed, until one reached the session that asks.

    Args:
        said_in: the other session in which it was said; empty: here, or by no message.
    """
    found: Settled | Approval | None = requests.settled(draft.state, id_)
    found = found or next((one for one in draft.moment.approvals if one.id == id_), None)
    draft.note("no_such_approval", "it is not open" if found is None else became(found), id_)
    text = GONE.format(id=id_)
    if found is not None:
        text = TOO_LATE.format(name=short_name(id_), became=became(found))
    if said_in:
        _correct(draft, text, said_in, Sway.NONE)
    elif draft.policy.profile.is_conversation:
        speech.say(draft, text, Sway.NONE, is_autonomous=False)
    else:
        draft.notify_home("verdict", text)


def tell_refused(draft: Draft, approval: Approval, problem: str, said_in: str) -> None:
    """Tell who decided that it doesn't count: it was said to; and who fills in a stranger's form
    can't know what fits."""
    text = f"{approval.name} still waits for you: {problem}"
    if said_in:
        _correct(draft, text, said_in, sways.of(approval))
    elif draft.policy.profile.is_conversation:
        speech.say(draft, text, sways.of(approval), is_autonomous=False)


def _correct(draft: Draft, text: str, said_in: str, sway: Sway) -> None:
    """Say it in the other session, also in quiet hours: its person was told the contrary there a
    moment ago."""
    message = ToldPayload(
        origin=draft.key,
        text=text,
        what="verdict",
        urgency="high",
        is_ordered=True,
        is_tainted=sway.is_outside,
    )
    notifications.notify(draft, said_in, message)


def _requests(draft: Draft, called: str) -> list[Approval]:
    """Return this session's own, which the board may not have yet, or else those of others."""
    own = [one for one in draft.state.approvals.values() if called in (one.name, one.id)]
    known = {one.id for one in own}
    others = [one for one in draft.moment.approvals if one.state == "open"]
    return own + [one for one in others if one.id not in known and not _has_ended(draft, one)]


def _has_ended(draft: Draft, approval: Approval) -> bool:
    """Whether the board is a moment behind this session, which asked."""
    is_own = approval.session_key == draft.key
    return is_own and requests.settled(draft.state, approval.id) is not None


def _is_known(draft: Draft, approval: Approval) -> bool:
    """Whether the person was told here what exactly they would let run, all of it: nobody accepts
    what only a model, or who swayed it, says something about."""
    is_shown = approval.id in draft.state.shown
    return is_shown or approval.is_question or _is_told_at_home(draft, approval)


def _is_told_at_home(draft: Draft, approval: Approval) -> bool:
    """Whether the message at home that asks for it holds all of its arguments."""
    is_quoted = draft.is_for_one and not sways.of(approval).is_outside
    return is_quoted and request_text.is_in_title(approval.tool, approval.input)


def _show(draft: Draft, approval: Approval) -> None:
    """Tell the person, and no model, what exactly they are about to accept."""
    parts = request_text.parts(approval)
    if not parts:
        text = TOO_LONG.format(id=approval.id)
        draft.note("approval_spoken", "too long to be accepted by a word", approval.id)
        speech.say(draft, text, sways.of(approval), is_autonomous=False)
        return
    requests.note_shown(draft, approval.id)
    draft.note("approval_shown", approval.tool, approval.id)
    for text in (f"{UNREAD}\n\n{parts[0]}", *parts[1:]):
        speech.say(draft, text, sways.of(approval), is_autonomous=False)


def _fits(approval: Approval, verdict: Verdict) -> bool:
    return verdict != "accept" or not approval.is_question


def _send(draft: Draft, approval: Approval, spoken: VerdictWords, by: str, channel: str) -> None:
    """Bring the verdict to the session that asked; if it's this one, no other counts any more."""
    decision = Decision(
        approval_id=approval.id,
        verdict=spoken.verdict,
        digest=approval.digest,
        by=by,
        text=request_text.bounded(spoken.text),
        channel=channel,
        said_in=draft.key if approval.session_key != draft.key else "",
    )
    payload = SendVerdictPayload(session_key=approval.session_key, decision=decision)
    effect, ordinal = draft.next_id("send_verdict", payload, payload.session_key)
    draft.effects.append(SendVerdict(id=effect, ordinal=ordinal, payload=payload))
    if approval.id in draft.state.approvals:
        requests.claim(draft, decision, effect)
