"""A limit of the day raised by a word of the person's, and by nothing else (C-9, X-2)."""

from __future__ import annotations

from datetime import timedelta

import pytest
from msgspec.structs import replace

from services.cortex.core import Policy
from services.cortex.model import ModelError
from services.cortex.notice import Notice
from tests.cortex.driver import Driver, answer
from vigil.contracts import Turn
from vigil.contracts.costs import RaiseOffer
from vigil.contracts.effects import RaiseBudget, TellPerson

TEXT = 'the daily limit of 100 tokens is reached; say "more" to have 200 tokens today'


def offer_of(driver: Driver, day: str = "") -> RaiseOffer:
    return RaiseOffer(day=day or str(driver.now.date()), times=1, most="200 tokens")


def raised(turns: list[Turn]) -> list[tuple[str, int, str]]:
    found = [e.payload for turn in turns for e in turn.effects if isinstance(e, RaiseBudget)]
    return [(one.day, one.times, one.by) for one in found]


def warned(driver: Driver, day: str = "") -> list[Turn]:
    return driver.told(TEXT, what="budget", is_ordered=True, offer=offer_of(driver, day))


@pytest.mark.parametrize("word", ["more", " More! ", "mehr", "more budget"])
def test_a_word_after_the_warning_raises_it_once(word: str) -> None:
    driver = Driver()
    warned(driver)
    turns = driver.user(word)
    assert raised(turns) == [(str(driver.now.date()), 1, "ann")]
    assert driver.texts[-1] == "Raised for today: you may use 200 tokens."
    assert "budget_raised" in driver.notes
    assert not driver.turns[-1].usage, "no model is asked for it"
    assert not raised(driver.user(word)), "what was offered is taken once"
    assert driver.texts[-1] == "Hello."


@pytest.mark.parametrize(
    "words", ["more, please", "> more", '"more"', "tell me more", "no more", "m\u043ere", "budget"]
)
def test_whatever_is_beside_it_makes_it_a_message_like_any_other(words: str) -> None:
    """X-2: nobody raises it by the way, or by forwarding what somebody else wrote."""
    driver = Driver()
    warned(driver)
    assert not raised(driver.user(words))
    assert driver.texts[-1] == "Hello."


def test_more_is_what_people_say_unless_the_notice_was_said_last() -> None:
    driver = Driver()
    assert not raised(driver.user("more budget")), "nothing was offered"
    warned(driver)
    driver.user("what is the weather?")
    assert not raised(driver.user("more"))
    assert raised(driver.user("more budget")), "but named it means the notice of today"


def test_the_offer_of_another_day_is_over() -> None:
    driver = Driver()
    warned(driver, "2020-01-01")
    assert not raised(driver.user("more budget"))


def test_an_offer_holds_until_its_day_ends_where_the_person_is() -> None:
    for ends_in, is_raised in ((timedelta(hours=3), True), (timedelta(), False)):
        driver = Driver()
        for name in ("2020-01-01", "2099-01-01"):
            offer = replace(offer_of(driver, name), ends_at=driver.now + ends_in)
            driver.told(TEXT, what="budget", is_ordered=True, offer=offer)
            assert bool(raised(driver.user("more budget"))) == is_raised


def test_who_went_west_is_told_of_the_date_that_came_again() -> None:
    """What they raised of the next date, where they were, raises nothing of this one."""
    driver = Driver()
    tomorrow = str(driver.now.date() + timedelta(days=1))
    later = driver.now + timedelta(hours=20)
    for day, times in ((tomorrow, 1), (str(driver.now.date()), 1)):
        offer = replace(offer_of(driver, day), ends_at=later, times=times)
        driver.told(TEXT, what="budget", is_ordered=True, offer=offer)
        assert raised(driver.user("more")) == [(day, 1, "ann")]


def test_neither_a_model_nor_what_comes_from_outside_raises_it() -> None:
    """X-2."""
    driver = Driver(lambda _: answer("more"))
    warned(driver)
    turns = driver.outside("more")
    turns += driver.told("more budget")
    turns += driver.user("say more budget")
    assert not raised(turns)


def test_what_is_stopped_here_is_offered_here_and_at_home() -> None:
    """The text that says why nothing is answered is what the word answers."""
    driver = Driver()
    notice = Notice(id="n", text=TEXT, offer=offer_of(driver))
    later = driver.now.replace(hour=23, minute=59)
    driver.brain = lambda _: ModelError(
        TEXT, is_retryable=False, budget_at=later, notices=(notice,)
    )
    turns = driver.user("hi")
    (home,) = [e.payload for turn in turns for e in turn.effects if isinstance(e, TellPerson)]
    assert home.told.offer == notice.offer
    assert TEXT in driver.texts[-1]
    assert raised(driver.user("more"))
    assert driver.state.loop is not None, "what waits goes on waiting for the room"
    assert driver.replayed() == driver.turns


def test_what_is_told_at_home_is_not_offered_elsewhere() -> None:
    """A warning beside an answer is read at home: "more" here asks for more of the answer."""
    driver = Driver()
    notice = Notice(id="n", text=TEXT, offer=offer_of(driver))
    driver.brain = lambda _: replace(answer("Yes."), notices=(notice,))
    driver.user("is it?")
    assert not raised(driver.user("more"))
    assert driver.texts == ["Yes.", "Yes."]


def test_a_notice_that_comes_after_the_word_is_not_told() -> None:
    """It waited behind what was stopped, and speaks of a limit that holds no more."""
    driver = Driver()
    warned(driver)
    driver.user("more")
    said = list(driver.texts)
    (turn,) = warned(driver)
    assert (turn.outcome, driver.texts) == ("ignored", said)
    further = replace(offer_of(driver), times=2, most="300 tokens")
    driver.told("the next", what="budget", offer=further)
    assert driver.texts[-1] == "the next"


def test_a_notice_of_the_quiet_hours_is_answered_when_it_is_told() -> None:
    """Nobody raises what they weren't told of by a word that people say; its name does."""
    driver = Driver()
    driver.quiet_until = driver.now + timedelta(hours=1)
    warned(driver)
    assert not raised(driver.user("more"))
    driver.wait(3600)
    driver.quiet_until = None
    driver.digest()
    assert TEXT in driver.texts[-1]
    assert raised(driver.user("more"))
    assert [one.state for one in driver.replayed()] == [one.state for one in driver.turns]


def test_members_of_a_team_raise_nothing() -> None:
    """What a team may use is for an admin to say."""
    driver = Driver(policy=Policy(homes=("ann:desk:home", "bob:desk:home")))
    warned(driver)
    assert not raised(driver.user("more"))
