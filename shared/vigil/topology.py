"""Streams, buckets, consumers and permissions, as data.

:func:`vigil.broker.provision.provision` makes a broker look like this page, and may be run again on
any older one. What a service may publish or read, in `ROLES`, the broker enforces (SPEC X-4).
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from . import layout
from .addressees import turns_for
from .layout import LAYOUT_STREAM, LOG, InStream, all_names, filter_in, is_of_session
from .subjects import (
    ANYBODY,
    BOARD_ALL,
    DUE_ALL,
    EXECUTOR_CANCEL,
    IN_ALL_SESSIONS,
    IN_ALL_SYSTEM,
    MEMORIES_ALL,
    OUTSIDE_ALL,
    SENDS_OF_ALL_SESSIONS,
    SIGNALS_ALL,
    TURNS_OF_ALL_SESSIONS,
    TURNS_OF_ALL_SYSTEM,
    board_of,
)

TOLD: Final = ("SIGNALS", "DEAD", "MAILS")
FILED, FILES = layout.ATTACHED, (layout.UPLOADS_ALL, layout.FILES_ALL)
SECOND_NS: Final = 1_000_000_000
DAY_S: Final = 24 * 60 * 60
MIB: Final = 1024**2
PAYLOAD_BYTES_MAX: Final = 1024 * 1024
"""Of one message."""
ACK_WAIT_WAKE_S: Final = 8
"""ARCHITECTURE 3. A killed replica's wakes come back after this, its lease after LEASE_TTL_S."""
LEASE_TTL_S: Final = 5
LEASE_RENEW_S: Final = 2


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """A JetStream stream. How long it keeps what it holds is a setting (`[retention]`)."""

    name: str
    subjects: tuple[str, ...]
    max_consumers: int = 1000
    has_schedules: bool = False
    has_batches: bool = False
    """Whether atomic batches may be published to it (NATS ADR-50)."""
    bytes_max: int = -1
    """Of all that it holds; -1: as much as the broker has. The broker sets it aside at once."""
    message_bytes_max: int = PAYLOAD_BYTES_MAX
    per_subject_max: int = -1
    """Messages of one subject."""
    is_refusing: bool = False
    """When it, or a subject of it, is full the sender is refused; else the oldest message goes."""
    is_consumed: bool = False
    """A message goes once every durable consumer has acknowledged it."""
    duplicate_window_s: float = 120.0
    """How long the broker drops a message whose `Nats-Msg-Id` it saw; at least 0.1."""


class Bucket(msgspec.Struct, frozen=True, kw_only=True):
    """A key-value bucket. `ttl_s` 0 keeps for good."""

    name: str
    ttl_s: float = 0
    storage: Literal["file", "memory"] = "file"
    has_batches: bool = False


class Consumer(InStream, frozen=True, kw_only=True):
    """A durable pull consumer, shared by all replicas of a service."""

    name: str
    filters: tuple[str, ...]
    ack_wait_s: float
    headers_only: bool = False


STREAMS: Final = (
    # The server caps a stream at 1000 consumers, and -1 doesn't lift it (RELIABILITY 0.3); each
    # replica has some, and who waits for an answer over HTTP has one.
    Stream(name="SESSIONS", subjects=("session.>",), max_consumers=50_000),
    # What the cortex does by itself: workers, branches, jobs.
    Stream(name="SYSTEM", subjects=("system.>",), max_consumers=50_000),
    # One subject for each approval, job, grant, task, goal …, and its states.
    Stream(name="BOARD", subjects=(BOARD_ALL,), per_subject_max=64, max_consumers=10_000),
    # What became of each instant of those rows, and what came to mailboxes: a subject for each.
    Stream(name="SLOTS", subjects=(ANYBODY.slot(),), max_consumers=10_000),
    Stream(name="MAILS", subjects=(ANYBODY.mail(),)),
    # No max_age: it would delete pending schedules (ARCHITECTURE 2).
    Stream(name="TIMERS", subjects=("timer.>", "due.>"), has_schedules=True),
    # Bounded, so that a flood of what can't be used takes no room from the sessions.
    Stream(name="DEAD", subjects=("dead.>",), bytes_max=128 * MIB, per_subject_max=1000),
    # What outside programs publish, until the gateway took it in.
    # The window is as short as it may be: message ids are compared in the whole stream, so with a
    # long one a stranger's id could make another's event a repeat. The gateway knows repeats.
    # The bounds keep a credential, which has one subject, from filling the disk that all share: a
    # quarter of the room is the most that one can take from the others (ADR 20).
    Stream(
        name="EVENTS",
        subjects=(OUTSIDE_ALL,),
        bytes_max=256 * MIB,
        message_bytes_max=256 * 1024,
        per_subject_max=256,
        is_refusing=True,
        is_consumed=True,
        duplicate_window_s=0.1,
    ),
    # The truth of memory; SQLite and the vectors are made of it.
    Stream(name="MEMORIES", subjects=(MEMORIES_ALL,)),
    Stream(name="UPLOADS", subjects=(layout.UPLOADS_ALL,), bytes_max=128 * MIB, per_subject_max=1),
    # What messages name by its hash: too large for a record of the log.
    Stream(name="FILES", subjects=(layout.FILES_ALL,), per_subject_max=1),
    Stream(name="SIGNALS", subjects=(SIGNALS_ALL,), max_consumers=10_000, has_batches=True),
)
CONSUMED: Final = frozenset(stream.name for stream in STREAMS if stream.is_consumed)

BUCKETS: Final = (
    Bucket(name="LEASES", ttl_s=LEASE_TTL_S, storage="memory"),
    Bucket(name="CONFIG"),
    Bucket(name="BUDGETS", ttl_s=400 * DAY_S, has_batches=True),
    Bucket(name="TOKENS"),
    Bucket(name="CURSORS"),
    Bucket(name="IDEMPOTENCY", ttl_s=DAY_S),
    # What tools there are, by source; written by the executor at each start.
    Bucket(name="TOOLS"),
    # Who is signed in with a browser, and links that let one in: hashes and tokens' hashes.
    Bucket(name="CONSOLE", ttl_s=7 * DAY_S),
    Bucket(name="PINS"),  # which descriptions of MCP tools were approved, by server
)

CONSUMERS: Final = (
    Consumer(
        stream="SESSIONS",
        name="cortex-wake",
        filters=(IN_ALL_SESSIONS,),
        ack_wait_s=ACK_WAIT_WAKE_S,
        headers_only=True,
    ),
    Consumer(stream="SESSIONS", name="scheduler-turns", filters=turns_for("t"), ack_wait_s=5),
    Consumer(stream="TIMERS", name="scheduler-due", filters=(DUE_ALL,), ack_wait_s=5),
    Consumer(stream="SESSIONS", name="delivery-turns", filters=turns_for("s"), ack_wait_s=5),
    Consumer(
        stream="SESSIONS",
        name="delivery-sends",
        filters=(SENDS_OF_ALL_SESSIONS,),
        ack_wait_s=8,
    ),
    Consumer(stream="SESSIONS", name="memory-turns", filters=turns_for("m"), ack_wait_s=8),
    Consumer(stream="EVENTS", name="gateway-events", filters=(OUTSIDE_ALL,), ack_wait_s=5),
    Consumer(
        stream="SYSTEM",
        name="cortex-wake-system",
        filters=(IN_ALL_SYSTEM,),
        ack_wait_s=ACK_WAIT_WAKE_S,
        headers_only=True,
    ),
    Consumer(
        stream="SYSTEM",
        name="scheduler-turns-system",
        filters=turns_for("t", of_system=True),
        ack_wait_s=5,
    ),
    Consumer(
        stream="SYSTEM",
        name="memory-turns-system",
        filters=turns_for("m", of_system=True),
        ack_wait_s=8,
    ),
    # A turn stays in hand while its tools run; who has it says so every few seconds.
    Consumer(stream="SESSIONS", name="executor-turns", filters=turns_for("x"), ack_wait_s=8),
    Consumer(
        stream="SYSTEM",
        name="executor-turns-system",
        filters=turns_for("x", of_system=True),
        ack_wait_s=8,
    ),
)
MAX_ACK_PENDING: Final = 100_000
"""Large and explicit: sessions wait on their own, so one of them never blocks the others."""

(
    WAKE,
    SCHEDULER_TURNS,
    DUE,
    DELIVERY_TURNS,
    DELIVERY_SENDS,
    MEMORY_TURNS,
    OUTSIDE_EVENTS,
    WAKE_SYSTEM,
    SCHEDULER_TURNS_SYSTEM,
    MEMORY_TURNS_SYSTEM,
    EXECUTOR_TURNS,
    EXECUTOR_TURNS_SYSTEM,
) = CONSUMERS


# ---------------------------------------------------------------- who may do what


class Role(msgspec.Struct, frozen=True, kw_only=True):
    """What one credential may do. Everything not listed is denied.

    `follows` lists streams it may read with consumers of its own (ephemeral, no acks);
    `pulls` durable consumers it may pull from and ack; `reads` streams whose single messages
    it may get; `buckets_w` buckets it may also write.
    """

    publishes: tuple[str, ...] = ()
    subscribes: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    pulls: tuple[Consumer, ...] = ()
    reads: tuple[str, ...] = ()
    buckets_r: tuple[str, ...] = ()
    buckets_w: tuple[str, ...] = ()
    raw: tuple[str, ...] = ()


def on_board(*kinds: str) -> tuple[str, ...]:
    """Return where everybody's entities of these kinds are."""
    return tuple(board_of(ANYBODY, kind) for kind in kinds)


ROLES: Final[dict[str, Role]] = {
    "gateway": Role(
        publishes=(
            *(f"session.*.*.*.in.{of}" for of in ("said.user", "control", "external")), *FILES,
            "session.*.*.*.past.said.*", "system.*.*.*.in.control", "system.*.*._mind.in.external",
            "dead.gateway.*.*.*", "dead.ended.*.*.*", *on_board("job", "grant", "facts"),
            *on_board("task", "row", "goal", "preference", "action", "circuit"), ANYBODY.slot(),
        ),
        subscribes=("live.*.*.*", "doing.*.*.*"), pulls=(OUTSIDE_EVENTS,),
        follows=("SESSIONS", "SYSTEM", "BOARD", "MEMORIES", *TOLD),
        buckets_r=("TOOLS", "BUDGETS", "LEASES"),
        reads=("SESSIONS", "SYSTEM", "BOARD", "SLOTS", "MEMORIES", *TOLD, *FILED),
        buckets_w=("CURSORS", "IDEMPOTENCY", "CONFIG", "CONSOLE", "TOKENS", "PINS"),  # ADR 39
        # STREAM.INFO lists which sessions and files of a user exist, and how large streams are.
        raw=(
            "rpc.health", "rpc.metrics", "rpc.requeue.*", "rpc.memory.>", "rpc.channel.*",
            *(f"$JS.API.STREAM.INFO.{name}" for one in STREAMS for name in all_names(one.name)),
            *(f"$JS.API.CONSUMER.INFO.*.{one.name}" for one in CONSUMERS), "$KV.LEASES.channel.*",
            "$JS.API.STREAM.CREATE.KV_LEASES",
        ),
    ),
    "cortex": Role(
        publishes=(
            TURNS_OF_ALL_SESSIONS, TURNS_OF_ALL_SYSTEM, "live.*.*.*", "dead.cortex.*.*.*",
            SIGNALS_ALL, "board.*.*.circuit.*",
        ),
        follows=("SESSIONS", "SYSTEM", "BOARD", "MEMORIES", "SLOTS", "SIGNALS", "DEAD"),
        pulls=(WAKE, WAKE_SYSTEM),
        reads=("SESSIONS", "SYSTEM", "BOARD", "MEMORIES", "SLOTS", "SIGNALS", "DEAD", *FILED),
        buckets_r=("CONFIG", "TOOLS"), buckets_w=("LEASES", "BUDGETS"),
        # A broker that restarts forgets what is in memory. SIGNALS: an append expects the last one.
        raw=(
            "$JS.API.STREAM.CREATE.KV_LEASES", "$JS.API.STREAM.INFO.SIGNALS",
            "rpc.memory.recall.*.*",
        ),
    ),
    "memory": Role(
        publishes=(
            MEMORIES_ALL, "session.*.*.*.call.*", "session.*.*.*.in.tool_result",
            "system.*.*.*.call.*", "system.*.*.*.in.tool_result", "dead.memory.*.*.*",
            "board._._.circuit.*",
        ),
        subscribes=("rpc.memory.>",), follows=("MEMORIES",),
        pulls=(MEMORY_TURNS, MEMORY_TURNS_SYSTEM),
        reads=("MEMORIES", "SESSIONS", "SYSTEM", "BOARD"), buckets_r=("CONFIG",),
        raw=("$JS.API.STREAM.INFO.MEMORIES",),
    ),
    "scheduler": Role(
        publishes=(
            "timer.>", "due.>", "session.*.*.*.in.timer", "session.*.*.*.in.control",
            "session.*.*.*.in.told.*", "system.*.*.*.in.timer", "system.*.*.*.in.control",
            "system.*.*._mind.in.tick", *on_board("task", "row", "goal", "bulletin"),
            ANYBODY.slot(), "dead.scheduler.*.*.*",
        ), buckets_r=("CONFIG", "IDEMPOTENCY"),
        follows=("TIMERS", "SESSIONS", "SYSTEM", "BOARD", "SLOTS", *TOLD, *FILED),
        pulls=(SCHEDULER_TURNS, SCHEDULER_TURNS_SYSTEM, DUE), buckets_w=("LEASES",),
        reads=("TIMERS", "SESSIONS", "SYSTEM", "BOARD", "SLOTS", "SIGNALS", "MAILS"),
        raw=(  # It alone deletes conversations (ADR 47).
            "$JS.API.STREAM.PURGE.TIMERS", *layout.DELETES, "$KV.CONFIG.thread.*",
            "$KV.CONFIG.caps", "$KV.CONFIG.rearm", "$JS.API.STREAM.CREATE.KV_LEASES", "rpc.health",
            "rpc.executor.probe", "rpc.memory.maintain", "rpc.memory.list.*.*",
            *(f"$JS.API.STREAM.INFO.{one}" for one in all_names(LOG)),
            *(f"$JS.API.CONSUMER.INFO.*.scheduler-turns{of}" for of in ("", "-system")),
        ),
    ),
    "executor": Role(
        publishes=(
            "session.*.*.*.call.*", "session.*.*.*.in.tool_result", "session.*.*.*.in.control",
            "session.*.*.*.in.told.*", "system.*.*.*.call.*", "system.*.*.*.in.tool_result",
            "system.*.*.*.in.control", "system.*.*._mind.in.told.*", EXECUTOR_CANCEL, "doing.*.*.*",
            "dead.executor.*.*.*", *on_board("use", "row", "goal", "preference", "action", "task"),
            *on_board("approval", "job", "bulletin", "facts"), "board._._.circuit.*",
            ANYBODY.slot(), ANYBODY.mail(), layout.UPLOADS_ALL, layout.FILES_ALL,  # no grant
        ), subscribes=(EXECUTOR_CANCEL, "rpc.executor.probe"), follows=("BOARD", "MAILS"),
        pulls=(EXECUTOR_TURNS, EXECUTOR_TURNS_SYSTEM),
        reads=("SESSIONS", "SYSTEM", "BOARD", "SLOTS", "MAILS", *FILED),
        buckets_r=("CONFIG",), buckets_w=("LEASES", "TOOLS", "PINS"),
        # Of the switches what people set, and raise, for themselves: no agent's and no instance's.
        raw=("$JS.API.STREAM.CREATE.KV_LEASES", "$KV.CONFIG.person.*",
             "$KV.CONFIG.raised.owner.*", *layout.ATTACHED_INFO),
    ),
    "delivery": Role(
        publishes=(
            "session.*.*.*.out.said.*", "session.*.*.*.receipt.*", "session.*.*.*.send.*",
            "session.*.*.*.attempt.*", "dead.delivery.*.*.*", "system.*.*._mind.in.told.*",
            "board._._.circuit.*",
        ), subscribes=("rpc.channel.*",), follows=("SESSIONS", "BOARD"),
        pulls=(DELIVERY_TURNS, DELIVERY_SENDS), raw=("$KV.CONFIG.push.browser.>",),
        reads=("SESSIONS", "BOARD", *FILED), buckets_r=("CONFIG",),
    ),
    # The command line: makes tokens, looks at the broker. Never a service.
    "operator": Role(
        buckets_w=("TOKENS", "CONFIG", "PINS"), buckets_r=("TOOLS",),
        raw=("rpc.health", "$SRV.PING", "$SRV.*.memory", "$SRV.*.memory.*"),
    ),
}  # fmt: skip

SERVICES: Final = ("gateway", "cortex", "memory", "scheduler", "executor", "delivery")
ADMIN: Final = "admin"
"""Creates and upgrades streams, and probes the embedded broker; may do everything."""


def inbox_prefix(role: str) -> str:
    """Each credential has inboxes of its own, so nobody reads another's answers."""
    return f"_INBOX_{role}"


def answers_prefix(role: str) -> str:
    """Where answers to the questions of `role` go: a place that holds nothing else.

    So a service may answer without a right to publish to whatever subject a question names, which
    would be the right to everything: whoever may ask a question could ask it of themselves.
    """
    return f"rpc.answer.{role}"


def permissions(role: str) -> dict[str, list[str]]:
    """Expand a role into {"publish": [...], "subscribe": [...], "deny": [...]}.

    All are allow-lists but `deny`, which wins over "publish".
    """
    if role == ADMIN:
        return {"publish": [">"], "subscribe": [">"], "deny": []}
    spec = ROLES[role]
    publish = [
        filter_in(log, subject)
        for subject in spec.publishes
        for log in (all_names(LOG) if is_of_session(subject) else ("",))
    ]
    publish += spec.raw
    for stream in (one for name in spec.follows for one in all_names(name)):
        # The filter is the last part of the subject; a consumer with several has none.
        publish += [
            f"$JS.API.CONSUMER.CREATE.{stream}.>",
            f"$JS.API.CONSUMER.DELETE.{stream}.*",
            f"$JS.FC.{stream}.>",
        ]
    for consumer in spec.pulls:
        # In each partition of the log it has the same name, and nobody may give that to another.
        publish += [f"$JS.API.CONSUMER.MSG.NEXT.*.{consumer.name}", f"$JS.ACK.*.{consumer.name}.>"]
    publish += [
        f"$JS.API.STREAM.MSG.GET.{stream}" for name in spec.reads for stream in all_names(name)
    ]
    if LOG in spec.reads:
        publish.append(f"$JS.API.STREAM.INFO.{LAYOUT_STREAM}")
    for bucket in dict.fromkeys(spec.buckets_r + spec.buckets_w):
        publish += [
            f"$JS.API.STREAM.MSG.GET.KV_{bucket}",
            f"$JS.API.CONSUMER.CREATE.KV_{bucket}.>",
            f"$JS.API.CONSUMER.DELETE.KV_{bucket}.*",
            f"$JS.FC.KV_{bucket}.>",
        ]
    publish += [f"$KV.{bucket}.>" for bucket in spec.buckets_w]
    subscribe = [f"{inbox_prefix(role)}.>", f"{answers_prefix(role)}.>", *spec.subscribes]
    if role in SERVICES:
        publish.append(f"{answers_prefix('*')}.>")
        subscribe += ["rpc.health", "rpc.metrics", f"rpc.requeue.{role}", "$SRV.>"]
    return {"publish": publish, "subscribe": subscribe, "deny": _durables()}


def _durables() -> list[str]:
    """Return what would change or delete a durable consumer.

    Whoever follows a stream may create and delete consumers of any name in it, because those
    of a follower have random names and a wildcard matches whole tokens only.
    """
    denied: list[str] = []
    for consumer in CONSUMERS:
        create = f"$JS.API.CONSUMER.CREATE.*.{consumer.name}"
        denied += [create, f"{create}.>", f"$JS.API.CONSUMER.DELETE.*.{consumer.name}"]
    return denied
