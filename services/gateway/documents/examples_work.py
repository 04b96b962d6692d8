"""Examples of the records of tools, requests, jobs and the agent's own sessions: the golden files.

They are here for the same reason as those in :mod:`.examples_bus`, which has the others.
"""

from __future__ import annotations

from typing import Any, Final

EXAMPLES_OF_HANDS: Final[dict[str, Any]] = {
    "board.approval": {
        "entity": {
            "kind": "approval",
            "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "session_key": "ann:vigil:t1",
            "tool": "shell",
            "input": {"command": "rm -r build"},
            "digest": "0" * 64,
            "risk": "external",
            "reason": "outside content had a part in it",
            "asked_at": "2026-11-20T09:00:00.123456Z",
            "expires_at": "2026-11-20T09:00:00.123456Z",
            "caused_by": "e1",
            "state": "edited",
            "decided_at": "2026-11-20T09:00:00.123456Z",
            "edited": {"command": "rm -r build/cache"},
            "text": "only the cache",
            "call_id": "cccccccccccccccccccccccccccccccc",
        },
        "turn_seq": 12,
        "at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
    },
    "board.job": {
        "entity": {
            "kind": "job",
            "id": "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
            "session_key": "ann:vigil:_planner-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
            "skill": "report",
            "goal": "what was new this week",
            "tools": ["http_get"],
            "input": "https://news.example/",
            "status": "running",
            "created_at": "2026-11-20T09:00:00.123456Z",
            "started_at": "2026-11-20T09:00:00.123456Z",
            "runs": 1,
            "plan": {
                "steps": [{"tool": "http_get", "input": {"url": "https://news.example/"}}],
                "reasoning": "read it first",
            },
            "step_runs": [
                {
                    "tool": "http_get",
                    "input": {"url": "https://news.example/"},
                    "started_at": "2026-11-20T09:00:00.123456Z",
                    "completed_at": "2026-11-20T09:00:00.123456Z",
                    "error": "404 Not Found",
                    "is_tainted": True,
                    "call_id": "cccccccccccccccccccccccccccccccc",
                }
            ],
        },
        "turn_seq": 12,
        "at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
    },
    "event.approval": {
        "type": "control",
        "id": "e1",
        "session_key": "ann:vigil:t1",
        "created_at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
        "payload": {
            "op": "approval",
            "decision": {
                "approval_id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                "verdict": "edit",
                "digest": "0" * 64,
                "by": "ann",
                "input": {"command": "rm -r build/cache"},
                "text": "only the cache",
            },
        },
    },
    "event.cancel": {
        "type": "control",
        "id": "e1",
        "session_key": "ann:vigil:_worker-dddddddddddddddddddddddddddddddd",
        "created_at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
        "payload": {"op": "cancel", "reason": "the person stopped it"},
    },
    "event.start": {
        "type": "control",
        "id": "e1",
        "session_key": "ann:vigil:_worker-dddddddddddddddddddddddddddddddd",
        "created_at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
        "payload": {
            "op": "start",
            "start": {
                "prompt": "Look for the cause",
                "parent": "ann:vigil:t1",
                "call_id": "dddddddddddddddddddddddddddddddd",
                "parent_turn": 8,
                "root_id": "e1",
                "depth": 1,
                "allowance": 2,
                "is_ordered": True,
            },
        },
    },
    "event.status": {
        "type": "control",
        "id": "e1",
        "session_key": "ann:vigil:t1",
        "created_at": "2026-11-20T09:00:00.123456Z",
        "v": 1,
        "payload": {
            "op": "status",
            "status": {
                "call_id": "dddddddddddddddddddddddddddddddd",
                "state": "running",
                "text": "halfway",
            },
        },
    },
    "pins": {
        "server": "files",
        "tools": {
            "files__read": {
                "digest": "0" * 64,
                "at": "2026-11-20T09:00:00.123456Z",
                "by": "operator",
                "description": "Read a file.",
            }
        },
        "v": 1,
    },
    "shelf": {
        "source": "files",
        "at": "2026-11-20T09:00:00.123456Z",
        "tools": [
            {
                "name": "files__read",
                "description": "Read a file.",
                "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
                "risk": "read",
                "timeout_s": 60.0,
                "output_bytes_max": 1024,
                "is_idempotent": True,
                "digest": "0" * 64,
            }
        ],
        "held": [{"name": "files__write", "digest": "1" * 64, "pinned": "2" * 64}],
        "problem": "a tool is not what was approved",
        "facts": {"version": "1.2"},
        "v": 1,
    },
    "turn.working": {
        "id": "turn-3",
        "session_key": "ann:vigil:t1",
        "ordinal": 4,
        "event": {"id": "e1", "seq": 7, "type": "user_message"},
        "outcome": "continued",
        "state": {
            "position": 7,
            "turns": 4,
            "effects": 10,
            "fence": 7,
            "loop": {
                "cause": {"id": "e1", "seq": 7, "type": "user_message"},
                "fence": 7,
                "begun_at": "2026-11-20T09:00:00.123456Z",
                "is_direct": True,
                "waiting": {
                    "calls": [
                        {
                            "effect_id": "cccccccccccccccccccccccccccccccc",
                            "tool_use_id": "c1",
                            "tool": "shell",
                            "service": "executor",
                        }
                    ],
                    "generation": 3,
                    "due_at": "2026-11-20T09:00:00.123456Z",
                },
                "spawned": 1,
                "task_id": "dddddddddddddddddddddddddddddddd",
            },
            "tasks": {
                "dddddddddddddddddddddddddddddddd": {
                    "tool": "worker",
                    "title": "Look for the cause",
                    "due_at": "2026-11-20T09:00:00.123456Z",
                    "generation": 2,
                    "kind": "worker",
                    "child": "ann:vigil:_worker-dddddddddddddddddddddddddddddddd",
                    "is_ordered": True,
                    "caused_by": "e1",
                    "root_id": "e1",
                    "spawned": 1,
                    "told_seq": 6,
                }
            },
            "approvals": {
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": {
                    "kind": "approval",
                    "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                    "session_key": "ann:vigil:t1",
                    "tool": "shell",
                    "input": {"command": "rm -r build"},
                    "digest": "0" * 64,
                    "risk": "external",
                    "reason": "outside content had a part in it",
                    "asked_at": "2026-11-20T09:00:00.123456Z",
                    "expires_at": "2026-11-20T09:00:00.123456Z",
                    "caused_by": "e1",
                    "generation": 4,
                    "is_tainted": True,
                    "is_ordered": True,
                }
            },
        },
        "created_at": "2026-11-20T09:00:00.123456Z",
        "rows": [
            {
                "role": "user",
                "blocks": [
                    {
                        "type": "task",
                        "call_id": "eeeeeeeeeeeeeeeeeeeeeeeeeeeeeeee",
                        "tool": "worker",
                        "title": "Read the page",
                        "content": "It is down",
                        "is_error": True,
                        "is_tainted": True,
                    }
                ],
                "at": "2026-11-20T09:00:00.123456Z",
                "source": "task",
            }
        ],
        "effects": [
            {
                "type": "call_tool",
                "id": "cccccccccccccccccccccccccccccccc",
                "ordinal": 5,
                "payload": {
                    "service": "executor",
                    "tool": "shell",
                    "input": {"command": "ls"},
                    "caused_by": "e1",
                    "due_at": "2026-11-20T09:00:00.123456Z",
                    "risk": "external",
                    "approval_id": "ffffffffffffffffffffffffffffffff",
                },
            },
            {
                "type": "spawn_session",
                "id": "dddddddddddddddddddddddddddddddd",
                "ordinal": 6,
                "payload": {
                    "kind": "worker",
                    "prompt": "Look for the cause",
                    "caused_by": "e1",
                    "root_id": "e1",
                    "depth": 1,
                    "allowance": 2,
                    "is_ordered": True,
                },
            },
            {
                "type": "cancel_call",
                "id": "11111111111111111111111111111111",
                "ordinal": 7,
                "payload": {
                    "call_id": "22222222222222222222222222222222",
                    "tool": "worker",
                    "child": "ann:vigil:_worker-22222222222222222222222222222222",
                    "reason": "the person stopped it",
                },
            },
            {
                "type": "tell_parent",
                "id": "33333333333333333333333333333333",
                "ordinal": 8,
                "payload": {
                    "parent": "ann:vigil:t0",
                    "call_id": "44444444444444444444444444444444",
                    "state": "running",
                    "content": "halfway",
                },
            },
            {
                "type": "board_change",
                "id": "55555555555555555555555555555555",
                "ordinal": 9,
                "payload": {
                    "entity": {
                        "kind": "approval",
                        "id": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                        "session_key": "ann:vigil:t1",
                        "tool": "shell",
                        "input": {"command": "rm -r build"},
                        "digest": "0" * 64,
                        "risk": "external",
                        "reason": "outside content had a part in it",
                        "asked_at": "2026-11-20T09:00:00.123456Z",
                        "expires_at": "2026-11-20T09:00:00.123456Z",
                        "caused_by": "e1",
                        "generation": 4,
                        "is_tainted": True,
                        "is_ordered": True,
                    }
                },
            },
        ],
        "v": 1,
    },
}
