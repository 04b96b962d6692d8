"""One record of every kind that the contracts have, stored as the services store it.

The golden files are what is stored; where each belongs is told by the table `PLACES`. What has no
golden file (entries of buckets, parts of files, events of programs outside) is made here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

import msgspec

from services.cortex.thought.accounts import LINKS, key_of
from services.cortex.thought.ledger import PaidCall
from vigil.bus.batches import (
    BATCH_MIN,
    TTL,
    BatchEntry,
    Replacement,
    append,
    change_all,
    last_sequence,
)
from vigil.bus.bus import Bus
from vigil.contracts import golden
from vigil.contracts.costs import COSTS, Account, CostRow, DayOfCosts
from vigil.marks import conversation_label, thread_mark
from vigil.marks.conversation_label import ConversationLabel
from vigil.marks.thread_mark import Deletion
from vigil.past import places
from vigil.settings import own, tokens
from vigil.settings.models.raises import PREFIX, Raise, of_person
from vigil.settings.switches import PAUSED, Paused
from vigil.subjects import Scope, SessionKey, outside, token_of

NAME: Final = "ann"
"""Whose the golden files are."""
LATER: Final = datetime.now(UTC) + timedelta(days=1)
_HEX: Final = "0f" * 32


class Kept(NamedTuple):
    """A record, and where it belongs."""

    subject: str
    data: bytes
    headers: tuple[tuple[str, str], ...] = ()


def _in_session(record: dict[str, Any], kind: str) -> str:
    key = SessionKey.parse(record["session_key"])
    if kind == "user_message":
        return key.in_user
    told = f"told.{record['id']}"
    return key.in_event(told if kind == "told" else kind)


def _on_board(entity: dict[str, Any]) -> str:
    key = SessionKey(entity.get("owner", NAME), entity.get("agent", "vigil"), "t1")
    return key.board(entity["kind"], entity.get("id", "news"))


PLACES: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "event": lambda one: _in_session(one, one["type"]),
    "turn": lambda one: SessionKey.parse(one["session_key"]).turn_for("st"),
    "said": lambda one: SessionKey.parse(one["session_key"]).out_said(one["id"]),
    "past": lambda one: places.of_role(SessionKey.parse(one["session_key"]), one["role"]),
    "receipt": lambda one: SessionKey.parse(one["session_key"]).receipt(one["effect_id"]),
    "dispatch": lambda one: SessionKey.parse(one["session_key"]).send(one["effect_id"]),
    "attempt": lambda one: SessionKey.parse(one["session_key"]).attempt(one["effect_id"]),
    "call_claim": lambda one: SessionKey.parse(one["session_key"]).call(one["effect_id"]),
    "timer": lambda one: SessionKey.parse(one["session_key"]).timer(one["timer_id"], 2),
    "dead_letter": lambda one: SessionKey.of_subject(one["subject"]).dead(one["service"]),
    "dead_letter_end": lambda one: SessionKey(one["by"], "vigil", "t1").dead("ended"),
    "signal": lambda one: SessionKey.parse(one["session_key"]).signal(one["kind"]),
    "memory": lambda one: Scope(one["agent"], one["owner"]).record(one["op"]),
    "board": lambda one: _on_board(one["entity"]),
    "slot": lambda one: Scope("vigil", NAME).slot(one["row"]),
    "mail": lambda one: Scope("vigil", NAME).mail(one["mailbox"]),
    "shelf": lambda one: f"$KV.TOOLS.{one['source']}",
    "pins": lambda one: f"$KV.PINS.{one['server']}",
}
"""Where a record is stored, by what it is called in the codec."""


def of_contracts(user: str, text: str) -> Iterator[Kept]:
    """Yield each golden file as a record of `user`, who said `text` in it."""
    for name, data in golden.records().items():
        record = json.loads(data)
        place = PLACES[name.split(".")[0]](record)
        compact = json.dumps(record, separators=(",", ":"), ensure_ascii=False)
        named = re.sub(rf"\b{NAME}\b", user, compact).replace("Ann", text)
        yield Kept(re.sub(rf"\b{NAME}\b", user, place), named.encode())


def of_buckets(user: str, text: str, now: datetime) -> Iterator[Kept]:
    """Yield what of a person has no golden file, but for what is written in batches."""
    token = tokens.Token(user=user, name=text, created_at=now)
    yield Kept(f"$KV.TOKENS.{tokens.token_id_of(user)}", msgspec.json.encode(token))
    paused = Paused(at=now, by=user)
    yield Kept(f"$KV.CONFIG.{PAUSED}", msgspec.json.encode(paused))
    settings = own.OwnSettings(timezone="Asia/Tokyo", at=now, by=user)
    yield Kept(f"$KV.CONFIG.{own.PREFIX}{own.hash_of(user)}", msgspec.json.encode(settings))
    raised = Raise(day=str(now.date()), times=1, at=now, by=user)
    yield Kept(f"$KV.CONFIG.{PREFIX}{of_person(user)}", msgspec.json.encode(raised))
    for whose, by in ((user, user), ("zed", user)):
        session = SessionKey(whose, "vigil", "gone")
        gone = Deletion(session=str(session), asked_at=now, by=by, done_at=now)
        key = thread_mark.key_of(session)
        yield Kept(f"$KV.CONFIG.{key}", msgspec.json.encode(gone))
        label = ConversationLabel(reader=by, session=str(session), at=now, title=text)
        key = conversation_label.key_of(by, session)
        yield Kept(f"$KV.CONFIG.{key}", msgspec.json.encode(label))
    yield Kept(f"$KV.CURSORS.{token_of(user)}.{token_of(text)}", b"7")
    yield Kept(f"$KV.LEASES.{SessionKey(user, 'vigil', 't1').kv_key}", text.encode())
    yield Kept(f"$KV.IDEMPOTENCY.{token_of(user, text)}", b"7")
    yield Kept(outside(user, text), text.encode())
    for kind in ("upload", "file"):
        yield Kept(f"{kind}.{user}.{_HEX}.0", text.encode())


def of_budgets(user: str, now: datetime) -> list[Kept]:
    """Return what a paid call leaves: an account of every link of its chain, and the sums."""
    call = PaidCall(
        user=user, agent="vigil", cause="t1", model="m", starter="t0", root="t2", row="r", goal="g"
    )
    account = Account(used=7, warned=token_of(user, "vigil"))
    made = [
        Kept(
            f"$KV.BUDGETS.{key_of(link, call, now)}", msgspec.json.encode(account), ((TTL, "72h"),)
        )
        for link in LINKS
    ]
    row = CostRow(agent="vigil", cause="t1", tier="main", model="m")
    costs = msgspec.json.encode(DayOfCosts(user=user, rows=(row,)))
    return [*made, Kept(f"$KV.BUDGETS.{now.date()}.{COSTS}.{token_of(user)}", costs)]


async def store(bus: Bus, user: str, text: str, now: datetime, *, times: int = 2) -> list[str]:
    """Store one of each kind, `times` times; return the subjects."""
    subjects = []
    for n in range(times):
        for one in [*of_contracts(user, text), *of_buckets(user, text, now)]:
            await store_one(bus, one, f"{n}")
            subjects.append(one.subject)
        subjects += await _store_batches(bus, user, text, now)
    return subjects


async def store_one(bus: Bus, one: Kept, number: str) -> None:
    """Store a record alone; a timer as a schedule, and as what the broker made of one."""
    headers: dict[str, str] = {}
    if one.subject.startswith("timer."):
        due = one.subject.replace("timer.", "due.", 1)
        when = f"@at {LATER.replace(tzinfo=None).isoformat()}Z"
        headers = {"Nats-Schedule": when, "Nats-Schedule-Target": due}
    await bus.publish(
        one.subject, one.data, headers, msg_id=token_of(one.subject, number, one.data.decode())
    )


async def _store_batches(bus: Bus, user: str, text: str, now: datetime) -> list[str]:
    """Store what is written in atomic batches: accounts, and signals that are many."""
    budgets = of_budgets(user, now)
    held = [await bus.get_last("KV_BUDGETS", one.subject) for one in budgets]
    changes = [
        Replacement(one.subject, one.data, dict(one.headers), last.seq if last else 0)
        for one, last in zip(budgets, held, strict=True)
    ]
    await change_all(bus, changes, batch_id=token_of(user, text, str(held[0] and held[0].seq)))
    signal = next(one for one in of_contracts(user, text) if one.subject.startswith("signal."))
    end = await last_sequence(bus, "SIGNALS")
    entries = [BatchEntry(signal.subject, signal.data, {})] * BATCH_MIN
    await append(bus, entries, expect=end, batch_id=f"signals-{end}")
    return [*(one.subject for one in budgets), signal.subject]
