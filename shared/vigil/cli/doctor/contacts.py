"""What `vigil doctor` says of lists of contacts, by who refreshes them."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from vigil.checks import Check, fail, of_secret, ok, warn
from vigil.contacts.section import ContactSource
from vigil.contacts.source import missing
from vigil.contacts.state import FACT
from vigil.doctor.channels import Examine
from vigil.errors import VigilError
from vigil.settings.config import Settings
from vigil.settings.live.renewal import NOT_TAKEN_IN
from vigil.words.amounts import count_of, number_of

from ..admin import operator
from ..admin.operator import States

_ADVICE: Final = "see docs/contacts.md"


def checks(settings: Settings) -> dict[str, Examine]:
    """Return a check for each list, by name."""
    states = operator.asked_once(settings, FACT)
    return {
        f"contacts {name}": partial(_list, name, source, states)
        for name, source in settings.config.contacts.items()
    }


def _list(name: str, source: ContactSource, states: States, settings: Settings) -> Check:
    if not source.people and (needed := missing()):
        return fail(needed, _ADVICE)
    if (found := of_secret(settings.home, source.password_file)) is not None:
        return found
    try:
        return check_of(source, states().get(name))
    except VigilError:  # nothing runs: what is configured is told
        return ok(f"{source.place}; {_counted(source)}")


def check_of(source: ContactSource, state: dict[str, Any] | None) -> Check:
    """Return what a list's state means.

    >>> check_of(ContactSource(people=("a@b.org",)), {"state": "read", "people": 1}).found
    'in vigil.toml: 1 person; they count as known'
    """
    if state is None:
        return warn("no gateway reads it", NOT_TAKEN_IN)
    left_out = state.get("left_out", 0)
    more = f", {left_out} more {number_of(left_out, 'is', 'are')} left out" if left_out else ""
    people = count_of(state.get("people", 0), "person", "people")
    found = f"{source.place}: {people}{more}; {_counted(source)}"
    if state.get("problem"):
        return warn(f"{found}: {state['problem']}", _ADVICE)
    return ok(found)


def _counted(source: ContactSource) -> str:
    return "they count as known" if source.is_theirs else "only looked up: others may write it"
