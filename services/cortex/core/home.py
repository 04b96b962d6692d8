"""What another session of the agent has to say to the person, where they are (LOOPS L-12, L-13).

Its text is said as it stands, without a model, and is a row of the history, so that the person can
answer. What comes at a bad time, or again, isn't lost: it waits for a digest, which is one message.

    told ──► said                 the gates and the hours let it through
      ├────► kept for the digest  it may wait, something holds it back, or the gates refuse it
      └────► counted              its row told the same before; numbers in it don't count
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from msgspec.structs import replace

from vigil.contracts import Cause, Digest, TaskBlock, TimerPayload, ToldEvent, ToldPayload, Unsaid
from vigil.contracts.events import AGENT_MESSAGE
from vigil.timetable import reasons

from ..notice import BUDGET, Notice
from . import loops, speech
from . import sway as sways
from .allowance import more
from .draft import OUTSIDE, Draft
from .draft.notifications import REQUEST
from .queue import enqueue
from .sway import Sway
from .work.loop_end import end_loop

DIGEST_TIMER: Final = "_digest"
ENTRIES_MAX: Final = 50
TEXT_LENGTH_MAX: Final = 600
"""The most characters of an entry: with so many entries some 30 kB of the state."""
CONTENT_MAX: Final = 16_000
"""Characters of a text that is said, as of a result that a row holds."""
HEARD: Final = "Other agents told you something meanwhile; it stands above."
BUSY_AGAIN_S: Final = 60.0
"""A digest that comes due while the agent is at something waits so long."""
GONE_AFTER: Final = timedelta(hours=20)
"""What was not told again for so long is said to be over, in the next digest."""
REPORTS: Final = "reports"
GROUPED_S: Final = 20.0


def receive(draft: Draft, cause: Cause, event: ToldEvent) -> None:
    """Fold what is to be said, at once or after what is open."""
    if speech.gate(draft, is_ordered=event.payload.is_ordered, can_wait=True) is None:
        draft.make_way("a report came in")
    if (draft.state.loop is not None and not draft.is_aside) or draft.state.queue:
        enqueue(draft, cause)
    else:
        take(draft, cause, event)


def announce(draft: Draft, notices: Iterable[Notice]) -> None:
    """Have the person told what there is to know of their budget, or of who thinks for them, once
    in their home."""
    draft.inputs.notices = tuple(notices)
    for notice in draft.inputs.notices:
        what, title = notice.what, f"the {notice.what}"
        draft.notify_home(what, notice.text, title=title, once=notice.id, offer=notice.offer)
    more.offer_said(draft, draft.inputs.notices)


def take(draft: Draft, cause: Cause, event: ToldEvent) -> None:
    """Say it, count it, or keep it for the digest; no loop is open, or one that stays aside."""
    payload = event.payload
    name = _name(payload, event.id)
    if more.is_past(draft, payload.offer):
        draft.outcome = "ignored"
        draft.ended.append(cause.id)
        return
    if payload.what == BUDGET:
        draft.note("budget_warned", payload.text)
    if payload.what == AGENT_MESSAGE:
        _hear(draft, cause, event)
        return
    later = _later(draft, payload, name)
    if later is not None:
        why, due_at = later
        draft.row("user", "task", block_of(payload, event.id))
        _keep(draft, payload, name, due_at)
        more.keep(draft, payload.offer)
        draft.note("digested", why, event.id)
        draft.outcome = "held"
        draft.ended.append(cause.id)
        return
    draft.make_way("a report came in")
    sway = sways.of(payload)
    draft.row("user", "task", block_of(payload, event.id))
    _say(draft, cause, payload.text[:CONTENT_MAX], sway, payload)
    more.offer(draft, payload.offer)
    if payload.row:
        entry = _entry(draft, payload)
        _enter(draft, name, replace(entry, count=0, is_known=True), _next_digest(draft))


def _hear(draft: Draft, cause: Cause, event: ToldEvent) -> None:
    """Take in what another agent says: as of an event from outside a model is asked, by the same
    gates, but for the sway, which it has from there."""
    payload = event.payload
    draft.row("user", "task", block_of(payload, event.id))
    loops.ask_unasked(draft, cause, event.id, sways.of(payload), f"{OUTSIDE}-agents", HEARD)


def _later(draft: Draft, payload: ToldPayload, name: str) -> tuple[str, datetime] | None:
    """Return why it isn't said now, and when the digest with it is due; None: it is said."""
    digest, due_at = draft.state.digest, _next_digest(draft)
    if payload.what == REQUEST:
        soon = draft.moment.now + timedelta(seconds=GROUPED_S)
        is_free = speech.held_until(draft) is None
        return "it is told with what else is asked now", min(soon, due_at) if is_free else due_at
    if digest is not None and name in digest.entries and payload.row:
        return "the same was told before", due_at
    if payload.urgency == "low":
        return "it can wait", due_at
    is_held = speech.held_until(draft) is not None and not _passes(draft, payload)
    refusal = speech.gate(draft, is_ordered=payload.is_ordered, can_wait=True)
    if refusal is not None:
        is_soon = refusal.code == "cooldown" and not is_held
        return refusal.text, _cooldown_end(draft) if is_soon else due_at
    return (speech.holds_by(draft), due_at) if is_held else None


def _passes(draft: Draft, payload: ToldPayload) -> bool:
    """Whether it is said in quiet hours, too; during a pause nothing is."""
    return payload.urgency == "high" and payload.is_ordered and not speech.is_paused(draft)


def _say(draft: Draft, cause: Cause, text: str, sway: Sway, payload: ToldPayload | None) -> None:
    """Say a text as a message of its own."""
    is_ordered = payload is not None and payload.is_ordered
    loops.begin(draft, cause, is_direct=False, is_ordered=is_ordered, sway=sway)
    speech.say(
        draft,
        text,
        sway,
        is_autonomous=True,
        is_ordered=is_ordered,
        is_firm=True,
        channel=payload.channel or None if payload is not None else None,
        is_urgent=payload is not None and payload.urgency == "high",
    )
    if not sway.is_outside:
        draft.row_text("assistant", "agent", text)
    end_loop(draft, "answered")


def block_of(payload: ToldPayload, event_id: str) -> TaskBlock:
    """Return what a row holds of it."""
    return TaskBlock(
        call_id=event_id,
        tool=payload.what or REPORTS,
        title=payload.title,
        content=payload.text[:CONTENT_MAX],
        is_tainted=sways.of(payload).is_outside,
        facts=payload.facts,
    )


# ---------------------------------------------------------------- what is the same


def _name(payload: ToldPayload, event_id: str) -> str:
    return fingerprint(payload.row, payload.text) if payload.row else event_id


def fingerprint(row: str, text: str) -> str:
    """Return what makes two alerts of a row the same: their words, without numbers and case.

    >>> fingerprint("disk", "Disk at 91 %") == fingerprint("disk", "disk at  97 %")
    True
    """
    words = " ".join(re.sub(r"[\d.,:]+", "", text).casefold().split())
    return hashlib.sha256(f"{row}\0{words}".encode("utf-8", "replace")).hexdigest()[:16]


# ---------------------------------------------------------------- the digest


def _keep(draft: Draft, payload: ToldPayload, name: str, due_at: datetime) -> None:
    entries = {} if draft.state.digest is None else draft.state.digest.entries
    known = entries.get(name)
    if known is None:
        entry = _entry(draft, payload)
    else:
        entry = replace(
            known,
            count=known.count + 1,
            told_at=draft.moment.now,
            is_tainted=(sways.of(known) | sways.of(payload)).is_outside,
        )
    _enter(draft, name, entry, due_at)


def _entry(draft: Draft, payload: ToldPayload) -> Unsaid:
    return Unsaid(
        text=_cut(payload),
        told_at=draft.moment.now,
        recurs=bool(payload.row),
        is_tainted=sways.of(payload).is_outside,
    )


def _enter(draft: Draft, name: str, entry: Unsaid, due_at: datetime) -> None:
    """Put an entry into the digest, and see that one comes by then."""
    digest = draft.state.digest
    if digest is None or (entry.count and due_at < digest.due_at):
        digest = _planned(draft, digest, due_at)
    if name not in digest.entries and len(digest.entries) >= ENTRIES_MAX:
        digest = replace(digest, left_out=digest.left_out + 1)
    else:
        digest = replace(digest, entries={**digest.entries, name: entry})
    draft.update(digest=digest)


def _planned(draft: Draft, digest: Digest | None, due_at: datetime) -> Digest:
    """Set the deadline of the digest, instead of the one before."""
    if digest is not None:
        draft.cancel_deadline(DIGEST_TIMER, digest.generation)
    draft.set_deadline(DIGEST_TIMER, due_at, _hours_at(draft))
    if digest is None:
        return Digest(generation=draft.ordinal, due_at=due_at, entries={})
    return replace(digest, generation=draft.ordinal, due_at=due_at)


def _next_digest(draft: Draft) -> datetime:
    """Return when what is kept is said: as quiet hours end, or at the person's hour."""
    moment = draft.moment
    later = moment.digest_at or moment.now + timedelta(days=1)
    until = speech.paused_until(draft) or moment.quiet_until
    return later if until is None else min(until, later)


def _hours_at(draft: Draft) -> datetime | None:
    """Return when the hours were set that hold back what is kept now; None: none do."""
    return None if speech.held_until(draft) is None else draft.moment.hours_at


def _cooldown_end(draft: Draft) -> datetime:
    return draft.moment.now + timedelta(milliseconds=speech.cooldown_left_ms(draft))


def is_ended_by(digest: Digest, payload: TimerPayload) -> bool:
    """Whether that deadline is the one of this digest."""
    return payload.timer_id == DIGEST_TIMER and payload.generation == digest.generation


def drop(draft: Draft, payload: TimerPayload) -> None:
    """Plan a digest again whose deadline is passed over."""
    digest = draft.state.digest
    if digest is not None and is_ended_by(digest, payload):
        draft.update(digest=_planned(draft, digest, _next_digest(draft)))


def say_digest(draft: Draft, cause: Cause, digest: Digest) -> None:
    """Say in one message what was kept, or put it off."""
    until = _put_off_until(draft)
    if until is not None:
        draft.set_deadline(DIGEST_TIMER, until, _hours_at(draft))
        draft.update(digest=replace(digest, generation=draft.ordinal, due_at=until))
        draft.note("held", f"the digest is put off to {until:%Y-%m-%d %H:%M:%S UTC}", cause.id)
        draft.outcome = "held"
        return
    draft.make_way("a digest is due")
    left = {name: one for name, one in digest.entries.items() if _is_fresh(one, draft.moment.now)}
    said = {name: one for name, one in digest.entries.items() if name not in left}
    draft.update(digest=None)
    if said or digest.left_out:
        text = digest_text(replace(digest, entries=said))
        _say(draft, cause, text, sways.of(*said.values()), None)
        more.offer_again(draft, text)
    left |= {name: replace(one, count=0, is_known=True) for name, one in said.items() if one.count}
    for name, entry in left.items():
        if entry.recurs:
            _enter(draft, name, entry, _next_digest(draft))


def _is_fresh(entry: Unsaid, now: datetime) -> bool:
    """Whether there is nothing to say of it yet: it was said, and may come again."""
    return not entry.count and now - entry.told_at < GONE_AFTER


def _put_off_until(draft: Draft) -> datetime | None:
    now = draft.moment.now
    if (draft.state.loop is not None and not draft.is_aside) or draft.state.queue:
        return now + timedelta(seconds=BUSY_AGAIN_S)
    refusal = speech.gate(draft, is_ordered=False)
    if refusal is not None and refusal.code == "cooldown":
        return _cooldown_end(draft)
    is_held = refusal is not None or speech.held_until(draft) is not None
    return _next_digest(draft) if is_held else None


def digest_text(digest: Digest) -> str:
    """Return the message that says what was kept.

    >>> at = datetime(2026, 1, 5)
    >>> again = Unsaid(text="The build is red.", told_at=at, count=3, is_known=True, recurs=True)
    >>> print(digest_text(Digest(generation=1, due_at=at, entries={
    ...     "a": Unsaid(text="The report is ready.", told_at=at), "b": again,
    ...     "c": replace(again, count=0, text="The disk is full.")})))
    Since then:
    - The report is ready.
    - The build is red. (3 more times)
    - No longer: The disk is full.
    """
    lines = reasons.together(_line(entry) for entry in digest.entries.values())
    if digest.left_out:
        lines.append(f"{digest.left_out} more, for which there was no room.")
    if len(lines) == 1:
        return lines[0]
    return "\n".join(["Since then:", *(f"- {line}" for line in lines)])


def _line(entry: Unsaid) -> str:
    if not entry.count:
        return f"No longer: {entry.text}"
    if entry.is_known:
        return f"{entry.text} ({entry.count} more time{'s' * (entry.count > 1)})"
    return entry.text if entry.count == 1 else f"{entry.text} ({entry.count} times)"


def _cut(payload: ToldPayload) -> str:
    text = payload.text.strip()
    return text if len(text) <= TEXT_LENGTH_MAX else f"{text[:TEXT_LENGTH_MAX]}…"
