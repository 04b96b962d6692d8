"""Spans as a test sees them: recorded by the real pipeline, into memory."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from vigil.observe import otlp
from vigil.observe.trace import Tracer


class Recorded:
    """What all services recorded; complete once they have ended."""

    def __init__(self) -> None:
        self._exporters: list[InMemorySpanExporter] = []

    async def tracer_for(self, service: str, instance: str) -> Tracer:
        exporter = InMemorySpanExporter()
        self._exporters.append(exporter)
        return otlp.Recorder(service, instance, exporter)

    @property
    def spans(self) -> list[ReadableSpan]:
        """Return them in the order of their beginnings."""
        found = [span for one in self._exporters for span in one.get_finished_spans()]
        return sorted(found, key=lambda span: span.start_time or 0)

    def of(self, name: str, **attributes: Any) -> list[ReadableSpan]:
        """Return those with that name and those attributes (`__` stands for a dot)."""
        wanted = {key.replace("__", "."): value for key, value in attributes.items()}
        return [
            span
            for span in self.spans
            if span.name == name
            and wanted == {key: (span.attributes or {}).get(key) for key in wanted}
        ]

    def one(self, name: str, **attributes: Any) -> ReadableSpan:
        (found,) = self.of(name, **attributes)
        return found


def record(monkeypatch: pytest.MonkeyPatch) -> Recorded:
    """Record the spans of services that start from now on."""
    recorded = Recorded()
    monkeypatch.setattr(otlp, "tracer_for", recorded.tracer_for)
    return recorded


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


def trace_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.trace_id)


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else int(span.parent.span_id)
