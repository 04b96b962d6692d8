"""What `vigil doctor` says of lists of contacts, by who refreshes them."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from vigil.checks import Check, fail, ok, others_can_read, warn
from vigil.contacts.section import ContactSource
from vigil.contacts.source import missing
from vigil.contacts.state import FACT
from vigil.errors import VigilError
from vigil.observe.health import HEALTH, Health
from vigil.settings.config import Settings

from ..admin import operator
from .channels import Look

if TYPE_CHECKING:
    from vigil.bus.bus import Bus

HEALTH_WAIT_S: Final = 1.0
REPLICAS_MAX: Final = 64
_ADVICE: Final = "see docs/contacts.md"


def checks(settings: Settings) -> dict[str, Look]:
    """Return a check for each list, by name."""
    return {
        f"contacts {name}": partial(_list, name, source)
        for name, source in settings.config.contacts.items()
    }


def _list(name: str, source: ContactSource, settings: Settings) -> Check:
    if not source.people and (needed := missing()):
        return fail(needed, _ADVICE)
    path = settings.home / Path(source.password_file).expanduser()
    if source.password_file and others_can_read(path):
        return warn(f"others can read {path}", f"chmod 600 {path}")
    try:
        return check_of(source, operator.run(settings, _states).get(name))
    except VigilError:  # nothing runs: what is configured is told
        return ok(f"{source.place}; {_counted(source)}")


async def _states(bus: Bus) -> dict[str, dict[str, Any]]:
    states: dict[str, dict[str, Any]] = {}
    for data in await bus.ask_all(HEALTH, b"", count=REPLICAS_MAX, timeout=HEALTH_WAIT_S):
        states |= msgspec.json.decode(data, type=Health).facts.get(FACT, {})
    return states


def check_of(source: ContactSource, state: dict[str, Any] | None) -> Check:
    """Return what a list's state means.

    >>> check_of(ContactSource(people=("a@b.org",)), {"state": "read", "people": 1}).found
    'in vigil.toml: 1 people; they count as known'
    """
    if state is None:
        return warn("no gateway reads it", "restart: it knows what was configured when it started")
    left_out = state.get("left_out", 0)
    more = f", {left_out} more are left out" if left_out else ""
    found = f"{source.place}: {state.get('people', 0)} people{more}; {_counted(source)}"
    if state.get("problem"):
        return warn(f"{found}: {state['problem']}", _ADVICE)
    return ok(found)


def _counted(source: ContactSource) -> str:
    return "they count as known" if source.is_theirs else "only looked up: others may write it"
