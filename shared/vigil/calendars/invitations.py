"""Invitations that came with a mail (iTIP, RFC 5546): what each would change, as a proposal. Pure.

Nothing is answered and nothing is changed by that: a person, or a call that they allow, does. Who
sends one may be anybody. So a cancellation or a change is only taken for what it says if it comes
from whom the event is of: its organizer's address is compared with the one that the mail proved
(`sender`). All words are the sender's.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Final, Literal
from zoneinfo import ZoneInfo

import msgspec

from .agenda import AgendaEntry, CalendarAgenda, handle_of
from .edits import NewEvent, When
from .entries import CalendarObject

Method = Literal["REQUEST", "CANCEL", "REPLY", "PUBLISH", "ADD", "COUNTER", "REFRESH", ""]
ProposalKind = Literal["new", "changed", "cancelled", "same", "stale", "unproven", "unusable"]
"""``same``: nothing of it is otherwise than is known. ``stale``: what is known is newer.
``unproven``: it isn't from whom the event is of. ``unusable``: it's no invitation, or can't be
read."""
HELD: Final = ("new", "changed", "cancelled")
"""Those that would change something."""
OVERLAPS_MAX: Final = 5
UNPROVEN: Final = "it isn't from its organizer, as far as the mail proves"
REASONS: Final[dict[ProposalKind, str]] = {
    "same": "it changes nothing of what is known",
    "stale": "it's over, or a newer one was taken already",
}
_BESIDE_RULE: Final = re.compile(r"(?im)^(?:EXDATE|RDATE|EXRULE)[;:]")
"""What of a series its rule doesn't tell."""
INVITATION: Final = "--invitation"
"""Has the process read an invitation, instead of a calendar."""


class Invitation(msgspec.Struct, frozen=True, kw_only=True):
    """What a ``text/calendar`` part of a mail says."""

    method: Method = ""
    organizer: str = ""
    """An address, in small letters."""
    sequence: int = 0
    recurrence: str = ""
    """Which instance it's about; empty: all of it."""
    event: CalendarObject | None = None
    """With the times at which it's due."""
    problem: str = ""
    """Why it can't be read."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What an invitation would change of a person's calendars."""

    kind: ProposalKind
    reason: str = ""
    """Why it's nothing to decide about."""
    title: str = ""
    """The sender's words."""
    organizer: str = ""
    begins_at: datetime | None = None
    ends_at: datetime | None = None
    is_all_day: bool = False
    was_at: datetime | None = None
    """When it's now, of one that is moved or cancelled."""
    is_series: bool = False
    calendar: str = ""
    """Where it stands now; empty: in none."""
    event: str = ""
    """Its handle, as lists have it."""
    overlaps: int = 0
    """With how many events that take time, `OVERLAPS_MAX` at most."""
    recurrence: str = ""
    """Which instance of a known series it's about; empty: all of it, or it's none."""
    edit: NewEvent | None = None
    """What puts a new one into a calendar, without the people invited; of a change, how it's to
    be. None: the person does it by themselves."""


def proposal_of(
    invitation: Invitation,
    agendas: dict[str, CalendarAgenda],
    zone: ZoneInfo,
    now: datetime,
    *,
    sender: str,
) -> Proposal:
    """Return what an invitation would change.

    Args:
        agendas: of the person's calendars, by name.
        zone: on whose clocks its times are told.
        sender: the address that the mail is from, proven; empty: it isn't.
    """
    event = invitation.event
    reason = invitation.problem or ("" if event is not None else "it holds no event")
    if not reason and invitation.method not in ("REQUEST", "CANCEL"):
        what = invitation.method or "none"
        reason = f"its method is {what}: nobody is invited by that"
    if event is None or reason:
        return Proposal(kind="unusable", reason=reason)
    there = _there(event.uid, agendas)
    shown = _shown(invitation, event, agendas, there, zone, now)
    is_proven = bool(sender) and sender.casefold() == invitation.organizer
    if not is_proven:
        shown = msgspec.structs.replace(shown, reason=UNPROVEN)
    kind = _kind(invitation, shown, event, there, is_proven=is_proven)
    edit = _edit(event, shown, zone) if kind in ("new", "changed") else None
    return msgspec.structs.replace(
        shown, kind=kind, edit=edit, reason=REASONS.get(kind, shown.reason)
    )


def _kind(
    invitation: Invitation,
    shown: Proposal,
    event: CalendarObject,
    there: tuple[str, CalendarObject] | None,
    *,
    is_proven: bool,
) -> ProposalKind:
    is_cancelling = invitation.method == "CANCEL"
    if not is_proven and (there is not None or is_cancelling):
        return "unproven"
    if there is None:
        is_over = shown.begins_at is None
        return "same" if is_cancelling else "stale" if is_over else "new"
    if invitation.sequence < there[1].sequence or (shown.begins_at is None and not is_cancelling):
        return "stale"
    if is_cancelling:
        return "cancelled"
    is_same = shown.was_at == shown.begins_at and _says(there[1]) == _says(event)
    return "same" if is_same else "changed"


def _there(uid: str, agendas: dict[str, CalendarAgenda]) -> tuple[str, CalendarObject] | None:
    for name, agenda in agendas.items():
        for one in agenda.objects:
            if one.uid == uid:
                return name, one
    return None


def _says(event: CalendarObject) -> tuple[str, str, str]:
    first = event.texts[0] if event.texts else None
    return ("", "", event.rule) if first is None else (first.title, first.place, event.rule)


def _shown(
    invitation: Invitation,
    event: CalendarObject,
    agendas: dict[str, CalendarAgenda],
    there: tuple[str, CalendarObject] | None,
    zone: ZoneInfo,
    now: datetime,
) -> Proposal:
    entry = _next(event, invitation.recurrence, zone, now)
    known = None if there is None else _next(there[1], invitation.recurrence, zone, now)
    first = event.texts[0] if event.texts else None
    return Proposal(
        kind="unusable",
        title="" if first is None else first.title,
        organizer=invitation.organizer,
        begins_at=None if entry is None else entry.begins_at,
        ends_at=None if entry is None else entry.ends_at,
        is_all_day=entry is not None and entry.is_all_day,
        was_at=None if known is None else known.begins_at,
        is_series=bool(event.rule) and not invitation.recurrence,
        calendar="" if there is None else there[0],
        event=handle_of(event.uid),
        recurrence=invitation.recurrence,
        overlaps=0 if entry is None else _overlaps(entry, agendas, zone),
    )


def _next(
    event: CalendarObject, recurrence: str, zone: ZoneInfo, now: datetime
) -> AgendaEntry | None:
    """Return the instance that is meant, or the next one of a series."""
    for entry in CalendarAgenda([event]).order(zone).entries:
        if recurrence and entry.instance.recurrence != recurrence:
            continue
        if entry.ends_at >= now or recurrence:
            return entry
    return None


def _overlaps(entry: AgendaEntry, agendas: dict[str, CalendarAgenda], zone: ZoneInfo) -> int:
    if entry.is_all_day:
        return 0
    until = max(entry.ends_at, entry.begins_at + timedelta(minutes=1))
    others = (
        one
        for agenda in agendas.values()
        for one in agenda.between(entry.begins_at, until, zone)
        if one.of.uid != entry.of.uid
        and not (one.is_cancelled or one.is_all_day or one.text.is_free)
    )
    return min(sum(1 for _ in others), OVERLAPS_MAX)


def _edit(event: CalendarObject, shown: Proposal, zone: ZoneInfo) -> NewEvent | None:
    """Return what makes the event; None: it's a series that these clocks and a rule alone don't
    tell, which the person makes by themselves."""
    if shown.begins_at is None or shown.ends_at is None:
        return None
    if shown.is_series and not _is_plain(event, shown, zone):
        return None
    begins, ends = (at.astimezone(zone) for at in (shown.begins_at, shown.ends_at))
    text = event.texts[0]
    # With their offsets: until the person allows it they may have gone to another zone.
    when = When(
        begins=begins.isoformat(timespec="minutes"),
        ends=ends.isoformat(timespec="minutes"),
        zone=zone.key,
    )
    if shown.is_all_day:
        last = ends - timedelta(days=1)
        when = When(begins=f"{begins:%Y-%m-%d}", ends=f"{last:%Y-%m-%d}", zone=zone.key)
    rule = event.rule if shown.is_series else ""
    return NewEvent(
        uid=event.uid, title=text.title, when=when, place=text.place, notes=text.notes, rule=rule
    )


def _is_plain(event: CalendarObject, shown: Proposal, zone: ZoneInfo) -> bool:
    """Whether a series is its rule and nothing else, from its first time on, on those clocks."""
    if len(event.texts) != 1 or " + " in event.rule or _BESIDE_RULE.search(event.data):
        return False
    first = min((one.span(zone)[0] for one in event.instances), default=None)
    is_on_clocks = shown.is_all_day or event.texts[0].zone in ("", zone.key)
    return first == shown.begins_at and is_on_clocks


def words_of(proposal: Proposal, zone: ZoneInfo) -> str:
    """Say what a proposal is, without a word of its sender's but their address.

    >>> from vigil.zones.database import zone_named
    >>> words_of(Proposal(kind="unusable", reason="it holds no event"), zone_named("UTC"))
    'a calendar part that is no invitation: it holds no event'
    """
    if proposal.kind == "unusable":
        return f"a calendar part that is no invitation: {proposal.reason}"
    what = {
        "new": "an invitation",
        "changed": "a change of an event",
        "cancelled": "a cancellation",
        "same": "an invitation that changes nothing",
        "stale": "an invitation that is over",
        "unproven": "an invitation that isn't proven",
    }[proposal.kind]
    parts = [what]
    if proposal.begins_at is not None:
        form = "%Y-%m-%d" if proposal.is_all_day else "%Y-%m-%d %H:%M"
        series = "the next of a series " if proposal.is_series else ""
        parts.append(f"{series}{proposal.begins_at.astimezone(zone):{form}}")
    if proposal.was_at is not None and proposal.was_at != proposal.begins_at:
        parts.append(f"now {proposal.was_at.astimezone(zone):%Y-%m-%d %H:%M}")
    if proposal.calendar:
        parts.append(f"event {proposal.event} of calendar {proposal.calendar}")
    if proposal.overlaps:
        several = f"{proposal.overlaps} events"
        parts.append(
            f"at the same time as {'another event' if proposal.overlaps == 1 else several}"
        )
    if proposal.reason:
        parts.append(proposal.reason)
    return "; ".join(parts)
