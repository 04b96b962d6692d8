"""GET /metrics: what every replica of every service counts, in one answer for Prometheus.

Each replica answers on the bus with its own exposition, labelled with `service` and `instance`;
who does not answer in the window is missing, as a target that is down would be.
"""

from __future__ import annotations

from typing import Final

from fastapi import Response

from vigil.observe import metrics

from .readiness import REPLICAS_MAX
from .routes import Admin, Shared

WINDOW_S: Final = 0.5


async def get_metrics(edge: Shared, caller: Admin) -> Response:
    """Read the metrics of all services, in Prometheus' text format."""
    answers = await edge.bus.ask_all(metrics.SUBJECT, b"", count=REPLICAS_MAX, timeout=WINDOW_S)
    return Response(
        metrics.merged(answers),
        headers={"cache-control": "no-store", "content-type": metrics.CONTENT_TYPE},
    )
