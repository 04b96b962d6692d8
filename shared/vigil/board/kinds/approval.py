"""Requests to a person: what an agent may not do by itself, and what it asks (SPEC X-2). Pure.

Here is what is seen of them. A verdict is given at several doors at once, over HTTP, in words on a
channel and by commands, and may be in parts, and the session that asks decides which one counts: so
each door has its own way to give one, and none of them is data.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from ...contracts import SHORT_NAME, Approval, ApprovalState, Instant, Risk, Verdict
from ...fields.bodies import Answer, RequestBody
from ...texts.columns import Column
from ...texts.exact import exact
from ..commands import CommandGroup, Given
from ..mirrored import MirroredKind, OrderOperation
from ..outside import ListForm, Paged

StateWanted = Literal[ApprovalState, "all"]


# ---------------------------------------------------------------- what comes in and goes out


class Decide(RequestBody, frozen=True, kw_only=True):
    """A verdict. `digest` makes sure that it is about the arguments that were read."""

    verdict: Verdict
    digest: str | None = None
    """As it was listed; absent: whatever is listed now."""
    input: dict[str, Any] | None = None
    """`edit`: the arguments to run instead."""
    text: str | None = None
    """`answer`: what to tell the agent; `reject`: why, if you like."""


class ApprovalView(Answer, frozen=True, kw_only=True):
    """A call that waits for a person, or a question to them (`tool` is ask_user)."""

    id: str
    name: str
    """Short: what a person says to decide, as in `accept a7k2`; any call takes it for the id."""
    session_key: str
    """Who asks: a conversation, or a session of the agent's own."""
    tool: str
    input: dict[str, Any]
    """The exact arguments."""
    digest: str
    risk: Risk
    reason: str
    asked_at: Instant
    expires_at: Instant
    caused_by: str
    state: ApprovalState
    is_tainted: bool = False
    """Untrusted content had a part in it."""
    decided_at: Instant | None = None
    decided_by: str = ""
    decided_channel: str = ""
    """Over which the verdict came; empty: the API, which the console and commands ask, too."""
    edited: dict[str, Any] | None = None
    text: str = ""
    call_id: str = ""
    """The effect that ran it: `vigil why` takes it."""
    fields: dict[str, Any] | None = None
    """It is asked by the tool's server, in the middle of a call: the JSON Schema of each field that
    `edit` fills in by its `input`; of one field alone `answer` tells the value. `reject`
    declines."""


class ApprovalList(Paged, frozen=True, kw_only=True):
    """Requests to a person, the newest first."""

    approvals: tuple[ApprovalView, ...]


# ---------------------------------------------------------------- on the command line


COMMANDS: Final = CommandGroup(
    help="Calls and questions that wait for you: list, show, accept, edit, answer, reject. "
    "Default: list.",
    list_text="List what waits for you with the exact arguments, the newest first.",
    choice=Given("state", "Only those that are so.", "--state", default="open", kind=StateWanted),
    lists_all=True,
    id_help="Of a request, as `vigil approvals` lists; its beginning is enough.",
    empty="No approvals: {}.",
    empty_unchosen="Nothing waits for you.",
    columns=(
        Column("NAME", "name"),
        Column("STATE", "state"),
        Column("EXPIRES", "expires_at", is_instant=True, rank=1),
        Column("RISK", "risk", rank=2),
        Column("TOOL", "tool"),
        Column("ARGUMENTS", lambda one: exact(one["input"]), length_max=80),
        Column("SESSION", "session_key", rank=3),
    ),
    show_text="Show one, with the exact arguments and why it has to wait.",
    fields=(
        Column("id", "id"),
        Column("name", "name"),
        Column("state", "state"),
        Column("tool", "tool"),
        Column("risk", "risk"),
        Column("why", "reason"),
        Column("taint", lambda one: one.get("is_tainted") and "untrusted content had a part in it"),
        Column("session", "session_key"),
        Column("asked", "asked_at", is_instant=True),
        Column("expires", "expires_at", is_instant=True),
        Column("digest", "digest"),
        Column("decided", "decided_at", is_instant=True),
        Column("by", "decided_by"),
        Column("over", "decided_channel"),
        Column("said", "text"),
        Column("call", "call_id"),
    ),
    documents={"arguments": "input", "edited": "edited"},
    words="name",
    offered="tool",
)

KIND: Final = MirroredKind(
    record=Approval,
    called="an approval",
    plural="approvals",
    short_name=SHORT_NAME,
    view=ApprovalView,
    session_text="Only those that this session asks",
    lists=ListForm(
        text="List what waits for a person, the newest first: one's own and one's teams', or an\n"
        "admin everybody's.",
        answer=ApprovalList,
        by="state",
        choices=StateWanted,
        default="open",
        said="all: whatever became of them",
        limit=100,
    ),
    show_text="Show one request, with the exact arguments.",
    changes=OrderOperation(
        name="decide_approval",
        text="Accept, edit, answer or reject; 409 if it was decided, or isn't what you read.\n\n"
        "The same verdict again is the same event. What comes of it is in the session that asked.",
        body=Decide,
    ),
    examples={
        Decide: {
            "accept": {"verdict": "accept"},
            "reject": {"verdict": "reject", "text": "not on a Friday"},
        },
    },
    commands=COMMANDS,
)
