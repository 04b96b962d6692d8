"""The seam between thought and whoever thinks: one request, one answer, two kinds of failure.

A model is called once for a step of a loop. It never retries by itself for long: a failure
comes back as `ModelError`, and the core turns it into a deadline on the log.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, Literal, Protocol

import msgspec

from vigil.contracts import SOCKET, Block, FollowUp, Row, TextBlock, Usage
from vigil.contracts.board import BoardBulletin, BoardPreference
from vigil.errors import VigilError
from vigil.memory.questions import Hit
from vigil.preferences.shown import ShownPreferences

from .notice import Notice
from .row_counts import NONE, CountedRows, counted

StopReason = Literal[
    "end_turn",
    "tool_use",
    "max_tokens",
    "stop_sequence",
    "pause_turn",
    "refusal",
    "model_context_window_exceeded",
    "unknown",
]
"""Every stop reason of the Messages API (anthropic SDK 2.10), and one for those to come: what was
said by then counts, and a call may be half of one."""


Tier = Literal["main", "cheap"]
"""Which model thinks, where there are two."""
Effort = Literal["", "low", "medium", "high"]
"""How much a model spends on an answer; empty: as its provider sets it. What all models take that
take any; no other is told."""


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it. `input_schema` is a JSON Schema object."""

    name: str
    description: str
    input_schema: dict[str, Any]


class KnownAtStart(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the person when an exchange begins."""

    memories: tuple[Hit, ...] = ()
    """What was recalled for it, the best first."""
    preferences: tuple[BoardPreference, ...] = ()
    """How they like things, as the board has it."""
    bulletin: BoardBulletin | None = None
    letters: tuple[OpenedLetter, ...] = ()
    """That the loop opened."""
    facts: tuple[str, ...] = ()
    """What rows of the timetable told in a closed form, a line each."""


class OpenedLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A letter that a loop is shown."""

    handle: str
    text: str
    """Empty: the history has it no more, or there never was one."""


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What a model must know to schedule (SPEC I-1)."""

    now: datetime
    """Aware UTC."""
    timezone: str
    """IANA name of the person's time zone."""
    user: str
    agent: str
    follow_ups: dict[str, FollowUp]
    """The open ones, by timer id."""
    autonomy_enabled: bool
    language: str = ""
    """Tag of the language to write in; empty: that of the person's message."""
    channels: tuple[str, ...] = ()
    """Names of the ways out beside the socket."""
    route: str = SOCKET
    """Where goes what the agent says on its own, unless it names a channel."""
    memories: tuple[Hit, ...] = ()
    """What was recalled for this exchange, the best first."""
    likes: ShownPreferences = ShownPreferences()
    """How the person likes things."""
    under_way: tuple[str, ...] = ()
    """What was started and is not waited for, each in a line."""
    is_conversation: bool = True
    """Whether a person is there."""
    members: tuple[str, ...] = ()
    """Of the team that it is a conversation with."""
    others: tuple[str, ...] = ()
    """Other agents of the person's."""
    letters: tuple[OpenedLetter, ...] = ()
    """That the loop opened."""
    facts: tuple[str, ...] = ()
    """What rows of the timetable told in a closed form, a line each."""
    steps_left: int = 0
    """Model calls that a session which was lent some may yet make; 0: nothing is said of it."""


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One call, the most stable part first, so that a provider's cache can hold the others: tools,
    `system`, `rows`, `present`. All but the last are the same bytes from call to call."""

    session_key: str
    system: tuple[str, ...]
    """In blocks, those that most sessions share first."""
    rows: tuple[Row, ...]
    tools: tuple[ToolSpec, ...]
    max_tokens: int
    timeout_s: float
    """Of silence: until the first sign of an answer, and between two."""
    situation: Situation
    present: str = ""
    """The situation in words: comes after the rows, as the last part of what the model is shown."""
    purpose: str = "answer"
    """`answer`: the step of a loop. `compact`: a summary of the oldest part of a conversation. Else
    the purpose of the profile that asks; nothing is said to anybody then."""
    tier: Tier = "main"
    tier_reason: str = ""
    """What decided on it, for the record (`Usage.tier_reason`)."""
    effort: Effort = ""
    files: dict[str, str] = {}
    """The bytes of attachments in Base64, by their hash: all that the rows show."""
    schema: dict[str, Any] | None = None
    """The JSON Schema of the answer's text, if it has to be JSON."""
    total_s: float = 900.0
    """For all of it, however steadily it comes."""
    known: CountedRows = NONE
    """What rows take that were counted before: those of the request, or of one that it was made
    of."""

    @property
    def counted(self) -> CountedRows:
        """The rows, and what they take."""
        return self.known if self.known.rows is self.rows else counted(self.rows)


class ModelAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the model said, in blocks, and why it stopped."""

    blocks: tuple[Block, ...]
    stop_reason: StopReason
    usage: Usage
    model: str = ""
    """Who answered, as the server names it; empty: whom the request names."""
    notices: tuple[Notice, ...] = ()
    """What the person is to be told of the budget."""
    is_fallback: bool = False
    """Whether it was asked instead of the model that is to think."""
    lacks: frozenset[str] = frozenset()
    """Parameters that the request was made without, since its server doesn't take them."""

    @property
    def text(self) -> str:
        """What it says, without what else is in it."""
        return "".join(block.text for block in self.blocks if isinstance(block, TextBlock))


REFUSED_BY_CIRCUIT: Final = "circuit"
"""The kind of a failure of ours: the model failed others, and was not asked."""
REFUSED_BY_LOOP: Final = "error_loop"
"""Likewise: the session failed again and again, and no model was asked."""
REDIRECTED: Final = "redirected"
"""The server names another address, where nothing is sent."""
TIMEOUT: Final = "timeout"
"""Nothing was heard of the model for too long."""
ENDLESS: Final = "endless"
"""It answered all the time, for longer than an answer may take."""
UNUSABLE: Final = "unusable"
"""It answered, and that broke off, or can't be read."""
SPOILED: Final = "spoiled"
"""The model wrote what its own server can't read."""
TOO_LONG: Final = "too_long"
"""A request that doesn't fit into the model's window, says its server."""
CROWDED: Final = "crowded"
"""Likewise, and room can be made in the history for another one."""
_NOT_OF_MODEL: Final = ("400", "422", TOO_LONG, CROWDED, "budget", REFUSED_BY_LOOP)
"""Kinds of errors: what the server says of requests that no other would take either, and ours."""


class ModelError(VigilError):
    """A call without an answer.

    `is_retryable` tells whether the same call may succeed later (429, 529, 5xx, timeouts, a
    lost connection); `retry_after_s` is the provider's own wish, if it had one; `is_refused`
    whether the server turned the call away before it took any tokens; `budget_at` when the
    budget may have room, if the call never got there for want of it; `notices` what the person
    is to be told of the budget. `kind` is one word about it for traces: an HTTP status, or what
    else went wrong; `limit_tokens` how long a request may be that was too long, if that was said.
    """

    def __init__(
        self,
        reason: str,
        *,
        is_retryable: bool,
        retry_after_s: float | None = None,
        is_refused: bool = False,
        budget_at: datetime | None = None,
        notices: tuple[Notice, ...] = (),
        kind: str = "",
        limit_tokens: int = 0,
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.is_retryable = is_retryable
        self.retry_after_s = retry_after_s
        self.is_refused = is_refused
        self.budget_at = budget_at
        self.notices = notices
        self.limit_tokens = limit_tokens
        outcome = "budget" if budget_at is not None else "failed"
        self.kind = kind or ("retryable" if is_retryable else outcome)

    @property
    def is_of_model(self) -> bool:
        """Whether another model may do better: it isn't the request that is wrong, nor the budget.

        >>> ModelError("overloaded", is_retryable=True, kind="529").is_of_model
        True
        """
        return self.kind not in _NOT_OF_MODEL

    @property
    def is_unasked(self) -> bool:
        """Whether no model was asked, since it failed others, or the session did
        (`vigil.circuits`)."""
        return self.kind in (REFUSED_BY_CIRCUIT, REFUSED_BY_LOOP)


class LanguageModel(Protocol):
    """Whoever thinks."""

    @property
    def name(self) -> str:
        """The model id; "rehearsal" for the stand-in."""
        ...

    @property
    def is_free(self) -> bool:
        """Whether its tokens cost nothing and need no budget."""
        ...

    @property
    def server(self) -> tuple[str, int] | None:
        """Host and port that it is asked at; None: it runs in this process."""
        ...

    async def answer(self, request: ModelRequest, on_text: Callable[[str], None]) -> ModelAnswer:
        """Answer once, handing text to `on_text` as it comes.

        Raises:
            ModelError: no answer. Cancelling the task ends the call.
        """
        ...

    async def close(self) -> None:
        """Release connections."""
        ...
