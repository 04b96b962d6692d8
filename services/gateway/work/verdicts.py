"""Approvals as a client sees them, and what a person may say to one. Pure.

A verdict holds for the exact arguments that were shown: it names their digest, and whoever leaves
that out takes the one on the board, which never changes for the life of a request. Whether it
still counts is decided in the session; here only what can't fit is refused.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final, Literal

import msgspec

from vigil.contracts import (
    Approval,
    ApprovalState,
    Decision,
    Instant,
    Risk,
    State,
    Verdict,
    canonical,
)
from vigil.errors import InvalidInput
from vigil.subjects import token_of
from vigil.texts.verdict import became

from ..http.decide import check_text
from ..http.problem import Problem
from ..http.wire import Answer, RequestBody

INPUT_BYTES_MAX: Final = 64 * 1024


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


class ApprovalList(Answer, frozen=True, kw_only=True):
    """Requests to a person, the newest first."""

    approvals: tuple[ApprovalView, ...]


StateWanted = Literal[ApprovalState, "all"]


def view(approval: Approval) -> ApprovalView:
    """Translate an approval for a client."""
    names = ApprovalView.__struct_fields__
    return ApprovalView(**{name: getattr(approval, name) for name in names})


def decision_of(approval: Approval, told: Decide, by: str) -> Decision:
    """Return the decision that a body stands for.

    Raises:
        InvalidInput: it doesn't fit what is asked, naming the field.
    """
    _check_fits(approval, told)
    return Decision(
        approval_id=approval.id,
        verdict=told.verdict,
        digest=approval.digest if told.digest is None else told.digest,
        by=by,
        input=told.input,
        text=told.text or "",
    )


def _check_fits(approval: Approval, told: Decide) -> None:
    verdict = told.verdict
    if approval.is_question and verdict in ("accept", "edit"):
        raise InvalidInput("verdict", f"{verdict!r} fits no question: answer it, or reject it")
    if (verdict == "edit") != (told.input is not None):
        reason = "is required to edit" if verdict == "edit" else "fits only the verdict 'edit'"
        raise InvalidInput("input", reason)
    if told.input is not None and len(canonical(told.input)) > INPUT_BYTES_MAX:
        raise InvalidInput("input", f"must have at most {INPUT_BYTES_MAX} bytes as JSON")
    if verdict == "answer" and told.text is None:
        raise InvalidInput("text", "is required to answer")
    if told.text is None:
        return
    if verdict not in ("answer", "reject"):
        raise InvalidInput("text", "fits only the verdicts 'answer' and 'reject'")
    if told.text or verdict == "answer":
        check_text("text", told.text, bytes_max=INPUT_BYTES_MAX)


def event_id_of(decision: Decision) -> str:
    """Return the id of the event of a decision: the same for the same, in the form of a uuid."""
    parts = canonical(msgspec.to_builtins(decision)).decode()
    token = token_of("approval", parts)
    return f"{token[:8]}-{token[8:12]}-{token[12:16]}-{token[16:20]}-{token[20:]}"


def check_is_open(approval: Approval, state: State | None, now: datetime) -> None:
    """What counts is the session's state; the board may be a moment behind.

    Args:
        approval: as the board has it.
        state: of the session that asked.

    Raises:
        Problem: 409, in words what was decided, and by whom.
    """
    if approval.state != "open":
        raise Problem(409, f"it was {became(approval)}")
    settled = () if state is None else state.settled
    for one in settled:
        if one.id == approval.id:
            raise Problem(409, f"it was {became(one)}")
    if state is None or approval.id not in state.approvals:
        raise Problem(409, "it was decided, or is no longer wanted")
    if approval.expires_at <= now:
        raise Problem(409, f"it expired at {approval.expires_at:%Y-%m-%d %H:%M:%S} UTC")


def on_its_way(decision: Decision) -> str:
    """Return what a verdict says that its session didn't take in yet: it may not count either."""
    over = f" over {decision.channel}" if decision.channel else ""
    return f"another verdict on it is on its way: {decision.verdict} by {decision.by}{over}"
