"""Every subject of the bus and every verb of the JetStream API, with the roles that may use it.

Written out, not derived from `vigil.topology`: a right that is added there without a line here
fails the tests.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from vigil.layout import filter_in
from vigil.memory.operation import operations
from vigil.memory.questions import MAINTAIN_ALL, REBUILD
from vigil.subjects import EXECUTOR_CANCEL, Scope, SessionKey, outside
from vigil.topology import BUCKETS, CONSUMERS, SERVICES, STREAMS

KEY: Final = SessionKey("ann", "vigil", "t1")
CHILD: Final = KEY.of_kind("worker", "1f")
SCOPE: Final = Scope("vigil", "ann")
_ALL: Final = set(SERVICES)

PARTITION: Final = "SESSIONS_3"
"""One of the log: whoever may do something to the log may do it there."""
_OF_LOG: Final = {"gateway", "cortex", "delivery", "scheduler"}
_FOLLOWERS: Final[dict[str, set[str]]] = {
    "SESSIONS": _OF_LOG,
    PARTITION: _OF_LOG,
    "SYSTEM": {"gateway", "cortex", "scheduler"},
    "BOARD": {"gateway", "cortex", "executor", "scheduler", "delivery"},
    "SLOTS": {"scheduler", "cortex"},
    "MAILS": {"gateway", "scheduler", "executor"},
    "MEMORIES": {"gateway", "cortex", "memory"},
    "SIGNALS": {"gateway", "cortex", "scheduler"},
    "DEAD": {"gateway", "scheduler", "cortex"},
    # It alone deletes what is stored, of conversations that a person deleted.
    "UPLOADS": {"scheduler"},
    "FILES": {"scheduler"},
    "TIMERS": {"scheduler"},
    "KV_TOKENS": {"gateway", "operator"},
    "KV_CONFIG": {*_ALL, "operator"},
    "KV_CURSORS": {"gateway"},
    "KV_IDEMPOTENCY": {"gateway", "scheduler"},
    "KV_CONSOLE": {"gateway"},
    "KV_LEASES": {"cortex", "scheduler", "executor", "gateway"},
    "KV_BUDGETS": {"gateway", "cortex"},
    "KV_TOOLS": {"gateway", "cortex", "executor", "operator"},
    "KV_PINS": {"executor", "gateway", "operator"},
}
"""Who reads a stream: by consumers of their own, and single messages."""
_SPECIAL: Final[dict[str, set[str]]] = {
    # How large each is.
    **{f"STREAM.INFO.{stream.name}": {"gateway"} for stream in STREAMS},
    "STREAM.INFO.SESSIONS": {"gateway", "scheduler"},
    f"STREAM.INFO.{PARTITION}": {"gateway", "scheduler"},
    # In how many partitions the log is.
    "STREAM.INFO.KV_CONFIG": _ALL,
    "STREAM.INFO.SIGNALS": {"cortex", "gateway"},
    "STREAM.INFO.MEMORIES": {"memory", "gateway"},
    # Memory and executor read a session's newest turn, and follow none; the executor, too, what is
    # on the board.
    "STREAM.MSG.GET.SESSIONS": _OF_LOG | {"memory", "executor"},
    f"STREAM.MSG.GET.{PARTITION}": _OF_LOG | {"memory", "executor"},
    "STREAM.MSG.GET.SYSTEM": _FOLLOWERS["SYSTEM"] | {"memory", "executor"},
    # Memory looks at the circuits of what it asks.
    "STREAM.MSG.GET.BOARD": _FOLLOWERS["BOARD"] | {"memory"},
    "STREAM.MSG.GET.SLOTS": {"gateway", "executor", "cortex", "scheduler"},
    "STREAM.INFO.UPLOADS": {"gateway", "executor"},
    "STREAM.INFO.FILES": {"gateway", "executor"},
    "STREAM.MSG.GET.UPLOADS": {"gateway", "cortex", "executor", "delivery"},
    "STREAM.MSG.GET.DEAD": {"gateway", "cortex"},
    "STREAM.MSG.GET.FILES": {"gateway", "cortex", "executor", "delivery"},
    "STREAM.PURGE.TIMERS": {"scheduler"},
    **{
        f"STREAM.MSG.DELETE.{name}": {"scheduler"}
        for name in (
            *("SESSIONS", PARTITION, "SYSTEM", "BOARD", "SIGNALS", "DEAD", "TIMERS"),
            *("UPLOADS", "FILES", "KV_IDEMPOTENCY"),
        )
    },
    "STREAM.CREATE.KV_LEASES": {"cortex", "scheduler", "executor", "gateway"},
}
_NAMES: Final = [*(s.name for s in STREAMS), PARTITION, *(f"KV_{b.name}" for b in BUCKETS)]
_OF_PARTITION: Final = (replace(c, stream=PARTITION) for c in CONSUMERS if c.stream == "SESSIONS")
DURABLES: Final = (*CONSUMERS, *_OF_PARTITION)
_STREAM_VERBS: Final = (
    "CREATE", "UPDATE", "INFO", "DELETE", "PURGE", "SNAPSHOT", "RESTORE", "MSG.GET", "MSG.DELETE",
    "PEER.REMOVE", "LEADER.STEPDOWN",
)  # fmt: skip
_CONSUMER_VERBS: Final = (
    "CREATE", "DURABLE.CREATE", "INFO", "DELETE", "MSG.NEXT", "LEADER.STEPDOWN", "PAUSE", "RESET",
    "UNPIN",
)  # fmt: skip
_ACCOUNT_VERBS: Final = (
    "INFO", "STREAM.NAMES", "STREAM.LIST", "ACCOUNT.PURGE.VIGIL", "META.LEADER.STEPDOWN",
    "SERVER.REMOVE", "ACCOUNT.STREAM.MOVE.VIGIL.SESSIONS",
)  # fmt: skip
_OF_FOLLOWERS: Final = ("CONSUMER.CREATE.{}.x", "CONSUMER.DELETE.{}.x", "CONSUMER.CREATE.{}.x.f")


def _api() -> dict[str, set[str]]:
    """Return every verb for every stream, and for a consumer ``x`` that is nobody's durable."""
    found: dict[str, set[str]] = {}
    for name in _NAMES:
        verbs = [f"STREAM.{verb}.{name}" for verb in _STREAM_VERBS]
        verbs += [f"CONSUMER.{verb}.{name}.x" for verb in _CONSUMER_VERBS]
        verbs += [f"CONSUMER.LIST.{name}", f"CONSUMER.NAMES.{name}", f"DIRECT.GET.{name}"]
        verbs += [f"CONSUMER.CREATE.{name}", f"DIRECT.GET.{name}.x"]
        found |= {verb: set() for verb in verbs}
        found |= {form.format(name): _FOLLOWERS.get(name, set()) for form in _OF_FOLLOWERS}
        found[f"STREAM.MSG.GET.{name}"] = _FOLLOWERS.get(name, set())
    found |= {verb: set() for verb in _ACCOUNT_VERBS}
    for one in DURABLES:
        where, owner = f"{one.stream}.{one.name}", one.name.partition("-")[0]
        for verb in _CONSUMER_VERBS:
            found[f"CONSUMER.{verb}.{where}"] = {owner} if verb == "MSG.NEXT" else set()
        found[f"CONSUMER.CREATE.{where}.{one.filters[0]}"] = set()
        found[f"CONSUMER.INFO.{where}"] = {"gateway"}  # what waits
        if one.name.startswith("scheduler-turns"):  # up to where the one before got
            found[f"CONSUMER.INFO.{where}"] |= {owner}
    return found | _SPECIAL


_API: Final = _api()
API_UNDER_DOMAIN: Final = [f"$JS.vigil.API.{verb}" for verb in _API]
"""The same as a program outside would address it."""

_OF_SESSIONS: Final[dict[str, set[str]]] = {
    KEY.in_user: {"gateway"},
    KEY.in_event("control"): {"gateway", "scheduler", "executor"},
    KEY.in_event("timer"): {"scheduler"},
    KEY.in_event("tool_result"): {"memory", "executor"},
    KEY.in_event("tick"): set(),
    KEY.in_event("external"): {"gateway"},
    KEY.turn: {"cortex"},
    KEY.turn_for("sx"): {"cortex"},
    KEY.out_said("e"): {"delivery"},
    KEY.receipt("e"): {"delivery"},
    KEY.send("e"): {"delivery"},
    KEY.attempt("e"): {"delivery"},
    KEY.call("e"): {"memory", "executor"},
}
EVERY_SUBJECT: Final[dict[str, set[str]]] = {
    **_OF_SESSIONS,
    **{filter_in(PARTITION, subject): roles for subject, roles in _OF_SESSIONS.items()},
    f"session-16.{KEY.kv_key}.in.said.user": set(),
    # Nobody speaks in a session of the cortex, and nothing from outside comes in there.
    CHILD.in_user: set(),
    CHILD.in_event("control"): {"gateway", "executor", "scheduler"},
    CHILD.in_event("timer"): {"scheduler"},
    CHILD.in_event("tool_result"): {"memory", "executor"},
    CHILD.in_event("tick"): set(),
    CHILD.in_event("external"): set(),
    CHILD.turn_for(""): {"cortex"},
    CHILD.out_said("e"): set(),
    CHILD.receipt("e"): set(),
    CHILD.send("e"): set(),
    CHILD.attempt("e"): set(),
    CHILD.call("e"): {"memory", "executor"},
    KEY.board("approval", "1f"): {"executor"},
    KEY.board("job", "1f"): {"executor", "gateway"},
    KEY.board("grant", "1f"): {"gateway"},
    KEY.board("use", "1f"): {"executor"},
    KEY.board("task", "1f"): {"executor", "gateway", "scheduler"},
    KEY.board("row", "1f"): {"executor", "gateway", "scheduler"},
    KEY.board("goal", "1f"): {"executor", "gateway", "scheduler"},
    KEY.board("preference", "1f"): {"executor", "gateway"},
    KEY.board("bulletin", "current"): {"scheduler", "executor"},
    KEY.board("action", "1"): {"executor", "gateway"},
    SCOPE.slot("1f"): {"gateway", "scheduler", "executor"},
    SCOPE.mail("work"): {"executor"},
    f"upload.ann.{64 * 'a'}.0": {"gateway", "executor"},
    f"file.ann.{64 * 'a'}.0": {"gateway", "executor"},
    EXECUTOR_CANCEL: {"executor"},
    SCOPE.record("save"): {"memory"},
    KEY.signal("message.sent"): {"cortex"},
    KEY.dead("ended"): {"gateway"},
    KEY.dead("gateway"): {"gateway"},
    KEY.dead("cortex"): {"cortex"},
    KEY.dead("memory"): {"memory"},
    KEY.dead("delivery"): {"delivery"},
    KEY.dead("scheduler"): {"scheduler"},
    KEY.dead("executor"): {"executor"},
    outside("ann", "other"): set(),
    outside("bob", "ci"): set(),
    KEY.timer("t", 1): {"scheduler"},
    KEY.due("t", 1): {"scheduler"},
    KEY.live: {"cortex"},
    KEY.doing: {"executor"},
    "$KV.LEASES.a": {"cortex", "scheduler", "executor"},
    # Which replica looks into a mailbox, and no session's.
    "$KV.LEASES.channel.a": {"cortex", "scheduler", "executor", "gateway"},
    "$KV.TOKENS.a": {"gateway", "operator"},
    "$KV.BUDGETS.a": {"cortex"},
    "$KV.CURSORS.a": {"gateway"},
    "$KV.IDEMPOTENCY.a": {"gateway"},
    "$KV.CONSOLE.a": {"gateway"},
    "$KV.CONFIG.a": {"gateway", "operator"},
    "$KV.CONFIG.raised.owner.a": {"executor", "gateway", "operator"},
    "$KV.CONFIG.raised.agent.a": {"gateway", "operator"},
    "$KV.CONFIG.raised.instance.all": {"gateway", "operator"},
    "$KV.CONFIG.trust.person.vigil.source": {"gateway", "operator"},  # FLOW F-15: no model's
    "$KV.CONFIG.label.person.thread": {"gateway", "operator"},
    # Delivery hears first that a browser is no more.
    "$KV.CONFIG.push.browser.person.id": {"gateway", "operator", "delivery"},
    "$KV.CONFIG.rearm": {"gateway", "operator", "scheduler"},
    "$KV.TOOLS.a": {"executor"},
    "$KV.PINS.a": {"executor", "gateway", "operator"},
    **{f"$JS.API.{verb}": roles for verb, roles in _API.items()},
    **{f"$JS.ACK.{c.stream}.{c.name}.1.1.1.1.1": {c.name.partition("-")[0]} for c in DURABLES},
    **{f"$JS.ACK.{name}.x.1.1.1.1.1": set() for name in _NAMES},
    **{f"$JS.FC.{name}.x": _FOLLOWERS.get(name, set()) for name in _NAMES},
    "rpc.health": {"gateway", "operator", "scheduler"},
    "rpc.metrics": {"gateway"},
    **{f"rpc.requeue.{name}": {"gateway"} for name in SERVICES},
    **{SCOPE.question(op): {"gateway"} for op in operations() if op not in ("recall", "list")},
    SCOPE.question("recall"): {"gateway", "cortex"},
    SCOPE.question("list"): {"gateway", "scheduler"},
    MAINTAIN_ALL: {"gateway", "scheduler"},
    REBUILD: {"gateway"},
    "$SRV.PING": {"operator"},
    "$SRV.INFO.memory": {"operator"},
    "$SRV.STATS.memory": {"operator"},
    **{f"rpc.answer.{role}.x": _ALL for role in (*SERVICES, "operator")},
    "$SYS.REQ.SERVER.PING": set(),
    "$SYS.REQ.ACCOUNT.PING": set(),
    **{f"_INBOX_{role}.x": set() for role in (*SERVICES, "operator", "admin")},
    "_INBOX.x": set(),
    "_INBOX_out-x.x": set(),
}  # fmt: skip
"""Subject -> the roles that may publish to it. A role's own inbox isn't among them."""

LISTENERS: Final[dict[str, set[str]]] = {
    ">": set(),
    "*": set(),
    "session.>": set(),
    "system.>": set(),
    "board.>": set(),
    EXECUTOR_CANCEL: {"executor"},
    "timer.>": set(),
    "due.>": set(),
    "dead.>": set(),
    "event.>": set(),
    "event.ann.ci": set(),
    "signal.>": set(),
    "memory.>": set(),
    KEY.live: {"gateway"},
    "live.*.*.*": {"gateway"},
    "live.>": set(),
    KEY.doing: {"gateway"},
    "doing.*.*.*": {"gateway"},
    "doing.>": set(),
    "$KV.>": set(),
    "$KV.TOKENS.>": set(),
    "$JS.>": set(),
    "$JS.API.>": set(),
    "$JS.ACK.>": set(),
    "$JS.EVENT.ADVISORY.>": set(),
    "$SYS.>": set(),
    "_INBOX.>": set(),
    "rpc.>": set(),
    "rpc.health": _ALL,
    "rpc.metrics": _ALL,
    **{f"rpc.requeue.{name}": {name} for name in SERVICES},
    "rpc.memory.>": {"memory"},
    **{SCOPE.question(op): {"memory"} for op in operations()},
    **{f"rpc.answer.{role}.x": {role} for role in (*SERVICES, "operator")},
    "rpc.answer.>": set(),
    MAINTAIN_ALL: {"memory"},
    REBUILD: {"memory"},
    "$SRV.PING": _ALL,
    "$SRV.INFO.memory": _ALL,
    "$SRV.STATS.memory": _ALL,
    **{f"_INBOX_{role}.x": {role} for role in (*SERVICES, "operator")},
    **{f"_INBOX_{role}.>": {role} for role in (*SERVICES, "operator")},
}
"""Subject -> the roles that may subscribe to it; whatever else is published, nobody may."""
