"""Finished spans to a collector, over OTLP/HTTP: the one home of the OpenTelemetry SDK.

It is on when ``OTEL_EXPORTER_OTLP_ENDPOINT`` (or the one for traces) is set and the extra `otel`
is installed; the SDK's other variables hold as documented there: resource attributes, headers,
certificates, compression, samplers, the batch processor. Only HTTP is spoken.

Services of one process have a pipeline each: a resource of its own (``vigil-{service}``), a
queue, a thread that sends. A span is built when it is over, straight into what the exporter
takes: starting and ending one with the SDK's tracer costs four times as much (measured, 22 us to
5 us), and nothing of ours needs what it does in between. A full queue drops spans; a collector
that is away costs nothing but them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import structlog

from .. import __version__, distribution
from . import trace
from .spans import ERROR_TYPE, Direction, SpanKind
from .trace import Attributes, Span, Tracer

if TYPE_CHECKING:
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import SpanContext

log = structlog.get_logger("vigil.trace")

ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
CLOSE_TIMEOUT_S: Final = 3.0
"""How long the end of a service waits for a collector that does not answer."""


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Tell whether the environment asks for traces.

    >>> is_wanted({}), is_wanted({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318"})
    (False, True)
    """
    is_disabled = environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    has_exporter = environ.get("OTEL_TRACES_EXPORTER", "otlp") != "none"
    return any(environ.get(name) for name in ENDPOINTS) and has_exporter and not is_disabled


async def tracer_for(service: str, instance: str) -> Tracer:
    """Return the tracer of a service, as the environment says."""
    if not is_wanted(os.environ):
        return trace.OFF
    try:
        # Importing the SDK takes most of a second; the other services go on meanwhile.
        return await asyncio.to_thread(_recorder, service, instance)
    except ImportError as error:
        log.warning(
            "traces are wanted, but not installed",
            action="trace.unavailable",
            service=service,
            error=str(error),
            advice=distribution.command_for("otel"),
        )
    except Exception as error:  # a variable that the SDK can't read must not stop a service
        log.error("no traces", action="trace.unavailable", service=service, error=repr(error))
    return trace.OFF


def _recorder(service: str, instance: str) -> Recorder:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return Recorder(service, instance, OTLPSpanExporter())


def resource_of(service: str, instance: str) -> Resource:
    """Return the resource of a replica; ``OTEL_SERVICE_NAME`` names all services alike."""
    from opentelemetry.sdk.resources import Resource

    named = os.environ.get("OTEL_SERVICE_NAME")
    return Resource.create(
        {
            "service.name": named or f"vigil-{service}",
            "service.namespace": "vigil",
            "service.instance.id": instance,
            "service.version": __version__,
            "vigil.service": service,
        }
    )


def _quick(resource: Resource) -> Resource:
    """Return the same resource with a hash that is computed once.

    The exporter groups spans by resource, and the SDK's own hash writes it out as JSON each time:
    half of what exporting a span costs (measured).
    """
    from opentelemetry.sdk.resources import Resource

    class Hashed(Resource):
        _hash = hash(resource)

        def __hash__(self) -> int:
            return self._hash

    return Hashed(dict(resource.attributes), resource.schema_url)


class Recorder(Tracer):
    """Records the spans of one service."""

    is_on = True

    def __init__(self, service: str, instance: str, exporter: SpanExporter) -> None:
        from opentelemetry import trace as api
        from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import DEFAULT_ON, Decision
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope

        provider = TracerProvider(
            resource=resource_of(service, instance), shutdown_on_exit=False
        )  # it reads the variables about sampling
        self._resource = _quick(provider.resource)
        self._sampler = provider.sampler
        self._sample = Decision.RECORD_AND_SAMPLE
        # Everything, unless the caller says no: that is what a header says by itself.
        self._is_plain = provider.sampler is DEFAULT_ON
        self._scope = InstrumentationScope("vigil", __version__)
        self._exporter = exporter
        self._processor = BatchSpanProcessor(exporter)
        self._api = api
        self._make = ReadableSpan
        self._sampled = api.TraceFlags(api.TraceFlags.SAMPLED)
        self._unset = api.Status()
        self._directions: dict[Direction, api.SpanKind] = {
            "server": api.SpanKind.SERVER,
            "client": api.SpanKind.CLIENT,
            "producer": api.SpanKind.PRODUCER,
            "consumer": api.SpanKind.CONSUMER,
            "internal": api.SpanKind.INTERNAL,
        }

    def enter(self, parent: str | None) -> Span:
        span = self.begin(parent)
        if self._is_plain:
            return span
        header = span.header
        context = None
        if span.parent is not None:
            remote = self._api.NonRecordingSpan(self._context_of(span.parent))
            context = self._api.set_span_in_context(remote)
        decided = self._sampler.should_sample(context, int(header[3:35], 16), "vigil")
        flags = "01" if decided.decision is self._sample else "00"
        return Span(f"{header[:53]}{flags}", span.parent, span.begun_ns)

    def end(
        self,
        span: Span,
        kind: SpanKind,
        attributes: Attributes,
        *,
        name: str = "",
        link: str | None = None,
        error: str = "",
    ) -> None:
        header = span.header
        if not int(header[53:], 16) & 1:
            return
        self._processor.on_end(
            self._make(
                name=name or kind.name,
                context=self._context_of(header, is_remote=False),
                parent=None if span.parent is None else self._context_of(span.parent),
                resource=self._resource,
                attributes={**attributes, ERROR_TYPE: error} if error else attributes,
                links=(self._api.Link(self._context_of(link)),) if trace.is_valid(link) else (),
                kind=self._directions[kind.direction],
                status=self._api.Status(self._api.StatusCode.ERROR, error)
                if error
                else self._unset,
                start_time=span.begun_ns,
                end_time=span.begun_ns + span.lasted_ns,
                instrumentation_scope=self._scope,
            )
        )

    def _context_of(self, header: str, *, is_remote: bool = True) -> SpanContext:
        flags = self._sampled if int(header[53:], 16) & 1 else None
        return self._api.SpanContext(
            int(header[3:35], 16), int(header[36:52], 16), is_remote, flags
        )

    async def close(self) -> None:
        # Ending the processor sends what is queued, however long the collector takes to fail;
        # ending the exporter cuts that short.
        ended = asyncio.Event()
        loop = asyncio.get_running_loop()

        def end() -> None:
            self._processor.shutdown()  # type: ignore[no-untyped-call]
            with contextlib.suppress(RuntimeError):  # the loop is over
                loop.call_soon_threadsafe(ended.set)

        threading.Thread(target=end, name="vigil-trace-end", daemon=True).start()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await ended.wait()
        except TimeoutError:
            log.warning("spans were lost: no answer from the collector", action="trace.lost")
            self._exporter.shutdown()
