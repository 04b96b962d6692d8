"""What comes from outside for a conversation, as a program sends it that has its person's token."""

from __future__ import annotations

import json
from uuid import uuid4

from tests.support.world import Person


async def say_from_outside(person: Person, text: str) -> None:
    """Send an event that nobody vouches for, and wait until all is done."""
    event = {
        "specversion": "1.0",
        "id": str(uuid4()),
        "source": "test",
        "type": "note",
        "subject": person.key,
        "datacontenttype": "text/plain",
        "data": text,
    }
    headers = {"content-type": "application/cloudevents+json"}
    answer = await person.http.post("/api/events", content=json.dumps(event), headers=headers)
    assert answer.status_code == 202, answer.text
    await person.world.at_rest()
