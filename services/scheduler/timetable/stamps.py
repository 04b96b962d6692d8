"""What marks all that the timetable stores and asks as of one trace."""

from __future__ import annotations

from vigil.observe import trace


def headers() -> dict[str, str]:
    """Return the headers of a new trace."""
    return {trace.HEADER: trace.passed_on(trace.new())}
