"""Every metric of every service, as data, and the registry of one replica.

A metric is declared once, below: name, kind, labels, help, buckets.
``docs/reference/metrics.md`` is made of it, and the Grafana dashboard may use nothing else. Labels
have few values, known beforehand: no session, no user, nothing that a client chose.

Each service counts in a registry of its own, so several live in one process; what it answers
carries `service` and `instance`. What can be asked for when somebody looks (open sessions,
connections) is a function, and costs nothing until then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, Literal

import msgspec
from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.registry import Collector

SUBJECT: Final = "rpc.metrics"
"""Every replica answers here with its exposition."""
CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

Kind = Literal["counter", "gauge", "histogram"]
ALL: Final = "all"

REQUEST_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0)
LAG_S: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 60.0, 600.0)
MODEL_S: Final = (0.01, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table. `service` is who counts it."""

    name: str
    kind: Kind
    service: str
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    """Upper bounds, for a histogram."""
    is_watched: bool = False
    """Kept elsewhere, and asked for when somebody looks: see `Metrics.watch`."""


def _counter(name: str, service: str, text: str, *labels: str) -> Metric:
    return Metric(name=name, kind="counter", service=service, help=text, labels=labels)


def _watched(name: str, service: str, text: str, *labels: str, kind: Kind = "gauge") -> Metric:
    return Metric(name=name, kind=kind, service=service, help=text, labels=labels, is_watched=True)


def _histogram(
    name: str, service: str, text: str, buckets: tuple[float, ...], *labels: str
) -> Metric:
    return Metric(
        name=name, kind="histogram", service=service, help=text, labels=labels, buckets=buckets
    )


# ---------------------------------------------------------------- every service

READY: Final = _watched("vigil_ready", ALL, "1 if the replica is ready", "version")
BUS_RECONNECTS: Final = _watched(
    "vigil_bus_reconnects_total",
    ALL,
    "Reconnections to the broker",
    kind="counter",
)
BUS_UNKNOWN: Final = _watched(
    "vigil_bus_unknown_outcomes_total",
    ALL,
    "Requests to the broker that timed out",
    kind="counter",
)
BUS_VIOLATIONS: Final = _watched(
    "vigil_bus_violations_total",
    ALL,
    "Permission violations reported by the broker",
    kind="counter",
)
DEAD_LETTERS: Final = _counter("vigil_dead_letters_total", ALL, "Dead letters stored")

# ---------------------------------------------------------------- gateway

REQUEST_SECONDS: Final = _histogram(
    "vigil_http_request_seconds",
    "gateway",
    "From a request's head to its answer's",
    REQUEST_S,
    "method",
    "route",
    "status",
)
CONNECTIONS: Final = _watched(
    "vigil_connections_open", "gateway", "Open WebSockets and waiting chats"
)
SSE_READERS: Final = _watched("vigil_sse_readers", "gateway", "Open streams of signals")
ACCEPTED: Final = _counter("vigil_events_accepted_total", "gateway", "Events stored", "type")
REFUSED: Final = _counter(
    "vigil_events_refused_total",
    "gateway",
    "Events not stored: invalid, busy, unavailable",
    "reason",
)
OUTSIDE: Final = _counter(
    "vigil_outside_events_total",
    "gateway",
    "External events accepted: api, hook, channel, bus",
    "via",
)

# ---------------------------------------------------------------- cortex

TURNS: Final = _counter("vigil_turns_total", "cortex", "Turns committed", "outcome")
TURN_SECONDS: Final = _histogram(
    "vigil_turn_seconds",
    "cortex",
    "From an event read, or a step begun, to its turn committed",
    MODEL_S,
)
CONFLICTS: Final = _counter(
    "vigil_commit_conflicts_total", "cortex", "Turns discarded: another replica was first"
)
TAKEOVERS: Final = _counter(
    "vigil_takeovers_total", "cortex", "Steps retried after a replica was lost"
)
SESSIONS: Final = _watched("vigil_sessions_open", "cortex", "Sessions open in this replica")
SESSIONS_WAITING: Final = _watched(
    "vigil_sessions_waiting", "cortex", "Sessions queued behind others of the same person"
)
MODEL_SECONDS: Final = _histogram(
    "vigil_model_call_seconds",
    "cortex",
    "Model calls: answered, failed, retryable, cancelled",
    MODEL_S,
    "model",
    "outcome",
)
MODEL_TOKENS: Final = _counter(
    "vigil_model_tokens_total",
    "cortex",
    "Tokens: input, output, cache_read, cache_write",
    "model",
    "direction",
)
RECALL_SECONDS: Final = _histogram(
    "vigil_recall_seconds",
    "cortex",
    "Recalls before an answer: found, nothing, degraded, failed",
    REQUEST_S,
    "outcome",
)
COLD_SESSIONS: Final = _counter(
    "vigil_sessions_cold_total",
    "cortex",
    "Sessions whose first answer lacked the whole memory, or a first bulletin",
    "lacked",
)
BUDGET: Final = _watched(
    "vigil_budget_tokens",
    "cortex",
    "Tokens of the day, all replicas: used, reserved, limit",
    "state",
)
SIGNALS: Final = _counter("vigil_signals_total", "cortex", "Signals projected", "kind")
SIGNAL_LAG: Final = _histogram(
    "vigil_signal_lag_seconds", "cortex", "From a record stored to its signal stored", LAG_S
)

# ---------------------------------------------------------------- scheduler

SCHEDULER_ACTIVE: Final = _watched(
    "vigil_scheduler_active", "scheduler", "1 in the replica that fires"
)
TIMERS: Final = _watched("vigil_timers_open", "scheduler", "Timers pending, in the active replica")
LATENESS: Final = _histogram(
    "vigil_timer_lateness_seconds", "scheduler", "From due to stored as an event", LAG_S, "kind"
)

# ---------------------------------------------------------------- delivery

SENDS: Final = _counter(
    "vigil_sends_total", "delivery", "Sends claimed or closed: said, void, failed", "outcome"
)
CLAIMS_LOST: Final = _counter(
    "vigil_claims_lost_total", "delivery", "Claims refused because somebody had spoken"
)
DELIVERY_LAG: Final = _histogram(
    "vigil_delivery_lag_seconds", "delivery", "From a turn stored to its message said", LAG_S
)
CHANNEL_SECONDS: Final = _histogram(
    "vigil_channel_seconds",
    "delivery",
    "Attempts at a channel, by outcome",
    REQUEST_S,
    "channel",
    "outcome",
)

CHANNEL_RECEIPTS: Final = _counter(
    "vigil_channel_receipts_total",
    "delivery",
    "Closed channel messages: delivered, failed, dropped, ambiguous",
    "channel",
    "outcome",
)

# ---------------------------------------------------------------- memory

MEMORIES_SAVED: Final = _counter(
    "vigil_memories_saved_total",
    "memory",
    "Memories stored: rpc, call (a tool), turn",
    "via",
)
MEMORY_RECALL_SECONDS: Final = _histogram(
    "vigil_memory_recall_seconds",
    "memory",
    "Recalls answered: whole, or degraded (without vectors)",
    REQUEST_S,
    "mode",
    "state",
)
MEMORY_LAG: Final = _histogram(
    "vigil_memory_lag_seconds", "memory", "From a record of MEMORIES stored to SQLite", LAG_S
)
VECTORS_BEHIND: Final = _watched(
    "vigil_memory_vectors_behind", "memory", "Records in SQLite that lack their vectors"
)
MEMORY_CALLS: Final = _counter(
    "vigil_memory_calls_total",
    "memory",
    "Memory tool calls: answered, failed, closed (no longer awaited)",
    "tool",
    "outcome",
)

# ---------------------------------------------------------------- executor

EXECUTOR_CALLS: Final = _counter(
    "vigil_executor_calls_total",
    "executor",
    "Tool calls: answered, failed, ambiguous, cancelled, closed (no longer awaited)",
    "tool",
    "outcome",
)
EXECUTOR_SECONDS: Final = _histogram(
    "vigil_executor_call_seconds", "executor", "From a tool begun to its end", MODEL_S, "tool"
)
EXECUTOR_RUNNING: Final = _watched("vigil_executor_calls_running", "executor", "Running tools")
EXECUTOR_WAITING: Final = _watched(
    "vigil_executor_calls_waiting", "executor", "Accepted calls whose tool isn't running"
)

METRICS: Final[tuple[Metric, ...]] = tuple(
    value for value in list(globals().values()) if isinstance(value, Metric)
)

# ---------------------------------------------------------------- counting

Value = Callable[[], float | Mapping[str, float]]
"""A number, or one for each value of the only label."""


class Metrics:
    """What one replica counts."""

    def __init__(self, service: str, instance: str = "") -> None:
        self._labels = {"service": service, "instance": instance}
        self._registry = CollectorRegistry(auto_describe=False)
        self._made: dict[str, Counter | Histogram] = {}
        self._children: dict[tuple[str, ...], Counter | Histogram] = {}
        self._watched = _Watched()
        self._registry.register(self._watched)
        for metric in METRICS:
            if metric.service in (ALL, service) and not metric.is_watched:
                self._made[metric.name] = self._make(metric)

    def _make(self, metric: Metric) -> Counter | Histogram:
        if metric.kind == "counter":
            return Counter(metric.name, metric.help, metric.labels, registry=self._registry)
        return Histogram(
            metric.name,
            metric.help,
            metric.labels,
            registry=self._registry,
            buckets=metric.buckets,
        )

    def count(self, metric: Metric, *labels: str, by: float = 1) -> None:
        """Add to a counter."""
        child = self._children.get((metric.name, *labels)) or self._child(metric, labels)
        child.inc(by)  # type: ignore[union-attr]  # the table says that it's a counter

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Put a value into a histogram."""
        child = self._children.get((metric.name, *labels)) or self._child(metric, labels)
        child.observe(value)  # type: ignore[union-attr]  # the table says that it's a histogram

    def _child(self, metric: Metric, labels: tuple[str, ...]) -> Counter | Histogram:
        """Keep labelled ones at hand: looking one up in its parent takes three times longer."""
        parent = self._made[metric.name]
        child = parent.labels(*labels) if metric.labels else parent
        return self._children.setdefault((metric.name, *labels), child)

    def watch(self, metric: Metric, value: Value) -> None:
        """Ask `value` whenever somebody looks; for a gauge, or a counter that is kept elsewhere."""
        self._watched.values[metric.name] = (metric, value)

    def value(self, metric: Metric, *labels: str) -> float:
        """Return what stands there now; of a histogram, how many values. For tests and people."""
        suffix = "_count" if metric.kind == "histogram" else ""
        wanted = dict(zip(metric.labels, labels, strict=True))
        found = self._registry.get_sample_value(metric.name + suffix, wanted)
        return found or 0.0

    def exposition(self) -> bytes:
        """Return everything in Prometheus' text format, with `service` and `instance`."""
        return generate_latest(_Labelled(self._registry, self._labels))


class _Watched(Collector):
    """Values that are asked for."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[Metric, Value]] = {}

    def collect(self) -> Iterator[Family]:
        for metric, value in self.values.values():
            kind = GaugeMetricFamily if metric.kind == "gauge" else CounterMetricFamily
            family = kind(metric.name, metric.help, labels=metric.labels)
            found = value()
            if not isinstance(found, Mapping):
                family.add_metric((), found)
                yield family
                continue
            for label, number in found.items():
                family.add_metric((label,), number)
            yield family


class _Labelled(Collector):
    """A registry whose samples all have some more labels, and no `_created` ones."""

    def __init__(self, registry: CollectorRegistry, labels: Mapping[str, str]) -> None:
        self._registry = registry
        self._labels = labels

    def collect(self) -> Iterator[Family]:
        for family in self._registry.collect():
            family.samples = [
                sample._replace(labels={**self._labels, **sample.labels})
                for sample in family.samples
                if not sample.name.endswith("_created")
            ]
            yield family


# ---------------------------------------------------------------- many replicas as one answer


def merged(expositions: Iterable[bytes]) -> bytes:
    """Join the expositions of several replicas: each metric once, with the samples of all.

    >>> one = b'# HELP a x\\n# TYPE a gauge\\na{i="1"} 1.0\\n'
    >>> two = b'# HELP a x\\n# TYPE a gauge\\na{i="2"} 2.0\\n'
    >>> print(merged([one, two]).decode(), end="")
    # HELP a x
    # TYPE a gauge
    a{i="1"} 1.0
    a{i="2"} 2.0
    """
    heads: dict[bytes, dict[bytes, None]] = {}
    samples: dict[bytes, list[bytes]] = {}
    for text in expositions:
        name = b""
        for line in text.splitlines(keepends=True):
            if line.startswith((b"# HELP ", b"# TYPE ")):
                name = line.split(b" ", 3)[2]
                heads.setdefault(name, {}).setdefault(line)
                samples.setdefault(name, [])
            elif name and not line.startswith(b"#"):
                samples[name].append(line)
    return b"".join(b"".join((*heads[name], *samples[name])) for name in heads)


def seconds(value: float) -> float:
    """Return a duration as it may be observed: a clock that was set back gives none below 0.

    >>> seconds(-0.2), seconds(0.5)
    (0.0, 0.5)
    """
    return value if value > 0 else 0.0
