"""What `vigil doctor` says of people's own mailboxes: their files, and how they are followed."""

from __future__ import annotations

from functools import partial
from typing import Any

from vigil.checks import Check, fail, of_secret, ok, warn
from vigil.doctor.channels import Examine
from vigil.errors import VigilError
from vigil.settings.config import Settings
from vigil.settings.live.renewal import NOT_TAKEN_IN
from vigil.settings.mailboxes import FACT, MailboxSection

from ..accounts import mailbox
from ..admin import operator
from ..admin.operator import States


def checks(settings: Settings) -> dict[str, Examine]:
    """Return a check for each, by name."""
    found = settings.config.mailboxes.items()
    states = operator.asked_once(settings, FACT)
    return {f"own mailbox {name}": partial(_mailbox, name, one, states) for name, one in found}


def _mailbox(name: str, section: MailboxSection, states: States, settings: Settings) -> Check:
    if why := mailbox.invalid(section, settings.home):
        return fail(why, "see docs/mail.md")
    if (found := of_secret(settings.home, section.password_file)) is not None:
        return found
    if not section.is_enabled:
        return ok(f"{section.address}: off")
    try:
        state = states().get(name)
    except VigilError:
        return ok(f"{section.address}: nothing runs that would follow it")
    return check_of(section.address, state)


def check_of(address: str, state: dict[str, Any] | None) -> Check:
    """Return what a mailbox's state means.

    >>> check_of("a@b.example", {"state": "listening", "problem": ""}).found
    'a@b.example: listening'
    """
    if state is None:
        advice = NOT_TAKEN_IN
        return warn(f"{address}: no executor follows it", advice)
    found = f"{address}: {state['state']}"
    if state["problem"]:
        return warn(f"{found}: {state['problem']}", "see docs/mail.md")
    return ok(found)
