"""Metrics: declared once, counted by each replica for itself, read in one answer."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from socket import gethostname

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.agent import ask, follow_up
from tests.support.gateway import assert_problem
from tests.support.stack import running_stack
from tests.support.world import World, running_world
from vigil.observe import metrics, replica
from vigil.observe.metrics import METRICS, Metrics

FEW: dict[str, int] = {
    "channel": 20, "direction": 4, "kind": 40, "lacked": 2, "method": 8, "mode": 3, "model": 10,
    "outcome": 15, "reason": 3, "route": 60, "state": 3, "status": 20, "tool": 7, "type": 6,
    "version": 1, "via": 3,
}  # fmt: skip
"""Every label that there may be, and about how many values it can have."""

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@pytest.fixture
async def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[World]:
    async with running_world(tmp_path, monkeypatch, gateway={"rate_burst": 100_000}) as world:
        yield world


def parsed(text: str) -> Samples:
    """Read an exposition as Prometheus would; fails if a metric comes twice."""
    families = list(text_string_to_metric_families(text))
    names = [family.name for family in families]
    assert len(names) == len(set(names)), "a metric must come once, with all its samples"
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
    }


def total(samples: Samples, name: str, **labels: str) -> float:
    """Add up the samples of that name and those labels."""
    wanted = set(labels.items())
    return sum(value for (one, has), value in samples.items() if one == name and wanted <= has)


async def scrape(client: httpx2.AsyncClient) -> Samples:
    answer = await client.get("/metrics")
    assert answer.status_code == 200
    return parsed(answer.text)


# ---------------------------------------------------------------- the table


def test_every_metric_is_named_as_prometheus_asks() -> None:
    """X-7: prefix, base units, `_total` on counters; only labels with few values."""
    names = [metric.name for metric in METRICS]
    assert len(names) == len(set(names))
    for metric in METRICS:
        assert re.fullmatch(r"vigil(_[a-z]+)+", metric.name)
        assert metric.name.endswith("_total") == (metric.kind == "counter")
        assert metric.name.endswith("_seconds") == (metric.kind == "histogram")
        assert bool(metric.buckets) == (metric.kind == "histogram")
        assert metric.is_watched or metric.kind != "gauge"
        assert set(metric.labels) <= set(FEW), "a label without bounds"
        assert metric.help


def test_services_of_one_process_count_apart() -> None:
    """X-7: a registry for each; no global state."""
    one, two = Metrics("delivery", "1"), Metrics("delivery", "2")
    one.count(metrics.SENDS, "said", by=3)
    two.count(metrics.SENDS, "said")
    assert one.value(metrics.SENDS, "said") == 3
    both = parsed(metrics.merged([one.exposition(), two.exposition()]).decode())
    assert total(both, "vigil_sends_total", instance="1", outcome="said") == 3
    assert total(both, "vigil_sends_total", instance="2", outcome="said") == 1
    assert total(both, "vigil_sends_total", service="delivery") == 4


async def test_a_replica_keeps_its_name_over_a_restart(tmp_path: Path) -> None:
    """X-7: a series goes on; two replicas of one home are told apart, and a free name is taken."""

    def name(replica: str) -> str:
        told = parsed(stack.contexts[replica].metrics.exposition().decode())
        (found,) = {dict(labels)["instance"] for _, labels in told}
        return found

    async with running_stack(tmp_path, ("delivery", "delivery:2")) as stack:
        before = {replica: name(replica) for replica in ("delivery", "delivery:2")}
        ids = {one.instance for one in stack.contexts.values()}
        await stack.stop("delivery")
        await stack.start("delivery")
        assert name("delivery") == before["delivery"] == f"delivery@{gethostname()}"
        assert before["delivery:2"] == f"{before['delivery']}-2"
        assert stack.contexts["delivery"].instance not in ids, "leases and claims are of a run"


def test_where_nothing_can_be_written_the_process_tells(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("in the way")
    with replica.named("cortex", tmp_path) as one:
        assert one == f"cortex@{gethostname()}:{os.getpid()}"


def test_a_service_tells_only_its_own_metrics() -> None:
    told = {name for name, _ in parsed(Metrics("scheduler").exposition().decode())}
    assert "vigil_timer_lateness_seconds_count" not in told, "no value of its label yet"
    assert "vigil_dead_letters_total" in told
    assert not [name for name in told if name.startswith(("vigil_turns", "vigil_claims"))]
    assert not [name for name in told if name.endswith("_created")]


def test_answers_of_many_replicas_are_joined_by_metric() -> None:
    one = Metrics("gateway", "1")
    two = Metrics("cortex", "2")
    for each in (one, two):
        each.watch(metrics.READY, lambda: {"0": 1.0})
    text = metrics.merged([one.exposition(), two.exposition(), b"", b"rubbish\n\xff\n"]).decode()
    samples = parsed(text)
    assert total(samples, "vigil_ready") == 2
    assert text.count("# TYPE vigil_ready ") == 1


# ---------------------------------------------------------------- over everything that is real


async def test_prometheus_reads_all_services_with_an_admins_token(world: World) -> None:
    """X-7, X-4: GET /metrics has every replica of every service; only an admin may read it."""
    ann = await world.person()
    await ann.exchange("hello")
    assert_problem(await ann.http.get("/metrics"), 403)
    assert_problem(await (await world.gate.http()).get("/metrics"), 401)
    await world.stack.start("cortex:2")
    admin = await world.admin_client()
    answer = await admin.get("/metrics")
    assert answer.headers["content-type"] == metrics.CONTENT_TYPE
    assert answer.headers["cache-control"] == "no-store"
    samples = parsed(answer.text)
    assert {
        service: total(samples, "vigil_ready", service=service)
        for service in ("gateway", "cortex", "memory", "scheduler", "delivery")
    } == {"gateway": 1, "cortex": 2, "memory": 1, "scheduler": 1, "delivery": 1}


async def test_what_a_conversation_counts(world: World) -> None:
    """X-7: one message and its follow-up, seen in every service."""
    ann = await world.person()
    await ann.exchange(ask(follow_up("a", 30, "hello again")))
    await world.advance(30)
    await ann.until_frames(2)
    found = await scrape(await world.admin_client())
    ann_turns = len(ann.talk.turns)
    assert total(found, "vigil_events_accepted_total", type="user_message") == 1
    assert total(found, "vigil_connections_open") == 1
    route = "/api/sessions/{key}/messages"
    assert (
        total(found, "vigil_http_request_seconds_count", route=route, method="POST", status="202")
        == 1
    )
    assert total(found, "vigil_turns_total") >= ann_turns  # the world's nudge is a session too
    assert total(found, "vigil_turns_total", outcome="continued") == 1
    assert total(found, "vigil_turns_total", outcome="answered") == 2
    assert total(found, "vigil_model_call_seconds_count", outcome="answered") == 2
    assert total(found, "vigil_model_tokens_total", direction="output") == 2
    assert total(found, "vigil_sessions_open") >= 1
    assert total(found, "vigil_scheduler_active") == 1
    assert total(found, "vigil_timer_lateness_seconds_count", kind="follow_up") == 1
    assert total(found, "vigil_timers_open") == 0
    assert total(found, "vigil_sends_total", outcome="said") == 2
    assert total(found, "vigil_delivery_lag_seconds_count") == 2
    assert total(found, "vigil_dead_letters_total") == 0


async def test_what_is_refused_void_or_poison_is_counted(world: World) -> None:
    """X-7, X-6, S-6"""
    ann = await world.person()
    path = f"/api/sessions/{ann.key}/messages"
    assert_problem(await ann.http.post(path, json={"text": ""}), 422)
    assert_problem(await ann.http.get("/api/nothing/of/the/kind"), 404)
    await world.admin.publish(ann.talk.key.in_user, b"no event at all", {"Nats-Msg-Id": "x"})
    await world.until(lambda: len(ann.talk.turns) == 1)
    found = await scrape(await world.admin_client())
    assert total(found, "vigil_events_refused_total", reason="invalid") == 1
    assert total(found, "vigil_http_request_seconds_count", route="none", status="404") == 1
    assert total(found, "vigil_dead_letters_total", service="cortex") == 1


async def test_a_label_is_never_what_a_client_chose(world: World) -> None:
    """X-7, S15: paths, methods, ids, texts and tokens of clients stay out."""
    zoe = await world.person("zoe:vigil:mauve-thread")
    await zoe.exchange("hippopotamus")
    await world.gate.raw(b"MAUVE / HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
    await zoe.http.get("/mauve/path")
    answer = await (await world.admin_client()).get("/metrics")
    for secret in ("mauve", "MAUVE", "hippopotamus", "zoe", zoe.token):
        assert secret not in answer.text


@pytest.mark.usefixtures("own_broker")
async def test_a_lost_broker_is_counted(world: World) -> None:
    """X-7: every service's connection came back once."""
    old = world.stack.broker.pid
    world.stack.broker.watch()
    world.stack.broker.kill()
    await world.until(lambda: world.stack.broker.pid != old)
    services = list(world.stack.contexts.values())
    await world.until(lambda: all(one.bus.reconnects == 1 for one in services))
    for one in services:
        assert one.metrics.exposition().decode().count("vigil_bus_reconnects_total{") == 1
        assert total(parsed(one.metrics.exposition().decode()), "vigil_bus_reconnects_total") == 1


async def test_the_standby_scheduler_says_that_it_is_one(world: World) -> None:
    """X-7"""
    await world.stack.start("scheduler:2")
    admin = await world.admin_client()
    found = await scrape(admin)
    assert total(found, "vigil_ready", service="scheduler") == 2
    assert total(found, "vigil_scheduler_active") == 1
    await world.stack.stop("scheduler")
    async with asyncio.timeout(20):
        while total(await scrape(admin), "vigil_scheduler_active") != 1:
            await asyncio.sleep(0.1)
