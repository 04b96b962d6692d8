"""The kinds of the board whose bounds are settings: for whoever stores such entities."""

from __future__ import annotations

from datetime import timedelta

from msgspec.structs import replace

from ..contracts.board import BoardGoal, BoardPreference
from ..preferences.confidence import is_held
from ..settings.config import Config
from .kept import GOALS, PREFERENCES, KeptKind


def goals_of(config: Config) -> KeptKind[BoardGoal]:
    """Return goals, of which an owner may have as many active ones as is configured."""
    return replace(GOALS, open_max=config.goals.max)


def preferences_of(period: timedelta) -> KeptKind[BoardPreference]:
    """Return preferences, of which those don't count that are forgotten.

    Args:
        period: without a confirmation, that takes a little of how sure one is.
    """
    return replace(PREFERENCES, is_open=lambda one, now: is_held(one, now, period))
