"""Requests as the OpenAPI document shows them; a test sends each, and each is accepted. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from vigil.board.outside import served_kinds

SESSION: Final = "ann:vigil:t1"
_ID: Final = "0123456789abcdef0123456789abcdef"
_EVENT: Final[dict[str, Any]] = {
    "specversion": "1.0",
    "id": "build-7",
    "source": "https://ci.example/builds",
    "type": "build.failed",
    "subject": SESSION,
}

BODIES: Final[dict[str, Mapping[str, Any]]] = {
    **{body.__name__: one for kind in served_kinds() for body, one in kind.examples.items()},
    "ChatRequest": {
        "a new thread": {"message": "hello", "userId": "ann"},
        "a thread": {"message": "and now?", "userId": "ann", "threadId": "t1"},
    },
    "PostMessage": {
        "a message": {"text": "remind me in 20 minutes to stretch"},
        "one that may be repeated": {"text": "hello", "idempotency_key": "msg-7"},
    },
    "TicketRequest": {"of a session": {"session": SESSION}},
    "VersionRequest": {
        "edited": {"message": 12, "text": "remind me in 30 minutes to stretch"},
        "answered anew": {"message": 12},
    },
    "ListedChange": {
        "a name": {"title": "Stretching"},
        "put away": {"archived": True},
        "read": {"read_to": 18},
    },
    "PastRequest": {
        "a whole conversation": {
            "origin": "hermes",
            "conversation": "20260301_090000_1f",
            "total": 2,
            "messages": [
                {"id": "1", "role": "user", "text": "hello", "at": "2026-03-01T09:00:00Z"},
                {"id": "2", "role": "agent", "text": "Hello!", "at": "2026-03-01T09:00:02Z"},
            ],
        }
    },
    "ForkRequest": {"from a turn": {"turn": 17, "thread": "what-if"}},
    "CloudEvent": {
        "text": {**_EVENT, "datacontenttype": "text/plain", "data": "build 7 failed"},
        "JSON": {
            **_EVENT,
            "id": "build-9",
            "time": "2026-11-22T09:00:00Z",
            "data": {"build": 9, "ok": False},
        },
    },
    "CompletionRequest": {
        "a conversation": {
            "model": "vigil",
            "messages": [
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": "Hello, Ann."},
                {"role": "user", "content": "What is up today?"},
            ],
        }
    },
    "ResponseRequest": {
        "a first message": {"model": "vigil", "input": "Hello"},
        "a conversation": {
            "model": "vigil",
            "input": [
                {"role": "user", "content": "Hello"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "Hello, Ann."}]},
                {"role": "user", "content": "What is up today?"},
            ],
        },
    },
    "TrustBody": {
        "a hook": {"source": "hook:ci"},
        "a page": {"source": "url:https://example.org/"},
    },
    "ModelWanted": {
        "a server of this machine": {
            "provider": "local",
            "url": "http://127.0.0.1:11434/v1",
            "model": "qwen3:8b",
        },
    },
    "MailCodeRequest": {"an address": {"address": "ann@example.org"}},
    "PairCodeRequest": {
        "an id of Matrix": {"address": "@ann:example.org"},
        "whoever brings it": {},
    },
    "PushSubscribe": {
        "a browser": {
            "endpoint": "https://push.example.net/send/4f2a",
            "keys": {
                "p256dh": "BGsX0fLhLEJH-Lzm5WOkQPJ3A32BLeszoPShOUXYmMKW"
                "T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU",
                "auth": "AAECAwQFBgcICQoLDA0ODw",
            },
            "name": "the laptop",
        }
    },
    "RaiseBody": {"as much again today": {"times": 1}, "as configured": {"times": 0}},
    "TokenBody": {"for a laptop": {"user": "ann", "name": "laptop", "expires_days": 90}},
    "ToolApproval": {"one tool": {"tools": {"files__read": "4f2a"}}},
    "ChannelWanted": {
        "a bot of Telegram": {
            "kind": "telegram",
            "given": {"bot": "@my_vigil_bot", "token": "123456:AAE-letters"},
        },
        "a topic of ntfy": {"kind": "ntfy", "name": "pager", "given": {"topic": "hard-to-guess"}},
    },
    "ServerWanted": {
        "a program": {"name": "memory", "command": ["npx", "-y", "server-memory"], "network": True},
        "a service": {"name": "wiki", "url": "https://mcp.example.org/mcp", "token": "wiki-1"},
    },
    "ServerChange": {"off": {"is_enabled": False}},
    "SignInWanted": {"behind a proxy": {"gateway": "https://vigil.example.org"}},
    "AgentFileChange": {"what it does": {"text": "You look after plants.", "digest": "4f2a"}},
    "AgentWanted": {
        "a coach": {"name": "coach", "authority": "suggest", "role": "You help me train."}
    },
    "AgentChange": {"a look more": {"looks": ["feed:https://a.example/news"]}},
    "CircuitReset": {"a model": {"name": "model:main"}},
    "AutonomyChange": {
        "an hour apart": {"autonomy_interval_secs": 3600, "autonomy_max_turns": 10},
        "off": {"autonomy_enabled": False},
    },
    "PersonChange": {
        "quiet hours": {"quiet_hours": "22:00-07:00", "timezone": "Europe/Berlin"},
        "as configured": {"channel": None},
    },
    "SaveBody": {
        "a fact": {"content": "Ann prefers tea", "type": "preference"},
        "of a conversation": {
            "content": "Ann: I was in Rome last week",
            "threadId": "t1",
            "occurredAt": "2026-11-22T09:00:00Z",
            "importance": 0.4,
            "idempotency_key": "note-7",
        },
    },
    "AssociateBody": {"two memories": {"from_id": _ID, "to_id": _ID[::-1], "weight": 0.7}},
    "UndoBody": {"a source": {"source": "import-7"}},
    "MaintainBody": {"your own": {}, "of one agent": {"agentId": "vigil"}},
    "Rebuild": {"the vectors": {"what": "vectors"}},
    "JsonRpc": {
        "the tools": {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
    },
    "LinkBody": {"a phone's": {"name": "phone"}},
}
"""By the name of the body's struct: the name of the example -> the body."""
EVENT_HEADERS: Final = {
    "ce-specversion": "1.0",
    "ce-id": "build-8",
    "ce-source": "https://ci.example/builds",
    "ce-type": "build.failed",
    "ce-subject": SESSION,
    "ce-time": "2026-11-22T09:00:00Z",
}
"""A CloudEvent in the binary mode: the body is the data alone."""
EVENT_DATA: Final = "build 8 failed"
