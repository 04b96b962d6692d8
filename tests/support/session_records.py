"""Samples of what a conversation begins with, for the golden files."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from vigil import contracts
from vigil.contracts import Control, ControlPayload, Tool, UserMessage, UserMessagePayload
from vigil.contracts.calls.caller import CallerResult, CallerTools
from vigil.contracts.codec import decode_past
from vigil.contracts.past.origins import Fork, ImportedPast
from vigil.contracts.past.words import PastWords

SAMPLES: Final[dict[str, tuple[Any, Any]]] = {
    "event.fork": (
        contracts.decode_event,
        Control(
            id="e1",
            session_key="ann:vigil:t1",
            created_at=datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC),
            payload=ControlPayload(op="fork", fork=Fork(session="ann:vigil:t0", turn=8)),
        ),
    ),
    "event.past": (
        contracts.decode_event,
        Control(
            id="e1",
            session_key="ann:vigil:t1",
            created_at=datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC),
            payload=ControlPayload(
                op="past", past=ImportedPast(origin="hermes", first=3, last=9, count=12)
            ),
        ),
    ),
    "past": (
        decode_past,
        PastWords(
            id="m1",
            session_key="ann:vigil:t1",
            role="user",
            text="Remember the milk",
            at=datetime(2026, 3, 1, 9, tzinfo=UTC),
            of=32 * "a",
            number=1,
            origin="hermes",
            imported_at=datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC),
            imported_by="ann",
            is_tainted=True,
        ),
    ),
    "event.results": (
        contracts.decode_event,
        Control(
            id="e1",
            session_key="ann:vigil:t1",
            created_at=datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC),
            payload=ControlPayload(
                op="results", results=(CallerResult(call_id=32 * "c", content="21 degrees"),)
            ),
        ),
    ),
    "event.user_message.caller": (
        contracts.decode_event,
        UserMessage(
            id="e1",
            session_key="ann:vigil:t1",
            created_at=datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC),
            payload=UserMessagePayload(
                text="How warm is it?",
                caller=CallerTools(
                    tools=(
                        Tool(
                            name="caller__weather",
                            description="The weather of a town",
                            input_schema={"type": "object"},
                            risk="external",
                        ),
                    ),
                    is_one_by_one=True,
                ),
            ),
        ),
    ),
}
