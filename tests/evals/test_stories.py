"""The form of stories, with what a stranger gets wrong in it, and the verdict on what happened."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import pytest

from vigil.errors import InvalidInput
from vigil.evals.files import STARTER, check_names, of_text, starter
from vigil.evals.judged import Happened, SaidMessage, ToolWish, missed
from vigil.evals.story import EvalStep, EvalStory, Expected

MONDAY: Final = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
VIENNA: Final = ZoneInfo("Europe/Vienna")
GOOD: Final = """
[[story]]
name = "stretch"
[[story.step]]
say = "Remind me in two hours to stretch"
called = ["schedule_followup"]
[[story.step]]
wait = "3 hours"
told = ["stretch"]
by = "11:00"
"""


def test_a_story_is_read_as_it_is_written() -> None:
    (story,) = of_text(GOOD, "a.toml")
    assert [step.action for step in story.step] == ["say", "wait"]
    assert story.step[1].told == ("stretch",)


TOLD: Final = 'told = ["stretch"]'
WAIT: Final = 'wait = "3 hours"'
NAMED: Final = 'name = "stretch"'


@pytest.mark.parametrize(
    ("before", "after", "line", "reason"),
    [
        (TOLD, 'tolld = ["x"]', 9, "step.2.tolld: there is no such key; did you mean told?"),
        (WAIT, 'wait = "a while"', 8, "step.2.wait: 'a while' is no time"),
        (f"{WAIT}\n", "", 7, "step.2: must have one of say, decide, wait"),
        (TOLD, 'told = "stretch"', 9, "step.2.told: Expected `array`"),
        (TOLD, 'told = ["/(/"]', 9, "step.2.told: /(/ can't be read"),
        (
            TOLD,
            'told = ["/a{99999999999999}/"]',
            9,
            "step.2.told: /a{99999999999999}/ can't be read",
        ),
        (TOLD, f"told = ['/{'(' * 5000}/']", 9, "can't be read"),
        (NAMED, f'{NAMED}\nquiet_hours = "night"', 4, "quiet_hours: 'night' must be HH:MM-HH:MM"),
        ("[[story]]", f"a = {'1' * 5000}\n[[story]]", 0, "is no TOML"),
        ("[[story]]", f"a = {'[' * 5000}\n[[story]]", 0, "is no TOML"),
        ('by = "11:00"', 'by = "25:00"', 10, "step.2.by: '25:00': there is no such hour"),
        (f"{TOLD}\n", "", 9, "step.2.by: needs `said` or `told`"),
        (NAMED, f'{NAMED}\ntimezone = "Vienna"', 4, "timezone: "),
        (NAMED, 'nam = "stretch"', 3, "nam: there is no such key; did you mean name?"),
        ("[[story]]", "[[story]", 0, "is no TOML"),
        (GOOD, "[story]\nname = 1", 0, "there is no [[story]] in it"),
    ],
)
def test_a_mistake_is_told_with_its_line_story_and_field(
    before: str, after: str, line: int, reason: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        of_text(GOOD.replace(before, after, 1), "a.toml")
    assert reason in str(refused.value)
    assert not line or f"line {line}, story " in str(refused.value)
    assert refused.value.field == "a.toml"


def test_all_mistakes_of_a_file_are_told_at_once() -> None:
    with pytest.raises(InvalidInput) as refused:
        of_text(GOOD.replace("told =", "tell =") + GOOD.replace("say =", "sai ="), "a.toml")
    assert str(refused.value).count("line ") == 2


def _happened(**of: Any) -> Happened:
    messages = (
        SaidMessage(at=MONDAY, text="I'll remind you."),
        SaidMessage(at=MONDAY + timedelta(hours=2), text="Time to STRETCH", is_unasked=True),
    )
    return Happened(began_at=MONDAY, **{"messages": messages} | of)


@pytest.mark.parametrize(
    ("expected", "fields"),
    [
        ({"said": ("stretch", "/^i'll/")}, ""),
        ({"told": ("remind",)}, "told"),
        ({"not_said": ("stretch",), "quiet": True}, "not_said quiet"),
        ({"told": ("stretch",), "by": "11:00"}, ""),  # in Vienna it's said at eleven
        ({"told": ("stretch",), "by": "10:59"}, "told"),
        ({"told": ("stretch",), "not_before": "11:01"}, "told"),
        ({"called": ("mem*",), "not_called": ("shell",), "not_asked": ("*",)}, ""),
        ({"called": ("shell",), "not_called": ("memory_*",)}, "called not_called"),
        ({"asked": ("shell",)}, "asked"),
        ({"ran": ("memory_save",), "not_ran": ("shell",)}, "ran"),
        ({"remembered": ("dr. ray",), "not_remembered": ("4711",)}, ""),
        ({"remembered": ("4711",), "not_remembered": ("ray",)}, "remembered not_remembered"),
        ({"planned": 0, "messages_max": 1}, "messages_max planned"),
        ({"calls_max": 2, "tokens_max": 99, "usd_max": 0.001}, "calls_max tokens_max usd_max"),
        ({"planned": 1, "messages_max": 2, "calls_max": 3}, ""),
        ({"tokens_max": 100, "usd_max": 0.002}, ""),
    ],
)
def test_what_does_not_hold_is_named(expected: dict[str, Any], fields: str) -> None:
    found = _happened(
        calls=(ToolWish(tool="memory_save", given={"content": "x"}),),
        memories=("Ann's dentist is Dr. Ray",),
        planned=("stretch",),
        model_calls=3,
        tokens=100,
        micro_usd=2000,
    )
    assert [one.field for one in missed(Expected(**expected), found, VIENNA)] == fields.split()


def test_a_cost_is_not_held_by_a_model_without_prices() -> None:
    (one,) = missed(Expected(usd_max=1.0), _happened(micro_usd=None), VIENNA)
    assert (one.field, one.found) == ("usd_max", "no price is known")


def test_the_page_on_evals_tells_every_key_and_its_example_is_a_story() -> None:
    page = (Path(__file__).parents[2] / "docs" / "evals.md").read_text("utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    assert of_text(example, "docs/evals.md")
    fields = {*EvalStory.__struct_fields__, *EvalStep.__struct_fields__}
    told = set(re.findall(r"`\[*(?:story\.)?(\w+)\]*`", page))
    assert fields - told == set()


def test_the_starter_set_is_forty_stories_eight_of_each_theme() -> None:
    stories = [story for theme in STARTER for story in starter(theme)]
    check_names(stories)
    assert Counter(story.theme for story in stories) == dict.fromkeys(STARTER, 8)
    assert all(story.why for story in stories)
