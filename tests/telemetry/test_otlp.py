"""The way to a collector: OTLP over HTTP, and what a missing or broken one costs."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.collector import Collector, attributes_of, resource_of
from tests.support.stack import Stack, running_stack
from tests.support.talk import Talk
from vigil.observe import otlp, spans, trace
from vigil.processes.process import start

ANN = "ann:vigil:t1"
ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "20")


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector().running() as running:
        yield running


async def say(stack: Stack, text: str = "hello") -> None:
    talk = await Talk.open(stack, ANN)
    await talk.ended(await talk.say(text))
    await talk.until(lambda: talk.said)
    await talk.close()


async def test_spans_arrive_at_a_collector_each_from_its_own_service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    """X-7: services of one process are told apart by their resources; all is sent at the end."""
    monkeypatch.setenv(ENDPOINT, collector.url)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=acme")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    # Nothing is sent while it runs: what arrives was flushed by the end.
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")
    async with running_stack(tmp_path, ("cortex", "delivery")) as stack:
        await say(stack)
        assert collector.requests == []
    found = collector.spans()
    (turn,) = [span for span in found["vigil-cortex"] if span.name == "cortex.turn"]
    (call,) = [span for span in found["vigil-cortex"] if span.name.startswith("chat ")]
    (said,) = found["vigil-delivery"]
    assert call.parent_span_id == said.parent_span_id == turn.span_id
    assert turn.trace_id == call.trace_id == said.trace_id
    assert attributes_of(said)[spans.SESSION] == ANN
    assert attributes_of(call)[spans.GEN_AI_OPERATION] == "chat"
    resources = [resource_of(part) for one in collector.requests for part in one.resource_spans]
    assert {one["vigil.service"] for one in resources} == {"cortex", "delivery"}
    assert {one["deployment.environment"] for one in resources} == {"test"}
    assert len({one["service.instance.id"] for one in resources}) == 2
    assert {headers["x-tenant"] for headers in collector.headers} == {"acme"}


async def test_a_service_name_of_the_operator_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    """X-7: OTEL_SERVICE_NAME is honoured; `vigil.service` still tells the services apart."""
    monkeypatch.setenv(ENDPOINT, collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "house")
    async with running_stack(tmp_path, ("cortex", "delivery")) as stack:
        await say(stack)
    resources = [resource_of(part) for one in collector.requests for part in one.resource_spans]
    assert {one["service.name"] for one in resources} == {"house"}
    assert {one["vigil.service"] for one in resources} == {"cortex", "delivery"}


async def test_a_sampler_of_the_operator_is_asked_where_a_trace_begins(
    monkeypatch: pytest.MonkeyPatch, collector: Collector
) -> None:
    """X-7: with a ratio of 0 nothing is recorded, and what is on the bus says so."""
    monkeypatch.setenv(ENDPOINT, collector.url)
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "parentbased_traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0")
    tracer = await otlp.tracer_for("gateway", "1")
    span = tracer.enter(None)
    assert span.header.endswith("-00")
    tracer.end(span, spans.ACCEPT, {})
    tracer.end(tracer.begin(span.header), spans.TURN, {})
    caller = f"{trace.new()[:-2]}01"
    joined = tracer.enter(caller)
    tracer.end(joined, spans.ACCEPT, {})
    await tracer.close()
    (only,) = collector.spans()["vigil-gateway"]
    assert only.parent_span_id.hex() == caller[36:52]


@pytest.mark.parametrize("status", [503, 400])
async def test_a_collector_that_refuses_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    """X-7: the answer comes as ever, and the end takes a few seconds at most."""
    monkeypatch.setattr(otlp, "CLOSE_TIMEOUT_S", 0.3)
    with Collector(status).running() as broken:
        monkeypatch.setenv(ENDPOINT, broken.url)
        await _answers_and_ends(tmp_path)


async def test_a_collector_that_hangs_delays_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-7: spans leave on a thread of their own; a turn never waits for it."""
    with Collector().running() as hanging:
        hanging.release.clear()
        monkeypatch.setenv(ENDPOINT, hanging.url)
        await _answers_and_ends(tmp_path, until=hanging)


async def test_a_collector_that_is_not_there_breaks_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """X-7"""
    monkeypatch.setattr(otlp, "CLOSE_TIMEOUT_S", 0.3)
    with Collector().running() as gone:
        url = gone.url
    monkeypatch.setenv(ENDPOINT, url)
    await _answers_and_ends(tmp_path)


async def _answers_and_ends(home: Path, until: Collector | None = None) -> None:
    async with running_stack(home, ("cortex", "delivery")) as stack:
        await say(stack, "one")
        if until is not None:
            assert await asyncio.to_thread(until.is_hanging.wait, 10)
        begun_s = time.monotonic()
        await say(stack, "two")
        assert time.monotonic() - begun_s < 5
        begun_s = time.monotonic()
        await stack.stop("cortex")
        assert time.monotonic() - begun_s < otlp.CLOSE_TIMEOUT_S + 5


async def test_without_the_extra_a_service_runs_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """X-7: the variable may be meant for other programs of the machine."""
    monkeypatch.setenv(ENDPOINT, "http://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
    assert await otlp.tracer_for("cortex", "1") is trace.OFF
    assert "trace.unavailable" in capsys.readouterr().out


@pytest.mark.parametrize(
    "more",
    [
        {ENDPOINT: ""},
        {ENDPOINT: "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
        {ENDPOINT: "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "none"},
    ],
)
async def test_it_is_off_unless_asked_for(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, str]
) -> None:
    """X-7: without an endpoint there is no SDK, no thread, and nothing but ids."""
    for name, value in more.items():
        monkeypatch.setenv(name, value)
    tracer = await otlp.tracer_for("cortex", "1")
    assert tracer is trace.OFF
    assert not tracer.is_on
    tracer.end(tracer.enter(None), spans.TURN, {})
    await tracer.close()


async def test_the_sdk_is_not_imported_without_an_endpoint() -> None:
    """X-7: what isn't used costs nothing at start."""
    program = (
        "import asyncio, sys\n"
        "from vigil import runtime\nfrom vigil.observe import otlp\n"
        "asyncio.run(otlp.tracer_for('cortex', '1'))\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    process = await start(sys.executable, "-c", program, stdout=subprocess.PIPE, env={"PATH": ""})
    output, _ = await process.communicate()
    assert output.decode().strip() == "[]"
