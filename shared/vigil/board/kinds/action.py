"""Actions: what agents did without being asked, and how people liked it (SPEC G-5). Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...actions import log
from ...contracts import Instant
from ...contracts.board import BoardAction
from ...contracts.board.action import ActionFeedback, ActionOutcome
from ...fields.bodies import Answer, RequestBody
from ...fields.schema import NO_NUL, length
from ...texts.columns import Column
from ..commands import SHORT_ID, WHOSE, Command, CommandGroup, Given
from ..kind import KeptKind
from ..outside import BoardKind, ChangeOperation, ListOperation, Occasion, Paged

ACTIONS: Final = KeptKind(BoardAction, 0, lambda _one, _now: False, log.numbered, log.place_of)


# ---------------------------------------------------------------- what comes in and goes out


class FeedbackBody(RequestBody, frozen=True, kw_only=True):
    """What you think of an action."""

    is_good: bool
    text: str = ""
    """In at most 1,000 characters."""


class ActionView(Answer, frozen=True, kw_only=True):
    """Something that an agent did by itself."""

    id: str
    number: int
    owner: str
    agent_id: str
    type: str
    """The tool that was called."""
    description: str
    goal: str
    outcome: ActionOutcome
    """`unknown`: whether it was done can't be told."""
    session_key: str
    is_tainted: bool
    feedback: ActionFeedback | None
    created_at: Instant
    ended_at: Instant | None
    revision: int


class ActionListing(Paged, frozen=True, kw_only=True):
    """Actions, the newest first."""

    actions: tuple[ActionView, ...]


# ---------------------------------------------------------------- what is done


def _judged(action: BoardAction, wanted: FeedbackBody, occasion: Occasion) -> BoardAction:
    said = ActionFeedback(is_good=wanted.is_good, text=wanted.text, by=occasion.by, at=occasion.now)
    return log.judged(action, said)


# ---------------------------------------------------------------- on the command line


def _feedback(one: Mapping[str, Any]) -> str:
    """Write what a person said of an action.

    >>> _feedback({"feedback": {"is_good": False, "text": "ask first"}}), _feedback({})
    ('disliked: ask first', '')
    """
    said = one.get("feedback")
    if not said:
        return ""
    return ": ".join(filter(None, ("liked" if said["is_good"] else "disliked", said.get("text"))))


def _judging(name: str, text: str, *, is_good: bool) -> Command:
    return Command(
        name,
        text,
        "change",
        gives=(Given("text", "What you think of it.", default=""),),
        always={"is_good": is_good},
        has_why=False,
        summary=lambda one: f"You {_feedback(one)}",
    )


COMMANDS: Final = CommandGroup(
    help="What an agent did without being asked: list, show, like, dislike. Default: list.",
    list_text=(
        "List actions, the newest first: your own agents', or with an admin token everybody's."
    ),
    columns=(
        SHORT_ID,
        Column("AT", "created_at", is_instant=True),
        Column("TOOL", "type"),
        Column("WHAT", "description", length_max=60),
        Column("OUTCOME", "outcome"),
        Column("FEEDBACK", _feedback, rank=1),
    ),
    show_text="Show one: exactly what was done.",
    texts_before=("description",),
    fields=(
        *WHOSE,
        Column("tool", "type"),
        Column("outcome", "outcome"),
        Column("session", "session_key"),
        Column("goal", "goal"),
        Column("from outside content", lambda one: "yes" if one["is_tainted"] else "no"),
        Column("feedback", _feedback),
        Column("done", "created_at", is_instant=True),
        Column("ended", "ended_at", is_instant=True),
        Column("revision", "revision"),
    ),
    words="description",
    commands=(
        _judging("like", "Say that an action was right.", is_good=True),
        _judging("dislike", "Say that an action was wrong.", is_good=False),
    ),
)

KIND: Final = BoardKind(
    kept=ACTIONS,
    called="an action",
    plural="actions",
    view=ActionView,
    lists=ListOperation(
        text="List what agents did without being asked, the newest first: 1,000 of each are kept.",
        answer=ActionListing,
        by="outcome",
        choices=ActionOutcome,
        shows=lambda one, outcome, _: outcome in (None, one.outcome),
        rank=lambda found, _: (found.entity.created_at, found.entity.number),
        is_newest_first=True,
        limit=100,
    ),
    changes=ChangeOperation(
        name="judge_action",
        text="Say what you think of an action; your newest word holds.",
        body=FeedbackBody,
        change=_judged,
    ),
    limits={FeedbackBody: {"text": length(log.FEEDBACK_LENGTH_MAX, NO_NUL)}},
    examples={FeedbackBody: {"it was wrong": {"is_good": False, "text": "ask me first"}}},
    commands=COMMANDS,
)
