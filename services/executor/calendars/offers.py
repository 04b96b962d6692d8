"""Invitations in mails as calls that would do what they ask for: the person is asked for leave.

A mailbox proves nobody's address. So a new one is offered as what it says, and a change of what is
there as what somebody says; either is done only if the person allows exactly that call.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from msgspec.structs import replace

from vigil.calendars.agenda import CalendarAgenda
from vigil.calendars.edits import NewEvent
from vigil.calendars.entries import NOTES_LENGTH_MAX, CalendarObject
from vigil.calendars.invitations import Invitation, Proposal, proposal_of, words_of
from vigil.contracts.mail import MailedOffer

from .text import id_of

UID_LENGTH_MAX: Final = 255
"""Longer ones are valid, and written by nobody (Outlook's have 112 characters)."""
RULE_LENGTH_MAX: Final = 200
"""Of what a call may name; longer ones are valid, too."""
SERIES_APART: Final = (
    "it can't be taken over by a call: its rule is long, isn't all of it, or on other clocks"
)
NO_CALENDAR: Final = "no calendar may be written"


def offer_of(
    invitation: Invitation,
    agendas: Mapping[str, CalendarAgenda],
    writable: Collection[str],
    zone: ZoneInfo,
    now: datetime,
) -> MailedOffer | None:
    """Return what an invitation asks for; None: nothing that a person would have to decide.

    Args:
        agendas: of the person's calendars, by name.
        writable: names of those that may be written.
    """
    known = dict(agendas)
    shown = proposal_of(invitation, known, zone, now, sender="")
    # What it is, if it's from whom it says: whether it is, the person decides.
    meant = proposal_of(invitation, known, zone, now, sender=invitation.organizer)
    if meant.kind == "new":
        return _new(shown, meant.edit, sorted(writable), zone)
    if meant.kind not in ("changed", "cancelled"):
        return None
    uid = "" if invitation.event is None else invitation.event.uid
    there = next((one for one in known[meant.calendar].objects if one.uid == uid), None)
    is_theirs = there is not None and not any(one.people for one in there.texts)
    if there is None or not is_theirs or meant.calendar not in writable:
        return None  # its server hears of it by itself
    return _of_known(meant, shown, there, zone)


def is_uid(text: str) -> bool:
    """Whether an event can be made with that UID."""
    return 0 < len(text) <= UID_LENGTH_MAX and text.isprintable()


def _new(
    shown: Proposal, edit: NewEvent | None, writable: list[str], zone: ZoneInfo
) -> MailedOffer:
    what = words_of(shown, zone)
    is_told_whole = edit is not None and is_uid(edit.uid) and len(edit.rule) <= RULE_LENGTH_MAX
    if edit is None or not is_told_whole or not writable:
        why = SERIES_APART if writable else NO_CALENDAR
        return MailedOffer(what=f"{what}; {why}", title=shown.title)
    given = {
        "calendar": writable[0],
        "title": edit.title or "(no title)",
        "begins": edit.when.begins,
        "ends": edit.when.ends,
        "place": edit.place,
        "notes": edit.notes[:NOTES_LENGTH_MAX],
        "repeats": edit.rule,
        "uid": edit.uid,
    }
    return _offer(what, shown, "calendar_create", given)


def _of_known(
    meant: Proposal, shown: Proposal, there: CalendarObject, zone: ZoneInfo
) -> MailedOffer | None:
    what = words_of(replace(meant, reason=shown.reason), zone)
    is_series = bool(there.rule) and not meant.recurrence
    given: dict[str, Any] = {"event": id_of(meant.calendar, there, meant.recurrence)}
    if is_series:
        given["whole_series"] = True
    if meant.kind == "cancelled":
        return _offer(what, shown, "calendar_cancel", given)
    edit = meant.edit
    if edit is None or is_series:
        return MailedOffer(what=f"{what}; {SERIES_APART}", title=shown.title)
    if meant.was_at != meant.begins_at:
        given |= {"begins": edit.when.begins, "ends": edit.when.ends}
    text = there.texts[0]
    given |= {
        field: value
        for field, value, is_now in (
            ("title", edit.title, text.title),
            ("place", edit.place, text.place),
        )
        if value and value != is_now
    }
    return _offer(what, shown, "calendar_change", given) if len(given) > 1 else None


def _offer(what: str, shown: Proposal, tool: str, given: Mapping[str, Any]) -> MailedOffer:
    kept = {name: value for name, value in given.items() if value not in ("", None)}
    return MailedOffer(what=what, title=shown.title, tool=tool, input=kept)
