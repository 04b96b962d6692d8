"""Making a broker look like :mod:`vigil.topology`: streams, buckets, durable consumers.

It may be run again on any older broker, and with other settings: what differs is updated. A
lower age takes away at once what is older, and a higher one brings nothing back.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, Literal

import msgspec
import structlog

from ..backoff import Backoff
from ..bus.buckets import bucket_config
from ..bus.bus import Bus, BusError
from ..bus.replies import ERR_CONSUMER_NOT_FOUND, ERR_STREAM_NOT_FOUND
from ..errors import VigilError, WrongLastSequence
from ..layout import LAYOUT_STREAM, LogLayout, filter_in, layout_among, layout_of, metadata_of
from ..outside.programs import Outside
from ..settings.sections import Nats, Retention
from ..topology import (
    BUCKETS,
    CONSUMERS,
    DAY_S,
    MAX_ACK_PENDING,
    SECOND_NS,
    STREAMS,
    Consumer,
    Stream,
)
from ..worker.patience import Patience, after_s

log = structlog.get_logger("vigil.broker")

UPLOADS_DAYS: Final = 1
"""Until then a message has to name what was uploaded."""
OLD_COUNTS: Final = "$KV.BUDGETS.tokens.>"
"""Accounts of versions that had one for the instance and one for each person."""
CLUSTER_TIMEOUT_S: Final = 60.0
"""How long a cluster may take to agree on a leader before it counts as away."""


def max_age_s(stream: Stream, retention: Retention) -> int:
    """Return how long `stream` keeps what it holds, in seconds; 0 keeps for good.

    >>> max_age_s(STREAMS[0], Retention(sessions_days=30)) == 30 * DAY_S
    True
    """
    days = {
        "SESSIONS": retention.sessions_days,
        "SYSTEM": retention.system_days,
        "BOARD": retention.board_days,
        "DEAD": retention.dead_days,
        "EVENTS": retention.events_days,
        "SIGNALS": retention.signals_days,
        "SLOTS": retention.slots_days,
        "MAILS": retention.mails_days,
        "UPLOADS": UPLOADS_DAYS,
        "FILES": retention.sessions_days,
    }
    return days.get(stream.name, 0) * DAY_S


async def provision(bus: Bus, retention: Retention | None = None, nats: Nats | None = None) -> None:
    """Create what the topology names, and upgrade what is there. Idempotent.

    A cluster that was just started has no leader for some seconds, and not all its nodes: that is
    waited for. A log that is there keeps its partitions, whatever `nats` says.

    Raises:
        Unavailable: no answer; with more than one replica only after `CLUSTER_TIMEOUT_S`.
        VigilError: the broker refused.
    """
    nats = nats or Nats()
    is_over = after_s(CLUSTER_TIMEOUT_S if nats.replicas > 1 else 0.0)
    patience = Patience("broker.cluster", Backoff(0.5, 0.5), is_over=is_over)
    await patience.run(lambda: _provision(bus, retention or Retention(), nats))


async def _provision(bus: Bus, retention: Retention, nats: Nats) -> None:
    layout = await _ensure_layout(bus, nats)
    for stream in STREAMS:
        age_s = max_age_s(stream, retention)
        for one in partitions_of(stream, layout):
            await _ensure_stream(bus, stream_config(one, age_s, nats.replicas))
    for bucket in BUCKETS:
        await _ensure_stream(bus, bucket_config(bucket, nats.replicas))
    for consumer in CONSUMERS:
        for each in layout.each(consumer):
            await _ensure_consumer(bus, each, "all")
    await _carry_counts(bus)


async def _carry_counts(bus: Bus) -> None:
    """Take over what older versions counted of a day. Their keys of people name nobody whom an
    account could be found by: shares begin anew on the day of the upgrade."""
    stored = await bus.read("KV_BUDGETS", [OLD_COUNTS])
    for message in stored:
        day = message.subject.split(".")[3]
        if message.data and message.subject == f"$KV.BUDGETS.tokens.{day}":
            with contextlib.suppress(WrongLastSequence):  # taken over before
                await bus.publish(f"$KV.BUDGETS.{day}.instance.all", message.data, expect=0)
    if stored:
        await bus.api("STREAM.PURGE.KV_BUDGETS", {"filter": OLD_COUNTS})


async def _ensure_layout(bus: Bus, nats: Nats) -> LogLayout:
    """Return the layout of what is there, or fix that of what is begun now."""
    try:
        current = (await bus.api(f"STREAM.INFO.{LAYOUT_STREAM}", {}))["config"]
    except BusError as error:
        if error.code != ERR_STREAM_NOT_FOUND:
            raise
        # Its bucket may be lost or younger than the log, which then mustn't be begun anew.
        names = (await bus.api("STREAM.NAMES", {}))["streams"] or ()
        layout = layout_among(names, nats.partitions)
        bucket = next(one for one in BUCKETS if f"KV_{one.name}" == LAYOUT_STREAM)
        config = bucket_config(bucket, nats.replicas) | {"metadata": metadata_of(layout)}
        await bus.api(f"STREAM.CREATE.{LAYOUT_STREAM}", config)
        return layout
    layout = layout_of(current)
    if layout.partitions != nats.partitions:
        log.info(
            "partitions stay",
            action="broker.partitions",
            partitions=layout.partitions,
            wanted=nats.partitions,
        )
    return layout


def partitions_of(stream: Stream, layout: LogLayout) -> tuple[Stream, ...]:
    """Return the streams that stand behind one of the topology."""
    return tuple(
        msgspec.structs.replace(one, subjects=tuple(filter_in(one.name, s) for s in one.subjects))
        for name in layout.streams(stream.name)
        for one in (msgspec.structs.replace(stream, name=name),)
    )


async def provision_outside(bus: Bus, credentials: Iterable[Outside]) -> None:
    """Create the durable consumers of outside programs; each begins where its credential says, or
    with what comes from now on.

    Raises:
        BusError, Unavailable: the broker refused, or doesn't answer.
    """
    for credential in credentials:
        await _ensure_consumer(bus, credential.consumer, credential.since or "new")


async def remove_outside(bus: Bus, credential: Outside) -> None:
    """Delete the consumer of an outside program; harmless if there is none. Raises: BusError."""
    consumer = credential.consumer
    try:
        await bus.api(f"CONSUMER.DELETE.{consumer.stream}.{consumer.name}", {})
    except BusError as error:
        if error.code != ERR_CONSUMER_NOT_FOUND:
            raise


async def _ensure_consumer(
    bus: Bus, consumer: Consumer, begin: Literal["all", "new"] | datetime
) -> None:
    config = {
        "durable_name": consumer.name,
        "name": consumer.name,
        "ack_policy": "explicit",
        "ack_wait": int(consumer.ack_wait_s * SECOND_NS),
        **_begin(begin),
        "replay_policy": "instant",
        "max_ack_pending": MAX_ACK_PENDING,
        "max_deliver": -1,
        "headers_only": consumer.headers_only,
        **_filters([filter_in(consumer.stream, one) for one in consumer.filters]),
    }
    await bus.api(
        f"CONSUMER.DURABLE.CREATE.{consumer.stream}.{consumer.name}",
        {"stream_name": consumer.stream, "config": config},
    )


def _begin(begin: Literal["all", "new"] | datetime) -> dict[str, str]:
    if isinstance(begin, datetime):
        return {"deliver_policy": "by_start_time", "opt_start_time": begin.isoformat()}
    return {"deliver_policy": begin}


def _filters(filters: Sequence[str]) -> dict[str, Any]:
    if len(filters) == 1:
        return {"filter_subject": filters[0]}
    return {"filter_subjects": list(filters)}


def stream_config(stream: Stream, age_s: int, replicas: int) -> dict[str, Any]:
    """Return what the broker is to know of a stream."""
    config: dict[str, Any] = {
        "name": stream.name,
        "subjects": list(stream.subjects),
        "retention": "interest" if stream.is_consumed else "limits",
        "storage": "file",
        "discard": "new" if stream.is_refusing else "old",
        "max_age": age_s * SECOND_NS,
        "max_msgs": -1,
        "max_bytes": stream.bytes_max,
        "max_msgs_per_subject": stream.per_subject_max,
        "discard_new_per_subject": stream.is_refusing and stream.per_subject_max > 0,
        "max_msg_size": stream.message_bytes_max,
        "max_consumers": stream.max_consumers,
        "duplicate_window": int(stream.duplicate_window_s * SECOND_NS),
        "num_replicas": replicas,
        "allow_direct": False,
    }
    if stream.has_batches:
        config["allow_atomic"] = True
    if stream.has_schedules:
        config["allow_msg_schedules"] = True
        config["allow_rollup_hdrs"] = True
    return config


async def _ensure_stream(bus: Bus, config: dict[str, Any]) -> None:
    name = config["name"]
    try:
        current = (await bus.api(f"STREAM.INFO.{name}", {}))["config"]
    except BusError as error:
        if error.code != ERR_STREAM_NOT_FOUND:
            raise
        await bus.api(f"STREAM.CREATE.{name}", config)
        return
    if all(current.get(key, False) == value for key, value in config.items()):
        return
    try:
        if config.get("discard_new_per_subject") and not current.get("discard_new_per_subject"):
            config = await _without_loss(bus, current, config)
        await bus.api(f"STREAM.UPDATE.{name}", current | config)
    except BusError as error:
        raise VigilError(f"stream {name} can't be upgraded: {error}") from error


async def _without_loss(
    bus: Bus, current: dict[str, Any], config: dict[str, Any]
) -> dict[str, Any]:
    """Prepare a stream for a bound on each subject -> the configuration that costs nothing now.

    With the bound the broker drops what is above it, also what nobody has taken in (measured). So
    what was taken in goes first, and a subject that has too much waiting puts the bound off until
    the next provisioning.
    """
    name, bound = config["name"], config["max_msgs_per_subject"]
    for consumer in CONSUMERS:  # without one, nobody is interested in what is there
        if consumer.stream == name:
            await _ensure_consumer(bus, consumer, "all")
    loose = {
        key: current.get(key, default)
        for key, default in (("max_msgs_per_subject", -1), ("discard_new_per_subject", False))
    }
    await bus.api(f"STREAM.UPDATE.{name}", current | config | loose)
    state = (await bus.api(f"STREAM.INFO.{name}", {"subjects_filter": ">"}))["state"]
    waiting = max((state.get("subjects") or {}).values(), default=0)
    if waiting <= bound:
        return config
    log.warning("bound put off", action="broker.bound", stream=name, waiting=waiting, bound=bound)
    return config | loose
