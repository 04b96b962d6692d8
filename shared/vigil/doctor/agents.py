"""What `vigil doctor` says of the agents that sections of vigil.toml name.

What such a section brings makes an agent of the name, if there is none. That is how some are meant
to begin, and what becomes of a typing mistake.
"""

from __future__ import annotations

from functools import partial

from ..checks import Check, warn
from ..local.identity_files import agents_there, naming
from ..settings.config import Settings
from ..words.nearest import nearest
from .channels import Examine


def checks(settings: Settings) -> dict[str, Examine]:
    """Return a check of each agent that sections name, and nothing else."""
    there, found = agents_there(settings), dict[str, list[str]]()
    for place, section in naming(settings.config):
        if section.agent not in there:
            found.setdefault(section.agent, []).append(place)
    return {f"agent {name}": partial(_unknown, name, places) for name, places in found.items()}


def _unknown(name: str, places: list[str], settings: Settings) -> Check:
    near = nearest(name, agents_there(settings))
    advice = f"`vigil agents add {name}`" + (f", or {near} if you mean that" if near else "")
    return warn(f"there is none yet; named by {', '.join(places)}", advice)
