"""Who may do what on the bus: every service and every outside credential against every foreign
subject and the JetStream API of every stream, to publish and to subscribe (SPEC X-4; S3, S5)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from tests.support.memories import until
from tests.support.programs import Program, admit, connect
from tests.support.rights import API_UNDER_DOMAIN, EVERY_SUBJECT, KEY, LISTENERS
from tests.support.stack import Stack
from vigil.bus import bus as bus_module
from vigil.bus.bus import Bus, BusError
from vigil.errors import OutcomeUnknown, Unavailable
from vigil.settings import credentials
from vigil.topology import CONSUMERS, DELIVERY_TURNS, ROLES, permissions

own_broker = pytest.mark.usefixtures("own_broker")
"""For what admits programs: their accounts are in the broker's configuration."""
ERR_CYCLE = 10081
"""A consumer's deliver subject is one of the stream itself."""


@pytest.fixture(autouse=True)
def _keeps_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bus keeps the newest refusals alone, and here there are more."""
    monkeypatch.setattr(bus_module, "VIOLATIONS_MAX", 10_000)


@pytest.mark.parametrize("role", ROLES)
async def test_nothing_but_what_the_role_needs(bare: Stack, role: str) -> None:
    bus = await bare.bus(role)
    for subject in EVERY_SUBJECT:
        await bus.send(subject, b"")
    await settle(bus)
    denied = denied_of(bus.violations, "publish")
    allowed = {subject for subject in EVERY_SUBJECT if subject.lower() not in denied}
    assert allowed == {s for s, roles in EVERY_SUBJECT.items() if role in roles}


def denied_of(violations: list[str], verb: str) -> set[str]:
    """Return the subjects, in lower case as the client reports them, that were denied."""
    return {v.split('"')[1].lower() for v in violations if verb in v.lower()}


async def settle(bus: Bus) -> None:
    """Wait until the broker has answered everything sent before."""
    # The first answer may belong to a ping from before; the second one can't.
    await bus.connection.flush()
    await bus.connection.flush()


@pytest.mark.parametrize("role", ROLES)
async def test_nobody_listens_to_what_is_not_theirs(bare: Stack, role: str) -> None:
    """Every subject that anything is published to, and the wildcards above them."""
    bus = await bare.bus(role)
    heard = [*EVERY_SUBJECT, *LISTENERS]
    for subject in heard:
        await bus.connection.subscribe(subject)
    await settle(bus)
    denied = denied_of(bus.violations, "subscription")
    allowed = {subject for subject in heard if subject.lower() not in denied}
    assert allowed == {s for s in heard if role in LISTENERS.get(s, ())}


# ---------------------------------------------------------------- programs outside


def own_of(program: Program) -> set[str]:
    """Return what a credential is for."""
    where = f"SIGNALS.{program.credential.consumer.name}"
    return {
        program.credential.events,
        f"$JS.vigil.API.CONSUMER.MSG.NEXT.{where}",
        f"$JS.vigil.API.CONSUMER.INFO.{where}",
        f"$JS.ACK.{where}.1.1.1.1.1",
    }


@own_broker
async def test_a_program_publishes_only_its_events(bare: Stack) -> None:
    """SPEC P-7: not one other subject, no verb of the JetStream API, under no name of it."""
    foreign = own_of(Program(await admit(bare, "bob", "evil")))
    for name, is_admin in (("ci", False), ("admins", True)):
        program = await connect(bare, await admit(bare, "ann", name, is_admin=is_admin))
        tried = [*EVERY_SUBJECT, *API_UNDER_DOMAIN, *foreign, *own_of(program)]
        for subject in tried:
            await program.nc.publish(subject, b"")
        await program.settle()
        denied = denied_of(program.denied, "publish")
        assert {subject for subject in tried if subject.lower() not in denied} == own_of(program)
        await program.close()


@own_broker
async def test_a_program_hears_only_signals_of_its_user(bare: Stack) -> None:
    """SPEC P-7, X-4: an admin's credential hears everybody's signals, and nothing else more."""
    for name, is_admin in (("ci", False), ("admins", True)):
        program = await connect(bare, await admit(bare, "ann", name, is_admin=is_admin))
        await _hears_only_its_own(program, is_admin=is_admin)
        await program.close()


async def _hears_only_its_own(program: Program, *, is_admin: bool) -> None:
    inbox = f"{program.credential.inbox}.x"
    mine = {inbox, KEY.signal("message.sent"), "signal.*.ann.>", "signal.vigil.ann.timer.fired.t9"}
    others = {"signal.vigil.bob.message.sent.t1", "signal.*.*.message.sent.*", "signal.>"}
    tried = {*EVERY_SUBJECT, *LISTENERS, *mine, *others, "_INBOX_out-x.>", "_INBOX.>"}
    for subject in sorted(tried):
        await program.nc.subscribe(subject)
    await program.settle()
    denied = denied_of(program.denied, "subscription")
    allowed = {subject for subject in tried if subject.lower() not in denied}
    assert allowed == (mine | others if is_admin else mine)


HEADERS: Final[tuple[dict[str, str], ...]] = (
    {"Nats-Rollup": "all"},
    {"Nats-Rollup": "sub"},
    {"Nats-Schedule": "@at 2000-01-01T00:00:00Z", "Nats-Schedule-Target": KEY.turn},
    {"Nats-Schedule-Next": "purge", "Nats-Scheduler": "timer.x"},
    {"Nats-TTL": "1"},
    {"Nats-Incr": "1"},
    {"Nats-Batch-Id": "b", "Nats-Batch-Sequence": "1", "Nats-Batch-Commit": "1"},
    {"Nats-Expected-Stream": "SESSIONS"},
    {"Nats-Expected-Last-Sequence": "99"},
    {"Nats-Trace-Dest": KEY.turn},
)


@own_broker
async def test_headers_give_a_program_no_power(bare: Stack) -> None:
    """RELIABILITY 0.2, S5: nothing is stored of what carries them, and nothing elsewhere."""
    admin = await bare.bus("admin")
    await admin.publish("event.bob.ci", b"kept")
    credential = await admit(bare, "ann")
    for headers in HEADERS:
        program = await connect(bare, credential)
        await program.nc.publish("event.ann.ci", b"attack", headers=headers)
        await program.settle()
        assert [m.data for m in await admin.read("EVENTS", ["event.>"])] == [b"kept"], headers
        assert await stored_elsewhere(admin) == 0, headers
        await program.close()


@own_broker
async def test_a_reply_subject_leads_nowhere(bare: Stack) -> None:
    """The broker checks no reply subject: in our account its answers could be had anywhere.

    What a program asks with a foreign reply subject is answered in its own account only.
    """
    admin = await bare.bus("admin")
    program = await connect(bare, await admit(bare, "ann"))
    targets = [KEY.turn, KEY.in_user, "timer.x.y", "$KV.TOKENS.abc", "$KV.CONFIG.paused"]
    targets += ["$JS.API.STREAM.PURGE.SIGNALS", "$JS.API.STREAM.DELETE.DEAD", "rpc.health"]
    await admin.publish(KEY.signal("message.sent"), b"content")
    for target in targets:
        for subject in own_of(program):
            await program.nc.publish(subject, b'{"batch":1}', reply=target)
    await program.settle()
    await admin.publish(KEY.signal("message.sent"), b"content")
    assert await stored_elsewhere(admin) == 0
    kept = await admin.read("SIGNALS", ["signal.>"])
    assert [m.subject for m in kept] == [KEY.signal("message.sent")] * 2
    await program.close()


async def stored_elsewhere(admin: Bus) -> int:
    """Count what is stored in the streams that no program should reach."""
    names = ["SESSIONS", "SYSTEM", "BOARD", "TIMERS", "DEAD"]
    names += [f"KV_{name}" for name in ("TOKENS", "CONFIG", "LEASES", "PINS", "TOOLS")]
    infos = [await admin.api(f"STREAM.INFO.{name}", {}) for name in names]
    probes = len(await admin.read("KV_CONFIG", ["$KV.CONFIG.probe"]))
    return sum(info["state"]["messages"] for info in infos) - probes


# ---------------------------------------------------------------- the confused deputy


async def push(bus: Bus, name: str, filter_subject: str, target: str) -> bool:
    """Have a consumer of SESSIONS deliver to `target`; return whether the broker made it."""
    config = {
        "name": name, "deliver_subject": target, "deliver_policy": "all", "ack_policy": "none",
        "filter_subject": filter_subject, "mem_storage": True,
    }  # fmt: skip
    request = {"stream_name": "SESSIONS", "config": config, "action": "create"}
    try:
        await bus.api(f"CONSUMER.CREATE.SESSIONS.{name}.{filter_subject}", request)
    except BusError as error:
        if error.code != ERR_CYCLE:
            raise
        return False
    return True


async def pushed(admin: Bus, name: str) -> int:
    """Return how many messages a consumer of SESSIONS has delivered."""
    info = await admin.api(f"CONSUMER.INFO.SESSIONS.{name}", {})
    return int(info["delivered"]["consumer_seq"])


async def test_a_consumer_pushes_into_no_stream(bare: Stack) -> None:
    """Who follows a stream chooses where a consumer delivers; the broker refuses or never does.

    It delivers only where somebody subscribed to that very subject, and streams and the API take
    wildcards. For what durable consumers listen to, see below.
    """
    gateway, admin = await bare.bus("gateway"), await bare.bus("admin")
    await gateway.publish(KEY.in_user, b"content")
    durables = {f"$JS.API.CONSUMER.{v}.{c.stream}.{c.name}"
                for v in ("MSG.NEXT", "RESET") for c in CONSUMERS}  # fmt: skip
    targets = [s for s in EVERY_SUBJECT if s not in durables and not {"*", ">"} & set(s)]
    for number, target in enumerate(targets):
        if await push(gateway, f"c{number}", KEY.in_user, target):
            assert await pushed(admin, f"c{number}") == 0, target
    await settle(gateway)
    assert await stored_elsewhere(admin) == 1
    assert len(await admin.read("SIGNALS", ["signal.>"])) == 0


async def test_what_a_consumer_pushes_is_no_question(bare: Stack) -> None:
    """Where services listen it does deliver, so they take nothing that comes from a consumer."""
    delivery, gateway = await bare.bus("delivery"), await bare.bus("gateway")
    heard: list[bytes] = []

    async def hear(message: object) -> None:
        heard.append(message.data)  # type: ignore[attr-defined]

    await delivery.listen("rpc.requeue.delivery", hear)
    cortex = await bare.bus("cortex")
    await cortex.publish(KEY.turn, b"forged")
    assert await push(cortex, "c", KEY.turn, "rpc.requeue.delivery")
    assert await pushed(await bare.bus("admin"), "c") == 1, "the broker does deliver"
    await gateway.send("rpc.requeue.delivery", b"asked")
    await settle(gateway)
    await settle(delivery)
    assert heard == [b"asked"]


async def test_an_answer_gives_no_right(bare: Stack) -> None:
    """A question that names a foreign subject for its answer: even whoever asks and hears it
    themselves may not publish there."""
    gateway, admin = await bare.bus("gateway"), await bare.bus("admin")
    targets = [KEY.turn, "$KV.LEASES.abc", "$JS.API.STREAM.PURGE.SESSIONS"]
    asked: list[str] = []

    async def answer(message: object) -> None:
        asked.append(message.reply)  # type: ignore[attr-defined]
        await gateway.send(asked[-1], b"forged")

    await gateway.listen("rpc.health", answer)
    for target in targets:
        await gateway.send("rpc.health", b"", target)
    await settle(gateway)
    await settle(gateway)
    assert asked == targets
    assert len(gateway.violations) == len(targets)
    assert await stored_elsewhere(admin) == 0


async def test_known_limit_a_service_may_misplace_the_brokers_own_words(bare: Stack) -> None:
    """What no permission prevents (SECURITY.md): within our account a taken-over service can have
    an acknowledgement stored under a foreign subject. It chooses the place, not the words."""
    gateway, admin = await bare.bus("gateway"), await bare.bus("admin")
    await gateway.send(KEY.in_user, b"forged", KEY.turn)

    async def is_there() -> bool:
        return await admin.get_last("SESSIONS", KEY.turn) is not None

    await until(is_there, "the broker's own words")
    (found,) = await admin.read("SESSIONS", [KEY.turn])
    assert found.data == b'{"stream":"SESSIONS","seq":1}'
    assert gateway.violations == []


async def test_a_durable_consumer_gives_nothing_to_a_push_and_takes_no_forged_ack(
    bare: Stack,
) -> None:
    """A push that asks a durable consumer for messages gets none: there is nobody to give to. An
    acknowledgement can't come as somebody's answer: the broker refuses that reply."""
    cortex, delivery, admin = [await bare.bus(r) for r in ("cortex", "delivery", "admin")]
    ours = f"{DELIVERY_TURNS.stream}.{DELIVERY_TURNS.name}"
    await cortex.publish(KEY.turn, b'{"batch":1}')
    assert await push(cortex, "c", KEY.turn, f"$JS.API.CONSUMER.MSG.NEXT.{ours}")
    await cortex.send(KEY.turn, b"x", f"$JS.ACK.{ours}.1.1.1.1.0")
    await settle(cortex)
    assert any("reply" in violation for violation in cortex.violations)
    puller = await delivery.pull(DELIVERY_TURNS)
    message = await puller.next_within(5)
    assert message is not None
    assert (message.seq, message.delivered) == (1, 1)
    info = await admin.api(f"CONSUMER.INFO.{ours}", {})
    assert info["ack_floor"]["stream_seq"] == 0
    await puller.close()


async def test_known_limit_a_service_may_reset_what_another_pulls(bare: Stack) -> None:
    """What no permission prevents (SECURITY.md): a durable consumer (nats-server 2.14 and later)
    takes `RESET` on a subject of its own. A push gets there, and the message is the request. So a
    taken-over service that follows a stream can make another skip what it has not pulled."""
    cortex, gateway, admin = [await bare.bus(r) for r in ("cortex", "gateway", "admin")]
    ours = f"{DELIVERY_TURNS.stream}.{DELIVERY_TURNS.name}"
    for _ in range(3):
        await cortex.publish(KEY.turn, b"turn")
    await gateway.publish(KEY.in_user, b'{"seq":3}')
    assert await push(gateway, "c", KEY.in_user, f"$JS.API.CONSUMER.RESET.{ours}")
    await settle(gateway)
    info = await admin.api(f"CONSUMER.INFO.{ours}", {})
    assert info["ack_floor"]["stream_seq"] == 2
    with pytest.raises(OutcomeUnknown):
        await gateway.api(f"CONSUMER.RESET.{ours}", {"seq": 1}, 0.3)


# ---------------------------------------------------------------- services


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
