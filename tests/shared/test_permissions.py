"""Who may do what on the bus: every service against every foreign subject (SPEC X-4)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.stack import Stack
from vigil import credentials
from vigil.bus import Bus, BusError
from vigil.errors import OutcomeUnknown, Unavailable
from vigil.subjects import SessionKey, outside
from vigil.topology import BUCKETS, CONSUMERS, ROLES, SERVICES, STREAMS, permissions

KEY = SessionKey("ann", "vigil", "t1")
EVERY_SUBJECT = {
    KEY.in_user: {"gateway"},
    KEY.in_event("control"): {"gateway", "scheduler"},
    KEY.in_event("timer"): {"scheduler"},
    KEY.in_event("tool_result"): set(),
    KEY.in_event("external"): {"gateway"},
    KEY.turn: {"cortex"},
    KEY.out_said("e"): {"delivery"},
    KEY.receipt("e"): {"delivery"},
    KEY.send("e"): {"delivery"},
    KEY.attempt("e"): {"delivery"},
    KEY.signal("message.sent"): {"cortex"},
    KEY.dead("ended"): {"gateway"},
    KEY.dead("gateway"): {"gateway"},
    outside("ann", "ci"): set(),
    KEY.timer("t", 1): {"scheduler"},
    KEY.due("t", 1): {"scheduler"},
    KEY.live: {"cortex"},
    KEY.dead("cortex"): {"cortex"},
    KEY.dead("delivery"): {"delivery"},
    KEY.dead("scheduler"): {"scheduler"},
    "$KV.LEASES.a": {"cortex", "scheduler"},
    "$KV.TOKENS.a": {"operator"},
    "$KV.BUDGETS.a": {"cortex"},
    "$KV.CURSORS.a": {"gateway"},
    "$KV.IDEMPOTENCY.a": {"gateway"},
    "$KV.CONFIG.a": {"gateway", "operator"},
    **{f"$JS.API.STREAM.{verb}.{stream.name}": set()
       for stream in STREAMS for verb in ("CREATE", "UPDATE", "DELETE", "SNAPSHOT", "RESTORE")},
    **{f"$JS.API.STREAM.PURGE.{s.name}": {"scheduler"} if s.name == "TIMERS" else set()
       for s in STREAMS},
    **{f"$JS.API.STREAM.MSG.DELETE.{s.name}": {"scheduler"} if s.name == "TIMERS" else set()
       for s in STREAMS},
    **{f"$JS.API.STREAM.DELETE.KV_{bucket.name}": set() for bucket in BUCKETS},
    **{f"$JS.API.STREAM.PURGE.KV_{bucket.name}": set() for bucket in BUCKETS},
    **{f"$JS.API.CONSUMER.{verb}.{c.stream}.{c.name}": set()
       for c in CONSUMERS for verb in ("CREATE", "DELETE")},
    **{f"$JS.API.CONSUMER.CREATE.{c.stream}.{c.name}.{c.filters[0]}": set() for c in CONSUMERS},
    **{f"$JS.API.CONSUMER.MSG.NEXT.{c.stream}.{c.name}": {c.name.partition("-")[0]}
       for c in CONSUMERS},
    **{f"$JS.ACK.{c.stream}.{c.name}.1.1.1.1.1": {c.name.partition("-")[0]} for c in CONSUMERS},
    "$SYS.REQ.SERVER.PING": set(),
    "_INBOX_gateway.x": set(),
    "_INBOX_cortex.x": set(),
}  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
async def test_nothing_but_what_the_role_needs(bare: Stack, role: str) -> None:
    bus = await bare.bus(role)
    for subject in EVERY_SUBJECT:
        await bus.send(subject, b"")
    await settle(bus)
    denied = {v.split('"')[1] for v in bus.violations if "publish" in v.lower()}
    allowed = {subject for subject in EVERY_SUBJECT if subject.lower() not in denied}
    assert allowed == {s for s, roles in EVERY_SUBJECT.items() if role in roles}


async def settle(bus: Bus) -> None:
    """Wait until the broker has answered everything sent before."""
    # The first answer may belong to a ping from before; the second one can't.
    await bus.connection.flush()
    await bus.connection.flush()


@pytest.mark.parametrize("role", SERVICES)
async def test_nobody_listens_to_what_is_not_theirs(bare: Stack, role: str) -> None:
    bus = await bare.bus(role)
    foreign = ["session.>", "timer.>", ">", "$KV.TOKENS.>", "_INBOX_operator.>", "$SYS.>"]
    foreign += [f"_INBOX_{other}.>" for other in SERVICES if other != role]
    for subject in foreign:
        await bus.connection.subscribe(subject)
    await settle(bus)
    denied = [v for v in bus.violations if "subscription" in v.lower()]
    assert len(denied) == len(foreign)


async def test_without_a_credential_there_is_no_connection(bare: Stack) -> None:
    with pytest.raises(Unavailable):
        await Bus.connect(bare.broker.url, role="cortex", seed=None, wait_s=1.0)
    other = bare.settings.home / "other"
    credentials.ensure(other)
    seed = credentials.load(other, "cortex")
    with pytest.raises(Unavailable):
        await Bus.connect(bare.broker.url, role="cortex", seed=seed, wait_s=1.0)


@pytest.mark.parametrize(
    "headers",
    [
        {"Nats-Rollup": "all"},
        {"Nats-Rollup": "sub"},
        {"Nats-Schedule": "@at 2000-01-01T00:00:00Z", "Nats-Schedule-Target": "session.a.b.c.turn"},
        {"Nats-Schedule-Next": "purge", "Nats-Scheduler": "timer.x"},
        {"Nats-TTL": "1"},
        {"Nats-Incr": "1"},
    ],
)
async def test_headers_give_no_power_on_the_session_stream(
    bare: Stack, headers: dict[str, str]
) -> None:
    """RELIABILITY 0.2: only the scheduler's own stream has schedules and rollups."""
    gateway = await bare.bus("gateway")
    await gateway.publish(KEY.in_user, b"kept")
    with pytest.raises((BusError, OutcomeUnknown)):
        await gateway.publish(KEY.in_user, b"attack", headers, timeout=1.0)
    admin = await bare.bus("admin")
    assert [m.data for m in await admin.read("SESSIONS", ["session.>"])] == [b"kept"]


async def test_nobody_else_reaches_the_stream_with_schedules(bare: Stack) -> None:
    later = (datetime.now(UTC) + timedelta(hours=1)).isoformat().replace("+00:00", "Z")
    headers = {"Nats-Schedule": f"@at {later}", "Nats-Schedule-Target": KEY.due("t", 1)}
    for role in ("gateway", "cortex", "delivery", "operator"):
        bus = await bare.bus(role)
        with pytest.raises(OutcomeUnknown):
            await bus.publish(KEY.timer("t", 1), b"", headers, timeout=0.3)


def test_allow_lists_which_denials_only_narrow() -> None:
    """RELIABILITY 4.1: deny rules were the weak part of the broker, so none stands alone."""
    for role in ROLES:
        allowed = permissions(role)
        assert set(allowed) == {"publish", "subscribe", "deny"}
        assert ">" not in allowed["publish"] + allowed["subscribe"]
