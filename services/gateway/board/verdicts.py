"""What a person may say to a request over HTTP, and why one doesn't count. Pure.

It is by hand beside the kind (`vigil.board.kinds.approval`): words on a channel become verdicts by
another way, and all of them meet in the session that asked.

A verdict holds for the exact arguments that were shown: it names their digest, and whoever leaves
that out takes the one on the board, which never changes for the life of a request. Whether it
still counts is decided in the session; here only what can't fit is refused.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from vigil.board.kinds.approval import Decide
from vigil.contracts import Approval, Decision, State, canonical
from vigil.contracts.board.approval import DECIDED
from vigil.errors import InvalidInput
from vigil.subjects import token_of
from vigil.texts.verdict import became

from ..http.decide import check_text
from ..http.problem import Problem

INPUT_BYTES_MAX: Final = 64 * 1024


def decision_of(approval: Approval, wanted: Decide, by: str) -> Decision:
    """Return the decision that a body stands for.

    Raises:
        InvalidInput: it doesn't fit what is asked, naming the field.
    """
    _check_fits(approval, wanted)
    return Decision(
        approval_id=approval.id,
        verdict=wanted.verdict,
        digest=approval.digest if wanted.digest is None else wanted.digest,
        by=by,
        input=wanted.input,
        text=wanted.text or "",
    )


def _check_fits(approval: Approval, wanted: Decide) -> None:
    verdict = wanted.verdict
    if approval.is_question and verdict in ("accept", "edit"):
        raise InvalidInput("verdict", f"{verdict!r} fits no question: answer it, or reject it")
    if (verdict == "edit") != (wanted.input is not None):
        reason = "is required to edit" if verdict == "edit" else "fits only the verdict 'edit'"
        raise InvalidInput("input", reason)
    if wanted.input is not None and len(canonical(wanted.input)) > INPUT_BYTES_MAX:
        raise InvalidInput("input", f"must have at most {INPUT_BYTES_MAX} bytes as JSON")
    if verdict == "answer" and wanted.text is None:
        raise InvalidInput("text", "is required to answer")
    if wanted.text is None:
        return
    if verdict not in ("answer", "reject"):
        raise InvalidInput("text", "fits only the verdicts 'answer' and 'reject'")
    if wanted.text or verdict == "answer":
        check_text("text", wanted.text, bytes_max=INPUT_BYTES_MAX)


def event_id_of(decision: Decision) -> str:
    """Return the id of the event of a decision: the same for the same, in the form of a uuid."""
    parts = canonical(msgspec.to_builtins(decision)).decode()
    token = token_of("approval", parts)
    return f"{token[:8]}-{token[8:12]}-{token[12:16]}-{token[16:20]}-{token[20:]}"


def check_counts(approval: Approval, decision: Decision) -> None:
    """Refuse a word that isn't what was decided, also if the very same was taken in before: then
    another's was faster.

    Raises:
        Problem: 409, in words what was decided, and by whom.
    """
    if approval.state not in ("open", DECIDED[decision.verdict]):
        raise Problem(409, f"it was {became(approval)}")


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
