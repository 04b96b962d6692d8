"""What the first start asks a person who is there (zone, language, a limit in money), and how a
person is asked."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

import typer

from vigil.edits import toml_sections
from vigil.errors import ConfigError, InvalidInput, VigilError
from vigil.local import system
from vigil.settings.config import Settings
from vigil.settings.models import first_cap
from vigil.settings.sections import LANGUAGE, Person
from vigil.zones.database import refusal_of

from .. import output

NONE: Final = "none"
"""What a person says who wants nothing of what is asked."""


def first_person(*, is_asked: bool) -> Person:
    """Return what holds for the person at the first start: what the machine says, and they."""
    found = system.person_of(os.environ)
    if not is_asked:
        return found
    zone = asked("Your time zone", found.timezone, check_zone)
    language = asked("Language to write in", found.language or "en", check_language)
    return Person(timezone=zone, language=language)


def ask_for_cap(settings: Settings) -> None:
    """Propose a limit in money, where prices are known and none is set; write what is taken."""
    found = first_cap.proposed(settings.config, datetime.now(UTC).date())
    if found is None:
        return
    question = "Daily limit in USD for all agents (0: none; a heavy day of one person fits)"
    most: float = typer.prompt(question, default=found, err=True, value_proc=_dollars)
    if not most:
        return
    remark = "Of all agents, a day. Asked at the first start; only models with prices are asked."
    value = int(most) if most == int(most) else most
    try:
        toml_sections.set_value(settings.file, ("budget", "daily_usd"), value, remark=remark)
    except ConfigError as error:
        output.message(f"{error}. It is: daily_usd = {value}")


def _dollars(text: str) -> float:
    try:
        most = float(text)
    except ValueError:
        most = -1.0
    if not 0 <= most < math.inf:
        raise typer.BadParameter("an amount such as 20 or 7.5; 0: none")
    return most


def check_zone(text: str) -> None:
    if reason := refusal_of(text):
        raise InvalidInput("zone", reason)


def check_language(text: str) -> None:
    if text and not re.fullmatch(LANGUAGE, text):
        raise InvalidInput("language", "is no language tag; for example: en, de-AT")


def asked(text: str, default: str, check: Callable[[str], object]) -> str:
    """Ask until it can be used; what is there already is offered, `none` is nothing."""

    def checked(given: str) -> str:
        value = "" if given.strip() == NONE else given.strip()
        try:
            check(value)
        except VigilError as error:
            raise typer.BadParameter(str(error)) from error
        return value

    shown = default or NONE
    found: str = typer.prompt(text, default=shown, value_proc=checked, err=True)
    return found
