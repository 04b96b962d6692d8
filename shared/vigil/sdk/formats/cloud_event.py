"""CloudEvents as a program outside sends them: to the gateway, or on the bus. Pure.

Both ways take the same; `CloudEvent` is its schema in /openapi.json and /asyncapi.json. What comes
in is read by the gateway with an SDK, which knows the binary form, too.

Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/formats/json-format.md
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Final, Literal

import msgspec

from ...contracts import Instant
from ...subjects import KeyText

MEDIA_TYPE: Final = "application/cloudevents+json"


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An event of CloudEvents 1.0 in its JSON format. Other attributes are dropped."""

    specversion: Literal["1.0"]
    id: Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1, "maxLength": 256})]
    """With `source` the sender's name of the event: repeating it is harmless for a day."""
    source: Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1, "maxLength": 1024})]
    type: Annotated[str, msgspec.Meta(extra_json_schema={"minLength": 1, "maxLength": 256})]
    subject: KeyText
    """The session it's for: userId:agentId:threadId."""
    time: Instant | None = None
    datacontenttype: str = "application/json"
    data: Any = None
    """Told to the agent as text: a string as it is, other JSON as it came."""
    data_base64: str = ""
    """In place of `data`: text in UTF-8, in base64."""
    agentid: str = ""
    """May be left out; else the agent of `subject`."""


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
