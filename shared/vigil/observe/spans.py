"""Every span that Vigil records, as data: its name, where, its attributes, what it means.

``docs/reference/spans.md`` is made of it. What people and agents say is never an attribute; session
keys are. Pure.

The names of ``http.*`` are those of the OpenTelemetry conventions, those of ``gen_ai.*`` of its
conventions for generative AI, in the version below. They stand here because all of them are still
in development there, and have no Python constants since they have a repository of their own.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

Direction = Literal["server", "client", "producer", "consumer", "internal"]

SESSION: Final = "vigil.session"
EVENT_TYPE: Final = "vigil.event.type"
EVENT_ID: Final = "vigil.event.id"
OUTCOME: Final = "vigil.outcome"
ORDINAL: Final = "vigil.turn"
ATTEMPT: Final = "vigil.attempt"
EFFECT: Final = "vigil.effect"
TIMER_KIND: Final = "vigil.timer.kind"
LATENESS_MS: Final = "vigil.timer.lateness_ms"
CHANNEL: Final = "vigil.channel"
ERROR_TYPE: Final = "error.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"
HTTP_STATUS: Final = "http.response.status_code"

GEN_AI_VERSION: Final = "0.1.0"
"""Of the conventions for generative AI that spans are named by."""
GEN_AI_OPERATION: Final = "gen_ai.operation.name"
GEN_AI_PROVIDER: Final = "gen_ai.provider.name"
GEN_AI_MODEL: Final = "gen_ai.request.model"
GEN_AI_MAX_TOKENS: Final = "gen_ai.request.max_tokens"
GEN_AI_STREAM: Final = "gen_ai.request.stream"
GEN_AI_RESPONSE_MODEL: Final = "gen_ai.response.model"
GEN_AI_FINISH_REASONS: Final = "gen_ai.response.finish_reasons"
"""Why the model stopped, in its provider's own words; one answer, one reason."""
GEN_AI_CONVERSATION: Final = "gen_ai.conversation.id"
GEN_AI_TOOL: Final = "gen_ai.tool.name"
GEN_AI_TOOL_CALL: Final = "gen_ai.tool.call.id"
"""The id under which the call is in the log: the effect's, of which `vigil why` tells."""
GEN_AI_INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
"""Those that a cache held, or was given, count too."""
GEN_AI_OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
GEN_AI_CACHE_READ: Final = "gen_ai.usage.cache_read.input_tokens"
GEN_AI_CACHE_WRITE: Final = "gen_ai.usage.cache_write.input_tokens"


class SpanKind(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table. `error.type` is on each span that failed."""

    name: str
    service: str
    direction: Direction
    attributes: tuple[str, ...]
    meaning: str


ACCEPT: Final = SpanKind(
    name="gateway.accept",
    service="gateway",
    direction="server",
    attributes=(SESSION, EVENT_TYPE, EVENT_ID),
    meaning="an event is stored; child of the caller's `traceparent`, if there is one",
)
TURN: Final = SpanKind(
    name="cortex.turn",
    service="cortex",
    direction="consumer",
    attributes=(SESSION, EVENT_TYPE, EVENT_ID, ORDINAL, OUTCOME, ATTEMPT),
    meaning="from an event read, or a step begun, to its turn; child of the event's span",
)
MODEL: Final = SpanKind(
    name="chat",
    service="cortex",
    direction="client",
    attributes=(
        GEN_AI_OPERATION,
        GEN_AI_PROVIDER,
        GEN_AI_MODEL,
        GEN_AI_MAX_TOKENS,
        GEN_AI_STREAM,
        GEN_AI_RESPONSE_MODEL,
        GEN_AI_FINISH_REASONS,
        GEN_AI_CONVERSATION,
        GEN_AI_INPUT_TOKENS,
        GEN_AI_OUTPUT_TOKENS,
        GEN_AI_CACHE_READ,
        GEN_AI_CACHE_WRITE,
        SERVER_ADDRESS,
        SERVER_PORT,
    ),
    meaning="a model call, named `chat {model}`; child of its turn",
)
PROMOTE: Final = SpanKind(
    name="scheduler.promote",
    service="scheduler",
    direction="producer",
    attributes=(SESSION, EVENT_ID, TIMER_KIND, LATENESS_MS),
    meaning="a due timer is stored as an event; a follow-up's links to the turn that planned it",
)
SAY: Final = SpanKind(
    name="delivery.say",
    service="delivery",
    direction="consumer",
    attributes=(SESSION, EFFECT, OUTCOME),
    meaning="a send is said or closed (void, failed); child of its turn",
)
SEND: Final = SpanKind(
    name="delivery.send",
    service="delivery",
    direction="client",
    attributes=(SESSION, EFFECT, CHANNEL, ATTEMPT, OUTCOME, HTTP_STATUS),
    meaning="an attempt at a channel; child of the turn",
)

_OF_A_TOOL: Final = (
    GEN_AI_OPERATION,
    GEN_AI_TOOL,
    GEN_AI_TOOL_CALL,
    GEN_AI_CONVERSATION,
    SESSION,
    EFFECT,
    OUTCOME,
)
TOOL: Final = SpanKind(
    name="execute_tool",
    service="executor",
    direction="internal",
    attributes=_OF_A_TOOL,
    meaning="a call from claim to result, named `execute_tool {tool}`; child of its turn",
)
MEMORY_TOOL: Final = SpanKind(
    name="execute_tool",
    service="memory",
    direction="internal",
    attributes=_OF_A_TOOL,
    meaning="the same for a memory tool",
)

SPANS: Final = (ACCEPT, TURN, MODEL, PROMOTE, SAY, SEND, TOOL, MEMORY_TOOL)


def of_tool(session: str, effect_id: str, tool: str, outcome: str) -> dict[str, str]:
    """Return the attributes of a tool's span."""
    return {
        GEN_AI_OPERATION: "execute_tool",
        GEN_AI_TOOL: tool,
        GEN_AI_TOOL_CALL: effect_id,
        GEN_AI_CONVERSATION: session,
        SESSION: session,
        EFFECT: effect_id,
        OUTCOME: outcome,
    }
