"""The AsyncAPI document of the bus: subjects, records, and who may do what with them. Pure.

Built from the same structs that encode and decode, so it can't tell something else than what is
on the bus. It takes the view of a program outside: *send* is what the program publishes.

Source: https://www.asyncapi.com/docs/reference/specification/v3.0.0
"""

from __future__ import annotations

import re
from typing import Any, Final, get_args

import msgspec

from vigil.contracts import (
    Attempt,
    BoardEntry,
    BoardKind,
    CallClaim,
    Control,
    DeadLetter,
    DeadLetterEnd,
    Dispatch,
    External,
    MemoriesAccessed,
    MemoriesAssociated,
    MemoriesMerged,
    MemoriesReplaced,
    MemoriesUndone,
    MemoryForgotten,
    MemorySaved,
    Pins,
    Receipt,
    Said,
    Shelf,
    Signal,
    SlotEntry,
    Tick,
    TimerFired,
    ToldEvent,
    ToolResultEvent,
    Turn,
    UserMessage,
)
from vigil.contracts.golden import newest
from vigil.contracts.mail import MailEntry
from vigil.contracts.past.words import PastWords
from vigil.sdk.formats.cloud_event import CloudEvent
from vigil.signals.kinds import KINDS
from vigil.subjects import ENDED, PART

from . import schemas

VERSION: Final = "3.0.0"
_MESSAGES: Final = "#/components/messages"
DESCRIPTION: Final = """\
Vigil's bus is NATS with JetStream. Any program with a NATS client may publish events into it and \
follow signals, with a credential of its own: `vigil token create --bus` prints the address, the \
seed of an nkey, the subject to publish to, the prefix of inboxes and the durable consumer of \
signals. Records of sessions and dead letters are for who runs the installation: their credentials \
lie in its folder. Instants are RFC 3339 in UTC. A field that has its default is left out, and a \
field that isn't known is to be ignored.
"""


class Spoken(msgspec.Struct, frozen=True):
    """A message of the document. `examples` are names of golden files, or `_FOREIGN`."""

    kind: type
    summary: str
    examples: tuple[str, ...] = ()


_SAID: Final = ("event.user_message", "event.user_message.caller")
_ORDERED: Final = "control start cancel status approval fork past results"
_ORDERS: Final = tuple(f"event.{of}" for of in _ORDERED.split())
_ROWS: Final = tuple(f"row.{of}" for of in ("after", "chosen", "event", "facts", "mail", "once"))
_OTHERS: Final = ("approval.wanted", "bulletin.worded", *_ROWS)
_RESULTS: Final = ("event.tool_result", "event.tool_result.wanted")
_SLOTS: Final = ("slot", "slot.followed", "slot.needless", "slot.set_back", "slot.waiting")
_TURNS: Final = ("remembering", "working", "paid", "raised", "fallback", "made", "attached")
MESSAGES: Final[dict[str, Spoken]] = {
    "cloudEvent": Spoken(CloudEvent, "Something happened outside", ("cloud_event",)),
    "signal": Spoken(Signal, "Something happened here", ("signal",)),
    "userMessage": Spoken(UserMessage, "What the person said", _SAID),
    "timerFired": Spoken(TimerFired, "A follow-up or a deadline is due", ("event.timer",)),
    "control": Spoken(Control, "An order about the session", _ORDERS),
    "external": Spoken(External, "An event from outside, as it was let in", ("event.external",)),
    "toolResult": Spoken(ToolResultEvent, "What a tool answered", _RESULTS),
    "told": Spoken(ToldEvent, "What another session has to say to the person", ("event.told",)),
    "tick": Spoken(Tick, "Goals of a mind are due", ("event.tick",)),
    "turn": Spoken(
        Turn, "One atomic commit of a session", ("turn", *(f"turn.{of}" for of in _TURNS))
    ),
    "past": Spoken(PastWords, "What was said before it was imported", ("past",)),
    "said": Spoken(Said, "What the agent said", ("said",)),
    "receipt": Spoken(Receipt, "How a send ended", ("receipt",)),
    "dispatch": Spoken(Dispatch, "An order to carry a message over a channel", ("dispatch",)),
    "attempt": Spoken(Attempt, "One try of that", ("attempt",)),
    "callClaim": Spoken(CallClaim, "Somebody runs a tool call", ("call_claim",)),
    "boardEntry": Spoken(
        BoardEntry,
        "A state of a request, a job, a standing grant or its uses, a task, a goal …",
        tuple(f"board.{kind}" for kind in (*get_args(BoardKind), *_OTHERS)),
    ),
    "slot": Spoken(SlotEntry, "What became of a time at which a row was due", _SLOTS),
    "mail": Spoken(MailEntry, "A mail that came to a person's mailbox", ("mail", "mail.begun")),
    "shelf": Spoken(Shelf, "What one source of tools offers", ("shelf",)),
    "pins": Spoken(Pins, "What was approved of an MCP server", ("pins",)),
    "memorySaved": Spoken(MemorySaved, "Something is remembered", ("memory.save",)),
    "memoryForgotten": Spoken(MemoryForgotten, "Memories recalled no more", ("memory.forget",)),
    "memoriesMerged": Spoken(
        MemoriesMerged, "A summary that takes the place of memories", ("memory.merge",)
    ),
    "memoriesReplaced": Spoken(
        MemoriesReplaced, "Memories for which another one stands", ("memory.replace",)
    ),
    "memoriesAssociated": Spoken(
        MemoriesAssociated, "Associations of memories", ("memory.associate",)
    ),
    "memoriesAccessed": Spoken(MemoriesAccessed, "Memories that were shown", ("memory.access",)),
    "memoriesUndone": Spoken(
        MemoriesUndone, "A source that was reverted, with what came of it", ("memory.undo",)
    ),
    "deadLetter": Spoken(DeadLetter, "What could not be used, with the cause", ("dead_letter",)),
    "deadLetterEnd": Spoken(
        DeadLetterEnd, "What a person did with a dead letter", ("dead_letter_end",)
    ),
}
"""Message -> its record. One without an example is never published today."""

_FOREIGN: Final = {
    "cloud_event": {
        "specversion": "1.0",
        "id": "42",
        "source": "https://ci.example/7",
        "type": "build.failed",
        "subject": "ann:vigil:t1",
        "time": "2026-11-20T09:00:00.123456Z",
        "data": {"status": "red"},
    }
}
"""Examples of what isn't a record of ours, so that it has no golden file."""
_K: Final = "{log}.{agent}.{user}.{thread}"
_OWN: Final = "system.{agent}.{user}.{thread}"
_CHANNELS: Final[dict[str, tuple[str, str, tuple[str, ...]]]] = {
    "events": ("event.{user}.{credential}", "Where a credential may publish.", ("cloudEvent",)),
    "signals": (
        "signal.{agent}.{owner}.{about}.{happening}.{thread}",
        "What happened, projected from the log; kept for days, so that it can be replayed. The "
        "kind of a signal is two tokens: `message.sent`.",
        ("signal",),
    ),
    "sessionMessages": (f"{_K}.in.said.user", "What the person said.", ("userMessage",)),
    "sessionEvents": (
        f"{_K}.in.{{type}}",
        "Whatever else comes into a session.",
        ("timerFired", "control", "external", "toolResult", "tick"),
    ),
    "sessionTold": (
        f"{_K}.in.told.{{effect}}",
        "What the agent's other sessions have to say to the person here: a job ended, say.",
        ("told",),
    ),
    "sessionTurns": (f"{_K}.turn-{{letters}}", "Commits.", ("turn",)),
    "sessionPast": (f"{_K}.past.said.{{role}}", "What was imported.", ("past",)),
    "sessionSaid": (f"{_K}.out.said.{{effect}}", "What the agent said.", ("said",)),
    "sessionReceipts": (f"{_K}.receipt.{{effect}}", "Outcomes of sends.", ("receipt",)),
    "sessionSends": (f"{_K}.send.{{effect}}", "Orders to channels.", ("dispatch",)),
    "sessionAttempts": (f"{_K}.attempt.{{effect}}", "The tries of those.", ("attempt",)),
    "sessionCalls": (f"{_K}.call.{{effect}}", "Claims of tool calls.", ("callClaim",)),
    "systemEvents": (
        f"{_OWN}.in.{{type}}",
        "What comes into a session of the agent's own (a worker, a branch, the planner of a job): "
        "its start, what others send it, its end.",
        ("timerFired", "control", "external", "toolResult", "tick"),
    ),
    "systemTold": (f"{_OWN}.in.told.{{effect}}", "What a mind is told by others.", ("told",)),
    "systemTurns": (f"{_OWN}.turn-{{letters}}", "Commits of such a session.", ("turn",)),
    "systemCalls": (f"{_OWN}.call.{{effect}}", "Claims of its tool calls.", ("callClaim",)),
    "board": (
        "board.{agent}.{user}.{kind}.{entity}",
        "Requests to a person, and jobs: the newest states of each, made of turns.",
        ("boardEntry",),
    ),
    "slots": ("slot.{agent}.{owner}.{row}", "The ledger of the timetable.", ("slot",)),
    "mails": ("mail.{agent}.{owner}.{mailbox}", "Mails of people's own mailboxes.", ("mail",)),
    "tools": ("$KV.TOOLS.{source}", "The tools there are: a key-value bucket.", ("shelf",)),
    "pins": ("$KV.PINS.{source}", "Which tools of MCP servers were approved: a bucket.", ("pins",)),
    "memories": (
        "memory.{agent}.{owner}.{operation}",
        "What an agent knows of its owner, in order: databases and vectors are made of it.",
        (
            "memorySaved", "memoryForgotten", "memoriesMerged", "memoriesReplaced",
            "memoriesAssociated", "memoriesAccessed", "memoriesUndone",
        ),
    ),
    "deadLetters": (
        "dead.{service}.{agent}.{user}.{thread}", "What could not be used.", ("deadLetter",),
    ),
    "deadLetterEnds": (
        f"dead.{ENDED}.{{agent}}.{{user}}.{{thread}}", "What became of those.", ("deadLetterEnd",),
    ),
}  # fmt: skip
"""Channel -> (address, description, messages)."""

_PARAMETERS: Final[dict[str, dict[str, Any]]] = {
    "log": {
        "description": "`session` with one partition, else `session-{n}`: n is the CRC-32 of "
        "`{agent}.{user}.{thread}` modulo their number, `vigil_partitions` in the metadata of the "
        "stream KV_CONFIG"
    },
    "agent": {"description": f"The agent: {PART.pattern}"},
    "user": {"description": f"The user: {PART.pattern}"},
    "owner": {"description": "Whose it is: a user, or `team` for what the users of an agent share"},
    "operation": {
        "description": "What the record does",
        "enum": ["access", "associate", "forget", "merge", "replace", "save", "undo"],
    },
    "thread": {
        "description": f"The thread: {PART.pattern}; one that begins with `_` is the agent's own"
    },
    "kind": {"description": "What is on the board", "enum": list(get_args(BoardKind))},
    "entity": {"description": "The id of the request or the job, 32 hex digits"},
    "row": {"description": "The id of the row, 32 hex digits"},
    "source": {"description": "`builtin`, or the name of an MCP server"},
    "credential": {"description": "The name of the credential"},
    "about": {"description": "The first half of a kind"},
    "happening": {"description": "The second half of a kind"},
    "type": {
        "description": "The type of the event",
        "enum": ["timer", "control", "external", "tool_result", "tick"],
    },
    "role": {"description": "Who said it", "enum": ["user", "agent"]},
    "letters": {"description": "Who has work: sends s, timers t, memory m, executor x; nobody 0"},
    "effect": {"description": "The id of the send or the tool call, 32 hex digits"},
    "mailbox": {"description": "NAME of `[mailboxes.NAME]`"},
    "service": {"description": "The service that could not use it"},
}
_SYSTEM: Final = ("systemEvents", "systemTold", "systemTurns", "systemCalls")
_OF_HANDS: Final = {
    **dict.fromkeys(_SYSTEM, "Read the log of the agent's own sessions"),
    "board": "Read requests and jobs",
    "slots": "Read what became of what recurs",
    "mails": "Read what came to mailboxes",
    "tools": "Read which tools there are",
    "pins": "Read which tools were approved",
}
_SESSION_CHANNELS: Final = tuple(name for name in _CHANNELS if name.startswith("session"))


def document(version: str) -> dict[str, Any]:
    """Return the document for a version of Vigil."""
    examples = newest() | _FOREIGN
    return {
        "asyncapi": VERSION,
        "info": {
            "title": "Vigil",
            "version": version,
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "servers": {"bus": _server()},
        "channels": {name: _channel(*channel) for name, channel in _CHANNELS.items()},
        "operations": _operations(),
        "components": {
            "messages": {
                name: _message(name, spoken, examples) for name, spoken in MESSAGES.items()
            },
            "schemas": schemas.of(spoken.kind for spoken in MESSAGES.values()),
            "parameters": _parameters(),
            "securitySchemes": {
                "nkey": {
                    "type": "asymmetricEncryption",
                    "description": "An nkey (Ed25519): the client signs the server's nonce.",
                }
            },
        },
    }


def encoded(version: str) -> bytes:
    """Return the document as the gateway serves it."""
    return msgspec.json.encode(document(version))


def _server() -> dict[str, Any]:
    return {
        "host": "{host}:{port}",
        "protocol": "nats",
        "description": "A NATS server with JetStream; the domain is `vigil`.",
        "variables": {
            "host": {"default": "127.0.0.1"},
            "port": {"default": "4222", "description": "The embedded broker has one of its own"},
        },
        "security": [{"$ref": "#/components/securitySchemes/nkey"}],
    }


def _parameters() -> dict[str, Any]:
    halves = [kind.partition(".") for kind in KINDS]
    enums = {
        "about": sorted({about for about, _, _ in halves}),
        "happening": sorted({happening for _, _, happening in halves}),
    }
    return {
        name: parameter | ({"enum": enums[name]} if name in enums else {})
        for name, parameter in _PARAMETERS.items()
    }


def _channel(address: str, description: str, messages: tuple[str, ...]) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", address)
    return {
        "address": address,
        "description": description,
        "messages": {name: {"$ref": f"{_MESSAGES}/{name}"} for name in messages},
        "parameters": {name: {"$ref": f"#/components/parameters/{name}"} for name in names},
    }


def _operations() -> dict[str, Any]:
    return {
        "sendEvent": _operation(
            "send", "events",
            "Tell an agent what happened. Publish it as a request: the answer is JetStream's, and "
            "means that it is stored. What comes of it follows as signals and on the session.",
        ),
        "receiveSignals": _operation(
            "receive", "signals",
            "Follow what happens, by the durable consumer of the credential (nothing is missed) "
            "or by a plain subscription (from now on).",
        ),
        **{
            f"receive{name[0].upper()}{name[1:]}": _operation(
                "receive", name, "Read the log of sessions, with the installation's own credential."
            )
            for name in _SESSION_CHANNELS
        },
        **{
            f"receive{name[0].upper()}{name[1:]}": _operation(
                "receive", name, f"{what}, with the installation's own credential."
            )
            for name, what in _OF_HANDS.items()
        },
        "receiveMemories": _operation(
            "receive", "memories",
            "Read what is remembered, with the installation's own credential.",
        ),
        "receiveDeadLetters": _operation(
            "receive", "deadLetters", "Read dead letters, with the installation's own credential."
        ),
        "receiveDeadLetterEnds": _operation(
            "receive", "deadLetterEnds", "Read what became of dead letters."
        ),
    }  # fmt: skip


def _operation(action: str, channel: str, description: str) -> dict[str, Any]:
    messages = _CHANNELS[channel][2]
    return {
        "action": action,
        "channel": {"$ref": f"#/channels/{channel}"},
        "description": description,
        "messages": [{"$ref": f"#/channels/{channel}/messages/{name}"} for name in messages],
    }


def _message(name: str, spoken: Spoken, examples: dict[str, Any]) -> dict[str, Any]:
    listed = [{"name": example, "payload": examples[example]} for example in spoken.examples]
    shown = {"examples": listed} if listed else {}
    return {
        "name": name,
        "title": spoken.kind.__name__,
        "summary": spoken.summary,
        "headers": {
            "type": "object",
            "properties": {
                "traceparent": {"type": "string", "description": "W3C trace context"},
            },
        },
        "payload": {"$ref": f"{schemas.AT}/{spoken.kind.__name__}"},
        **shown,
    }
