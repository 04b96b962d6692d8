"""What `vigil doctor` says of teams: whether their members are known here, if there is a broker to
ask. A name that nobody has is no mistake yet, but a typing mistake looks like one."""

from __future__ import annotations

from functools import partial

from vigil.checks import Check, ok, warn
from vigil.doctor.channels import Examine
from vigil.errors import VigilError
from vigil.settings.config import Settings

from ..admin import operator, token


def checks(settings: Settings) -> dict[str, Examine]:
    """Return a check of each team, by name."""
    teams = settings.config.teams.items()
    return {f"team {agent}": partial(_team, members) for agent, members in teams}


def _team(members: tuple[str, ...], settings: Settings) -> Check:
    shown = ", ".join(members)
    try:
        users = {one["user"] for one in operator.run(settings, token.stored)}
    except VigilError:
        return ok(f"{shown}; not compared with the tokens, nothing runs")
    unknown = [member for member in members if member not in users]
    if not unknown:
        return ok(shown)
    advice = f"`vigil token create --user {unknown[0]}`, or correct members in vigil.toml"
    return warn(f"{shown}; no token is of {', '.join(unknown)}", advice)
