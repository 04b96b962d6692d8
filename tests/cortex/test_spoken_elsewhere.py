"""A verdict in words that is said in another conversation than the one that asked (X-2, L-9)."""

from __future__ import annotations

from typing import Final

from tests.cortex.driver import answer
from tests.cortex.spoken import carry_out, verdicts_of
from tests.cortex.test_core_approvals import WIPE, asked_driver, driver_of, run
from tests.support.approvals import request
from vigil.contracts import TellPerson, TellPersonPayload, Turn
from vigil.subjects import SessionKey

OTHER: Final = "ann:vigil:other"
ID: Final = "0123456789abcdef0123456789abcdef"


def told_of(turns: list[Turn]) -> list[TellPersonPayload]:
    """Return what turns have other sessions say."""
    return [e.payload for turn in turns for e in turn.effects if isinstance(e, TellPerson)]


def test_where_it_was_said_goes_with_it() -> None:
    """Only if that isn't the conversation that asked: there it's known by the claim."""
    driver = driver_of(answer("Hello."))
    driver.named = (request(SessionKey.parse(OTHER), ID),)
    (sent,) = verdicts_of(driver.user(f"reject {ID}"))
    assert (sent.payload.session_key, sent.payload.decision.said_in) == (OTHER, driver.key)
    driver = asked_driver(WIPE, answer("It stays."))
    (sent,) = verdicts_of(driver.user(f"reject {driver.board[0].id}"))
    assert sent.payload.decision.said_in == ""


def test_who_was_too_late_there_is_told_there() -> None:
    """They were told "Accepted", and may never look into the conversation that asked."""
    driver = asked_driver(WIPE, answer("It stays."))
    (approval,) = driver.board
    (order,) = verdicts_of(driver.user(f"reject {approval.name}"))
    said = len(driver.texts)
    (told,) = told_of(driver.feed(driver.decision("accept", approval.id, said_in=OTHER)))
    assert told.home == OTHER
    assert told.told.text.startswith(f"Too late: {approval.name} was rejected by ann at ")
    assert (told.told.urgency, told.told.is_ordered) == ("high", True)
    assert len(driver.texts) == said, "and nobody else"
    carry_out(driver, order)
    assert [one.state for one in driver.board] == ["open", "rejected"]
    assert run(driver) == []


def test_one_that_does_not_fit_is_told_there_and_the_request_stays_open() -> None:
    """Its tool went meanwhile."""
    driver = asked_driver(WIPE, answer("It stays."))
    (approval,) = driver.board
    driver.tools = {}
    (told,) = told_of(driver.feed(driver.decision("accept", approval.id, said_in=OTHER)))
    assert told.home == OTHER
    assert told.told.text.startswith(f"{approval.name} still waits for you: ")
    assert list(driver.state.approvals) == [approval.id]


def test_one_after_the_deadline_is_told_there() -> None:
    """The event of the deadline is on its way."""
    driver = asked_driver(WIPE, answer("It stays."))
    (approval,) = driver.board
    driver.now = approval.expires_at
    (told,) = told_of(driver.feed(driver.decision("accept", approval.id, said_in=OTHER)))
    assert told.home == OTHER
    assert "expired" in told.told.text
    assert run(driver) == []
