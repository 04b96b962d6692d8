"""Records of the timetable, as their golden files have them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace

from vigil import contracts
from vigil.contracts import (
    BoardEntry,
    Change,
    SlotEntry,
    TimetableRow,
)
from vigil.contracts.board import (
    ADay,
    AfterSchedule,
    AnInstant,
    BoundedNumber,
    ChosenSchedule,
    CronSchedule,
    CronWork,
    CycleLedger,
    FactFill,
    IdOf,
    KnownFact,
    Ledger,
    MailWork,
    OnceSchedule,
    OneOf,
    OpenRun,
    SourceFacts,
    VersionNumber,
    YesNo,
)
from vigil.contracts.codec import decode_mail
from vigil.contracts.mail import CameMail, MailedInvitation, MailEntry

AT: Final = datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC)
DUE_AT: Final = datetime(2026, 11, 23, 8, tzinfo=UTC)
SESSION: Final = "ann:vigil:_cron-"
ROW: Final = TimetableRow(
    id="1" * 32,
    owner="ann",
    agent="vigil",
    name="briefing",
    work=CronWork(
        prompt="What is new in the tracker since yesterday?",
        is_stateful=True,
        target="ann:vigil:news",
        timeout_s=300,
    ),
    schedule=CronSchedule(expression="0 9 * * 1-5", zone="Europe/Berlin"),
    misfire="all",
    grace_s=600,
    active_hours="08:00-18:00",
    zone="Europe/Berlin",
    jitter_s=30,
    may_overlap=True,
    runs_once=True,
    is_enabled=False,
    is_removed=True,
    made_by="agent",
    session_key="ann:vigil:t1",
    is_ordered=True,
    made_at=AT,
    scheduled_at=AT,
)
SLOT: Final = SlotEntry(
    row=ROW.id,
    due_at=DUE_AT,
    state="failed",
    reason="401",
    at=datetime(2026, 11, 23, 8, 1, 30, 500_000, tzinfo=UTC),
    count=2,
    first_at=datetime(2026, 11, 22, 8, tzinfo=UTC),
    is_by_hand=True,
    session=SESSION + "c" * 32,
    is_late=True,
    delivery="told",
    ledger=Ledger(
        through=DUE_AT,
        running=(
            OpenRun(
                due_at=DUE_AT,
                at=datetime(2026, 11, 23, 8, 0, 1, tzinfo=UTC),
                session=SESSION + "d" * 32,
                is_by_hand=True,
                is_late=True,
            ),
        ),
        runs=12,
        failures=1,
    ),
    before=41,
)
CHOSEN: Final = replace(
    ROW,
    work=replace(ROW.work, prompt="", skill="draw-charts"),
    schedule=ChosenSchedule(interval_s=3600, soonest_s=600, latest_s=86_400),
)
ONCE: Final = replace(
    ROW,
    schedule=OnceSchedule(
        at=datetime(2026, 12, 1, 16, tzinfo=UTC),
        wall="2026-12-01T09:00:00",
        zone="America/Vancouver",
    ),
)
TELLING: Final = replace(
    ROW,
    work=replace(
        ROW.work,
        facts={
            "ci": OneOf(values=("passing", "failing")),
            "is_open": YesNo(),
            "ticket": IdOf(values=("VIG-1", "VIG-2")),
            "load": BoundedNumber(least=0, most=1000, decimals=1, unit="%"),
            "failing_since": AnInstant(),
            "due": ADay(),
            "release": VersionNumber(),
        },
    ),
)
READING: Final = replace(
    ROW,
    work=MailWork(
        mailbox="work",
        facts={"unread": BoundedNumber(least=0, most=999), "due": ADay()},
        looked={"unread": "mailbox"},
    ),
)
CAME: Final = MailEntry(
    mailbox="work",
    validity=1_700_000_000,
    uid=7,
    at=AT,
    mail=CameMail(
        identity="5" * 32,
        kind="invitation",
        author="ben@example.org",
        name="Ben Miller",
        subject="Lunch",
        message_id="<1@example.org>",
        came_at=DUE_AT,
        size=4321,
        text="Shall we, Ann?",
        files=("invitation.ics",),
        invitation=MailedInvitation(method="REQUEST", ics="BEGIN:VCALENDAR"),
    ),
)
BEGUN: Final = MailEntry(mailbox="work", validity=1_700_000_000, uid=6, at=AT, since=DUE_AT)
KNOWN: Final = SourceFacts(
    id=ROW.id,
    owner="ann",
    agent="vigil",
    facts=(
        KnownFact(
            name="ci",
            shape=OneOf(values=("passing", "failing")),
            value="failing",
            since=AT,
            at=DUE_AT,
            was="passing",
            is_left_out=True,
        ),
    ),
    day="2026-11-23",
    spent=1_234,
    is_full=True,
    newest=FactFill(
        cause="f" * 32,
        session=SESSION + "c" * 32,
        values={"ci": "failing"},
        changed=("ci",),
        left_out={"is_open": "it wasn't told"},
    ),
)
FOLLOWING: Final = replace(ROW, schedule=AfterSchedule(row="2" * 32, on="any"))
FOLLOWED: Final = replace(
    SLOT,
    state="ran",
    followed=40,
    follows=SESSION + "e" * 32,
    next_s=900,
    tokens=1_234,
    micro_usd=120,
    told="f" * 32,
    told_to="ann:vigil:news",
    ledger=Ledger(through=DUE_AT, runs=12, followed=40, ended_at=AT, next_s=900),
)
NEEDLESS: Final = SlotEntry(
    row=ROW.id,
    kind="bulletin",
    due_at=DUE_AT,
    state="skipped",
    reason="only numbers changed, and those need no model",
    at=DUE_AT,
    told_seq=41,
    ledger=Ledger(through=DUE_AT, cycles=CycleLedger(told_seq=41)),
)
SET_BACK: Final = SlotEntry(
    row=ROW.id,
    kind="cron",
    due_at=DUE_AT,
    state="skipped",
    reason="the clock was set back: it goes on by the clock as it is now",
    at=DUE_AT,
    count=0,
    set_back_from=datetime(2026, 11, 23, 9, tzinfo=UTC),
    ran_from=datetime(2026, 11, 23, 8, 55, tzinfo=UTC),
    ran_through=datetime(2026, 11, 23, 9, tzinfo=UTC),
    ledger=Ledger(
        through=DUE_AT,
        runs=12,
        ran_from=datetime(2026, 11, 23, 8, 55, tzinfo=UTC),
        ran_through=datetime(2026, 11, 23, 9, tzinfo=UTC),
    ),
    before=41,
)
WAITING: Final = SlotEntry(
    row=ROW.id,
    kind="cron",
    due_at=DUE_AT,
    state="waiting",
    reason="It is begun again at 2026-11-23 08:03:00 UTC: No model answered: overloaded.",
    at=datetime(2026, 11, 23, 8, 1, tzinfo=UTC),
    session="ann:vigil:_cron-cccccccccccccccccccccccccccccccc",
    tries=2,
    again_at=datetime(2026, 11, 23, 8, 3, tzinfo=UTC),
    again_until=datetime(2026, 11, 23, 10, tzinfo=UTC),
    ledger=Ledger(
        through=DUE_AT,
        waiting=(
            OpenRun(
                due_at=DUE_AT,
                at=datetime(2026, 11, 23, 8, 1, tzinfo=UTC),
                session="ann:vigil:_cron-cccccccccccccccccccccccccccccccc",
                tries=2,
                again_at=datetime(2026, 11, 23, 8, 3, tzinfo=UTC),
                again_until=datetime(2026, 11, 23, 10, tzinfo=UTC),
            ),
        ),
        runs=12,
    ),
    before=41,
)
SAMPLES: Final[dict[str, tuple[Any, Any]]] = {
    "board.row": (
        contracts.decode_board,
        BoardEntry(entity=ROW, turn_seq=0, at=AT, change=Change(by="ann", why="in the afternoon")),
    ),
    "board.row.chosen": (
        contracts.decode_board,
        BoardEntry(entity=CHOSEN, turn_seq=0, at=AT, change=Change(by="ann")),
    ),
    "board.row.once": (
        contracts.decode_board,
        BoardEntry(entity=ONCE, turn_seq=0, at=AT, change=Change(by="ann")),
    ),
    "board.row.after": (
        contracts.decode_board,
        BoardEntry(entity=FOLLOWING, turn_seq=0, at=AT, change=Change(by="ann")),
    ),
    "board.row.facts": (
        contracts.decode_board,
        BoardEntry(entity=TELLING, turn_seq=0, at=AT, change=Change(by="ann")),
    ),
    "board.facts": (
        contracts.decode_board,
        BoardEntry(entity=KNOWN, turn_seq=0, at=AT, change=Change(by="executor", cause="f" * 32)),
    ),
    "board.row.mail": (
        contracts.decode_board,
        BoardEntry(entity=READING, turn_seq=0, at=AT, change=Change(by="scheduler")),
    ),
    "mail": (decode_mail, CAME),
    "mail.begun": (decode_mail, BEGUN),
    "slot": (contracts.decode_slot, SLOT),
    "slot.followed": (contracts.decode_slot, FOLLOWED),
    "slot.set_back": (contracts.decode_slot, SET_BACK),
    "slot.needless": (contracts.decode_slot, NEEDLESS),
    "slot.waiting": (contracts.decode_slot, WAITING),
}
"""Name of the golden file -> (what decodes it, what it says)."""
