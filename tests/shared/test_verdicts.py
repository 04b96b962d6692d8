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


ASKED = "asked.files__move."


def test_one_no_is_one_no() -> None:
    """F-16: "not now" to one call was told to every conversation as how the person likes it."""
    for text in ("", "not now", "Never mind.", "no, I do it myself", "did you never see it?"):
        assert taught(decided("rejected", text=text)) == [], text
    twice = [decided("rejected", number, text="not now") for number in (1, 2)]
    assert lessons_of(twice[1], ANN, twice) == ()


def test_a_rejection_for_good_teaches_of_that_call_what_was_said_to_it() -> None:
    ((key, value, how),) = taught(decided("rejected", text=" never on\nFridays "))
    assert (key.startswith(ASKED), how) == (True, "said")
    assert value == 'never on Fridays: {"path":"a","to":"b"}'
    ((other, _, _),) = taught(decided("rejected", text="never", input={"path": "z"}))
    assert other.startswith(ASKED)
    assert other != key, "a second one replaces no other"
    ((_, value, _),) = taught(decided("rejected", text="never " + "\u00e9\U0001f600" * 4_000))
    assert 100 < len(value) < 200


def test_the_third_rejection_in_a_row_of_the_same_call_teaches() -> None:
    """F-16: whatever session asked; what was let run in between begins the count anew."""

    def at(number: int, state: str = "rejected", **changes: Any) -> Approval:
        return decided(state, number, decided_at=AT + timedelta(hours=number), **changes)

    two, third = [at(1), at(2, session_key="ann:vigil:t2", text="not now")], at(3)
    ((key, value, how),) = (
        (one.key, one.value, one.learned_from[0].how) for one in lessons_of(third, ANN, two)
    )
    assert (key.startswith(ASKED), how) == (True, "observed")
    assert value == f'{REJECTED}: {{"path":"a","to":"b"}}'
    for others in (
        [two[0], two[0], third],
        [two[0], at(2, "accepted")],
        [two[0], at(2, is_tainted=True)],
        [two[0], at(2, "expired")],
        [two[0], at(2, input={"path": "a", "to": "c"})],
        [two[0], at(-24 * 30)],
    ):
        assert lessons_of(third, ANN, others) == (), others


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
