"""Examples of the records in the AsyncAPI document: the golden files, as they stand there.

They are data of the package because the document is served wherever Vigil runs, without the tests
beside it; a test compares them with `tests/golden`.
"""

from __future__ import annotations

from typing import Any, Final

from .examples_memory import EXAMPLES_OF_MEMORY
from .examples_work import EXAMPLES_OF_HANDS

_OF_OTHERS: Final = EXAMPLES_OF_HANDS | EXAMPLES_OF_MEMORY
EXAMPLES: Final[dict[str, Any]] = _OF_OTHERS | {
    "cloud_event": {
        "specversion": "1.0",
        "id": "42",
        "source": "https://ci.example/7",
        "type": "build.failed",
        "subject": "ann:vigil:t1",
        "time": "2026-11-20T09:00:00.123456Z",
        "data": {"status": "red"},
    },
    "attempt": {
        "effect_id": "ffffffffffffffffffffffffffffffff",
        "session_key": "ann:vigil:t1",
        "channel": "ops",
        "number": 2,
        "state": "refused",
        "at": "2026-11-20T09:00:00.123456Z",
        "reason": "503 Service Unavailable",
        "status": 503,
        "next_at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
    },
    "dead_letter": {
        "id": "SESSIONS-9",
        "service": "cortex",
        "stream": "SESSIONS",
        "subject": "session.vigil.ann.t1.in.external",
        "seq": 9,
        "cause": "not JSON",
        "data": "/wA=",
        "at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
    },
    "dead_letter_end": {
        "letter_id": "SESSIONS-9",
        "action": "requeued",
        "by": "ann",
        "at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
    },
    "dispatch": {
        "effect_id": "ffffffffffffffffffffffffffffffff",
        "session_key": "ann:vigil:t1",
        "channel": "ops",
        "said_seq": 9,
        "at": "2026-11-20T09:00:00.123456Z",
        "requeued_by": "ann",
        "v": 1,
    },
    "event.control": {
        "type": "control",
        "id": "e1",
        "session_key": "ann:vigil:t1",
        "created_at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
        "payload": {"op": "stop", "reason": "enough"},
    },
    "event.external": {
        "type": "external",
        "id": "e1",
        "session_key": "ann:vigil:t1",
        "created_at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
        "payload": {
            "source": "hook:ci",
            "content": '{"status":"red"}',
            "kind": "build.failed",
            "origin": "https://ci.example/7",
            "origin_id": "42",
            "occurred_at": "2026-11-20T09:00:00.123456Z",
        },
    },
    "event.timer": {
        "type": "timer",
        "id": "e1",
        "session_key": "ann:vigil:t1",
        "created_at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
        "payload": {"timer_id": "tea", "generation": 2, "fire_at": "2026-11-20T09:00:00.123456Z"},
    },
    "event.user_message": {
        "type": "user_message",
        "id": "e1",
        "session_key": "ann:vigil:t1",
        "created_at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
        "payload": {"text": "hi", "is_keyed": True},
    },
    "receipt": {
        "effect_id": "ffffffffffffffffffffffffffffffff",
        "session_key": "ann:vigil:t1",
        "outcome": "void",
        "at": "2026-11-20T09:00:00.123456Z",
        "reason": "the person spoke first",
        "v": 1,
    },
    "said": {
        "id": "ffffffffffffffffffffffffffffffff",
        "session_key": "ann:vigil:t1",
        "text": "Hi",
        "at": "2026-11-20T09:00:00.123456Z",
        "caused_by": "e1",
        "turn_seq": 8,
        "tag": "Agent follow-up",
        "is_autonomous": True,
        "v": 1,
    },
    "signal": {
        "id": "SESSIONS-8-message.blocked",
        "kind": "message.blocked",
        "agent": "vigil",
        "owner": "ann",
        "at": "2026-11-20T09:00:00.123456Z",
        "source": {"stream": "SESSIONS", "seq": 8},
        "session_key": "ann:vigil:t1",
        "caused_by": "e1",
        "subject": "tea",
        "text": "3 messages in a row without an answer",
        "data": {"code": "cap"},
        "v": 1,
    },
    "turn": {
        "id": "turn-1",
        "session_key": "ann:vigil:t1",
        "ordinal": 2,
        "event": {"id": "e1", "seq": 7, "type": "user_message"},
        "outcome": "continued",
        "state": {
            "position": 7,
            "turns": 2,
            "effects": 3,
            "fence": 7,
            "last_send": "ffffffffffffffffffffffffffffffff",
            "follow_ups": {
                "tea": {
                    "generation": 2,
                    "fire_at": "2026-11-20T09:00:00.123456Z",
                    "reason": "look",
                    "message": "Hey",
                    "keep": True,
                }
            },
            "loop": {
                "cause": {"id": "e1", "seq": 7, "type": "user_message"},
                "fence": 7,
                "begun_at": "2026-11-20T09:00:00.123456Z",
                "is_direct": True,
                "calls": 1,
                "retry": {
                    "attempt": 1,
                    "generation": 2,
                    "due_at": "2026-11-20T09:00:00.123456Z",
                    "reason": "529",
                },
            },
            "queue": [[9, "timer"]],
            "history_from": 5,
        },
        "created_at": "2026-11-20T09:00:00.123456Z",
        "rows": [
            {
                "role": "user",
                "blocks": [{"type": "text", "text": "Привет 👋"}],
                "at": "2026-11-20T09:00:00.123456Z",
                "source": "person",
            },
            {
                "role": "assistant",
                "blocks": [
                    {"type": "opaque", "data": {"type": "thinking", "signature": "s"}},
                    {
                        "type": "tool_use",
                        "id": "c1",
                        "name": "schedule_followup",
                        "input": {"delay_seconds": 20},
                    },
                ],
                "at": "2026-11-20T09:00:00.123456Z",
                "source": "agent",
            },
            {
                "role": "user",
                "blocks": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}],
                "at": "2026-11-20T09:00:00.123456Z",
                "source": "tool",
            },
        ],
        "effects": [
            {
                "type": "send_message",
                "id": "ffffffffffffffffffffffffffffffff",
                "ordinal": 2,
                "payload": {"text": "Hi", "caused_by": "e1", "fence": 7, "tag": "Agent follow-up"},
            },
            {
                "type": "schedule_timer",
                "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "ordinal": 3,
                "payload": {
                    "timer_id": "tea",
                    "generation": 2,
                    "fire_at": "2026-11-20T09:00:00.123456Z",
                },
            },
        ],
        "notes": [{"code": "void", "text": "the person spoke first", "subject": "tea"}],
        "usage": [{"model": "rehearsal", "input_tokens": 3, "output_tokens": 4}],
        "ended": ["e0"],
        "v": 1,
    },
}
"""Record (as the golden files are named) -> an example of its newest version."""
