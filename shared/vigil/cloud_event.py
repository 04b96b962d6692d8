"""CloudEvents as a program outside sends them: to the gateway, or on the bus. Pure.

Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

MEDIA_TYPE: Final = "application/cloudevents+json"


def cloud_event(
    session_key: str,
    kind: str,
    data: Any,
    *,
    source: str,
    id_: str,
    occurred_at: datetime | None = None,
) -> dict[str, Any]:
    """Return an event in the JSON format.

    Args:
        kind: the attribute `type`: ``build.failed``.
        data: whatever JSON can hold; a string is told to the agent as it is.
        source: who tells it, in the sender's own terms: ``https://ci.example/7``.
        id_: with `source` the event's name: one that is sent again counts once.
        occurred_at: aware.

    >>> cloud_event("ann:vigil:t1", "rain", "soon", source="weather", id_="1")["subject"]
    'ann:vigil:t1'
    """
    event = {
        "specversion": "1.0",
        "id": id_,
        "source": source,
        "type": kind,
        "subject": session_key,
        "datacontenttype": "text/plain" if isinstance(data, str) else "application/json",
        "data": data,
    }
    return event if occurred_at is None else event | {"time": occurred_at.isoformat()}
