"""New mail, read by a model that has no tools: which of it matters, as JSON (ADR 51). Pure.

What it says of a mail is whether it matters, a day, and a line for memory. Whom the mail is from
and what its subject is, is told as the mail has it, so a reader that was led astray can name no
other. All of it counts as from outside: what is told of it is a closed letter, and what is kept
marked; only facts aren't, which hold a count, a day and a name out of the person's contacts.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

from vigil.contracts import Cause, Control, SaveMemoryPayload
from vigil.contracts.mail import MailToRead
from vigil.errors import InvalidInput
from vigil.facts import mailed
from vigil.facts.taken import read as read_facts

from ...model import ModelAnswer
from .. import conclusion
from ..context.offers import things
from ..draft import Draft
from ..tools import formed_answer, json_answer
from ..tools.formed_answer import Unusable
from ..work import children
from ..work.loop_end import end_loop
from . import invited
from .mail_words import quoted, written_by
from .run_facts import note, shapes_of

PURPOSE: Final = "mail"
"""What its loops are marked with."""
GIST_LENGTH_MAX: Final = 240
TOLD_MAX: Final = 5
"""Mails that are named where it's told; of the others how many there are."""
DUE_WITHIN: Final = timedelta(days=731)
KEPT: Final = timedelta(days=180)
IMPORTANCE: Final = 0.6
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "matter": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "n": {"type": "integer"},
                    "due": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "gist": {"type": "string"},
                },
                "required": ["n", "due", "gist"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["matter"],
    "additionalProperties": False,
}
"""The schema of an answer."""


class MailThatMatters(NamedTuple):
    """What a reader found of a mail."""

    mail: MailToRead
    due: date | None
    gist: str


def begin(draft: Draft, cause: Cause, event: Control) -> None:
    """Ask about invitations, and begin, if there is anything to read."""
    children.begin(draft, cause, event)
    if draft.state.loop is not None and draft.is_first:
        invited.ask(draft)
    if draft.state.loop is not None and not mails_of(draft):
        end_loop(draft, "silent")


def mails_of(draft: Draft) -> tuple[MailToRead, ...]:
    """Return what is to be read."""
    return () if draft.state.start is None else draft.state.start.mails


def read(text: str, mails: tuple[MailToRead, ...], today: date) -> tuple[MailThatMatters, ...]:
    """Read an answer. Raises: InvalidInput: it is none.

    >>> from datetime import UTC, datetime
    >>> at = datetime(2026, 11, 20, tzinfo=UTC)
    >>> mail = MailToRead(author="ben@b.example", who="other", came_at=at)
    >>> read('{"matter": [{"n": 1, "due": "2026-12-03", "gist": "x"}]}', (mail,), at.date())[0].due
    datetime.date(2026, 12, 3)
    """
    found = json_answer.object_in(text, "answer").get("matter", [])
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise InvalidInput("matter", "'matter' must be a list of objects")
    kept: dict[int, MailThatMatters] = {}
    for one in found:
        number = one.get("n")
        if not isinstance(number, int) or isinstance(number, bool):
            raise InvalidInput("matter", "each must have 'n', the number of the mail")
        if not 1 <= number <= len(mails):
            raise InvalidInput("matter", f"there is no mail {number}; there are {len(mails)}")
        gist = " ".join(str(one.get("gist") or "").split())[:GIST_LENGTH_MAX]
        due = _day(one.get("due"), today)
        kept.setdefault(number, MailThatMatters(mails[number - 1], due, gist))
    return tuple(kept[number] for number in sorted(kept))


def _day(given: object, today: date) -> date | None:
    """Return a deadline, if that can be one; a day that is over is none any more."""
    try:
        day = date.fromisoformat(given[:10]) if isinstance(given, str) else None
    except ValueError:
        return None
    return day if day is not None and today <= day <= today + DUE_WITHIN else None


def conclude(draft: Draft, answer: ModelAnswer) -> None:
    """Have what matters kept and told, and its facts taken; or ask once more."""
    mails, today = mails_of(draft), draft.moment.now.date()
    found = formed_answer.take(draft, answer, PURPOSE, lambda text: read(text, mails, today))
    if isinstance(found, Unusable):
        if found.is_last:
            draft.note("model_failed", found.reason)
            end_loop(draft, "failed")
        return
    for one in found:
        _keep(draft, one)
    note(draft, read_facts(shapes_of(draft.state), facts_of(found), draft.moment.now))
    left = {} if draft.state.start is None else draft.state.start.mails_left
    unread = f"; {sum(left.values())} more of the same senders weren't read" if left else ""
    draft.note("mail_read", f"{things(len(mails))}, of which {len(found)} matter{unread}")
    text = " ".join(filter(None, (described(found), described_left(left))))
    end_loop(draft, conclusion.said_last(draft, text))


def _keep(draft: Draft, found: MailThatMatters) -> None:
    mail = found.mail
    due = f" Due: {found.due.isoformat()}." if found.due else ""
    gist = f" {found.gist}" if found.gist else ""
    which = f"Mail of {mail.came_at:%Y-%m-%d} from {written_by(mail)}: {quoted(mail.subject)}"
    payload = SaveMemoryPayload(
        content=f"{which}.{gist}{due}",
        type="observation",
        importance=IMPORTANCE,
        stability="volatile",
        expires_at=draft.moment.now + KEPT,
        thread=draft.key.rpartition(":")[2],
        occurred_at=mail.came_at,
    )
    draft.save_memory(payload, draft.sway)


def facts_of(found: tuple[MailThatMatters, ...]) -> dict[str, str]:
    """Return what is told in a closed form: how many matter, and the nearest deadline."""
    facts = {mailed.MATTER: str(min(len(found), mailed.MATTER_MAX))}
    dues = [(one.due, one.mail.who) for one in found if one.due is not None]
    if dues:
        due, who = min(dues)
        facts |= {mailed.DUE: due.isoformat(), mailed.DUE_FROM: who}
    return facts


# ---------------------------------------------------------------- what is told


def described(found: tuple[MailThatMatters, ...]) -> str:
    """Return what is told of mails, in one line; empty: none matters."""
    if not found:
        return ""
    count = f"{len(found)} mails matter" if len(found) > 1 else "1 mail matters"
    ordered = sorted(found, key=lambda one: (one.due is None, one.due or date.max))
    named = "; ".join(map(_line, ordered[:TOLD_MAX]))
    more = f"; and {len(found) - TOLD_MAX} more" if len(found) > TOLD_MAX else ""
    return f"{count}: {named}{more}."


def described_left(left: Mapping[str, int]) -> str:
    """Return what is told of mails that weren't read: those that say that they're from somebody who
    is known, as a flood of forged ones would keep theirs from being read. Of others it's no news.

    >>> described_left({"Ben Miller": 41, "other": 900})
    "Not read, as too many came at once: mails that say they're from Ben Miller (41)."
    """
    named = [f"{who} ({count})" for who, count in left.items() if who != mailed.OTHER]
    mails = f"mails that say they're from {', '.join(named)}"
    return f"Not read, as too many came at once: {mails}." if named else ""


def _line(found: MailThatMatters) -> str:
    due = f", due {found.due.isoformat()}" if found.due else ""
    return f"{written_by(found.mail)}: {quoted(found.mail.subject)}{due}"
