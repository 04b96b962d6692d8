"""The kinds of the board whose bounds are settings: for whoever stores such entities."""

from __future__ import annotations

from msgspec.structs import replace

from ..contracts.board import BoardGoal
from ..settings.config import Config
from .kept import GOALS, KeptKind


def goals_of(config: Config) -> KeptKind[BoardGoal]:
    """Return goals, of which an owner may have as many active ones as is configured."""
    return replace(GOALS, open_max=config.goals.max)
