"""Goals, preferences, actions and bulletins for tests, and as the golden files have them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final

from msgspec.structs import replace

from vigil import contracts
from vigil.contracts import BoardEntry, Change
from vigil.contracts.board import BoardAction, BoardBulletin, BoardGoal, BoardPreference
from vigil.contracts.board.action import ActionFeedback
from vigil.contracts.board.preference import Lesson, LessonKind
from vigil.preferences.check import id_of
from vigil.subjects import Scope

AT: Final = datetime(2026, 11, 20, 9, 0, 0, 123456, tzinfo=UTC)
ANN: Final = Scope("vigil", "ann")


def goal_of(**changes: Any) -> BoardGoal:
    """A goal of Ann's."""
    return BoardGoal(
        **{
            "id": "a" * 32,
            "owner": "ann",
            "agent": "vigil",
            "description": "Keep the inbox clean",
            "check_interval_s": 3600,
            "created_at": AT,
            "moved_at": AT,
            **changes,
        }
    )


def lesson_of(
    value: Any = "short", how: LessonKind = "observed", at: datetime = AT, **changes: Any
) -> BoardPreference:
    """What one lesson of Ann's says."""
    cause = changes.pop("cause", "")
    return BoardPreference(
        **{
            "id": id_of(ANN, "answers"),
            "owner": "ann",
            "agent": "vigil",
            "category": "communication",
            "key": "answers",
            "value": value,
            "confidence": 0.0,
            "last_confirmed_at": at,
            "created_at": at,
            "learned_from": (Lesson(how=how, at=at, cause=cause),),
            **changes,
        }
    )


def action_of(**changes: Any) -> BoardAction:
    """Something that Ann's agent did by itself."""
    return BoardAction(
        **{
            "id": "b" * 32,
            "owner": "ann",
            "agent": "vigil",
            "type": "shell",
            "description": "df -h",
            "created_at": AT,
            **changes,
        }
    )


GOAL: Final = goal_of(
    goal_kind="timed",
    deadline_at=AT.replace(year=2027),
    status="paused",
    priority=5,
    success_criteria="No letter is older than a day.",
    strategy="Sort what is new each morning.",
    last_checked_at=AT,
    source_channel="mail",
    origin="self",
    parent="c" * 32,
    session_key="ann:vigil:t1",
    is_tainted=True,
)
PREFERENCE: Final = BoardPreference(
    id="d" * 32,
    owner="ann",
    agent="vigil",
    category="code",
    key="auto_merge",
    value={"approved": True},
    is_negative=True,
    confidence=0.9,
    learned_from=(
        Lesson(how="corrected", at=AT, text="don't", cause="e1", session_key="ann:vigil:t1"),
    ),
    last_confirmed_at=AT,
    created_at=AT,
    is_removed=True,
)
ACTION: Final = action_of(
    number=7,
    goal="a" * 32,
    outcome="success",
    session_key="ann:vigil:t1",
    is_tainted=True,
    feedback=ActionFeedback(is_good=False, text="ask first", by="ann", at=AT),
    ended_at=AT,
)
BULLETIN: Final = BoardBulletin(
    owner="ann",
    agent="vigil",
    text="Goals:\n- Keep the inbox clean",
    short="Goals:",
    is_empty=True,
    made_at=AT,
)
WORDED: Final = replace(
    BULLETIN,
    text="Ann keeps her inbox clean.",
    status="Tasks:\n- ready, 1: Look into CI",
    is_empty=False,
    made_by="model",
    digest="d" * 64,
)


def _entry(entity: BoardGoal | BoardPreference | BoardAction | BoardBulletin) -> BoardEntry:
    change = Change(by="vigil", why="she asked", cause="c" * 32)
    return BoardEntry(entity=entity, turn_seq=0, at=AT, change=change)


SAMPLES: Final[dict[str, tuple[Callable[[bytes], Any], Any]]] = {
    "board.goal": (contracts.decode_board, _entry(GOAL)),
    "board.preference": (contracts.decode_board, _entry(PREFERENCE)),
    "board.action": (contracts.decode_board, _entry(ACTION)),
    "board.bulletin": (contracts.decode_board, _entry(BULLETIN)),
    "board.bulletin.worded": (contracts.decode_board, _entry(WORDED)),
}
