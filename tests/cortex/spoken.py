"""Verdicts in words, as they go to the session that asked."""

from __future__ import annotations

from msgspec.structs import replace

from services.executor.work import verdict_of
from tests.cortex.driver import Driver
from vigil.contracts import SendVerdict, Turn
from vigil.subjects import SessionKey


def verdicts_of(turns: list[Turn]) -> list[SendVerdict]:
    return [e for turn in turns for e in turn.effects if isinstance(e, SendVerdict)]


def carry_out(driver: Driver, sent: SendVerdict) -> list[Turn]:
    """Store the verdict as the executor does."""
    event = verdict_of(SessionKey.parse(driver.key), sent, now=driver.now)
    return driver.feed(replace(event, **driver._envelope()))
