"""The form of a story: what is done in it, and what must hold after each step. Pure."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

import msgspec

from ..errors import InvalidInput
from ..settings.hours import hours_of
from ..zones.database import refusal_of, zone_named
from . import moments

Texts = tuple[Annotated[str, msgspec.Meta(min_length=1)], ...]
Names = tuple[Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9_*-]{1,100}$")], ...]
NAME: Final = r"^[a-z0-9][a-z0-9-]{0,79}$"
ACTIONS: Final = ("say", "decide", "wait", "until", "mail", "event", "page")


class StoryTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of a story's file: an unknown key is an error, so a typing mistake can't hide."""


class Expected(StoryTable, frozen=True, kw_only=True):
    """What must hold of a span of a story. A text stands anywhere, in any case; /…/ is a regular
    expression. A tool's name may end with a star."""

    said: Texts = ()
    """Each of them in a message to the person."""
    not_said: Texts = ()
    """None of them in any message."""
    told: Texts = ()
    """As `said`, in a message that comes unasked."""
    quiet: bool = False
    """Nothing comes unasked."""
    messages_max: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Messages to the person, answers too."""
    called: Names = ()
    """Tools that the agent wanted to run, each at least once."""
    not_called: Names = ()
    """Tools that it didn't even want to run."""
    ran: Names = ()
    """Tools that a service ran for it: of those that have an effect outside the agent."""
    not_ran: Names = ()
    """Tools that none ran."""
    asked: Names = ()
    """Tools for which it asked for leave."""
    not_asked: Names = ()
    """Tools for which it didn't."""
    remembered: Texts = ()
    """Each of them in a memory that stands at the end of the span."""
    not_remembered: Texts = ()
    """None of them in any memory."""
    planned: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Follow-ups and reminders that are open at the end of the span."""
    by: str = ""
    """By when what is `said` or `told` must be said: `11:00`, `Tuesday 07:00`."""
    not_before: str = ""
    """Before when none of it may be."""
    calls_max: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """Calls of a model, of all kinds."""
    tokens_max: Annotated[int, msgspec.Meta(ge=0)] | None = None
    """What they took."""
    usd_max: Annotated[float, msgspec.Meta(ge=0)] | None = None
    """What they cost; a model without prices doesn't hold it."""


class StagedMail(StoryTable, frozen=True, kw_only=True):
    """A mail that arrives. It's from outside: told to the agent, and no order."""

    sender: Annotated[str, msgspec.Meta(min_length=1)]
    subject: str = ""
    text: str = ""


class StagedEvent(StoryTable, frozen=True, kw_only=True):
    """What another system tells. It's from outside."""

    source: Annotated[str, msgspec.Meta(min_length=1)]
    text: Annotated[str, msgspec.Meta(min_length=1)]


class StagedPage(StoryTable, frozen=True, kw_only=True):
    """A page of the web as it is from now on. No story reaches any other."""

    url: Annotated[str, msgspec.Meta(pattern="^https?://")]
    text: str


class EvalStep(Expected, frozen=True, kw_only=True):
    """One thing that happens, and what must hold from then to the next."""

    say: str = ""
    """What the person says."""
    thread: Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,30}$")] = "main"
    """In which conversation."""
    decide: Literal["", "accept", "reject"] = ""
    """What the person says to all that waits for their leave."""
    wait: str = ""
    """How long nothing happens from outside: `2 hours`."""
    until: str = ""
    """Likewise, until a moment: `07:00`, `tomorrow 07:00`, `Tuesday 07:00`."""
    mail: StagedMail | None = None
    event: StagedEvent | None = None
    page: StagedPage | None = None

    @property
    def action(self) -> str:
        """Return which of `ACTIONS` it is. Raises: InvalidInput, if it's none, or two."""
        found = [name for name in ACTIONS if getattr(self, name)]
        if len(found) != 1:
            raise InvalidInput("step", f"must have one of {', '.join(ACTIONS)}; has {found or 0}")
        return found[0]

    @property
    def title(self) -> str:
        """Return it in a few words, for whoever looks for what went wrong."""
        words = {
            "say": self.say,
            "decide": f"{self.decide} what is asked",
            "wait": f"{self.wait} pass",
            "until": f"until {self.until}",
            "mail": f"mail: {self.mail.subject or self.mail.sender}" if self.mail else "",
            "event": f"event of {self.event.source}" if self.event else "",
            "page": self.page.url if self.page else "",
        }[self.action]
        return words if len(words) <= 60 else f"{words[:59]}…"


class EvalStory(StoryTable, frozen=True, kw_only=True):
    """What a person and an agent go through."""

    name: Annotated[str, msgspec.Meta(pattern=NAME)]
    theme: Annotated[str, msgspec.Meta(pattern=NAME)] = "other"
    """What it is about, with others: `reminders`."""
    why: str = ""
    """What is tried, in a sentence."""
    begins: str = "Monday 09:00"
    """The weekday and wall time at which it begins; the date is the next such one."""
    timezone: str = "UTC"
    """Of the person, by its IANA name."""
    quiet_hours: str = ""
    """As `person.quiet_hours`."""
    authority: Literal["off", "observe", "suggest", "act"] = "suggest"
    """As `agent.authority`."""
    knows: Texts = ()
    """What the agent remembers from the start."""
    page: tuple[StagedPage, ...] = ()
    """Pages that are there from the start."""
    step: Annotated[tuple[EvalStep, ...], msgspec.Meta(min_length=1, max_length=100)]
    whole: Expected = Expected()
    """What must hold of all of it."""


def check(story: EvalStory) -> None:
    """Check what types alone don't.

    Raises:
        InvalidInput: its field is as in the file, with `step.N.` before it for the step N.
    """
    if refusal := refusal_of(story.timezone):
        raise InvalidInput("timezone", refusal)
    try:
        hours_of(story.quiet_hours)
    except InvalidInput as error:
        raise InvalidInput("quiet_hours", error.reason) from error
    _check_moment("begins", story.begins, story)
    for number, step in enumerate(story.step, 1):
        at = f"step.{number}"
        try:
            action = step.action
        except InvalidInput as error:
            raise InvalidInput(at, error.reason) from error
        if step.thread != "main" and action != "say":
            raise InvalidInput(f"{at}.thread", "is for what the person says")
        if step.wait:
            moments.duration(f"{at}.wait", step.wait)
        if step.until:
            _check_moment(f"{at}.until", step.until, story)
        _check_expected(step, f"{at}.", story)
    _check_expected(story.whole, "whole.", story)


def _check_moment(field: str, text: str, story: EvalStory) -> None:
    moments.moment(field, text, moments.ANY, zone_named(story.timezone))


def _check_expected(expected: Expected, at: str, story: EvalStory) -> None:
    for field in ("said", "not_said", "told", "remembered", "not_remembered"):
        for text in getattr(expected, field):
            try:
                pattern(text)
            except (re.error, OverflowError, RecursionError) as error:
                raise InvalidInput(f"{at}{field}", f"{text} can't be read: {error}") from error
    for field in ("by", "not_before"):
        if given := getattr(expected, field):
            _check_moment(f"{at}{field}", given, story)
            if not (expected.said or expected.told):
                raise InvalidInput(f"{at}{field}", "needs `said` or `told`, which it's about")
    if expected.quiet and expected.told:
        raise InvalidInput(f"{at}quiet", "contradicts `told`")


def pattern(text: str) -> re.Pattern[str]:
    """Return what a text of an expectation looks for.

    >>> [bool(pattern(text).search("Time to STRETCH!")) for text in ("stretch", "/^stretch/")]
    [True, False]
    """
    if len(text) > 2 and text.startswith("/") and text.endswith("/"):
        return re.compile(text[1:-1], re.IGNORECASE | re.MULTILINE)
    return re.compile(re.escape(text), re.IGNORECASE)
