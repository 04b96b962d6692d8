"""What a kind of session is: one frozen object, found in `cortex.profiles`.

Kinds differ by their profile and by nothing else (SPEC C-1). It holds what may begin a loop, what
the model is told and offered, the limits, and the two steps around each call of the model: how its
question is made and what its answer does. A profile reads nothing itself: what it needs of the log
or of the model it asks of the `OpenSession`, which is the open session's.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol

import msgspec

from vigil.contracts import Cause, Event, Risk, Row
from vigil.contracts.arguments import Arguments
from vigil.contracts.board import BoardAction, BoardGoal, BoardPreference

if TYPE_CHECKING:
    from ...model import Effort, ModelAnswer, ModelError, Tier, ToolSpec
    from . import Draft
    from .chunk import Offer
    from .policy import OnBoard

MEMORY: Final = "memory"
"""Every tool of the memory."""
MCP: Final = "*__*"
"""Every tool of every MCP server."""


class TemplateRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that a template makes."""

    template: str
    values: dict[str, Any]
    at: datetime


class Inquiry(msgspec.Struct, frozen=True, kw_only=True):
    """A question to the model that is no step of a conversation: all that it is shown."""

    purpose: str
    """What it is for, in a word: models that play their part read it."""
    profile: Profile
    """Whose tier, effort and limit hold for it."""
    prompt: str
    """The template of the system prompt; it knows the situation, and `values`."""
    values: dict[str, Any] = {}
    rows: tuple[Row | TemplateRow, ...]
    tools: tuple[ToolSpec, ...] = ()
    schema: dict[str, Any] | None = None
    """The JSON Schema of the answer's text, if it has to be JSON."""


class ModelQuestion(NamedTuple):
    """A question to the model, and what to do with its answer, or without one."""

    ask: Callable[[], Coroutine[Any, Any, ModelAnswer]]
    """Asks, once it's called: what is never asked leaves nothing to be waited for. Raises
    ModelError."""
    apply: Callable[[Draft, ModelAnswer], None]
    fail: Callable[[Draft, ModelError], None] | None = None
    """None: as a step of any loop fails."""


class OwnersBoard(NamedTuple):
    """What stands on the board for a person and agent."""

    goals: tuple[BoardGoal, ...] = ()
    """Those that haven't ended, the more important first, and the last of the others."""
    preferences: tuple[BoardPreference, ...] = ()
    actions: tuple[BoardAction, ...] = ()
    """The oldest first."""
    facts: tuple[str, ...] = ()
    """What rows of the timetable told in a closed form, a line each."""


class OpenSession(Protocol):
    """What an open session does for its profile."""

    async def converse(self, draft: Draft) -> ModelQuestion | None:
        """Ask with the history, what memory has on it, and the profile's prompt and tools; the
        profile concludes. None: the draft is to be committed as it is, first."""
        ...

    def ask(self, draft: Draft, asked: Inquiry) -> Coroutine[Any, Any, ModelAnswer]:
        """Ask just that. Nobody sees the words come."""
        ...

    def reflect(
        self, draft: Draft, text: str, *, purpose: str, prompt: str
    ) -> Coroutine[Any, Any, ModelAnswer]:
        """Ask about a part of the conversation, written down as text."""
        ...

    async def unsaved(self, start: int) -> Offer:
        """Read what was said from the turn `start` on, as much as one call may look back on."""
        ...

    def newest(self) -> tuple[Row, ...]:
        """Return the rows of the session that are known, oldest first."""
        ...

    async def board(self) -> OwnersBoard:
        """Read what stands on the board now. Raises: Unavailable."""
        ...

    def specs(self) -> tuple[ToolSpec, ...]:
        """Return all tools that there are at present, whoever may use them."""
        ...


async def converse(session: OpenSession, draft: Draft) -> ModelQuestion | None:
    """Ask as a conversation does: what most kinds do."""
    return await session.converse(draft)


class Starter(msgspec.Struct, frozen=True, kw_only=True):
    """The tool by which a model starts a session of the kind."""

    name: str
    arguments: type[Arguments]
    """The tool's arguments; their first field is the task."""
    is_awaited: bool = False
    """Whether a conversation waits for its end, too; every other session does."""
    risk_swayed: Risk = "read"
    """The risk class of the call once content from outside had a part in the task; before that it
    is `read`."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of session, or one kind of loop that others open beside their own."""

    name: str
    """The kind, as in the thread (`SessionKey.kind`)."""
    purpose: str = "answer"
    """What its loops are marked with on the log (`Loop.purpose`). ``answer``: the session's own."""
    prompt: str
    """What a session of this kind is for: a template of prompts/en, or (in lines) its text."""
    begins: dict[str, Callable[[Draft, Cause, Any], None]]
    """Type of event (a start is ``start``) -> what it does. All others are not served; timers,
    results and control are the core's own."""
    question: Callable[[OpenSession, Draft], Awaitable[ModelQuestion | None]]
    """Makes the question that the open loop wants answered. None: nothing is asked; what the draft
    holds is committed."""
    conclude: Callable[[Draft, ModelAnswer], None] | None = None
    """Does what the answer says; None: the question brings that along."""
    wrap_up: Callable[[Draft, str], None] | None = None
    """Goes on where a loop would end with its last words, which it's given; None: it ends."""
    keep_up: Callable[[Draft], None] | None = None
    """Called after every event while its loop is open."""
    take: Callable[[Draft, Sequence[Cause], Sequence[Event]], int] | None = None
    """Takes as much as it can of what is queued, and returns how many that are; None: as a
    conversation does, one after the other."""
    hear_end: Callable[[Draft, Cause, Event, str], None] | None = None
    """Takes note that something ended which no loop waited for, by its id among the state's tasks;
    None: as a conversation does."""
    reads: tuple[OnBoard, ...] = ()
    """What of the board is in the moment when something queued is taken, or a model answered."""
    give_way: Callable[[Draft, str], None] | None = None
    """Closes its loop for whatever comes in, which is then taken at once; None: that waits."""
    tools: tuple[str, ...] = ()
    """Names of tools, `MEMORY` and `MCP`: offered beside the tools whose `profiles` name it."""
    first: tuple[str, ...] = ()
    """The tools that a model is shown from the start, beside `find_tools`, by which it gets the
    others; empty: all of them, but for those of MCP servers that are many."""
    calls_max: int = 10
    """Model calls for one event."""
    tier: Tier = "main"
    effort: Effort = ""
    max_tokens: int = 0
    """The most tokens of an answer; 0: as many as `model.max_tokens` has, which is the most
    anyway."""
    timeout_s: float = 0.0
    """How long its parent waits for a word of it; 0: it has none."""
    children_max: int = 0
    """Sessions that it may have started at once."""
    lends_steps: bool = False
    """Whether what it starts makes calls of its model that it then doesn't make itself: none of the
    sessions that may descend from its origin is set aside for that (`allowance.lent`)."""
    settings: dict[str, str] = {}
    """Limits of it that the configuration sets: field -> the setting (``section.key``)."""
    starter: Starter | None = None
    source: str = ""
    """The source of what its sessions have memory keep; ``{id}`` is the thread, without the kind.
    Empty: the source of what began them."""
    is_conversation: bool = False
    """Whether a person is there: it speaks, and doesn't wait for what takes long. The others speak
    to nobody but their parent, and wait for all that they ask for."""
    is_thread_shown: bool = True
    """Whether the model sees the thread: then all of it has a part in what is decided (`sway`)."""
    bulletin: Literal["", "short", "whole"] = ""
    """How much it is shown of what is known and to be done (SPEC C-2)."""
    knows_person: bool = True
    """Whether it is told who the agent and the person are, and what memory has."""
    free: tuple[str, ...] = ()
    """Tools that act outside, and need no leave here: it knows nothing that they could carry."""
    is_heir: bool = False
    """Whether it knows what its parent knew when it was started."""
    tells_end: bool = True
    """Whether the end of its loop is told to who started the session; it's told before, else."""
    asks_again: bool = True
    """Whether the model is asked again with the results of the calls that it asked for."""

    @property
    def hears_ends(self) -> bool:
        """Whether what it starts ends as an event of its own, which no loop waits for."""
        return self.is_conversation or self.hear_end is not None

    def __hash__(self) -> int:
        return hash(self.name)
