"""What verdicts teach, and when one proposes a grant (SPEC G-3, G-5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tests.support.goal_records import ANN, AT
from vigil.contracts import Approval
from vigil.preferences.verdicts import REJECTED, is_equal, lessons_of, proposal_id, proposes


def decided(state: str = "accepted", number: int = 1, **changes: Any) -> Approval:
    """A request of Ann's agent that she decided."""
    return Approval(**{
        "id": f"{number:032x}", "session_key": "ann:vigil:t1", "tool": "files__move",
        "input": {"path": "a", "to": "b"}, "digest": "0" * 64, "risk": "external",
        "reason": "nobody ordered it", "asked_at": AT, "expires_at": AT + timedelta(days=1),
        "caused_by": "e1", "state": state, "decided_at": AT, "decided_by": "ann", **changes,
    })  # fmt: skip


def taught(approval: Approval) -> list[tuple[str, Any, str]]:
    lessons = lessons_of(approval, ANN)
    return [(one.key, one.value, one.learned_from[0].how) for one in lessons]


def test_an_edit_teaches_what_the_person_put_in_its_place() -> None:
    edit = decided("edited", edited={"path": "a", "to": "c"})
    assert taught(edit) == [("asked.files__move.to", "c", "observed")]
    (lesson,) = lessons_of(edit, ANN)
    assert lesson.learned_from[0].cause == edit.id, "so that it teaches once"
    assert (lesson.category, lesson.owner) == ("workflow", "ann")


def test_a_rejection_teaches_what_was_said_to_it_or_that_it_was() -> None:
    assert taught(decided("rejected", text=" never on\nFridays ")) == [
        ("asked.files__move", "never on Fridays", "said")
    ]
    assert taught(decided("rejected")) == [("asked.files__move", REJECTED, "observed")]
    ((_, value, _),) = taught(decided("rejected", text="\u00e9\U0001f600" * 4_000))
    assert 100 < len(value) < 200


@pytest.mark.parametrize(
    "approval",
    [
        decided("rejected", is_tainted=True, text="never"),
        decided("edited", is_tainted=True, edited={"to": "c"}),
        decided("accepted"),
        decided("expired"),
        decided("rejected", tool="ask_user"),
        decided("edited", edited={"path": "a", "to": None}),
        decided("edited", edited={"path": "a", "to": "x" * 2_000}),
        decided("edited", edited={"path": "a", "to": "b", "../x": 1}),
        decided("edited", edited=dict.fromkeys("abcd", 1)),
        decided("edited", edited={"path": "a", "to": "b", "n" * 64: 1}),
    ],
)
def test_what_teaches_nothing(approval: Approval) -> None:
    assert taught(approval) == []


def test_the_third_equal_call_that_was_let_run_proposes_a_grant() -> None:
    """Whatever session it is of; what was edited counts as it ran."""
    edited = decided(
        "edited", 2, input={"path": "z", "to": "b"}, edited={"to": "b", "path": "a"},
        session_key="ann:vigil:t2",
    )  # fmt: skip
    three = [decided(), edited, decided(number=3)]
    assert proposes(three[0], three, AT)
    assert len({proposal_id(one, ANN) for one in three}) == 1
    assert not proposes(three[0], [*three[:2], three[1]], AT), "one of them twice"
    assert not proposes(three[0], three, AT + timedelta(days=30)), "long ago"
    for other in (
        decided(number=3, is_tainted=True),
        decided("rejected", 3),
        decided("open", 3, decided_at=None),
        decided(number=3, tool="files__copy"),
        decided(number=3, input={"path": "a", "to": "c"}),
    ):
        assert not is_equal(three[0], other)
        assert not proposes(three[0], [*three[:2], other], AT)
    gone = [decided(number=number, risk="destructive") for number in (1, 2, 3)]
    assert not proposes(gone[0], gone, AT), "it can't be undone"
