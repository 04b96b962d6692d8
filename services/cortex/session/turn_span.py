"""What is told of a session's turns: their spans, and the counts."""

from __future__ import annotations

from vigil.contracts import Turn
from vigil.observe import metrics, spans, trace
from vigil.observe.metrics import Metrics
from vigil.observe.trace import Span, Tracer


class TurnSpan:
    """The span of the turn in the making: under the event's, from when it was read."""

    def __init__(self, tracer: Tracer, counts: Metrics) -> None:
        self._tracer = tracer
        self._counts = counts
        self.current: Span = tracer.begin(None)
        """May be put back, after a turn of another event came between."""

    @property
    def header(self) -> str:
        return self.current.header

    def begin(self, parent: str | None) -> None:
        self.current = self._tracer.begin(parent)
        trace.current.set(self.current.header)

    def end(self, turn: Turn) -> None:
        """Tell about a committed turn, and begin the span of the next step of the same work."""
        span = self.current
        self._counts.count(metrics.TURNS, turn.outcome)
        self._counts.observe(metrics.TURN_SECONDS, span.lasted_s)
        if turn.outcome == "taken_over":
            self._counts.count(metrics.TAKEOVERS)
        if self._tracer.is_on:
            error = turn.outcome if turn.outcome == "failed" else ""
            self._tracer.end(span, spans.TURN, _attributes(turn), error=error)
        self.begin(span.parent)


def _attributes(turn: Turn) -> dict[str, str | int]:
    attributes: dict[str, str | int] = {
        spans.SESSION: turn.session_key,
        spans.ORDINAL: turn.ordinal,
        spans.OUTCOME: turn.outcome,
    }
    if turn.state.attempt:
        attributes[spans.ATTEMPT] = turn.state.attempt
    if turn.event is not None:
        attributes |= {spans.EVENT_ID: turn.event.id, spans.EVENT_TYPE: turn.event.type}
    return attributes
