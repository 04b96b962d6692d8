"""What the first start asks a person who is there: zone, language, a limit in money."""

from __future__ import annotations

import math
import os
import re
from datetime import UTC, datetime
from functools import partial

import typer

from vigil.errors import ConfigError
from vigil.local import system
from vigil.settings.config import Settings
from vigil.settings.models import first_cap
from vigil.settings.sections import LANGUAGE, Person
from vigil.zones.database import refusal_of

from .. import output, toml_sections


def first_person(*, is_asked: bool) -> Person:
    """Return what holds for the person at the first start: what the machine says, and they."""
    found = system.person_of(os.environ)
    if not is_asked:
        return found
    ask = partial(typer.prompt, err=True)
    zone = ask("Your time zone", default=found.timezone, value_proc=_zone)
    language = ask("Language to write in", default=found.language or "en", value_proc=_language)
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


def _zone(text: str) -> str:
    if reason := refusal_of(text):
        raise typer.BadParameter(reason)
    return text


def _language(text: str) -> str:
    if not re.fullmatch(LANGUAGE, text):
        raise typer.BadParameter("no language tag; for example: en, de-AT")
    return text
