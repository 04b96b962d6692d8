"""Traces: W3C ids in the header ``traceparent`` of every record, and the spans under them.

One trace runs from the request that the gateway accepted to the message that was said. The ids
of a span are needed when its work begins, because what the work writes carries them; what it
was is told in one call when the work is over. So without a collector a trace costs two random
numbers and nothing is recorded; with one, :mod:`vigil.observe.otlp` hands a finished span to the
OpenTelemetry SDK. Services know only this module, and :mod:`vigil.observe.spans` for the names.

Only ids are ever taken from a client: no baggage, no tracestate, no other header.

Source: https://www.w3.org/TR/trace-context/ (level 1, section 3.2).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Mapping, MutableMapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, TypeGuard

import msgspec

if TYPE_CHECKING:
    from .spans import SpanKind

HEADER: Final = "traceparent"
_FORM: Final = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}", re.ASCII)
_now_ns: Final = time.time_ns

current: Final[ContextVar[str | None]] = ContextVar("vigil_traceparent", default=None)
"""What this task works on, for the logs: set it, and every line has the `trace_id`."""

Attributes = Mapping[str, str | int | float | bool | tuple[str, ...]]


def new() -> str:
    """Start a trace."""
    ids = os.urandom(24).hex()
    return f"00-{ids[:32]}-{ids[32:]}-01"


def is_valid(context: str | None) -> TypeGuard[str]:
    return context is not None and _FORM.fullmatch(context) is not None


def child(parent: str | None) -> str:
    """Return a new span of the parent's trace, or a new trace if there is no valid parent."""
    if parent is None or not _FORM.fullmatch(parent):
        return new()
    return f"{parent[:36]}{os.urandom(8).hex()}{parent[52:]}"


def passed_on(context: str | None) -> str:
    """Return the context of what caused a record that has no span of its own."""
    return context if context is not None and _FORM.fullmatch(context) else new()


class Span(msgspec.Struct, frozen=True, gc=False):
    """Work that has begun. `header` goes into what it writes; `begun_ns` is wall time."""

    header: str
    parent: str | None
    """None: it begins a trace."""
    begun_ns: int

    @property
    def lasted_ns(self) -> int:
        """Nanoseconds since it began; never negative, also when the clock was set back."""
        return max(_now_ns() - self.begun_ns, 0)

    @property
    def lasted_s(self) -> float:
        return self.lasted_ns / 1e9


class Tracer:
    """Begins spans, and records nothing: what a service has when no collector is configured."""

    is_on: bool = False
    """Whether `end` is worth a call: without a collector, don't even gather attributes."""

    def begin(self, parent: str | None) -> Span:
        """Begin a span under `parent`, a context from a record of ours."""
        if parent is None or not _FORM.fullmatch(parent):
            return Span(new(), None, _now_ns())
        header = f"{parent[:36]}{os.urandom(8).hex()}{parent[52:]}"
        return Span(header, parent, _now_ns())

    def enter(self, parent: str | None) -> Span:
        """Begin a span where a trace may start: `parent` is from outside, or None.

        Here is decided whether the trace is sampled; every span below it follows.
        """
        return self.begin(parent)

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
        """Record a span that is over. Never raises, never waits.

        Args:
            name: in place of the kind's own.
            link: the context of what caused it in another trace.
            error: what went wrong, one of few words: its `error.type`; empty: nothing.
        """

    async def close(self) -> None:
        """Send what is left, for some seconds at most."""


OFF: Final = Tracer()


def add_trace_id(_: Any, __: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Add the id of the current trace to a log line (a structlog processor)."""
    context = current.get()
    if context is not None:
        event.setdefault("trace_id", context[3:35])
    return event


def new_headers() -> dict[str, str]:
    """Return the headers of a new trace, for what nothing that is stored led to."""
    return {HEADER: passed_on(new())}
